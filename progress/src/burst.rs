//! Whether it pays to hold back the first message of a burst.
//!
//! The first message of a burst leaves at once and what follows gathers (DESIGN section 3). A program that
//! submits several messages and then waits, again and again, is better served if the first one gathers
//! too: one system call instead of two. So when the recent bursts were all followed by a waiting call
//! within microseconds, the next one is held until that call. A wrong guess costs what the tick takes, so
//! guesses that failed make the next ones rarer.

use nmad_engine::{Duration, Instant};

/// A waiting call is expected within this time of the first submission.
const SOON: Duration = Duration::from_us(20);
/// A burst whose waiting call came this late was none: it was worth sending at once.
const LATE: Duration = Duration::from_us(40);
/// Bursts in a row before the first guess.
const STREAK: u32 = 16;
/// Bursts in a row after many wrong guesses.
const STREAK_MAX: u32 = 1 << 16;

/// What is known of the program's habit.
#[derive(Debug)]
pub(crate) struct Bursts {
    /// First submission since somebody waited, and how many there were.
    since: Option<Instant>,
    count: u32,
    /// Bursts in a row that a waiting call ended soon.
    streak: u32,
    needed: u32,
    held: bool,
}

impl Default for Bursts {
    fn default() -> Self {
        Bursts { since: None, count: 0, streak: 0, needed: STREAK, held: false }
    }
}

impl Bursts {
    /// Something was submitted; true: hold it back, a waiting call is about to come.
    #[inline]
    pub(crate) fn submitted(&mut self, now: Instant) -> bool {
        self.count += 1;
        let since = *self.since.get_or_insert(now);
        self.held = self.streak >= self.needed && now.since(since) < SOON;
        self.held
    }

    /// Whether somebody should say when a waiting call comes.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// A waiting call, or the tick, has come.
    #[inline]
    pub(crate) fn ended(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let soon = now.since(since) < LATE;
        if !soon {
            if self.streak >= self.needed {
                self.needed = (self.needed * 8).min(STREAK_MAX);
            }
            self.streak = 0;
        } else if self.count > 1 {
            self.streak = (self.streak + 1).min(STREAK_MAX);
        }
        self.count = 0;
        self.held = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(bursts: &mut Bursts, at_us: u64, count: u64, wait_us: u64) -> bool {
        let at = |us: u64| Instant::from_ns(us * 1_000);
        let held = (0..count).fold(true, |held, _| bursts.submitted(at(at_us)) && held);
        bursts.ended(at(at_us + wait_us));
        held
    }

    #[test]
    fn bursts_are_held_once_they_are_a_habit_and_not_after_a_wrong_guess() {
        let mut bursts = Bursts::default();
        let first = (0..100).find(|i| burst(&mut bursts, i * 100, 4, 1));
        assert_eq!(first, Some(u64::from(STREAK)));
        assert!(burst(&mut bursts, 20_000, 1, 800), "a guess, and a wrong one: the program computes");
        assert!(!burst(&mut bursts, 30_000, 4, 1));
        let again = (0..1000).find(|i| burst(&mut bursts, 40_000 + i * 100, 4, 1));
        assert!(again.is_some_and(|again| again > u64::from(STREAK) * 4));
    }

    #[test]
    fn single_messages_are_no_burst() {
        let mut bursts = Bursts::default();
        assert!(!(0..1000).any(|i| burst(&mut bursts, i * 100, 1, 1)));
    }
}
