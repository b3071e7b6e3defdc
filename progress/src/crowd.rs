//! Whether the thread shares its core with whom it waits for.
//!
//! A launcher knows how many ranks there are for how many cores ([`crate::Idle`]), but not where the system
//! puts them, nor who else runs. Two ranks with a core each may be put on one for a while, since another job
//! keeps the other one busy; then each spins while the one that it waits for cannot run, and every message
//! takes as long as the spinning. What gives it away: giving the core away took long, since somebody else ran
//! meanwhile, and then the message was there.

use crate::idle::Idle;
use nmad_engine::Duration;

/// Giving the core away takes less where nobody else wants it (0.3 us), and more when somebody takes it, if
/// only to answer and to give it back (3 us).
const SWITCH: Duration = Duration::from_ns(1_500);
/// The surplus of waits that ended after a switch over those that ended without one.
const SURE: u8 = 2;
const MOST: u8 = 4;
/// A thread that shares a core by plan spins for a microsecond once in TRIAL waits all the same: ranks that
/// talk to each other and run at the same time, on two cores, need no switches as long as both look for each
/// other.
const TRIAL: u8 = 8;

/// What the latest waits have told.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    switches: u8,
    /// The core was given away, and somebody else has run.
    switched: bool,
    waits: u8,
}

impl Crowd {
    /// How to wait.
    #[inline]
    pub(crate) fn idle(&self, usual: Idle) -> Idle {
        let is_trial = usual == Idle::SHARED && self.waits.is_multiple_of(TRIAL);
        if self.switches < SURE || is_trial { usual } else { Idle::CROWDED }
    }

    /// The core was given away, and was back after this time.
    pub(crate) fn gave_away(&mut self, took: Duration) {
        self.switched = took > SWITCH;
    }

    /// The awaited event, or another one, has happened.
    #[inline]
    pub(crate) fn happened(&mut self) {
        self.waits = self.waits.wrapping_add(1);
        self.switches = match std::mem::take(&mut self.switched) {
            true => (self.switches + 1).min(MOST),
            false => self.switches.saturating_sub(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::Stage;

    #[test]
    fn who_shares_a_core_spins_no_longer_until_messages_come_by_themselves() {
        let mut crowd = Crowd::default();
        let stage = |crowd: &Crowd| crowd.idle(Idle::DEDICATED).stage(Duration::from_us(10));
        for _ in 0..SURE {
            assert_eq!(stage(&crowd), Stage::Spin);
            crowd.gave_away(Duration::from_us(50));
            crowd.happened();
        }
        assert_eq!(stage(&crowd), Stage::Yield);
        (0..MOST).for_each(|_| crowd.happened());
        assert_eq!(stage(&crowd), Stage::Spin);
    }

    #[test]
    fn who_shares_a_core_by_plan_spins_now_and_then_although_nothing_comes_without_a_switch() {
        let mut crowd = Crowd::default();
        let mut spun = 0;
        for _ in 0..10 * TRIAL {
            spun += usize::from(crowd.idle(Idle::SHARED).stage(Duration::from_ns(100)) == Stage::Spin);
            crowd.gave_away(Duration::from_us(50));
            crowd.happened();
        }
        assert!((10..15).contains(&spun), "{spun} of {}", 10 * TRIAL);
    }

    #[test]
    fn giving_away_a_core_that_nobody_wants_tells_nothing() {
        let mut crowd = Crowd::default();
        for _ in 0..10 {
            crowd.gave_away(Duration::from_us(1));
            crowd.happened();
        }
        assert_eq!(crowd.idle(Idle::DEDICATED), Idle::DEDICATED);
    }
}
