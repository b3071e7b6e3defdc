//! A timer among the sockets of a rail: it wakes a sleeper for what has to be done from time to time.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A descriptor that becomes readable in equal intervals.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
    every_ms: u64,
}

impl Timer {
    /// One that does not run.
    pub fn new() -> Result<Self, Errno> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Timer { fd, every_ms: 0 })
    }

    /// Rings every `every_ms` milliseconds from now on.
    pub fn wind(&mut self, every_ms: u64) {
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

    /// Takes note that it has rung.
    pub fn silence(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }

    /// What becomes readable.
    pub fn descriptor(&self) -> impl AsFd + '_ {
        &self.fd
    }
}
