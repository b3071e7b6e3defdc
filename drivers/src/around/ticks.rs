//! Times for the records of a trace, which cost some nanoseconds each: the counter of the processor where the
//! system itself keeps time with it, else the system's clock.

#![allow(unsafe_code)] // the counter of the processor

use rustix::time::{ClockId, clock_gettime};

/// What the system keeps time with, and the names of what follows the counter of the processor.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const BY_COUNTER: [&str; 2] = ["tsc", "kvm-clock"];

/// Where times come from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    by_counter: bool,
    /// The counter, and nanoseconds of the monotonic clock at the same time.
    began: (u64, u64),
}

impl Ticks {
    /// Looks what this machine has.
    pub(super) fn new() -> Ticks {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
        let by_counter = cfg!(target_arch = "x86_64") && BY_COUNTER.contains(&source.trim());
        Ticks { by_counter, began: (counter(), monotonic_ns()) }
    }

    /// A time, to be read by [`Ticks::scale`].
    #[inline]
    pub(super) fn now(self) -> u64 {
        if self.by_counter { counter() } else { monotonic_ns() }
    }

    /// What makes nanoseconds of the monotonic clock of the times so far: the counter's rate since the
    /// beginning.
    pub(super) fn scale(self) -> impl Fn(u64) -> u64 {
        let (first, first_ns) = self.began;
        let (ticks, ns) = (counter().wrapping_sub(first), monotonic_ns().saturating_sub(first_ns));
        let rate = if ticks == 0 { 1.0 } else { ns as f64 / ticks as f64 };
        move |at| match self.by_counter {
            true => first_ns + (at.wrapping_sub(first) as f64 * rate) as u64,
            false => at,
        }
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, which reads a counter and changes nothing.
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
        let ticks = Ticks::new();
        let times: Vec<(u64, u64, u64)> = (0..100)
            .map(|_| {
                let before = monotonic_ns();
                let at = ticks.now();
                (before, at, monotonic_ns())
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let scale = ticks.scale();
        let near = |at: u64, other: u64| at.abs_diff(other) < 100_000;
        for (before, at, after) in times {
            let at = scale(at);
            assert!(
                near(at, before) || near(at, after) || (before..after).contains(&at),
                "{before} {at} {after}"
            );
        }
    }
}
