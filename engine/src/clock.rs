//! Time as a value. The engine never reads a clock: whoever turns the pump says what time it is.

use core::ops::{Add, Sub};

/// A point in time, in nanoseconds since an origin that the caller chose (start of the process, or zero
/// of the simulated world).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Instant {
    /// The point `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Self {
        Instant(ns)
    }

    /// Nanoseconds since the origin.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to this point; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// A length of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Duration(ns)
    }

    /// A length of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Duration(us * 1_000)
    }

    /// A length of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Duration(ms * 1_000_000)
    }

    /// The length in nanoseconds.
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
