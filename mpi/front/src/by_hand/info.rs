//! Values of info objects: they may not be there, and there may be too little room for them.

use crate::{Abi, give, take};
use nmad_mpi::api;
use nmad_mpi::error::{Class, Result};
use nmad_mpi::handle::Info;
use std::ffi::c_char;

/// `MPI_Info_get`: room does not count the end of the string.
pub(crate) fn info_get<A: Abi>(
    info: Info,
    key: &str,
    room: i32,
    value: *mut c_char,
    flag: *mut i32,
) -> Result<()> {
    let found = api::info_get_string(info, key)?;
    let wrong = || Class::ARG.error(format!("argument valuelen is {room}: it must not be negative"));
    let room = usize::try_from(room).map_err(|_| wrong())?;
    take::place("value", value)?;
    give::value(flag, found.is_some().into());
    if let Some(found) = found {
        give::string(value, room + 1, &found, std::ptr::null_mut());
    }
    Ok(())
}

pub(crate) fn info_get_valuelen<A: Abi>(info: Info, key: &str, len: *mut i32, flag: *mut i32) -> Result<()> {
    let found = api::info_get_string(info, key)?;
    give::value(flag, found.is_some().into());
    if let Some(found) = found {
        give::value(len, found.len() as i32);
    }
    Ok(())
}

/// `MPI_Info_get_string`: `room` counts the end of the string; the call returns the length that is needed.
pub(crate) fn info_get_string<A: Abi>(
    info: Info,
    key: &str,
    room: &mut i32,
    value: *mut c_char,
    flag: *mut i32,
) -> Result<()> {
    let found = api::info_get_string(info, key)?;
    take::places("value", value, usize::try_from(*room).unwrap_or(0))?;
    give::value(flag, found.is_some().into());
    if let Some(found) = found {
        if *room > 0 {
            give::string(value, *room as usize, &found, std::ptr::null_mut());
        }
        *room = found.len() as i32 + 1;
    }
    Ok(())
}
