//! Learns whether a program waits soon after it has submitted messages, or computes. This decides whether
//! the first message of a burst is held back, and whether messages are gathered at all.
//!
//! The first message of a burst leaves at once and later ones gather. Programs that submit several messages
//! and then wait, again and again, are better served if the first one gathers too: one system call instead
//! of two. Programs that compute before they wait are served worse, since the message stays until the
//! helper looks. The time of the waiting call shows the gain or cost of holding, whether the burst was held
//! or not. So the first message is held while holding has gained more than it cost over the last thousand
//! bursts. A processor that the system takes away for a moment looks like a program that computes, but
//! rarely and briefly.
//!
//! Later messages gather while their rail is busy, and leave with the waiting call or when the helper
//! looks. If programs compute after their submissions, this delays messages by more than gathering saves;
//! then each message leaves when it is submitted, as if a thread waited for it. The measure is the time
//! between submissions and after the last one, without the time of the submissions, which is longer if each
//! message leaves at once.

use crate::clock::{Duration, Instant};

/// A burst is held for at most this long after its first submission.
const SOON: Duration = Duration::from_us(20);
/// A burst whose waiting call comes later than this should have left at once.
pub const LATE: Duration = Duration::from_us(40);
/// Gain of holding a burst in microseconds: a little more than a system call that only enters and leaves
/// the kernel.
pub const GAIN: f32 = 2.0;
/// Highest cost of holding in microseconds, when only the helper ends the burst.
const COST_MAX: f32 = 1000.0;
/// Weight of the latest burst in the mean.
const LATEST: f32 = 1.0 / 1024.0;
/// Bursts that are observed before the first one is held.
const WATCHED: f32 = 16.0;
/// Submissions between two readings of the clock while a burst is held.
const CLOCK_EVERY: u32 = 8;

/// A burst that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Submissions.
    pub count: u32,
    /// Time from the first submission to the wait.
    pub took: Duration,
    /// The program has computed between two submissions, or after the last one.
    pub computed: bool,
}

/// The observed habit of the program.
#[derive(Debug, Default)]
pub struct Bursts {
    /// First submission since the last wait, and the number of submissions.
    since: Option<Instant>,
    count: u32,
    /// End of the last submission, and whether there was a long gap between two.
    last: Instant,
    was_away: bool,
    /// Mean gain of holding, in microseconds.
    hold_gain: f32,
    /// Mean gain of sending each message at once, in microseconds: the earlier departure less the savings
    /// of gathering.
    at_once_gain: f32,
    held: bool,
}

impl Bursts {
    /// Returns whether this submission is held back too, without reading the clock.
    #[inline]
    pub fn holds(&mut self) -> bool {
        let holds = self.held && !self.count.is_multiple_of(CLOCK_EVERY);
        self.count += u32::from(holds);
        holds
    }

    /// Records a submission; true: hold it back, since a waiting call is about to come.
    #[inline]
    pub fn submitted(&mut self, now: Instant) -> bool {
        self.count += 1;
        let since = *self.since.get_or_insert(now);
        self.was_away |= self.count > 1 && self.is_away(now);
        self.last = now;
        self.held = self.hold_gain >= GAIN * WATCHED * LATEST && now.since(since) < SOON;
        self.held
    }

    /// Records the end of a submission, after its rail took the orders.
    #[inline]
    pub fn returns(&mut self, now: Instant) {
        self.last = now;
    }

    /// Returns whether the gap since the last submission is long.
    fn is_away(&self, now: Instant) -> bool {
        now.since(self.last) >= LATE
    }

    /// Returns whether messages leave when submitted, even on busy rails, since the program is likely to
    /// compute.
    #[inline]
    pub fn leaves_at_once(&self) -> bool {
        self.at_once_gain > 0.0
    }

    /// Returns whether a burst has begun, whose end must be reported.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// Ends a burst: a waiting call, or the helper, has come. Returns it, if it says something.
    #[inline]
    pub fn ended(&mut self, now: Instant) -> Option<Burst> {
        let since = self.since.take()?;
        let took = now.since(since);
        let late = (took.as_ns() as f32 / 1e3).min(COST_MAX);
        let (several, is_late) = (self.count > 1, took >= LATE);
        let mut burst = None;
        if several || is_late {
            let computed = self.was_away || self.is_away(now);
            let spared = GAIN * (self.count - 1) as f32;
            self.hold_gain += LATEST * (if is_late { -late } else { GAIN } - self.hold_gain);
            self.at_once_gain += LATEST * (if computed { late } else { -spared } - self.at_once_gain);
            burst = Some(Burst { count: self.count, took, computed });
        }
        (self.count, self.held, self.was_away) = (0, false, false);
        burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a burst; returns whether all of it was held back.
    fn burst(bursts: &mut Bursts, count: u64, wait_us: u64) -> bool {
        let held = (0..count).fold(true, |held, _| (bursts.holds() || bursts.submitted(at(0))) && held);
        bursts.ended(at(wait_us));
        held
    }

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1_000)
    }

    #[test]
    fn bursts_are_held_once_they_are_a_habit() {
        let mut bursts = Bursts::default();
        let first = (0..100).find(|_| burst(&mut bursts, 40, 10));
        assert!((16..20).contains(&first.expect("it is one")));
    }

    #[test]
    fn a_processor_that_is_taken_away_for_a_moment_changes_nothing() {
        let mut bursts = Bursts::default();
        let held = (0..10_000).filter(|i| burst(&mut bursts, 40, if i % 100 == 99 { 120 } else { 10 }));
        assert!(held.count() > 9_900);
    }

    #[test]
    fn a_program_that_computes_now_and_then_is_not_held_up() {
        let mut bursts = Bursts::default();
        let held = (0..10_000).filter(|i| burst(&mut bursts, 40, if i % 300 == 299 { 1_000 } else { 10 }));
        assert!(held.count() < 400);
    }

    #[test]
    fn a_long_burst_is_not_held_to_its_end() {
        let mut bursts = Bursts::default();
        assert!((0..100).any(|_| burst(&mut bursts, 40, 10)));
        assert!(bursts.submitted(at(0)));
        assert!((0..2 * CLOCK_EVERY).any(|_| !bursts.holds() && !bursts.submitted(at(25))));
    }

    #[test]
    fn messages_leave_at_once_where_the_program_computes_after_them() {
        let mut bursts = Bursts::default();
        assert!(!bursts.leaves_at_once());
        burst(&mut bursts, 1, 500);
        assert!(bursts.leaves_at_once());
        // Single messages that are waited for gather nothing and change nothing.
        (0..1000).for_each(|_| assert!(!burst(&mut bursts, 1, 5)));
        assert!(bursts.leaves_at_once());
    }

    #[test]
    fn a_burst_that_takes_long_since_each_message_leaves_is_no_computing() {
        let mut bursts = Bursts::default();
        burst(&mut bursts, 1, 500);
        for _ in 0..100 {
            for i in 0..64 {
                bursts.submitted(at(3 * i));
                bursts.returns(at(3 * i + 3));
            }
            bursts.ended(at(195));
        }
        assert!(!bursts.leaves_at_once());
    }

    #[test]
    fn messages_leave_at_once_where_the_program_computes_between_them() {
        let mut bursts = Bursts::default();
        (0..4).for_each(|i| _ = bursts.submitted(at(100 * i)));
        bursts.ended(at(305));
        assert!(bursts.leaves_at_once());
    }

    #[test]
    fn messages_gather_again_after_some_bursts_that_are_waited_for() {
        let mut bursts = Bursts::default();
        burst(&mut bursts, 1, 500);
        let hasty = (0..100).filter(|_| {
            burst(&mut bursts, 40, 10);
            bursts.leaves_at_once()
        });
        assert!(hasty.count() < 10);
    }

    #[test]
    fn single_messages_are_no_burst() {
        let mut bursts = Bursts::default();
        assert!(!(0..1000).any(|_| burst(&mut bursts, 1, 1)));
    }
}
