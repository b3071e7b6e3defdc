//! Values of infos, and names of sets of processes: text whose length the program says itself.
#![allow(missing_docs)]

use super::text::{self, Room};
use super::{c, place};
use crate::abi;
use std::ffi::c_char;

/// How much room there is: as much as is said, but no more than the text has.
fn room(said: i32, len: usize) -> i32 {
    said.clamp(0, i32::try_from(len as u32).unwrap_or(i32::MAX))
}

symbols! {
    fn mpi_info_get_ pmpi_info_get_(
        info: *const i32, key: *const c_char, valuelen: *const i32, value: *mut c_char, flag: *mut i32,
        ierror: *mut i32, key_len: usize, value_len: usize,
    ) {
        let (key, len) = (text::trimmed(key, key_len), room(*valuelen, value_len));
        let mut found = Room::new(len as usize + 1);
        let code = c::PMPI_Info_get(abi::info_in(*info), key.as_ptr().cast_mut(), len, found.place(), flag);
        if code == 0 && *flag != 0 {
            found.give(value, value_len);
        }
        place::give(ierror, code);
    }

    fn mpi_info_get_string_ pmpi_info_get_string_(
        info: *const i32, key: *const c_char, buflen: *mut i32, value: *mut c_char, flag: *mut i32,
        ierror: *mut i32, key_len: usize, value_len: usize,
    ) {
        // With a length of 0 the program asks for nothing but the length. The zero of C is none of Fortran's.
        let key = text::trimmed(key, key_len);
        let mut len = room(*buflen, value_len);
        let is_asked = len > 0;
        len += i32::from(is_asked);
        let mut found = Room::new(len as usize);
        let (info, key) = (abi::info_in(*info), key.as_ptr().cast_mut());
        let code = c::PMPI_Info_get_string(info, key, &raw mut len, found.place(), flag);
        if code == 0 && *flag != 0 {
            buflen.write(len - 1);
            if is_asked {
                found.give(value, value_len);
            }
        }
        place::give(ierror, code);
    }

    fn mpi_session_get_nth_pset_ pmpi_session_get_nth_pset_(
        session: *const i32, info: *const i32, n: *const i32, pset_len: *mut i32, pset_name: *mut c_char,
        ierror: *mut i32, name_len: usize,
    ) {
        let mut len = room(*pset_len, name_len);
        let is_asked = len > 0;
        len += i32::from(is_asked);
        let mut found = Room::new(len as usize);
        let (session, info) = (abi::session_in(*session), abi::info_in(*info));
        let code = c::PMPI_Session_get_nth_pset(session, info, *n, &raw mut len, found.place());
        if code == 0 {
            pset_len.write(len - 1);
            if is_asked {
                found.give(pset_name, name_len);
            }
        }
        place::give(ierror, code);
    }
}
