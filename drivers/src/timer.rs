//! A periodic timer among the sockets of a rail: it wakes a sleeping thread for periodic work.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A descriptor that becomes readable periodically.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
    every_ms: u64,
}

impl Timer {
    /// Creates a stopped timer.
    pub fn new() -> Result<Self, Errno> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Timer { fd, every_ms: 0 })
    }

    /// Starts the timer with a period of `every_ms` milliseconds.
    pub fn start(&mut self, every_ms: u64) {
        if self.every_ms == every_ms {
            return;
        }
        let time =
            Timespec { tv_sec: (every_ms / 1000) as i64, tv_nsec: (every_ms % 1000) as i64 * 1_000_000 };
        let set = Itimerspec { it_interval: time, it_value: time };
        if timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &set).is_ok() {
            self.every_ms = every_ms;
        }
    }

    /// Acknowledges an expiration, so that the descriptor is no longer readable.
    pub fn acknowledge(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }

    /// The descriptor that becomes readable.
    pub fn descriptor(&self) -> impl AsFd + '_ {
        &self.fd
    }
}
