//! Starting processes: command lines are lists of texts of one length that end with a blank one.
#![allow(missing_docs)]

use super::{c, place, text};
use crate::abi;
use std::ffi::{CString, c_char, c_void};

/// The arguments of one program: every `step`th text.
struct Arguments {
    _texts: Vec<CString>,
    pointers: Vec<*mut c_char>,
}

impl Arguments {
    unsafe fn read(first: *const c_char, len: usize, step: usize) -> Arguments {
        let mut texts = Vec::new();
        loop {
            // SAFETY: the list ends with a blank text.
            let each = unsafe { text::taken(first.add(texts.len() * step * len), len) };
            if each.is_empty() {
                break;
            }
            texts.push(each);
        }
        let pointers = texts.iter().map(|text| text.as_ptr().cast_mut());
        let pointers = pointers.chain([std::ptr::null_mut()]).collect();
        Arguments { _texts: texts, pointers }
    }
}

symbols! {
    fn mpi_comm_spawn_ pmpi_comm_spawn_(
        command: *const c_char, argv: *const c_char, maxprocs: *const i32, info: *const i32, root: *const i32,
        comm: *const i32, intercomm: *mut i32, array_of_errcodes: *mut i32, ierror: *mut i32,
        command_len: usize, argv_len: usize,
    ) {
        let command = text::taken(command, command_len);
        let mut arguments =
            (!place::is_no_text(argv)).then(|| Arguments::read(argv, argv_len as u32 as usize, 1));
        let argv = arguments.as_mut().map_or(std::ptr::null_mut(), |it| it.pointers.as_mut_ptr());
        let mut made = abi::no_handle();
        let code = c::PMPI_Comm_spawn(
            command.as_ptr().cast_mut(), argv.cast(), *maxprocs, abi::info_in(*info), *root,
            abi::comm_in(*comm), &raw mut made, place::errcodes(array_of_errcodes),
        );
        if code == 0 {
            *intercomm = abi::comm_out(made);
        }
        place::give(ierror, code);
    }

    fn mpi_comm_spawn_multiple_ pmpi_comm_spawn_multiple_(
        count: *const i32, array_of_commands: *const c_char, array_of_argv: *const c_char,
        array_of_maxprocs: *mut i32, array_of_info: *const i32, root: *const i32, comm: *const i32,
        intercomm: *mut i32, array_of_errcodes: *mut i32, ierror: *mut i32, commands_len: usize,
        argv_len: usize,
    ) {
        let number = place::length((*count).into());
        let (commands_len, argv_len) = (commands_len as u32 as usize, argv_len as u32 as usize);
        let commands: Vec<CString> = (0..number)
            .map(|index| text::taken(array_of_commands.add(index * commands_len), commands_len))
            .collect();
        let mut commands: Vec<_> = commands.iter().map(|text| text.as_ptr().cast_mut()).collect();
        let mut arguments: Vec<Arguments> = match place::is_no_text(array_of_argv) {
            true => Vec::new(),
            // The list is of `count` rows, and Fortran stores columns.
            false => (0..number)
                .map(|index| Arguments::read(array_of_argv.add(index * argv_len), argv_len, number))
                .collect(),
        };
        let mut lists: Vec<_> = arguments.iter_mut().map(|it| it.pointers.as_mut_ptr()).collect();
        let argv = if lists.is_empty() { std::ptr::null_mut::<c_void>() } else { lists.as_mut_ptr().cast() };
        let mut infos: Vec<_> = (0..number).map(|index| abi::info_in(*array_of_info.add(index))).collect();
        let mut made = abi::no_handle();
        let code = c::PMPI_Comm_spawn_multiple(
            *count, commands.as_mut_ptr().cast(), argv, array_of_maxprocs, infos.as_mut_ptr(), *root,
            abi::comm_in(*comm), &raw mut made, place::errcodes(array_of_errcodes),
        );
        if code == 0 {
            *intercomm = abi::comm_out(made);
        }
        place::give(ierror, code);
    }
}
