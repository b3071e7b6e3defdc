//! What the helper thread does next: a state machine without I/O or clock.
//!
//! P3's manager chooses polling or blocking by the number of computing threads and of cores (section III-A).
//! Here the choice follows from what each look has found ([`Sight`]), from the number of idle cores, and from
//! what helping has cost and given so far ([`Account`]).
//!
//! - A thread of the application is in a call: it turns the pump itself, and the helper naps, the longer the
//!   more of its looks have found that; if a core is
//!   idle and the thread sends what two cores post faster than one (P3 section III-B), it stands by, and goes
//!   on between calls.
//! - A thread sleeps in a call: the rails wake it, and the helper looks at deadlines only.
//! - The application computes, and a core is idle: the helper sleeps on the rails' descriptors, and polls
//!   while messages move.
//! - The application computes, and no core is idle: the helper turns the pump once in a millisecond.
//! - Nothing is in flight: the helper rests until something is submitted.

use crate::setting::Progress;
use nmad_engine::{Duration, Instant};

/// What stays in the window leaves after at most this long, whatever the application does.
pub(crate) const PERIOD: Duration = Duration::from_ms(1);
/// The same when a thread of the application has slept for a while: should it go on and compute, or another
/// one look at the rails and compute, something may be this late.
const LONG_PERIOD: Duration = Duration::from_ms(10);
/// Time without anything to do after which the thread rests.
const PATIENCE: Duration = Duration::from_ms(200);
/// How soon the helper looks again whether the application computes. Such a look reads two words and takes no
/// lock; with the wakeup of the thread it takes some 5 us, a twentieth of a core that is idle. At half of it
/// the thread is awake for a tenth of the time, at twice the value a transfer of 1 MiB at 10 GB/s is over
/// before it is seen.
const SHORT: Duration = Duration::from_us(100);
/// With a core of its own the thread may be awake all the time.
const SHORT_DEDICATED: Duration = Duration::from_us(5);
/// For this long after it has moved something it looks that often: the application is likely to compute
/// beside messages again. It stands by for as long after it was last of use.
pub(crate) const HABIT: Duration = Duration::from_ms(50);
/// Polls for this long after the last message has moved. A wakeup takes as long, see [`crate::idle`].
const POLL: Duration = Duration::from_us(50);
/// Time between two looks at the cores, while the answer matters, and before the first one. The system counts
/// in steps of 10 ms: half of it makes a core idle or busy by one step more or less, twice keeps the helper
/// from helping for as long at the beginning.
pub(crate) const REVIEW: Duration = Duration::from_ms(100);
/// Helping that took less than this is too short to be judged.
const JUDGED: Duration = Duration::from_ms(1);
/// The first pause after helping has cost more than it gave, and the longest; each is twice the one before.
const PAUSE: (Duration, Duration) = (Duration::from_ms(200), Duration::from_ms(10_000));

/// What one look has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// A thread of the application is in a call and awake.
    pub(crate) inside: bool,
    /// One sleeps in a call.
    pub(crate) sleeps: bool,
    /// Nobody but the helper has turned the pump since its last look: the application computes.
    pub(crate) alone: bool,
    /// Somebody has to turn the pump from time to time: something is in flight, a timer runs, or a service
    /// waits for arrivals.
    pub(crate) needed: bool,
    /// Requests of the application are in flight.
    pub(crate) flies: bool,
    /// A service waits for arrivals: peers that are served need not wait for a period.
    pub(crate) serves: bool,
    /// The helper's turn of the pump has moved something.
    pub(crate) moved: bool,
    /// Since the last look something was sent that another core could have posted a part of.
    pub(crate) asked: bool,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Turn the pump again at once, unless the application wants the lock.
    Poll,
    /// Look all the time, and without the node's lock, whether something is handed to this core, for this
    /// long.
    StandBy(Duration),
    /// Sleep on the rails' descriptors, no longer than this.
    Watch(Duration),
    /// Sleep, then look without the lock whether the application has been in a call.
    Peek(Duration),
    /// Sleep, then turn the pump.
    Tick(Duration),
    /// Sleep until something is submitted or a peer wants a link.
    Rest,
}

/// What helping has cost and given since the last review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Processor time of turns that have moved something while the application computed: what its next call
    /// would have had to do.
    pub(crate) given: Duration,
    /// Processor time that the helper took.
    pub(crate) spent: Duration,
    /// How long threads of the application were ready and had no core.
    pub(crate) delayed: Duration,
}

/// The policy and what it remembers.
#[derive(Debug)]
pub(crate) struct Policy {
    setting: Progress,
    /// More ranks than cores: the helper gives way.
    oversubscribed: bool,
    idle_cores: usize,
    busy_at: Instant,
    /// Since when each look has found that the application was in calls.
    calls_since: Option<Instant>,
    moved_at: Option<Instant>,
    asked_at: Option<Instant>,
    watched_at: Option<Instant>,
    reviewed_at: Instant,
    suspended_until: Option<Instant>,
    pause: Duration,
    /// It would help now if a core were idle.
    wishes: bool,
}

impl Policy {
    /// At first no core counts as idle: before `now` the process had not begun to work.
    pub(crate) fn new(now: Instant, setting: Progress, oversubscribed: bool) -> Policy {
        Policy {
            setting,
            oversubscribed,
            idle_cores: 0,
            busy_at: Instant::default(),
            calls_since: None,
            moved_at: None,
            asked_at: None,
            watched_at: None,
            reviewed_at: now,
            suspended_until: None,
            pause: PAUSE.0,
            wishes: false,
        }
    }

    /// Another setting holds from now on; earlier judgements are forgotten, observations are kept.
    pub(crate) fn set(&mut self, setting: Progress) {
        self.setting = setting;
        (self.suspended_until, self.pause) = (None, PAUSE.0);
    }

    pub(crate) fn setting(&self) -> &Progress {
        &self.setting
    }

    /// What to do after a look.
    pub(crate) fn next(&mut self, now: Instant, sight: Sight) -> Step {
        self.wishes = false;
        if self.setting == Progress::Off {
            return Step::Rest;
        }
        if sight.inside || sight.moved || sight.asked || (sight.needed && !sight.sleeps) {
            self.busy_at = now;
        }
        if sight.asked {
            self.asked_at = Some(now);
        }
        let calls = (sight.inside || !sight.alone) && !sight.sleeps && !sight.serves;
        self.calls_since = calls.then(|| self.calls_since.unwrap_or(now));
        if sight.inside {
            self.wishes = self.is_asked(now);
            return self.nap(now);
        }
        if now.since(self.busy_at) >= PATIENCE {
            return if sight.needed { Step::Tick(LONG_PERIOD) } else { Step::Rest };
        }
        if sight.sleeps {
            return Step::Tick(PERIOD);
        }
        match sight.flies || sight.serves {
            true => self.beside_computing(now, sight),
            false => self.between_calls(now),
        }
    }

    /// Another reason to be awake than a look: somebody has rung.
    pub(crate) fn woken(&mut self, now: Instant) {
        self.busy_at = now;
    }

    /// The application computes, and something is in flight.
    fn beside_computing(&mut self, now: Instant, sight: Sight) -> Step {
        self.wishes = true;
        // Between two calls of a program that communicates all the time something can be moved, too: that is
        // no computation.
        if sight.moved && sight.alone {
            self.moved_at = Some(now);
        }
        match &self.setting {
            Progress::Dedicated(_) => Step::Poll,
            _ if !self.helps(now) && sight.serves && sight.alone => Step::Watch(PERIOD),
            _ if !self.helps(now) => Step::Tick(self.period(now)),
            _ if self.has_moved_within(POLL, now) => Step::Poll,
            // It looks at the rails after each such step, which is as soon as a peek would be.
            _ if self.is_asked(now) => Step::StandBy(SHORT),
            _ if sight.alone && !self.watches_in_vain(now) => {
                self.watched_at = Some(now);
                Step::Watch(PERIOD)
            }
            _ => Step::Peek(SHORT),
        }
    }

    /// Whether a rail has ended the last sleep at once and had nothing: it may do so again and again.
    fn watches_in_vain(&self, now: Instant) -> bool {
        self.watched_at
            .is_some_and(|at| now.since(at) < SHORT && self.moved_at.is_none_or(|moved| moved < at))
    }

    /// Nothing is in flight: the next call may send what two cores post faster.
    fn between_calls(&mut self, now: Instant) -> Step {
        self.wishes = self.is_asked(now);
        self.stand_by(now).unwrap_or(Step::Tick(self.period(now)))
    }

    /// Standing by, if another core was lately of use to a thread in a call, and one is idle.
    fn stand_by(&self, now: Instant) -> Option<Step> {
        let has_core = matches!(self.setting, Progress::Dedicated(_)) || self.helps(now);
        (has_core && self.is_asked(now)).then_some(Step::StandBy(SHORT))
    }

    /// A thread of the application turns the pump.
    fn nap(&self, now: Instant) -> Step {
        if let Some(step) = self.stand_by(now) {
            return step;
        }
        match self.setting {
            Progress::Dedicated(_) => Step::Peek(SHORT_DEDICATED),
            _ if self.helps(now) && self.has_moved_within(HABIT, now) => Step::Peek(SHORT),
            _ => Step::Tick(self.period(now)),
        }
    }

    /// The time to the next turn of the pump on a core that the application needs. Each takes that core away
    /// for 20 to 50 us (EPYC), and from the peer the time in which it waits for this process. So one that has
    /// communicated for long is looked at less often: when it begins to compute it is noticed after half of
    /// that time at most.
    fn period(&self, now: Instant) -> Duration {
        let calls = self.calls_since.map_or(Duration::ZERO, |since| now.since(since));
        Duration::from_ns(calls.as_ns() / 2).clamp(PERIOD, LONG_PERIOD)
    }

    /// Whether another core was lately of use to a thread in a call.
    fn is_asked(&self, now: Instant) -> bool {
        self.asked_at.is_some_and(|at| now.since(at) < HABIT)
    }

    fn has_moved_within(&self, span: Duration, now: Instant) -> bool {
        self.moved_at.is_some_and(|at| now.since(at) < span)
    }

    /// Whether it may do more than turn the pump once in a period.
    fn helps(&self, now: Instant) -> bool {
        self.idle_cores > 0 && !self.oversubscribed && !self.is_suspended(now)
    }

    /// Whether helping has stopped since it cost more than it gave.
    pub(crate) fn is_suspended(&self, now: Instant) -> bool {
        self.suspended_until.is_some_and(|until| now < until)
    }

    /// Whether [`Policy::review`] is due: the number of idle cores matters, and is old.
    pub(crate) fn asks_review(&self, now: Instant) -> bool {
        let asks = self.wishes && matches!(self.setting, Progress::Auto | Progress::Idle);
        asks && !self.oversubscribed && now.since(self.reviewed_at) >= REVIEW
    }

    /// Takes note of how many cores are idle, and of what helping has cost and given. The application cannot
    /// have waited for the helper for longer than that ran: the rest of its delay is due to others.
    pub(crate) fn review(&mut self, now: Instant, idle_cores: usize, account: Account) {
        self.idle_cores = idle_cores;
        self.reviewed_at = now;
        if self.setting != Progress::Auto || account.spent < JUDGED {
            return;
        }
        if account.delayed.min(account.spent) > account.given {
            self.suspended_until = Some(now + self.pause);
            self.pause = Duration::from_ns(2 * self.pause.as_ns()).min(PAUSE.1);
        } else {
            self.pause = PAUSE.0;
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
