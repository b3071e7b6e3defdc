//! Detects links that carry no traffic although they are not lost, and decides when a link that was given
//! up is retried. A state machine without I/O and clock: the time is an argument, and the result is the
//! next action.
//!
//! Silence alone proves nothing: a peer that computes, is stopped, or has no core is silent on all rails.
//! So when nothing is acknowledged on a link for a while, the engine queries the peer over its other links
//! ([`nmad_wire::Ask`]), and the peer answers what has arrived from the silent link. Only such answers
//! count. Three answers in a row that report nothing new prove that the peer polls its rails and that the
//! path of this link is blocked. Without an answer nothing happens. On a slow path, parts of packets arrive
//! between two answers, and the link is kept.
//!
//! A link that was given up is retried after pauses that grow. If a link is given up again soon after it
//! came back, its pause is twice as long as before, so that a rail that flaps is used less and less. If no
//! other link carries traffic, or the last one has fallen silent, the link is retried after short pauses
//! regardless of its history.

use crate::clock::{Duration, Instant};

/// A query is sent when nothing was acknowledged for this long, or for the usual round trip plus four times
/// its variation (RFC 6298), whichever is longer. At half of it a machine with more ranks than cores sends
/// queries all the time; at twice the value every stall is that much longer.
const QUIET_MIN: Duration = Duration::from_ms(5);
/// Longest delay of a query due to the variation of round trips: a peer that sometimes answers late is no
/// reason to wait longer on a rail that is blocked.
const QUIET_VARIED: Duration = Duration::from_ms(10);
/// Longest delay of a query due to a long path, measured by its shortest round trip.
const QUIET_MAX: Duration = Duration::from_ms(120);
/// Delay of a query before the first round trip is known.
const QUIET_UNKNOWN: Duration = Duration::from_ms(15);
/// Pause between two queries ...
const ASK_EVERY: Duration = Duration::from_ms(2);
/// ... which after this number without an answer doubles each time, up to the maximum.
const ASKS: u32 = 4;
const ASK_MAX: Duration = Duration::from_ms(64);
/// After this many queries without an answer it is unknown whether the last link to a peer carries traffic.
const ASKED_IN_VAIN: u32 = 2;
/// Queries that are sent although no thread waits.
const ASKED_ASLEEP: u32 = 10;
/// Answers without news, the first one included, after which a link is given up: the peer may have sent one
/// of them just before it polled the rail in question.
const ANSWERS: u32 = 3;

/// Orders per sample of the loss rate, and the number of samples in a row that must exceed the limit.
const SAMPLE: u32 = 64;
const SAMPLES: u32 = 3;
/// A rail is given up if its datagrams arrive with a lower probability. A window that halves at each loss
/// then holds 1.22 / sqrt(0.2), less than three datagrams (Mathis and others, 1997), and each message of a
/// few datagrams waits for a timeout.
const ARRIVES_MIN: f64 = 0.8;

/// Pause before the first retry of a link that was given up, and the longest pause of a link that does not
/// flap.
const PAUSE_MIN: Duration = Duration::from_ms(100);
const PAUSE_MAX: Duration = Duration::from_ms(500);
/// Pause after a link could not be opened at all: perhaps there is no route.
const PAUSE_UNOPENED: Duration = Duration::from_ms(5_000);
/// Longest pause of a link that flaps.
const COOL_MAX: Duration = Duration::from_ms(30_000);
/// Time limit of a retry. Each begins with a first message, which the system repeats only after a second,
/// so most are short; every fourth is long enough for a peer that has no core.
const TRY: Duration = Duration::from_ms(300);
const TRY_LONG: Duration = Duration::from_ms(1500);
/// For each such period that a link is up, half of its failures no longer count.
const STEADY: Duration = Duration::from_ms(10_000);

/// State of a link at one check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    /// The first number that is not acknowledged, and when it was sent.
    pub(crate) first: Option<(u32, Instant)>,
    /// Counts parts of packets and chunks that were sent or received.
    pub(crate) moved: u32,
    /// Smoothed round trip plus four times its variation, and the shortest round trip; zero if unknown.
    pub(crate) round_trip: (Duration, Duration),
    /// Predicted transfer time of the first number alone.
    pub(crate) carries: Duration,
}

/// Next action for a link that is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Query the peer what has arrived; with the number of the query.
    Ask(u32),
    /// Give up the link: nothing has arrived for this time; zero: acknowledgements arrive only over other
    /// links.
    Leave(Duration),
}

/// Next action for a link that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    Nothing,
    Begin,
    /// The retry has taken too long.
    End,
}

/// The history of one link.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    /// The first unacknowledged number and the count of parts at the last check.
    seen: Option<(u32, u32)>,
    quiet_since: Instant,
    /// Queries since the link is quiet, and when the last one was sent.
    asked: u32,
    asked_at: Instant,
    /// Number of the last query, and of the first one since the link is quiet that has no answer.
    question: u32,
    unanswered: u32,
    /// The last answer, and how often it was received in a row.
    told: Option<(u32, u64, u32)>,
    answers: u32,
    /// The last news came by an answer instead of an acknowledgement, and how often it did so in a row.
    by_answer: bool,
    answered_only: u32,
    /// Orders sent and lost until the last sample, and samples in a row with too many losses.
    sampled: (u32, u32),
    lossy_samples: u32,
    /// When the link was given up.
    left_at: Option<Instant>,
    next_at: Instant,
    pause: Duration,
    /// Since when no retry is in progress.
    rests_since: Instant,
    /// Time limit of the retry in progress.
    until: Option<Instant>,
    tries: u32,
    /// How often the link was given up soon after it came back.
    flaps: u32,
    back_at: Option<Instant>,
}

impl Suspicion {
    /// Checks a link that is up.
    pub(crate) fn check(&mut self, now: Instant, snapshot: Snapshot) -> Action {
        let Some((first, since)) = snapshot.first else {
            (self.seen, self.asked, self.by_answer, self.answered_only) = (None, 0, false, 0);
            return Action::Nothing;
        };
        if self.seen != Some((first, snapshot.moved)) {
            let began = if self.seen.is_none() { since } else { now };
            self.seen = Some((first, snapshot.moved));
            self.answered_only =
                if core::mem::take(&mut self.by_answer) { self.answered_only + 1 } else { 0 };
            (self.quiet_since, self.asked, self.told, self.answers) = (began, 0, None, 0);
            self.unanswered = self.question.wrapping_add(1);
        }
        if now < self.doubted_at(snapshot) {
            return Action::Nothing;
        }
        if self.answered_only >= ANSWERS {
            return Action::Leave(Duration::ZERO);
        }
        if self.answers >= ANSWERS {
            return Action::Leave(now.since(self.quiet_since));
        }
        if self.asked > 0 && now < self.asked_at + self.ask_pause() {
            return Action::Nothing;
        }
        (self.asked, self.asked_at) = (self.asked + 1, now);
        self.question = self.question.wrapping_add(1);
        Action::Ask(self.question)
    }

    /// Keeps a link that should be given up because it is the last one, and resets its history.
    pub(crate) fn keep_last(&mut self, now: Instant) {
        (self.quiet_since, self.asked, self.told, self.answers, self.answered_only) = (now, 0, None, 0, 0);
    }

    /// Whether nothing is acknowledged and the peer answered none of several queries.
    pub(crate) fn has_no_answer(&self) -> bool {
        self.asked > ASKED_IN_VAIN
    }

    /// Checks the loss rate: `numbers` orders were sent so far, in `datagrams` datagrams each, and `lost`
    /// retransmissions were necessary. Returns the share that is lost in percent if it is too high.
    pub(crate) fn loses(&mut self, numbers: u32, lost: u32, datagrams: u32) -> Option<u32> {
        let (sent, again) = (numbers.wrapping_sub(self.sampled.0), lost.wrapping_sub(self.sampled.1));
        let all = sent.saturating_add(again);
        if all < SAMPLE {
            return None;
        }
        self.sampled = (numbers, lost);
        let whole = (0..datagrams.clamp(1, 64)).fold(1.0, |whole, _| whole * ARRIVES_MIN);
        let is_lossy = f64::from(again) > f64::from(all) * (1.0 - whole);
        self.lossy_samples = if is_lossy { self.lossy_samples + 1 } else { 0 };
        (self.lossy_samples >= SAMPLES).then(|| (100 * u64::from(again) / u64::from(all)) as u32)
    }

    /// Records an answer of the peer: everything below a number has arrived, some numbers beyond it, and a
    /// count of parts. `late`: an acknowledgement on the link itself was overdue.
    pub(crate) fn answered(&mut self, question: u32, told: (u32, u64, u32), late: bool) {
        self.by_answer |= late;
        // An answer that was delayed reports an old state, and a second answer to one query counts once.
        if question.wrapping_sub(self.unanswered) >= 1 << 31 {
            return;
        }
        self.unanswered = question.wrapping_add(1);
        self.answers = if self.told == Some(told) { self.answers + 1 } else { 1 };
        self.told = Some(told);
        // A peer that answers may be queried again soon.
        self.asked = self.asked.min(1);
    }

    /// Returns when to check a link that is up again, if nothing happens on it. `None`: at the next pass of
    /// the pump; a peer that answers nothing is absent or asleep, and no thread is woken to query it again.
    pub(crate) fn due_at(&self, snapshot: Snapshot) -> Option<Instant> {
        snapshot.first?;
        if self.asked > ASKED_ASLEEP {
            return None;
        }
        let doubted = self.doubted_at(snapshot);
        Some(if self.asked > 0 { doubted.max(self.asked_at + self.ask_pause()) } else { doubted })
    }

    /// Returns since when nothing in flight was acknowledged, according to the last check.
    pub(crate) fn quiet_since(&self, snapshot: Snapshot) -> Option<Instant> {
        let (first, since) = snapshot.first?;
        Some(match self.seen {
            Some((seen, _)) if seen == first => self.quiet_since,
            Some(_) => return None,
            None => since,
        })
    }

    fn doubted_at(&self, snapshot: Snapshot) -> Instant {
        let quiet_since = match (self.seen, snapshot.first) {
            (None, Some((_, since))) => since,
            _ => self.quiet_since,
        };
        let (usual, shortest) = snapshot.round_trip;
        let usual = match usual.as_ns() {
            0 => QUIET_UNKNOWN,
            _ => usual.max(QUIET_MIN).min(QUIET_VARIED).max(twice(shortest).min(QUIET_MAX)),
        };
        quiet_since + Duration::from_ns(usual.as_ns() + 2 * snapshot.carries.as_ns())
    }

    fn ask_pause(&self) -> Duration {
        let doublings = self.asked.saturating_sub(ASKS).min(6);
        Duration::from_ns(ASK_EVERY.as_ns() << doublings).min(ASK_MAX)
    }

    /// Records that the link was given up, or could not be opened. `second`: the other side retries first.
    pub(crate) fn left(&mut self, now: Instant, was_up: bool, second: bool) {
        if let Some(back_at) = self.back_at {
            let steady = (now.since(back_at).as_ns() / STEADY.as_ns()).min(31) as u32;
            self.flaps = if steady == 0 { self.flaps + 1 } else { self.flaps >> steady };
        }
        self.pause = match was_up {
            true => Duration::from_ns(PAUSE_MIN.as_ns() << self.flaps.min(10)).min(COOL_MAX),
            false => PAUSE_UNOPENED,
        };
        (self.seen, self.until, self.tries) = (None, None, 0);
        (self.left_at, self.rests_since) = (Some(now), now);
        // Both sides retry, since it may be possible from one side only, but not at the same time.
        let pause = if second { Duration::from_ns(3 * self.pause.as_ns()) } else { self.pause };
        self.next_at = now + pause;
    }

    /// Checks a link that was given up.
    pub(crate) fn check_down(&mut self, now: Instant) -> Try {
        match self.until {
            Some(until) if now >= until => {
                self.failed(now);
                Try::End
            }
            Some(_) => Try::Nothing,
            None if now >= self.next_at => {
                let long = self.tries % 4 == 3;
                self.until = Some(now + if long { TRY_LONG } else { TRY });
                self.tries += 1;
                Try::Begin
            }
            None => Try::Nothing,
        }
    }

    /// Records that a retry has failed.
    pub(crate) fn failed(&mut self, now: Instant) {
        if self.until.take().is_some() {
            let longest = PAUSE_MAX.max(self.pause);
            self.pause = twice(self.pause).min(longest);
            (self.rests_since, self.next_at) = (now, now + self.pause);
        }
    }

    /// Retries at once after an event that suggests that the link works again, unless the link flaps.
    pub(crate) fn retry_now(&mut self, now: Instant) {
        if self.flaps == 0 && self.until.is_none() {
            self.next_at = now;
        }
    }

    /// Retries after the shortest pause, because no other link is up.
    pub(crate) fn retry_soon(&mut self) {
        if self.until.is_none() {
            self.next_at = self.next_at.min(self.rests_since + PAUSE_MIN);
        }
    }

    /// The clock went back: nothing happened later than now, and no pause is longer than a whole one.
    pub(crate) fn restart_timers(&mut self, now: Instant) {
        self.quiet_since = self.quiet_since.min(now);
        self.asked_at = self.asked_at.min(now);
        self.rests_since = self.rests_since.min(now);
        self.left_at = self.left_at.map(|at| at.min(now));
        self.back_at = self.back_at.map(|at| at.min(now));
        self.next_at = self.next_at.min(now + self.pause);
        self.until = self.until.map(|at| at.min(now + TRY_LONG));
    }

    /// Returns when to check a link that was given up again.
    pub(crate) fn retry_at(&self) -> Instant {
        self.until.unwrap_or(self.next_at)
    }

    /// Records that the link is up again; returns how long it was down.
    pub(crate) fn back(&mut self, now: Instant) -> Duration {
        (self.back_at, self.until, self.lossy_samples) = (Some(now), None, 0);
        (self.seen, self.asked, self.told, self.answers) = (None, 0, None, 0);
        self.left_at.take().map_or(Duration::ZERO, |at| now.since(at))
    }
}

fn twice(length: Duration) -> Duration {
    Duration::from_ns(2 * length.as_ns())
}

#[cfg(test)]
mod tests;
