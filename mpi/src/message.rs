//! What a message consists of: the program's memory, walked into segments. Nothing is packed.

use crate::constant::PROC_NULL;
use crate::datatype::{Datatype, Strided};
use crate::error::{Class, Error, Result};
use crate::handle::Type;
use crate::memory::{self, is_nowhere, nowhere};
use crate::objects::{committed, dense_len};
use newmadeleine::Segments;
use std::ffi::c_void;

/// The memory that `count` elements of a type at `buffer` occupy. No elements may be of `MPI_DATATYPE_NULL`:
/// programs that have nothing to send give it, since MPICH takes it.
///
/// # Errors
/// A negative count, or no such type.
#[inline]
pub(crate) fn segments(buffer: *const c_void, count: i64, datatype: Type) -> Result<Segments> {
    let Some(len) = dense_len(datatype, count) else { return slowly(buffer, count, datatype) };
    if is_nowhere(buffer) && len > 0 {
        return Err(nowhere(buffer));
    }
    Ok(memory::contiguous(buffer, len))
}

/// As [`segments`], of a message to or from a rank. A message to or from no process has no data: neither the
/// buffer nor the datatype, which may be `MPI_DATATYPE_NULL`, means anything (MPI 5.0, section 3.10).
#[inline(always)]
pub(crate) fn with(peer: i32, buffer: *const c_void, count: i64, datatype: Type) -> Result<Segments> {
    segments(buffer, count, datatype).or_else(|why| nothing(peer, count, datatype, why))
}

#[cold]
#[inline(never)]
fn nothing(peer: i32, count: i64, datatype: Type, why: Error) -> Result<Segments> {
    let means_nothing = datatype.is_null() || why.class() == Class::BUFFER;
    if peer == PROC_NULL && count >= 0 && means_nothing { Ok(Segments::empty()) } else { Err(why) }
}

/// As [`segments`], if that takes no look at the type and nothing is wrong: one piece.
#[inline(always)]
pub(crate) fn piece(buffer: *const c_void, count: i64, datatype: Type) -> Option<Segments> {
    let len = dense_len(datatype, count)?;
    (!is_nowhere(buffer)).then(|| memory::contiguous(buffer, len))
}

#[inline(never)]
fn slowly(buffer: *const c_void, count: i64, datatype: Type) -> Result<Segments> {
    if count == 0 && datatype.is_null() {
        return Ok(Segments::empty());
    }
    of(buffer, count, committed(datatype)?)
}

/// As [`segments`], of a type that was looked up.
///
/// # Errors
/// A negative count.
#[inline]
pub(crate) fn of(buffer: *const c_void, count: i64, datatype: &Datatype) -> Result<Segments> {
    if count < 0 {
        return Err(negative(count));
    }
    // More bytes than can be counted are an error.
    datatype.bytes(count)?;
    match datatype.run(count) {
        Some(run) => {
            let start = buffer.wrapping_byte_offset(run.offset as isize);
            if is_nowhere(start) && run.len > 0 {
                return Err(nowhere(buffer));
            }
            Ok(memory::contiguous(start, run.len as usize))
        }
        None => walk(buffer, count, datatype),
    }
}

/// Memory of several pieces.
#[cold]
fn walk(buffer: *const c_void, count: i64, datatype: &Datatype) -> Result<Segments> {
    if let Some(Strided { first, count, stride }) = datatype.strides(count)
        && let (Ok(len), Ok(count)) = (usize::try_from(first.len), usize::try_from(count))
    {
        let start = buffer.wrapping_byte_offset(first.offset as isize);
        if is_nowhere(start) && len > 0 {
            return Err(nowhere(buffer));
        }
        return Ok(memory::strided(start, len, stride as isize, count));
    }
    // Where an element begins with the end of the one before it the two pieces are not joined.
    let tile = datatype.tile();
    if tile.first().is_some_and(|offset| is_nowhere(buffer.wrapping_byte_offset(offset))) {
        return Err(nowhere(buffer));
    }
    Ok(memory::tiled(tile, buffer, count as usize))
}

#[cold]
fn negative(count: i64) -> Error {
    Class::COUNT.error(format!("the count is {count}: it must not be negative"))
}
