//! Counts the bytes on the heap, so that tests can check memory budgets.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has on the heap, less what it freed for others.
pub fn live() -> isize {
    LIVE.with(Cell::get)
}

struct Counting;

fn count(bytes: isize) {
    // A thread that ends frees its last memory after its counter is gone; the count is not needed then.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;
