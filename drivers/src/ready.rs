//! `epoll_wait(2)` without blocking. The `epoll_wait` of rustix calls `epoll_pwait(2)` without its last
//! argument; the kernel ignores it there, but valgrind reports an error.

use rustix::fd::{AsRawFd, BorrowedFd};
use std::mem::MaybeUninit;

/// A descriptor that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The user data with which it was added to the epoll.
    pub data: u64,
    /// Whether it is writable.
    pub output: bool,
}

/// Returns the descriptors of an epoll that are ready now, at most `MOST`; none if the system call fails.
pub fn ready<const MOST: usize>(epoll: BorrowedFd<'_>) -> impl Iterator<Item = Ready> {
    let mut events = [const { MaybeUninit::<libc::epoll_event>::uninit() }; MOST];
    // SAFETY: the array has room for `MOST` events.
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr().cast(), MOST as i32, 0) };
    let count = usize::try_from(count).unwrap_or(0);
    events.into_iter().take(count).map(|event| {
        // SAFETY: the kernel has written the first `count` events.
        let event = unsafe { event.assume_init() };
        Ready { data: event.u64, output: event.events & libc::EPOLLOUT as u32 != 0 }
    })
}
