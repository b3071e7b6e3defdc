//! Detects that this thread and the peer it waits for run on the same core.
//!
//! A launcher knows the numbers of ranks and cores ([`crate::Idle`]), but not where the system places the
//! ranks, nor which other processes run. The system may place two ranks with a core each on one core for a
//! while, because another job keeps the other core busy. Each of them then spins while its peer cannot run,
//! and every message takes as long as the spinning. The sign of this: yielding took long, since another
//! thread ran meanwhile, and then the message was there. So a thread that spins yields once in a while.

use crate::idle::{Idle, Stage};
use nmad_engine::Duration;

/// A yield takes less than this where no other thread wants the core (0.3 us), and more if another one
/// takes it, even if only to answer and to return it (3 us).
const SWITCH: Duration = Duration::from_ns(1_500);
/// Surplus of waits that ended after a switch over waits of the same length that ended without one. A
/// message that is there at once counts for neither: its sender may have had this core before.
const SURE: u8 = 2;
const MOST: u8 = 4;
/// An oversubscribed thread still spins for a microsecond in one of TRIAL waits: ranks that talk to each
/// other and run at the same time on two cores need no switches as long as both poll for each other.
const TRIAL: u8 = 8;

/// Interval of yields while spinning: longer than most messages take, and free where no other thread wants
/// the core. Without it, a collective of four ranks on four hosts of a testbed with two cores took 5 to 10
/// times as long, since each wait for a rank on the same core lasted as long as the spinning.
const YIELD_EVERY: Duration = Duration::from_us(20);

/// Observations of the latest waits.
#[derive(Debug, Default)]
pub(crate) struct CoreSharing {
    switches: u8,
    /// Whether another thread ran during the last yield, if there was one.
    switched: Option<bool>,
    /// Spinning time of this wait.
    spun: Duration,
    waits: u8,
    /// Yields of this wait while it spun.
    yields: u64,
}

impl CoreSharing {
    /// Returns the next action after `quiet` without any event; `usual` holds without core sharing.
    #[inline]
    pub(crate) fn stage(&mut self, usual: Idle, quiet: Duration) -> Stage {
        let stage = self.next(usual, quiet);
        self.yields += u64::from(stage == Stage::Yield);
        self.spun = quiet;
        stage
    }

    /// Returns the next action without recording it, for a thread that asks again if it is not to spin.
    #[inline]
    pub(crate) fn next(&self, usual: Idle, quiet: Duration) -> Stage {
        let is_trial = usual == Idle::SHARED && self.waits.is_multiple_of(TRIAL);
        let idle = if self.switches < SURE || is_trial { usual } else { Idle::NO_SPIN };
        match idle.stage(quiet) {
            Stage::Spin if quiet.as_ns() >= (self.yields + 1) * YIELD_EVERY.as_ns() => Stage::Yield,
            stage => stage,
        }
    }

    /// Records that a yield took this long.
    pub(crate) fn yielded(&mut self, took: Duration) {
        self.switched = Some(took > SWITCH);
    }

    /// Records that an event has ended a wait.
    #[inline]
    pub(crate) fn happened(&mut self) {
        self.waits = self.waits.wrapping_add(1);
        self.yields = 0;
        let is_alone = std::mem::take(&mut self.spun) > SWITCH;
        self.switches = match self.switched.take().or(is_alone.then_some(false)) {
            Some(true) => (self.switches + 1).min(MOST),
            Some(false) => self.switches.saturating_sub(1),
            None => self.switches,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_shares_a_core_stops_spinning_until_messages_come_without_a_switch() {
        let mut sharing = CoreSharing::default();
        let stage = |sharing: &mut CoreSharing| sharing.stage(Idle::DEDICATED, Duration::from_us(10));
        for _ in 0..SURE {
            assert_eq!(stage(&mut sharing), Stage::Spin);
            sharing.yielded(Duration::from_us(50));
            sharing.happened();
        }
        assert_eq!(stage(&mut sharing), Stage::Yield);
        sharing.yielded(Duration::from_us(50));
        sharing.happened();
        (0..MOST).for_each(|_| sharing.happened());
        assert_eq!(stage(&mut sharing), Stage::Yield, "what was there at once tells nothing");
        for _ in 0..MOST {
            sharing.yielded(Duration::from_ns(300));
            sharing.happened();
        }
        assert_eq!(stage(&mut sharing), Stage::Spin);
    }

    #[test]
    fn a_spinning_thread_yields_now_and_then() {
        let mut sharing = CoreSharing::default();
        let yields = |sharing: &mut CoreSharing, us: u64| {
            let stages = (0..us).map(|us| sharing.stage(Idle::DEDICATED, Duration::from_us(us)));
            stages.filter(|stage| *stage == Stage::Yield).count()
        };
        assert_eq!(yields(&mut sharing, 20), 0, "a short wait does not");
        assert_eq!(yields(&mut sharing, 500), 24);
        sharing.happened();
        assert_eq!(yields(&mut sharing, 50), 2, "each wait begins anew");
    }

    #[test]
    fn an_oversubscribed_thread_spins_now_and_then_although_it_needs_switches() {
        let mut sharing = CoreSharing::default();
        let mut spun = 0;
        for _ in 0..10 * TRIAL {
            spun += usize::from(sharing.stage(Idle::SHARED, Duration::from_ns(100)) == Stage::Spin);
            sharing.yielded(Duration::from_us(50));
            sharing.happened();
        }
        assert!((10..15).contains(&spun), "{spun} of {}", 10 * TRIAL);
    }

    #[test]
    fn yields_of_an_unshared_core_change_nothing() {
        let mut sharing = CoreSharing::default();
        for _ in 0..10 {
            sharing.yielded(Duration::from_us(1));
            sharing.happened();
        }
        assert_eq!(sharing.stage(Idle::DEDICATED, Duration::from_us(10)), Stage::Spin);
    }
}
