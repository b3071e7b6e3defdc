//! Memory that a process exposes: where it begins, and what is read and written there. All of the `unsafe`
//! code of this crate is here.
//!
//! Who makes a [`Base`] promises that the memory from there on, as far as it is exposed, stays until nothing
//! accesses it any more, and that the program does not access it in conflict.

use nmad_engine::memory::copy_overlapping;
use nmad_engine::{Segment, Segments};
use std::ffi::c_void;

/// Where exposed memory begins in this process; null: displacements are addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base(*mut u8);

// SAFETY: a plain address.
unsafe impl Send for Base {}
// SAFETY: as above.
unsafe impl Sync for Base {}

impl Base {
    /// Displacements are addresses.
    pub const BOTTOM: Base = Base(std::ptr::null_mut());

    /// Memory that begins there.
    #[inline]
    pub fn new(start: *mut c_void) -> Base {
        Base(start.cast())
    }

    /// Its address, for the program.
    #[inline]
    pub fn pointer(self) -> *mut c_void {
        self.0.cast()
    }

    /// Its address, for other processes.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// What begins some bytes later.
    #[inline]
    pub fn behind(self, bytes: usize) -> Base {
        Base(self.0.wrapping_add(bytes))
    }

    #[inline]
    fn at(self, offset: u64) -> *mut u8 {
        if self.0.is_null() {
            return std::ptr::with_exposed_provenance_mut(offset as usize);
        }
        self.0.wrapping_add(offset as usize)
    }

    /// Memory from an offset on, which was checked to be exposed.
    #[inline]
    pub fn segments(self, offset: u64, len: u64) -> Segments {
        contiguous(self.at(offset), len as usize)
    }

    /// The same of several runs, by offset and length.
    pub(crate) fn pieces(self, runs: &[(u64, u64)]) -> Segments {
        let piece = |&(offset, len): &(u64, u64)| Segment { start: self.at(offset), len: len as usize };
        let list: Vec<Segment> = runs.iter().map(piece).collect();
        // SAFETY: the promise of who made the base.
        unsafe { Segments::from_list(&list) }
    }

    /// The address of an offset, for an operand.
    #[inline]
    pub fn operand(self, offset: u64) -> *mut c_void {
        self.at(offset).cast()
    }

    /// Copies exposed bytes, which were checked to be there, to the end of a list.
    #[inline]
    pub fn append_to(self, offset: u64, len: u64, list: &mut Vec<u8>) {
        self.segments(offset, len).append_to(list);
    }

    /// Writes bytes, for which there was checked to be room.
    #[inline]
    pub fn write(self, offset: u64, bytes: &[u8]) {
        // SAFETY: the promise of who made the base.
        unsafe { copy_overlapping(bytes.as_ptr(), self.at(offset), bytes.len()) };
    }

    /// Reads exposed bytes, which were checked to be as many as there is room for.
    #[inline]
    pub fn read(self, offset: u64, into: &Segments) {
        // SAFETY: the promise of who made the base.
        let bytes = unsafe { std::slice::from_raw_parts(self.at(offset), into.len() as usize) };
        into.write(0, bytes);
    }
}

/// Memory of this crate's own, which stays until the message that it is lent to has ended.
pub(crate) fn lent(bytes: &[u8]) -> Segments {
    contiguous(bytes.as_ptr().cast_mut(), bytes.len())
}

/// The same, for a message to be received.
pub(crate) fn lent_mut(bytes: &mut [u8]) -> Segments {
    contiguous(bytes.as_mut_ptr(), bytes.len())
}

/// The same, of words, as the bytes that they are in memory.
pub(crate) fn lent_words(words: &mut [u64], len: usize) -> Segments {
    contiguous(words.as_mut_ptr().cast(), len)
}

#[inline]
fn contiguous(start: *mut u8, len: usize) -> Segments {
    // SAFETY: the promise of who made the base; or memory that is kept beside its request.
    unsafe { Segments::from_raw(start, len) }
}

/// Words as the bytes that they are in memory.
pub(crate) fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: words have no other bytes, and any byte is one.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
