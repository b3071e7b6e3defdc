//! Time as a value. The engine never reads a clock: the caller of the pump passes the time.

use core::ops::{Add, Sub};

/// A point in time, in nanoseconds since an origin that the caller chose (start of the process, or zero of
/// the simulated time). Callers use a clock that never goes back, such as `CLOCK_MONOTONIC`, which a change
/// of the date does not touch. It may jump forward, as when a virtual machine was paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Instant {
    /// Returns the point `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Self {
        Instant(ns)
    }

    /// Returns the nanoseconds since the origin.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this point; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// The duration zero.
    pub const ZERO: Duration = Duration(0);

    /// Returns a duration of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Duration(ns)
    }

    /// Returns a duration of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Duration(us * 1_000)
    }

    /// Returns a duration of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Duration(ms * 1_000_000)
    }

    /// Returns the duration in nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, length: Duration) -> Instant {
        Instant(self.0.saturating_add(length.0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, length: Duration) -> Instant {
        Instant(self.0.saturating_sub(length.0))
    }
}
