//! Counts the bytes on the heap of this process, with what the allocator of glibc adds to each piece.
#![allow(unsafe_code)] // an allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes now.
pub fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Most bytes since [`forget_peak`].
pub fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Begins to look for the most bytes anew.
pub fn forget_peak() {
    PEAK.store(live(), Ordering::Relaxed);
}

/// Bytes that stay on the heap with what `make` has made.
pub fn kept_by<R>(make: impl FnOnce() -> R) -> usize {
    let before = live();
    let made = make();
    let kept = live() - before;
    drop(made);
    kept
}

/// A piece has a head of 8 B, is a multiple of 16 B long, and has at least 32 B.
fn piece(len: usize) -> usize {
    (len + 8).next_multiple_of(16).max(32)
}

struct Counting;

fn more(len: usize) {
    let live = LIVE.fetch_add(piece(len), Ordering::Relaxed) + piece(len);
    PEAK.fetch_max(live, Ordering::Relaxed);
}

fn less(len: usize) {
    LIVE.fetch_sub(piece(len), Ordering::Relaxed);
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        less(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        less(layout.size());
        more(len);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(start, layout, len) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;
