//! Accesses to windows, and the epochs in which they are allowed.

use crate::error::Result;
use crate::handle::{Group, Op, Request, Type, Win};
use crate::objects::group;
use crate::window::{lookup, operation};
use std::ffi::c_void;

/// `MPI_Put`
///
/// # Errors
/// An argument is wrong, the target's memory is not in the window, or there is no access epoch.
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn put(
    origin: *const c_void,
    count: i64,
    datatype: Type,
    rank: i32,
    disp: i64,
    target_count: i64,
    target_type: Type,
    win: Win,
) -> Result<()> {
    let target = (rank, disp, target_count, target_type);
    operation::put(lookup(win)?, (origin, count, datatype), target, None)
}

/// `MPI_Get`
///
/// # Errors
/// As [`put`].
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn get(
    origin: *mut c_void,
    count: i64,
    datatype: Type,
    rank: i32,
    disp: i64,
    target_count: i64,
    target_type: Type,
    win: Win,
) -> Result<()> {
    let origin = origin.cast_const();
    let target = (rank, disp, target_count, target_type);
    operation::get(lookup(win)?, (origin, count, datatype), target, None)
}

/// `MPI_Accumulate`
///
/// # Errors
/// As [`put`], or the operator does not allow the type.
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn accumulate(
    origin: *const c_void,
    count: i64,
    datatype: Type,
    rank: i32,
    disp: i64,
    target_count: i64,
    target_type: Type,
    op: Op,
    win: Win,
) -> Result<()> {
    let (origin, target) = ((origin, count, datatype), (rank, disp, target_count, target_type));
    operation::accumulate(lookup(win)?, (origin, None), target, op, None)
}

/// `MPI_Get_accumulate`
///
/// # Errors
/// As [`accumulate`].
#[allow(clippy::too_many_arguments)] // as many as the standard has
#[inline]
pub fn get_accumulate(
    origin: *const c_void,
    count: i64,
    datatype: Type,
    result: *mut c_void,
    result_count: i64,
    result_type: Type,
    rank: i32,
    disp: i64,
    target_count: i64,
    target_type: Type,
    op: Op,
    win: Win,
) -> Result<()> {
    let (origin, result) = ((origin, count, datatype), (result.cast_const(), result_count, result_type));
    let target = (rank, disp, target_count, target_type);
    operation::accumulate(lookup(win)?, (origin, Some(result)), target, op, None)
}

/// `MPI_Fetch_and_op`
///
/// # Errors
/// As [`accumulate`].
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn fetch_and_op(
    origin: *const c_void,
    result: *mut c_void,
    datatype: Type,
    rank: i32,
    disp: i64,
    op: Op,
    win: Win,
) -> Result<()> {
    get_accumulate(origin, 1, datatype, result, 1, datatype, rank, disp, 1, datatype, op, win)
}

/// `MPI_Compare_and_swap`
///
/// # Errors
/// As [`put`], or the type is no integer, logical or byte.
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn compare_and_swap(
    origin: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    datatype: Type,
    rank: i32,
    disp: i64,
    win: Win,
) -> Result<()> {
    operation::compare_and_swap(lookup(win)?, (origin, compare, result), (rank, disp, 1, datatype))
}

/// `MPI_Rput`
///
/// # Errors
/// As [`put`].
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn rput(
    origin: *const c_void,
    count: i64,
    datatype: Type,
    rank: i32,
    disp: i64,
    target_count: i64,
    target_type: Type,
    win: Win,
) -> Result<Request> {
    operation::rput((origin, count, datatype), (rank, disp, target_count, target_type), win)
}

/// `MPI_Rget`
///
/// # Errors
/// As [`put`].
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn rget(
    origin: *mut c_void,
    count: i64,
    datatype: Type,
    rank: i32,
    disp: i64,
    target_count: i64,
    target_type: Type,
    win: Win,
) -> Result<Request> {
    operation::rget((origin.cast_const(), count, datatype), (rank, disp, target_count, target_type), win)
}

/// `MPI_Raccumulate`
///
/// # Errors
/// As [`accumulate`].
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn raccumulate(
    origin: *const c_void,
    count: i64,
    datatype: Type,
    rank: i32,
    disp: i64,
    target_count: i64,
    target_type: Type,
    op: Op,
    win: Win,
) -> Result<Request> {
    let target = (rank, disp, target_count, target_type);
    operation::raccumulate((origin, count, datatype), None, target, op, win)
}

/// `MPI_Rget_accumulate`
///
/// # Errors
/// As [`accumulate`].
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn rget_accumulate(
    origin: *const c_void,
    count: i64,
    datatype: Type,
    result: *mut c_void,
    result_count: i64,
    result_type: Type,
    rank: i32,
    disp: i64,
    target_count: i64,
    target_type: Type,
    op: Op,
    win: Win,
) -> Result<Request> {
    let result = Some((result.cast_const(), result_count, result_type));
    operation::raccumulate(
        (origin, count, datatype),
        result,
        (rank, disp, target_count, target_type),
        op,
        win,
    )
}

macro_rules! epochs {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $kind:ty),*) = $call:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// There is no such window or rank, the epochs do not allow it, or an operation has failed.
        pub fn $name($($argument: $kind,)* win: Win) -> Result<()> {
            let window = lookup(win)?;
            let call: fn(&crate::window::Window, $($kind),*) -> Result<()> = $call;
            call(window, $($argument),*)
        }
    )*};
}

epochs! {
    /// `MPI_Win_fence`
    win_fence(assertion: i32) = |window, assertion| window.fence(assertion);
    /// `MPI_Win_post`
    win_post(to: Group, assertion: i32) = |window, to, assertion| window.post(&group(to)?, assertion);
    /// `MPI_Win_start`
    win_start(to: Group, assertion: i32) = |window, to, assertion| window.start(&group(to)?, assertion);
    /// `MPI_Win_complete`
    win_complete() = |window| window.complete();
    /// `MPI_Win_wait`
    win_wait() = |window| window.wait();
    /// `MPI_Win_lock`
    win_lock(kind: i32, rank: i32, assertion: i32) = |window, kind, rank, assertion| {
        window.lock(kind, rank, assertion)
    };
    /// `MPI_Win_lock_all`
    win_lock_all(assertion: i32) = |window, assertion| window.lock_all(assertion);
    /// `MPI_Win_unlock`
    win_unlock(rank: i32) = |window, rank| window.unlock(rank);
    /// `MPI_Win_unlock_all`
    win_unlock_all() = |window| window.unlock_all();
    /// `MPI_Win_flush`
    win_flush(rank: i32) = |window, rank| window.flush_rank("MPI_Win_flush", rank, true);
    /// `MPI_Win_flush_all`
    win_flush_all() = |window| window.flush_all("MPI_Win_flush_all", true);
    /// `MPI_Win_flush_local`
    win_flush_local(rank: i32) = |window, rank| window.flush_rank("MPI_Win_flush_local", rank, false);
    /// `MPI_Win_flush_local_all`
    win_flush_local_all() = |window| window.flush_all("MPI_Win_flush_local_all", false);
    /// `MPI_Win_sync`
    win_sync() = |window| window.sync();
}

/// `MPI_Win_test`
///
/// # Errors
/// There is no such window, or no exposure epoch.
pub fn win_test(win: Win) -> Result<bool> {
    lookup(win)?.test()
}
