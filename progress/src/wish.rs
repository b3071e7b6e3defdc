//! Whether threads of the application do what other cores could do a part of: they send over several rails,
//! or work on large memory.

use crate::policy::{HABIT, PERIOD};
use crate::share;
use crate::standby::Standby;
use nmad_engine::Instant;

/// Threads work much on large memory if they do so for this part of the time, one in so many: with a second
/// core a twentieth of the time is saved at least. With half of the value a core stands by for programs that
/// gain a tenth, with twice for those that gain a fortieth.
const PART: u64 = 10;
/// Workers for large memory, at most: with the caller and the helper five cores. Some four cores take all
/// that the memory of a socket gives; not measured here, on two cores.
const SHARERS: usize = 3;

/// What was found at the latest looks.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// What was asked of other cores by then.
    asked: u32,
    /// The time that work on large memory had taken by then, in nanoseconds.
    worked: (u64, Instant),
    /// When threads last worked much on large memory.
    much_at: Option<Instant>,
}

impl Wishes {
    /// Whether something was done since the last look of which another core could have done a part.
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

    /// How many threads beside the helper shall stand by: one for each rail beyond two, some for large
    /// memory.
    pub(crate) fn workers(&self, now: Instant, rails: usize) -> usize {
        let much = self.much_at.is_some_and(|at| now.since(at) < HABIT);
        rails.saturating_sub(2).max(if much { SHARERS } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_engine::Duration;

    #[test]
    fn work_on_large_memory_counts_where_it_takes_a_tenth_of_the_time() {
        let mut wishes = Wishes::default();
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        assert!(!wishes.works_much(at(10), 900_000) && wishes.workers(at(10), 2) == 0);
        assert!(wishes.works_much(at(20), 1_900_000));
        assert!(!wishes.works_much(at(20) + Duration::from_us(10), 9_000_000), "too soon to tell");
        assert_eq!([wishes.workers(at(21), 1), wishes.workers(at(21), 9)], [SHARERS, 7]);
        assert_eq!(wishes.workers(at(20) + HABIT, 1), 0);
    }

    #[test]
    fn what_is_sent_counts_once() {
        let (standby, mut wishes) = (Standby::new(std::sync::Arc::default()), Wishes::default());
        standby.ask();
        let now = Instant::from_ns(1);
        assert_eq!([wishes.look(now, &standby), wishes.look(now, &standby)], [true, false]);
    }
}
