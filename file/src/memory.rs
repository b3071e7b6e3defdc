//! Memory of accesses: borrowed as segments of the engine. All of the `unsafe` code of this crate is here.

use nmad_engine::{Segment, Segments};
use std::io::IoSliceMut;
use std::mem::ManuallyDrop;

/// Memory that a message reads or writes until it has ended. If it is dropped before, it is leaked and not
/// freed.
pub struct Kept {
    bytes: ManuallyDrop<Vec<u8>>,
    memory: Segments,
}

impl Kept {
    /// These bytes.
    pub fn new(mut bytes: Vec<u8>) -> Kept {
        // SAFETY: the bytes are not moved, freed or used before `release`, which follows the end of the
        // message.
        let memory = unsafe { Segments::from_raw(bytes.as_mut_ptr(), bytes.len()) };
        Kept { bytes: ManuallyDrop::new(bytes), memory }
    }

    /// The memory, for one message.
    pub fn segments(&self) -> Segments {
        self.memory.clone()
    }

    /// Returns the bytes; all messages with them must have ended.
    pub fn release(self) -> Vec<u8> {
        ManuallyDrop::into_inner(self.bytes)
    }
}

/// The memory of several parts, one after the other.
pub fn joined<'a>(parts: impl IntoIterator<Item = &'a Segments>) -> Segments {
    let list: Vec<Segment> = parts.into_iter().flat_map(|part| part.iter()).collect();
    // SAFETY: each part was made with the same promise.
    unsafe { Segments::from_list(&list) }
}

/// Room of the memory from `offset` on, at most `len` bytes of it in at most `count` slices.
pub(crate) fn room(memory: &Segments, offset: u64, len: u64, count: usize) -> Vec<IoSliceMut<'_>> {
    let rest = memory.slice(offset, len);
    let slice = |piece: Segment| {
        // SAFETY: whoever made the segments of a read has promised that they may be written and have no other
        // reference meanwhile; no two pieces overlap.
        IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(piece.start, piece.len) })
    };
    rest.iter().take(count).map(slice).collect()
}

/// Memory that is contiguous, to be written; none: it is not.
pub(crate) fn whole(memory: &Segments) -> Option<IoSliceMut<'_>> {
    let mut pieces = memory.iter();
    let only = pieces.next()?;
    if pieces.next().is_some() {
        return None;
    }
    // SAFETY: as in `room`.
    Some(IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(only.start, only.len) }))
}

/// Bytes as memory of an access that ends before the caller uses them otherwise.
pub(crate) fn lent(bytes: &mut [u8]) -> Segments {
    // SAFETY: the promise of the callers, all in this crate: they keep the bytes until a system call that
    // reads or fills them has returned.
    unsafe { Segments::from_raw(bytes.as_mut_ptr(), bytes.len()) }
}

/// Bytes as memory that an access only reads, as [`lent`].
pub(crate) fn lent_to_read(bytes: &[u8]) -> Segments {
    // SAFETY: as above; nothing is written there.
    unsafe { Segments::from_raw(bytes.as_ptr().cast_mut(), bytes.len()) }
}
