//! Timestamps for the records of a trace, at a cost of some nanoseconds each: the time-stamp counter of the
//! processor if the system itself uses it for its clock, else the system's clock.

#![allow(unsafe_code)] // the counter of the processor

use rustix::time::{ClockId, clock_gettime};

/// The clock source of the system, and the names of sources that follow the time-stamp counter.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const BY_COUNTER: [&str; 2] = ["tsc", "kvm-clock"];

/// A source of timestamps.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    by_counter: bool,
    /// The counter and the monotonic clock in nanoseconds, read at the same time.
    began: (u64, u64),
}

impl Ticks {
    /// Chooses the source for this machine.
    pub fn start() -> Ticks {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
        let by_counter = cfg!(target_arch = "x86_64") && BY_COUNTER.contains(&source.trim());
        Ticks { by_counter, began: together().0 }
    }

    /// The current timestamp, to be converted by [`Ticks::scale`].
    #[inline]
    pub fn now(self) -> u64 {
        if self.by_counter { counter() } else { monotonic_ns() }
    }

    /// Returns a function that converts timestamps to nanoseconds of the monotonic clock, with the
    /// counter's rate since the start.
    pub fn scale(self) -> impl Fn(u64) -> u64 {
        let (first, first_ns) = self.began;
        let (last, last_ns) = together().0;
        let (ticks, ns) = (last.wrapping_sub(first), last_ns.saturating_sub(first_ns));
        let rate = if ticks == 0 { 1.0 } else { ns as f64 / ticks as f64 };
        move |at| match self.by_counter {
            true => first_ns + (at.wrapping_sub(first) as f64 * rate) as u64,
            false => at,
        }
    }
}

/// Number of readings of counter and clock; one without preemption suffices.
const READINGS: usize = 8;

/// Reads counter and clock together; returns also the uncertainty in nanoseconds.
fn together() -> ((u64, u64), u64) {
    let reading = |_| {
        let before = monotonic_ns();
        let at = counter();
        let after = monotonic_ns();
        ((at, before.midpoint(after)), after - before)
    };
    (0..READINGS).map(reading).min_by_key(|reading| reading.1).expect("there are readings")
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has this instruction, which reads a counter and changes nothing.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_monotonic_clock() {
        let (_, apart) = together();
        let ticks = Ticks::start();
        let times: Vec<(u64, u64, u64)> = (0..100)
            .map(|_| {
                let before = monotonic_ns();
                let at = ticks.now();
                (before, at, monotonic_ns())
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let scale = ticks.scale();
        // On a busy machine the two readings of a pair may be apart by a time slice.
        let error = 10_000_000 + apart;
        for (before, at, after) in times {
            let at = scale(at);
            let near = before.saturating_sub(error)..=after + error;
            assert!(near.contains(&at), "{before} {at} {after}, +-{error}");
        }
    }
}
