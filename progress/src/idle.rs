//! What a waiting thread does when nothing happens: spin, then yield, then block.
//!
//! Measured on two hosts of one machine, namespaces on 2 cores: an answer that is seen by spinning costs 2 to
//! 4 us, one that wakes a sleeper 19 to 37, of which the waking thread pays half in its system call. So a
//! thread with a core of its own spins for as long as a large message usually takes: with 20 us, both sides
//! slept during every message of 256 KiB on rails of 4 and 2.8 Gbit/s, and two wake-ups made 10 to 15 percent
//! of it. With more ranks than cores it pays to give the core away at once.

use nmad_engine::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};

/// How long each stage of waiting lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Spin for this long after the last event.
    pub spin: Duration,
    /// Then give the core to others, and look again, for this long.
    pub yields: Duration,
}

impl Idle {
    /// For ranks that have a core each.
    pub const DEDICATED: Idle = Idle { spin: Duration::from_us(500), yields: Duration::from_us(20) };
    /// For more ranks than cores: a thread that spins keeps the others from answering. One that waits until
    /// others have copied some MiB yields for as long: to sleep and to be woken interrupts all cores.
    pub const SHARED: Idle = Idle { spin: Duration::from_us(1), yields: Duration::from_us(2_000) };
    /// For a thread that has found that nothing comes as long as it has the core.
    pub(crate) const CROWDED: Idle = Idle { spin: Duration::from_ns(0), ..Idle::SHARED };

    /// What to do after `quiet` without any event.
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
    /// Look again at once.
    Spin,
    /// Let others run, then look again.
    Yield,
    /// Sleep until a descriptor is ready.
    Block,
}

/// Between two looks: the next one begins when this one has ended.
///
/// A processor that runs ahead has looked a dozen times before it is sure of the first, and when the line
/// that it looks at comes over from another core it throws all of that away: 5 of 115 ns of half a round
/// trip.
#[inline]
#[allow(unsafe_code)]
pub(crate) fn look_anew() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence, which all processors of this architecture have.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::spin_loop();
}

/// Sleeps until one of the rails' descriptors or the alarm is readable, or the time is over.
///
/// A descriptor that another thread closes meanwhile makes the sleep end early or late by no more than
/// its bound.
pub(crate) fn block_on(descriptors: &[i32], alarm: &OwnedFd, bound: Duration) {
    let borrowed = descriptors.iter().map(|&fd| borrow(fd));
    let mut polled: Vec<PollFd<'_>> =
        borrowed.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    polled.push(PollFd::new(alarm, PollFlags::IN));
    let ns = bound.as_ns();
    let bound = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    // An interrupted sleep is as good as one that ended: the caller looks again.
    let _ = poll(&mut polled, Some(&bound));
}

#[allow(unsafe_code)]
pub(crate) fn borrow<'a>(fd: i32) -> BorrowedFd<'a> {
    // SAFETY: the descriptor belongs to a rail of the node. The kernel keeps what is polled while a rail is
    // closed meanwhile, and a number that means another file by then ends the sleep early at worst.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
