//! The clock of a node: nanoseconds since the node was made.

use nmad_engine::Instant;
use rustix::time::{ClockId, clock_gettime};

/// Reads the monotonic clock of the system as the engine's time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: u64,
}

impl Clock {
    /// Makes a clock whose origin is now.
    pub fn start() -> Self {
        Clock { origin: monotonic_ns() }
    }

    /// Reads the time, which costs about 20 ns.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_ns(monotonic_ns() - self.origin)
    }

    /// Returns the origin on the monotonic clock of the system, in nanoseconds.
    pub fn origin_ns(&self) -> u64 {
        self.origin
    }

    /// Returns a function that reads the time for the pump and stores it in `now`.
    #[inline]
    pub(crate) fn kept_in(&self, now: &mut Instant) -> impl FnMut() -> Instant {
        || {
            *now = self.now();
            *now
        }
    }
}

/// Reads the system's monotonic clock in nanoseconds, without the checks of the standard library's clock,
/// which cost as much as the reading.
#[inline]
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
