//! Accesses that take some ten instructions of memory: to elements in a row in memory that this process sees,
//! of types that have not to be asked, with arguments that are right. Most accesses on a node are such, so
//! each begins here, and what is looked up is looked up once. None: the access is another one, or wrong, and
//! [`super::operation`] does it.

use super::combine::Combination;
use super::direct::hold;
use super::operation::{Buffer, Target, is_swapped};
use super::{Peer, WINDOWS, Way, Window};
use crate::datatype::Basic;
use crate::handle::{Op, Win};
use crate::memory::{copy, is_nowhere, is_same};
use crate::objects::dense_len;
use nmad_rma::origin::STEP;
use std::ffi::c_void;

/// Elements in a row in memory that this process sees.
struct Piece {
    window: &'static Window,
    peer: &'static Peer,
    /// The first byte, in this process.
    at: *mut c_void,
    /// Bytes.
    len: usize,
}

/// The memory of a target.
#[inline(always)]
fn piece((rank, disp, count, datatype): Target, win: Win) -> Option<Piece> {
    let window = WINDOWS.get(win.0)?;
    let peer = window.peers.get(rank as usize)?;
    let Way::Direct(base) = peer.way else { return None };
    let len = dense_len(datatype, count)?;
    // What begins before the window begins far behind it. A dynamic one has no bytes of its own.
    let offset = disp.checked_mul(peer.unit)? as u64;
    if offset.checked_add(len as u64)? > peer.size || len == 0 || !window.epoch.is_open(rank) {
        return None;
    }
    Some(Piece { window, peer, at: base.behind(offset as usize).pointer(), len })
}

/// A buffer of as many elements of the same type as at the target.
#[inline(always)]
fn like((.., count, datatype): Target, buffer: Buffer) -> Option<*const c_void> {
    (buffer.1 == count && buffer.2 == datatype && !is_nowhere(buffer.0)).then_some(buffer.0)
}

/// A buffer in one piece that is as long as that at the target.
#[inline(always)]
fn as_long(piece: &Piece, target: Target, origin: Buffer) -> Option<*const c_void> {
    let (buffer, count, datatype) = origin;
    like(target, origin)
        .or_else(|| (dense_len(datatype, count)? == piece.len && !is_nowhere(buffer)).then_some(buffer))
}

/// `MPI_Put`
#[inline(always)]
pub(crate) fn put(origin: Buffer, target: Target, win: Win) -> Option<()> {
    let piece = piece(target, win)?;
    copy(as_long(&piece, target, origin)?, piece.at, piece.len);
    Some(())
}

/// `MPI_Get`
#[inline(always)]
pub(crate) fn get(origin: Buffer, target: Target, win: Win) -> Option<()> {
    let piece = piece(target, win)?;
    copy(piece.at, as_long(&piece, target, origin)?.cast_mut(), piece.len);
    Some(())
}

/// `MPI_Accumulate`, and with a result `MPI_Get_accumulate` and `MPI_Fetch_and_op`.
#[inline(always)]
pub(crate) fn accumulate(
    origin: Buffer,
    result: Option<Buffer>,
    target: Target,
    op: Op,
    win: Win,
) -> Option<()> {
    let piece = piece(target, win)?;
    let combination = Combination::known(op, target.3)?;
    let from = if combination.reads() { like(target, origin)? } else { origin.0 };
    let into = match result {
        Some(result) => Some(like(target, result)?.cast_mut()),
        None => None,
    };
    // More elements are combined in steps, so that others have their turns in between. Whatever the length of
    // an element, a step has more than half of its bytes.
    if piece.len as u64 > STEP / 2 {
        return None;
    }
    // Elements are read and changed in one step.
    let _held = hold(piece.window, piece.peer);
    if let Some(into) = into {
        copy(piece.at, into, piece.len);
    }
    combination.apply_to_row((target.2, piece.len), from, piece.at);
    Some(())
}

/// `MPI_Compare_and_swap`
#[inline(always)]
pub(crate) fn compare_and_swap(
    (origin, compare, result): (*const c_void, *const c_void, *mut c_void),
    target: Target,
    win: Win,
) -> Option<()> {
    let Piece { window, peer, at, len } = piece(target, win)?;
    Basic::from_code(target.3.0).filter(is_swapped)?;
    if is_nowhere(origin) || is_nowhere(compare) || is_nowhere(result) {
        return None;
    }
    let _held = hold(window, peer);
    let is_same = is_same(at, compare, len);
    copy(at, result, len);
    if is_same {
        copy(origin, at, len);
    }
    Some(())
}
