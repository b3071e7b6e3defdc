//! Decides the next step of the helper thread: a state machine without I/O or clock.
//!
//! P3's manager chooses polling or blocking by the number of computing threads and of cores (section III-A).
//! Here the choice follows from the result of each look at the node ([`Sight`]), from the number of idle
//! cores, and from the cost and gain of helping so far ([`Account`]).
//!
//! - A thread of the application is in a call: it turns the pump itself. The helper naps, and the naps grow
//!   while its looks keep finding this. If a core is idle and the thread sends messages that two cores post
//!   faster than one (P3 section III-B), the helper stands by there, also between calls.
//! - A thread sleeps in a call: the rails wake it, and the helper only checks deadlines.
//! - The application computes, and a core is idle: the helper sleeps on the rails' descriptors, and polls
//!   while messages move.
//! - The application computes, and no core is idle: the helper turns the pump once in a millisecond. If
//!   ranks share a core, their helpers together do.
//! - Nothing is in flight, but a service needs the helper: it sleeps on the rails' descriptors until a
//!   request arrives or a thread polls the rails.
//! - Nothing is in flight: the helper rests until something is submitted.

use crate::setting::Progress;
use nmad_engine::{Duration, Instant};

/// Longest time that a message stays in the window, whatever the application does. If ranks share a core,
/// it is this long for each of them, up to [`LONGEST`].
pub(crate) const PERIOD: Duration = Duration::from_ms(1);
/// Longest time that a message stays in the window when a thread of the application has slept for a while:
/// if that thread returns and computes, or another one polls and computes, a message may be this late.
const LONG_PERIOD: Duration = Duration::from_ms(10);
/// Bound of both if many ranks share a core. Timers of lossy rails are late by as much.
const LONGEST: Duration = Duration::from_ms(100);
/// Idle time after which the helper rests.
const PATIENCE: Duration = Duration::from_ms(200);
/// Interval at which the helper checks whether the application computes. Such a check reads two words and
/// takes no lock; with the wakeup of the thread it takes some 5 us, a twentieth of an idle core. At half
/// the value the thread is awake for a tenth of the time; at twice the value a transfer of 1 MiB at 10 GB/s
/// is over before the helper notices it.
const SHORT: Duration = Duration::from_us(100);
/// The same interval on a dedicated core, where the thread may be awake all the time.
const SHORT_DEDICATED: Duration = Duration::from_us(5);
/// After it has moved something the helper checks at interval SHORT for this long, since the application is
/// likely to compute beside messages again. It also stands by for this long after it last posted for
/// another thread.
pub(crate) const RECENT: Duration = Duration::from_ms(50);
/// Polling time after the last message has moved; as long as a wakeup takes, see [`crate::idle`].
const POLL: Duration = Duration::from_us(50);
/// Time between two measurements of the cores while the result matters, and before the first one. The
/// system counts in steps of 10 ms: at half the value one step more or less decides whether a core is idle;
/// at twice the value the helper starts to help that much later.
pub(crate) const REVIEW: Duration = Duration::from_ms(100);
/// Helping that took less processor time than this is not judged.
const ACCOUNT_MIN: Duration = Duration::from_ms(1);
/// First and longest pause after helping has cost more than it gained; each pause is twice as long as the
/// one before.
const PAUSE: (Duration, Duration) = (Duration::from_ms(200), Duration::from_ms(10_000));

/// Result of one look at the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// A thread of the application is in a call and awake.
    pub(crate) inside: bool,
    /// A thread of the application sleeps in a call.
    pub(crate) sleeps: bool,
    /// Only the helper has turned the pump since its last look: the application computes.
    pub(crate) alone: bool,
    /// The pump must be turned from time to time: something is in flight, a timer runs, or a service waits
    /// for arrivals.
    pub(crate) needed: bool,
    /// Requests of the application are in flight.
    pub(crate) in_flight: bool,
    /// A service waits for arrivals; its peers must not wait for a whole period.
    pub(crate) serves: bool,
    /// The helper's turn of the pump has moved something.
    pub(crate) moved: bool,
    /// Since the last look a thread sent something of which another core could have posted a part.
    pub(crate) asked: bool,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Turn the pump again at once, unless the application wants the lock.
    Poll,
    /// Poll for work that is handed to this core, without the node's lock, for this long.
    StandBy(Duration),
    /// Sleep on the rails' descriptors, no longer than this.
    Watch(Duration),
    /// Sleep on the rails' descriptors until a request arrives or a thread polls the rails.
    Listen,
    /// Sleep, then look without the lock whether the application has been in a call.
    Peek(Duration),
    /// Sleep, then turn the pump.
    Tick(Duration),
    /// Sleep until something is submitted or a peer wants a link.
    Rest,
}

/// Cost and gain of helping since the last review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Processor time of the turns that moved something while the application computed, which saved its
    /// next call this work.
    pub(crate) given: Duration,
    /// Processor time of the helper.
    pub(crate) spent: Duration,
    /// Time for which threads of the application were ready but had no core.
    pub(crate) delayed: Duration,
}

/// The policy and its memory.
#[derive(Debug)]
pub(crate) struct Policy {
    setting: Progress,
    /// If it is more than 1, the helper yields to the other ranks, and each of their helpers looks so many
    /// times less often: a look takes 5 to 50 us of the core, and with 128 ranks a core one look of each in
    /// a millisecond would take all of it.
    ranks_per_core: u32,
    idle_cores: usize,
    busy_at: Instant,
    /// Time since which each look has found the application in calls.
    calls_since: Option<Instant>,
    moved_at: Option<Instant>,
    asked_at: Option<Instant>,
    watched_at: Option<Instant>,
    reviewed_at: Instant,
    suspended_until: Option<Instant>,
    pause: Duration,
    /// The helper would help now if a core were idle.
    wants_core: bool,
}

impl Policy {
    /// No core counts as idle at first: before `now` the process had not begun to work.
    pub(crate) fn new(now: Instant, setting: Progress, ranks_per_core: u32) -> Policy {
        Policy {
            setting,
            ranks_per_core,
            idle_cores: 0,
            busy_at: Instant::default(),
            calls_since: None,
            moved_at: None,
            asked_at: None,
            watched_at: None,
            reviewed_at: now,
            suspended_until: None,
            pause: PAUSE.0,
            wants_core: false,
        }
    }

    /// Changes the setting. This resets the judgement of helping and keeps the observations.
    pub(crate) fn set(&mut self, setting: Progress) {
        self.setting = setting;
        (self.suspended_until, self.pause) = (None, PAUSE.0);
    }

    pub(crate) fn setting(&self) -> &Progress {
        &self.setting
    }

    /// Returns the next step after a look.
    pub(crate) fn next(&mut self, now: Instant, sight: Sight) -> Step {
        self.wants_core = false;
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
            self.wants_core = self.is_asked(now);
            return self.nap(now);
        }
        if now.since(self.busy_at) >= PATIENCE {
            return if sight.needed { Step::Tick(self.shared(LONG_PERIOD)) } else { Step::Rest };
        }
        if sight.sleeps {
            return Step::Tick(self.shared(PERIOD));
        }
        match sight.in_flight || sight.serves {
            true => self.beside_computing(now, sight),
            false => self.between_calls(now),
        }
    }

    /// Notes that the helper was woken, which also counts as activity.
    pub(crate) fn woken(&mut self, now: Instant) {
        self.busy_at = now;
    }

    /// Next step while the application computes, and requests are in flight or a service needs the helper.
    fn beside_computing(&mut self, now: Instant, sight: Sight) -> Step {
        self.wants_core = true;
        // A look that falls between two calls of a communicating program can move something too: the
        // program does not compute then.
        if sight.moved && sight.alone {
            self.moved_at = Some(now);
        }
        let helps = self.helps(now);
        match &self.setting {
            Progress::Dedicated(_) => Step::Poll,
            _ if helps && self.has_moved_within(POLL, now) => Step::Poll,
            // Standing by is followed by a look at the rails, as soon as after a peek.
            _ if helps && self.is_asked(now) => Step::StandBy(SHORT),
            _ if (helps || sight.serves) && sight.alone && !self.watches_in_vain(now) => {
                self.watched_at = Some(now);
                if sight.in_flight { Step::Watch(self.shared(PERIOD)) } else { Step::Listen }
            }
            _ if helps => Step::Peek(SHORT),
            _ => Step::Tick(self.period(now)),
        }
    }

    /// Returns whether a rail ended the last sleep at once without any event: it may do so again and again.
    fn watches_in_vain(&self, now: Instant) -> bool {
        self.watched_at
            .is_some_and(|at| now.since(at) < SHORT && self.moved_at.is_none_or(|moved| moved < at))
    }

    /// Next step while nothing is in flight: the next call may send messages that two cores post faster.
    fn between_calls(&mut self, now: Instant) -> Step {
        self.wants_core = self.is_asked(now);
        self.stand_by(now).unwrap_or(Step::Tick(self.period(now)))
    }

    /// Stands by if another core was lately useful to a thread in a call, and a core is idle.
    fn stand_by(&self, now: Instant) -> Option<Step> {
        let has_core = matches!(self.setting, Progress::Dedicated(_)) || self.helps(now);
        (has_core && self.is_asked(now)).then_some(Step::StandBy(SHORT))
    }

    /// Next step while a thread of the application turns the pump.
    fn nap(&self, now: Instant) -> Step {
        if let Some(step) = self.stand_by(now) {
            return step;
        }
        match self.setting {
            Progress::Dedicated(_) => Step::Peek(SHORT_DEDICATED),
            _ if self.helps(now) && self.has_moved_within(RECENT, now) => Step::Peek(SHORT),
            _ => Step::Tick(self.period(now)),
        }
    }

    /// Returns the time to the next turn of the pump on a core that the application needs. Each turn takes
    /// that core away for 20 to 50 us (EPYC), for which the peer waits too. So the time grows while the
    /// application communicates: when it begins to compute, the helper notices after at most half of the
    /// time that it communicated before.
    fn period(&self, now: Instant) -> Duration {
        let calls = self.calls_since.map_or(Duration::ZERO, |since| now.since(since));
        Duration::from_ns(calls.as_ns() / 2).clamp(self.shared(PERIOD), self.shared(LONG_PERIOD))
    }

    /// Returns `period` times the number of ranks for each core, at most [`LONGEST`].
    fn shared(&self, period: Duration) -> Duration {
        Duration::from_ns(period.as_ns() * u64::from(self.ranks_per_core)).min(LONGEST)
    }

    /// Returns whether another core was lately useful to a thread in a call.
    fn is_asked(&self, now: Instant) -> bool {
        self.asked_at.is_some_and(|at| now.since(at) < RECENT)
    }

    /// Returns whether a thread of the application that computes may be preempted for one in a call, if that
    /// has been worth it lately: no core is idle, and helping has not cost more than it gained.
    pub(crate) fn may_preempt(&self, now: Instant) -> bool {
        let is_free = matches!(self.setting, Progress::Auto | Progress::Idle) && self.ranks_per_core == 1;
        is_free && self.idle_cores == 0 && self.is_asked(now) && !self.is_suspended(now)
    }

    fn has_moved_within(&self, span: Duration, now: Instant) -> bool {
        self.moved_at.is_some_and(|at| now.since(at) < span)
    }

    /// Returns whether the helper may do more than turn the pump once in a period.
    fn helps(&self, now: Instant) -> bool {
        self.idle_cores > 0 && self.ranks_per_core == 1 && !self.is_suspended(now)
    }

    /// Returns whether helping is suspended because it cost more than it gained.
    pub(crate) fn is_suspended(&self, now: Instant) -> bool {
        self.suspended_until.is_some_and(|until| now < until)
    }

    /// Returns whether [`Policy::review`] is due: the number of idle cores matters and is out of date.
    pub(crate) fn asks_review(&self, now: Instant) -> bool {
        let asks = self.wants_core && matches!(self.setting, Progress::Auto | Progress::Idle);
        asks && self.ranks_per_core == 1 && now.since(self.reviewed_at) >= REVIEW
    }

    /// Records the number of idle cores, and judges the cost and gain of helping. The application cannot
    /// have waited for the helper for longer than the helper ran; other processes caused the rest of its
    /// delay.
    pub(crate) fn review(&mut self, now: Instant, idle_cores: usize, account: Account) {
        self.idle_cores = idle_cores;
        self.reviewed_at = now;
        if self.setting != Progress::Auto || account.spent < ACCOUNT_MIN {
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
