//! Times for the records of a trace, which cost some nanoseconds each: the counter of the processor where the
//! system itself keeps time with it, else the system's clock.

#![allow(unsafe_code)] // the counter of the processor

use rustix::time::{ClockId, clock_gettime};

/// What the system keeps time with, and the names of what follows the counter of the processor.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const BY_COUNTER: [&str; 2] = ["tsc", "kvm-clock"];

/// Where times come from.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    by_counter: bool,
    /// The counter, and nanoseconds of the monotonic clock at the same time.
    began: (u64, u64),
}

impl Ticks {
    /// Looks what this machine has.
    pub fn start() -> Ticks {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
        let by_counter = cfg!(target_arch = "x86_64") && BY_COUNTER.contains(&source.trim());
        Ticks { by_counter, began: together().0 }
    }

    /// A time, to be read by [`Ticks::scale`].
    #[inline]
    pub fn now(self) -> u64 {
        if self.by_counter { counter() } else { monotonic_ns() }
    }

    /// What makes nanoseconds of the monotonic clock of the times so far: the counter's rate since the
    /// beginning.
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

/// How often counter and clock are read: one reading for which this thread kept its core is enough.
const READINGS: usize = 8;

/// The counter and the clock at the same time, and by how many nanoseconds the two may be apart.
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
        // On a machine that is busy each pair of readings may be as far apart as a core is lent to others.
        let error = 10_000_000 + apart;
        for (before, at, after) in times {
            let at = scale(at);
            let near = before.saturating_sub(error)..=after + error;
            assert!(near.contains(&at), "{before} {at} {after}, +-{error}");
        }
    }
}
