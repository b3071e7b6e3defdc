//! Windows: made, asked for what they are, freed.

use crate::api::Code;
use crate::attribute::Owner;
use crate::errhandler;
use crate::error::Result;
use crate::handle::{Comm, Errhandler, Group, Info, Keyval, Win};
use crate::info;
use crate::objects::hand_out_group;
use crate::window::create::{self, Wish};
use crate::window::{Flavor, lookup, share};
use std::ffi::c_void;

/// `MPI_Win_create`
///
/// # Errors
/// An argument is wrong.
pub fn win_create(base: *mut c_void, size: i64, unit: i64, info: Info, comm: Comm) -> Result<Win> {
    let info = info::optional(info)?;
    create::make(comm, &Wish { flavor: Flavor::Create, base, size, unit, info })
}

/// `MPI_Win_allocate`: the address of the memory, too.
///
/// # Errors
/// An argument is wrong, or there is no memory left.
pub fn win_allocate(size: i64, unit: i64, info: Info, comm: Comm) -> Result<(*mut c_void, Win)> {
    allocated(Flavor::Allocate, (size, unit), info, comm)
}

/// `MPI_Win_allocate_shared`: the address of our memory, too.
///
/// # Errors
/// As [`win_allocate`], or the processes cannot share memory.
pub fn win_allocate_shared(size: i64, unit: i64, info: Info, comm: Comm) -> Result<(*mut c_void, Win)> {
    allocated(Flavor::Shared, (size, unit), info, comm)
}

fn allocated(flavor: Flavor, (size, unit): (i64, i64), info: Info, comm: Comm) -> Result<(*mut c_void, Win)> {
    let info = info::optional(info)?;
    let win = create::make(comm, &Wish { flavor, base: std::ptr::null_mut(), size, unit, info })?;
    Ok((lookup(win)?.base(), win))
}

/// `MPI_Win_create_dynamic`
///
/// # Errors
/// An argument is wrong.
pub fn win_create_dynamic(info: Info, comm: Comm) -> Result<Win> {
    let info = info::optional(info)?;
    let base = std::ptr::null_mut();
    create::make(comm, &Wish { flavor: Flavor::Dynamic, base, size: 0, unit: 1, info })
}

/// `MPI_Win_free`
///
/// # Errors
/// There is no such window, an epoch is open, or a delete function fails.
pub fn win_free(win: &mut Win) -> Result<()> {
    create::free(win)
}

/// `MPI_Win_attach`
///
/// # Errors
/// The window is not a dynamic one, or some of the memory is attached already.
pub fn win_attach(win: Win, base: *mut c_void, size: i64) -> Result<()> {
    lookup(win)?.attach(base, size)
}

/// `MPI_Win_detach`
///
/// # Errors
/// The window is not a dynamic one, or nothing is attached there.
pub fn win_detach(win: Win, base: *const c_void) -> Result<()> {
    lookup(win)?.detach(base)
}

/// `MPI_Win_shared_query`: size, unit of displacements, address.
///
/// # Errors
/// There is no such window or rank, or the window is a dynamic one.
pub fn win_shared_query(win: Win, rank: i32) -> Result<(i64, i64, *mut c_void)> {
    lookup(win)?.shared_query(rank)
}

/// `MPI_Win_get_group`
///
/// # Errors
/// There is no such window.
pub fn win_get_group(win: Win) -> Result<Group> {
    Ok(hand_out_group(lookup(win)?.group()))
}

/// `MPI_Win_set_name`
///
/// # Errors
/// There is no such window.
pub fn win_set_name(win: Win, name: &str) -> Result<()> {
    *lookup(win)?.name() = name.into();
    Ok(())
}

/// `MPI_Win_get_name`
///
/// # Errors
/// There is no such window.
pub fn win_get_name(win: Win) -> Result<String> {
    Ok(match win {
        Win::NULL => "MPI_WIN_NULL".into(),
        win => lookup(win)?.name().clone(),
    })
}

/// `MPI_Win_set_info`
///
/// # Errors
/// There is no such window or info object.
pub fn win_set_info(win: Win, info: Info) -> Result<()> {
    let window = lookup(win)?;
    info::optional(info)?.iter().for_each(|info| window.info().merge(info));
    Ok(())
}

/// `MPI_Win_get_info`
///
/// # Errors
/// There is no such window.
pub fn win_get_info(win: Win) -> Result<Info> {
    Ok(info::insert(lookup(win)?.info().told()))
}

/// `MPI_Win_get_attr`: the value, an address as a number; for predefined attributes that of a number, or of
/// the memory.
///
/// # Errors
/// There is no such window or key.
pub fn win_get_attr(win: Win, keyval: Keyval) -> Result<Option<usize>> {
    let window = lookup(win)?;
    let [size, unit, flavor, model] = window.numbers();
    match keyval {
        Keyval::WIN_BASE => Ok(Some(window.base().expose_provenance())),
        Keyval::WIN_SIZE => Ok(Some(size)),
        Keyval::WIN_DISP_UNIT => Ok(Some(unit)),
        Keyval::WIN_CREATE_FLAVOR => Ok(Some(flavor)),
        Keyval::WIN_MODEL => Ok(Some(model)),
        _ => window.attributes().get(Owner::Win, keyval),
    }
}

/// `MPI_Win_set_attr`
///
/// # Errors
/// There is no such window or key, it is predefined, or the delete function of the old value fails.
pub fn win_set_attr(win: Win, keyval: Keyval, value: usize) -> Result<()> {
    share(win)?.attributes().set(Owner::Win, win.0, keyval, value)
}

/// `MPI_Win_delete_attr`
///
/// # Errors
/// There is no such window, key or attribute, it is predefined, or the delete function fails.
pub fn win_delete_attr(win: Win, keyval: Keyval) -> Result<()> {
    share(win)?.attributes().delete(Owner::Win, win.0, keyval)
}

/// `MPI_Win_set_errhandler`
///
/// # Errors
/// There is no such window or error handler.
pub fn win_set_errhandler(win: Win, errhandler: Errhandler) -> Result<()> {
    let handler = errhandler::lookup(errhandler)?;
    lookup(win)?.set_errhandler(handler);
    Ok(())
}

/// `MPI_Win_get_errhandler`
///
/// # Errors
/// There is no such window.
pub fn win_get_errhandler(win: Win) -> Result<Errhandler> {
    Ok(errhandler::give_out(&lookup(win)?.errhandler()))
}

/// `MPI_Win_call_errhandler`
///
/// # Errors
/// There is no such window.
pub fn win_call_errhandler(win: Win, code: Code) -> Result<()> {
    errhandler::call(&lookup(win)?.errhandler(), win.0, code);
    Ok(())
}
