//! Demand for other cores: whether threads of the application do work that other cores could share, which
//! is sending over several rails or working on large memory.

use crate::policy::{PERIOD, RECENT};
use crate::share;
use crate::standby::Standby;
use nmad_engine::Instant;

/// Threads work much on large memory if they spend at least one part in PART of the time on it: a second
/// core then saves at least a twentieth of the time. At half the value a core stands by for programs that
/// gain a tenth, at twice the value for those that gain a fortieth.
const PART: u64 = 10;
/// Most workers for large memory: with the caller and the helper they use five cores. Some four cores use
/// the whole memory bandwidth of a socket; not measured here, on two cores.
const MEMORY_WORKERS: usize = 3;

/// Counters at the latest looks.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    /// Requests for other cores ([`Standby::asked`]).
    asked: u32,
    /// Time spent on large memory in nanoseconds, and when it was read.
    worked: (u64, Instant),
    /// Time of the last look that found much work on large memory.
    much_at: Option<Instant>,
}

impl Demand {
    /// Returns whether threads did something since the last look of which another core could have done a
    /// part.
    pub(crate) fn look(&mut self, now: Instant, standby: &Standby) -> bool {
        let asked = standby.asked();
        let sends = std::mem::replace(&mut self.asked, asked) != asked;
        self.works_much(now, share::worked_ns()) || sends
    }

    fn works_much(&mut self, now: Instant, worked_ns: u64) -> bool {
        let since = now.since(self.worked.1);
        if since < PERIOD {
            return false;
        }
        let (before_ns, _) = std::mem::replace(&mut self.worked, (worked_ns, now));
        let is_much = worked_ns.saturating_sub(before_ns).saturating_mul(PART) >= since.as_ns();
        if is_much {
            self.much_at = Some(now);
        }
        is_much
    }

    /// Returns how many threads beside the helper should stand by: one for each rail beyond two, and some
    /// for large memory.
    pub(crate) fn workers(&self, now: Instant, rails: usize) -> usize {
        let much = self.much_at.is_some_and(|at| now.since(at) < RECENT);
        rails.saturating_sub(2).max(if much { MEMORY_WORKERS } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_engine::Duration;

    #[test]
    fn work_on_large_memory_counts_where_it_takes_a_tenth_of_the_time() {
        let mut demand = Demand::default();
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        assert!(!demand.works_much(at(10), 900_000) && demand.workers(at(10), 2) == 0);
        assert!(demand.works_much(at(20), 1_900_000));
        assert!(!demand.works_much(at(20) + Duration::from_us(10), 9_000_000), "too soon to tell");
        assert_eq!([demand.workers(at(21), 1), demand.workers(at(21), 9)], [MEMORY_WORKERS, 7]);
        assert_eq!(demand.workers(at(20) + RECENT, 1), 0);
    }

    #[test]
    fn a_request_for_cores_counts_once() {
        let (standby, mut demand) = (Standby::new(std::sync::Arc::default()), Demand::default());
        standby.ask();
        let now = Instant::from_ns(1);
        assert_eq!([demand.look(now, &standby), demand.look(now, &standby)], [true, false]);
    }
}
