//! Converts memory of the caller for the engine: it is borrowed until the request ends, which the
//! submitting code ensures.
#![allow(unsafe_code)]

use nmad_engine::Segments;

/// Memory of a send.
pub(crate) fn readable(data: &[u8]) -> Segments {
    // SAFETY: the caller keeps `data` borrowed until the request ends; sends only read.
    unsafe { Segments::from_raw(data.as_ptr().cast_mut(), data.len()) }
}

/// Memory of a receive.
pub(crate) fn writable(data: &mut [u8]) -> Segments {
    // SAFETY: the caller keeps `data` borrowed mutably until the request ends.
    unsafe { Segments::from_raw(data.as_mut_ptr(), data.len()) }
}

/// Memory of a send in pieces of `piece` bytes, each followed by a gap of that length.
pub(crate) fn readable_blocks(data: &[u8], piece: usize) -> Segments {
    let count = data.len() / (2 * piece.max(1));
    // SAFETY: all pieces are in `data`, which the caller keeps borrowed until the request ends.
    unsafe { Segments::from_strided(data.as_ptr().cast_mut(), piece, 2 * piece as isize, count) }
}

/// Memory of a receive in pieces of `piece` bytes, each followed by a gap of that length.
pub(crate) fn writable_blocks(data: &mut [u8], piece: usize) -> Segments {
    let count = data.len() / (2 * piece.max(1));
    // SAFETY: all pieces are in `data`, which the caller keeps borrowed mutably until the request ends.
    unsafe { Segments::from_strided(data.as_mut_ptr(), piece, 2 * piece as isize, count) }
}

/// Memory of a receive in pieces.
pub(crate) fn gather<'d>(pieces: impl Iterator<Item = &'d mut [u8]>) -> Segments {
    let list: Vec<_> = pieces.map(|p| nmad_engine::Segment { start: p.as_mut_ptr(), len: p.len() }).collect();
    // SAFETY: as `writable`, for every piece; mutable slices do not overlap.
    unsafe { Segments::from_list(&list) }
}
