//! Memory of windows: what this process exposes, and what the ranks of a node have in common. All of the
//! `unsafe` code of windows is here.

use crate::memory;
use newmadeleine::engine::memory::copy_overlapping;
use newmadeleine::{Segments, SharedMemory};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Memory that all ranks of a node see.
pub(super) struct Common(SharedMemory);

// SAFETY: its words are atomic; its other bytes are windows, about which the program has promised not to
// access them in conflict.
unsafe impl Sync for Common {}

impl Common {
    pub(super) fn new(memory: SharedMemory) -> Arc<Common> {
        Arc::new(Common(memory))
    }

    /// The word at an offset that is a multiple of eight.
    #[inline]
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        self.0.word(offset)
    }

    /// Where its first byte is in this process.
    pub(super) fn start(&self) -> *mut u8 {
        self.0.start()
    }
}

/// Where memory of a window begins in this process; null: nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Base(*mut u8);

// SAFETY: a plain address.
unsafe impl Send for Base {}
// SAFETY: as above.
unsafe impl Sync for Base {}

impl Base {
    /// Displacements are addresses.
    pub(super) const BOTTOM: Base = Base(std::ptr::null_mut());

    pub(super) fn new(start: *mut c_void) -> Base {
        Base(start.cast())
    }

    /// This address of the program's.
    pub(super) fn pointer(self) -> *mut c_void {
        self.0.cast()
    }

    pub(super) fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    pub(super) fn behind(self, bytes: usize) -> Base {
        Base(self.0.wrapping_add(bytes))
    }

    /// What lies at an offset.
    #[inline]
    fn at(self, offset: u64) -> *mut u8 {
        if self.0.is_null() {
            return std::ptr::with_exposed_provenance_mut(offset as usize);
        }
        self.0.wrapping_add(offset as usize)
    }

    /// Memory from an offset on, which was checked to be in the window.
    #[inline]
    pub(super) fn segments(self, offset: u64, len: u64) -> Segments {
        memory::contiguous(self.at(offset).cast(), len as usize)
    }

    /// The address of an offset, for an operand.
    #[inline]
    pub(super) fn operand(self, offset: u64) -> *mut c_void {
        self.at(offset).cast()
    }

    /// Copies bytes of the window, which was checked to have them, to the end of a list.
    #[inline]
    pub(super) fn append_to(self, offset: u64, len: u64, list: &mut Vec<u8>) {
        self.segments(offset, len).append_to(list);
    }

    /// Writes bytes into the window, which was checked to have room for them.
    #[inline]
    pub(super) fn write(self, offset: u64, bytes: &[u8]) {
        // SAFETY: inside the window, which stays as long as it is not freed.
        unsafe { copy_overlapping(bytes.as_ptr(), self.at(offset), bytes.len()) };
    }

    /// Reads bytes of the window, which was checked to have as many as there is room for.
    #[inline]
    pub(super) fn read(self, offset: u64, into: &Segments) {
        // SAFETY: inside the window, which stays as long as it is not freed.
        let bytes = unsafe { std::slice::from_raw_parts(self.at(offset), into.len() as usize) };
        into.write(0, bytes);
    }
}
