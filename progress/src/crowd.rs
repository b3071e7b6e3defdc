//! Whether the thread shares its core with whom it waits for.
//!
//! A launcher knows how many ranks there are for how many cores ([`crate::Idle`]), but not where the system
//! puts them, nor who else runs. Two ranks with a core each may be put on one for a while, since another job
//! keeps the other one busy; then each spins while the one that it waits for cannot run, and every message
//! takes as long as the spinning. What gives it away: giving the core away took long, since somebody else ran
//! meanwhile, and then the message was there. So a thread that spins gives its core away once in a while.

use crate::idle::{Idle, Stage};
use nmad_engine::Duration;

/// Giving the core away takes less where nobody else wants it (0.3 us), and more when somebody takes it, if
/// only to answer and to give it back (3 us).
const SWITCH: Duration = Duration::from_ns(1_500);
/// The surplus of waits that ended after a switch over those that have lasted for as long and ended without
/// one. A message that is there at once tells nothing: whoever sent it may have had this core before.
const SURE: u8 = 2;
const MOST: u8 = 4;
/// A thread that shares a core by plan spins for a microsecond once in TRIAL waits all the same: ranks that
/// talk to each other and run at the same time, on two cores, need no switches as long as both look for each
/// other.
const TRIAL: u8 = 8;

/// A thread that spins gives the core away once in this time, which is longer than most messages take, and
/// costs nothing where nobody wants the core. Without that, a collective of four ranks on four hosts of a
/// testbed with two cores took 5 to 10 times as long, since each wait for a rank on the same core lasted as
/// long as the spinning.
const GLANCE: Duration = Duration::from_us(20);

/// What the latest waits have told.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    switches: u8,
    /// The core was given away: whether somebody else has run.
    switched: Option<bool>,
    /// For how long this wait has spun.
    spun: Duration,
    waits: u8,
    /// How often this wait has given the core away while it spun.
    glances: u64,
}

impl Crowd {
    /// What to do after `quiet` without any event, where a thread usually waits like that.
    #[inline]
    pub(crate) fn stage(&mut self, usual: Idle, quiet: Duration) -> Stage {
        let stage = self.next(usual, quiet);
        self.glances += u64::from(stage == Stage::Yield);
        self.spun = quiet;
        stage
    }

    /// The same for a thread that asks again if it is not to spin.
    #[inline]
    pub(crate) fn next(&self, usual: Idle, quiet: Duration) -> Stage {
        let is_trial = usual == Idle::SHARED && self.waits.is_multiple_of(TRIAL);
        let idle = if self.switches < SURE || is_trial { usual } else { Idle::CROWDED };
        match idle.stage(quiet) {
            Stage::Spin if quiet.as_ns() >= (self.glances + 1) * GLANCE.as_ns() => Stage::Yield,
            stage => stage,
        }
    }

    /// The core was given away, and was back after this time.
    pub(crate) fn gave_away(&mut self, took: Duration) {
        self.switched = Some(took > SWITCH);
    }

    /// The awaited event, or another one, has happened.
    #[inline]
    pub(crate) fn happened(&mut self) {
        self.waits = self.waits.wrapping_add(1);
        self.glances = 0;
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
    fn who_shares_a_core_spins_no_longer_until_messages_come_by_themselves() {
        let mut crowd = Crowd::default();
        let stage = |crowd: &mut Crowd| crowd.stage(Idle::DEDICATED, Duration::from_us(10));
        for _ in 0..SURE {
            assert_eq!(stage(&mut crowd), Stage::Spin);
            crowd.gave_away(Duration::from_us(50));
            crowd.happened();
        }
        assert_eq!(stage(&mut crowd), Stage::Yield);
        crowd.gave_away(Duration::from_us(50));
        crowd.happened();
        (0..MOST).for_each(|_| crowd.happened());
        assert_eq!(stage(&mut crowd), Stage::Yield, "what was there at once tells nothing");
        for _ in 0..MOST {
            crowd.gave_away(Duration::from_ns(300));
            crowd.happened();
        }
        assert_eq!(stage(&mut crowd), Stage::Spin);
    }

    #[test]
    fn who_spins_gives_the_core_away_now_and_then() {
        let mut crowd = Crowd::default();
        let yields = |crowd: &mut Crowd, us: u64| {
            let stages = (0..us).map(|us| crowd.stage(Idle::DEDICATED, Duration::from_us(us)));
            stages.filter(|stage| *stage == Stage::Yield).count()
        };
        assert_eq!(yields(&mut crowd, 20), 0, "a short wait does not");
        assert_eq!(yields(&mut crowd, 500), 24);
        crowd.happened();
        assert_eq!(yields(&mut crowd, 50), 2, "each wait begins anew");
    }

    #[test]
    fn who_shares_a_core_by_plan_spins_now_and_then_although_nothing_comes_without_a_switch() {
        let mut crowd = Crowd::default();
        let mut spun = 0;
        for _ in 0..10 * TRIAL {
            spun += usize::from(crowd.stage(Idle::SHARED, Duration::from_ns(100)) == Stage::Spin);
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
        assert_eq!(crowd.stage(Idle::DEDICATED, Duration::from_us(10)), Stage::Spin);
    }
}
