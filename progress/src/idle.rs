//! Stages of waiting while nothing happens: spin, then yield, then block.
//!
//! Measured on two hosts of one machine (namespaces, 2 cores): an answer that a spinning thread finds costs
//! 2 to 4 us, one that wakes a sleeping thread 19 to 37 us, half of which the waking thread pays in its
//! system call. So a thread with a core of its own spins for as long as a large message usually takes. With
//! 20 us, both sides slept during every message of 256 KiB on rails of 4 and 2.8 Gbit/s, and two wakeups
//! were 10 to 15 percent of its time. When oversubscribed (more ranks than cores), yielding at once pays.

use nmad_engine::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};

/// Length of each stage of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Spin for this long after the last event.
    pub spin: Duration,
    /// Then yield and poll again, for this long.
    pub yields: Duration,
}

impl Idle {
    /// For ranks with a core each.
    pub const DEDICATED: Idle = Idle { spin: Duration::from_us(500), yields: Duration::from_us(20) };
    /// For oversubscribed ranks: a spinning thread keeps its peers from answering. A thread that waits
    /// until others have copied some MiB yields for as long, since a sleep and a wakeup interrupt all
    /// cores.
    pub const SHARED: Idle = Idle { spin: Duration::from_us(1), yields: Duration::from_us(2_000) };
    /// For a thread whose peer runs on the same core ([`crate::core_sharing`]).
    pub(crate) const NO_SPIN: Idle = Idle { spin: Duration::from_ns(0), ..Idle::SHARED };

    /// Returns the stage after `quiet` without any event.
    pub fn stage(&self, quiet: Duration) -> Stage {
        if quiet < self.spin {
            Stage::Spin
        } else if quiet.as_ns() < self.spin.as_ns() + self.yields.as_ns() {
            Stage::Yield
        } else {
            Stage::Block
        }
    }
}

/// One of the three ways to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Poll again at once.
    Spin,
    /// Yield, then poll again.
    Yield,
    /// Sleep until a descriptor is ready.
    Block,
}

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
