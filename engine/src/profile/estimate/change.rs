//! Detection of a change, with a bound on false alarms (Page, "Continuous inspection schemes", Biometrika
//! 1954): a sum that rises with each observation that speaks for the change, falls with each that speaks
//! against it, and never below zero; an alarm at a limit.
//!
//! Noise only adds to a time, so a quick observation says more than a slow one: it counts [`AGAINST`] times
//! as much. If half of all observations are disturbed, each independently, less than one in 10,000 raises an
//! alarm. A change raises an alarm after [`LIMIT`] observations.

/// Weight of an observation against a change.
const AGAINST: u8 = 4;
/// The sum at which there is an alarm. On the jobs of `nmad sim --golden decisions`, half of it trusts right
/// profiles and leaves wrong ones a little worse, and twice decides alike.
const LIMIT: u8 = 15;

/// What an observation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vote {
    /// It was clearly slower than expected.
    Slower,
    /// It was clearly faster.
    Faster,
    /// It was neither as expected nor clearly different.
    Neither,
    /// It was as expected.
    Against,
}

/// The sums of one quantity, for a change in either direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Change {
    slower: u8,
    faster: u8,
}

impl Change {
    /// Adds an observation; true: the quantity has changed in the direction that it speaks for.
    pub(crate) fn note(&mut self, vote: Vote) -> bool {
        let up = |sum: u8, votes: bool| match votes {
            true => (sum + 1).min(LIMIT),
            false => sum.saturating_sub(AGAINST),
        };
        if vote == Vote::Neither {
            return false;
        }
        self.slower = up(self.slower, vote == Vote::Slower);
        self.faster = up(self.faster, vote == Vote::Faster);
        self.slower.max(self.faster) == LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of a million observations raise an alarm, if so many of 256 are slow by chance.
    fn alarms(slow: u64) -> u32 {
        let (mut change, mut state, mut alarms) = (Change::default(), 1_u64, 0);
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let vote = if (state >> 33) % 256 < slow { Vote::Slower } else { Vote::Against };
            if change.note(vote) {
                (change, alarms) = (Change::default(), alarms + 1);
            }
        }
        alarms
    }

    #[test]
    fn noise_raises_few_alarms_and_a_change_is_noticed() {
        assert!(alarms(128) <= 100, "half of them slow: {}", alarms(128));
        assert!(alarms(64) == 0);
        let mut change = Change::default();
        let noticed = (1..100).find(|_| change.note(Vote::Slower)).expect("it is noticed");
        assert_eq!(noticed, usize::from(LIMIT) as i32);
        let mut back = Change::default();
        assert!((1..=LIMIT).any(|_| back.note(Vote::Faster)));
        let mut unsure = Change::default();
        assert!(!(0..100).any(|_| unsure.note(Vote::Neither)));
    }
}
