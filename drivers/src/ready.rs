//! `epoll_wait(2)`, without waiting. The `epoll_wait` of rustix calls `epoll_pwait(2)` without its last
//! argument, which counts for nothing there, and which valgrind takes for an error of the program.

use rustix::fd::{AsRawFd, BorrowedFd};
use std::mem::MaybeUninit;

/// A descriptor that is ready, as it was added to the epoll: its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The number.
    pub data: u64,
    /// Whether it has room to write.
    pub output: bool,
}

/// Descriptors of an epoll that are ready now, `MOST` at most; none if the system refuses.
pub fn ready<const MOST: usize>(epoll: BorrowedFd<'_>) -> impl Iterator<Item = Ready> {
    let mut events = [const { MaybeUninit::<libc::epoll_event>::uninit() }; MOST];
    // SAFETY: the array has room for `MOST` events.
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr().cast(), MOST as i32, 0) };
    let count = usize::try_from(count).unwrap_or(0);
    events.into_iter().take(count).map(|event| {
        // SAFETY: the system has written the first `count` events.
        let event = unsafe { event.assume_init() };
        Ready { data: event.u64, output: event.events & libc::EPOLLOUT as u32 != 0 }
    })
}
