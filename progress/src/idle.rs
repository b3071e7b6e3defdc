//! The two ends of waiting: the pause between two polls, and sleep.

use nmad_engine::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};

/// Separates two polls: the next one begins when this one has ended.
///
/// Speculative execution performs a dozen polls before the first one has its result, and discards them when
/// the polled cache line arrives from another core: 5 of 115 ns of half a round trip.
#[inline]
#[allow(unsafe_code)]
pub(crate) fn end_speculation() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence, which all processors of this architecture have.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::spin_loop();
}

/// Sleeps until one of the rails' descriptors or the alarm is readable, or the bound is over.
///
/// If another thread closes a descriptor meanwhile, the sleep ends early, or late by at most its bound.
pub(crate) fn block_on(descriptors: &[i32], alarm: &OwnedFd, bound: Duration) {
    let borrowed = descriptors.iter().map(|&fd| borrow(fd));
    let mut polled: Vec<PollFd<'_>> =
        borrowed.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    polled.push(PollFd::new(alarm, PollFlags::IN));
    let ns = bound.as_ns();
    let bound = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    // An interrupted sleep counts as ended: the caller polls again.
    let _ = poll(&mut polled, Some(&bound));
}

#[allow(unsafe_code)]
pub(crate) fn borrow<'a>(fd: i32) -> BorrowedFd<'a> {
    // SAFETY: the descriptor belongs to a rail of the node. The kernel keeps a polled file while a rail is
    // closed. If its number means another file by then, the sleep only ends early.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
