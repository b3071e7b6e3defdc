//! Whether a link still carries anything, apart from whether it is dead; and when one that was left is tried
//! again. A state machine without I/O and clock: time comes in, and what is to be done goes out.
//!
//! Silence alone says nothing: a peer that computes, is stopped, or has no core is silent on all rails. So a
//! link on which nothing is acknowledged for a while is not judged but asked about: the peer tells over its
//! other links what has arrived from this one ([`nmad_wire::Ask`]). Only the peer's own words count. Three
//! answers in a row that tell of nothing new say that the peer is there and looks at its rails, and that the
//! way of this link is blocked. If it does not answer, nothing happens. A slow way brings parts of packets
//! between two answers, and is kept.
//!
//! A link that was left is tried again in pauses that grow. One that was left again soon after it had come
//! back waits for twice as long as before, so that a rail that comes and goes is used less and less. When no
//! other link carries, or the last one has fallen silent, it is tried at short pauses whatever it did before.

use crate::clock::{Duration, Instant};

/// A link is asked about when nothing was acknowledged for this long, or for its usual round trip and four
/// times its variation (RFC 6298), whichever is longer. At half of it a machine with more ranks than cores
/// asks all the time; at twice the value every stall is that much longer.
const QUIET_MIN: Duration = Duration::from_ms(5);
/// Longest time for which round trips that vary put off the question: a peer that answers late now and then
/// is no reason to wait for it on a rail that is blocked.
const QUIET_VARIED: Duration = Duration::from_ms(10);
/// The same for a way that is long, of which the shortest round trip tells.
const QUIET_MAX: Duration = Duration::from_ms(120);
/// Before the first round trip is known.
const QUIET_UNKNOWN: Duration = Duration::from_ms(15);
/// From one question to the next ...
const ASK_EVERY: Duration = Duration::from_ms(2);
/// ... and after this number without an answer twice as long each time, up to the maximum.
const ASKS: u32 = 4;
const ASK_MAX: Duration = Duration::from_ms(64);
/// After so many without an answer nobody knows whether the last link to a peer carries.
const ASKED_IN_VAIN: u32 = 2;
/// Questions that are asked although nobody waits for anything.
const ASKED_ASLEEP: u32 = 10;
/// Answers that tell of nothing new, the first one included: one may be given just before the peer looks at
/// the rail in question.
const ANSWERS: u32 = 3;

/// Orders of which it is judged how many are lost, and how often in a row too many have to be.
const SAMPLE: u32 = 64;
const SAMPLES: u32 = 3;
/// A rail whose datagrams arrive with less than this probability is left: a window that halves at each loss
/// has 1.22 / sqrt(0.2), not three datagrams then (Mathis and others, 1997), and each message of a few of
/// them waits for a timeout.
const ARRIVES_MIN: f64 = 0.8;

/// Pause before the first try of a link that was left, and the longest one of a link that did not come back
/// before.
const PAUSE_MIN: Duration = Duration::from_ms(100);
const PAUSE_MAX: Duration = Duration::from_ms(500);
/// Pause after a link could not be opened at all: perhaps nothing leads there.
const PAUSE_UNOPENED: Duration = Duration::from_ms(5_000);
/// Of a link that comes and goes.
const COOL_MAX: Duration = Duration::from_ms(30_000);
/// How long a try may take. Each begins with a first message, which the system repeats after a second only,
/// so most are short; every fourth is long enough for a peer that has no core.
const TRY: Duration = Duration::from_ms(300);
const TRY_LONG: Duration = Duration::from_ms(1500);
/// A link that carries for this time is forgiven half of its failures.
const STEADY: Duration = Duration::from_ms(10_000);

/// The state of a link at one look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    /// The first number that the peer is not known to have, and since when it is under way.
    pub(crate) first: Option<(u32, Instant)>,
    /// Parts of packets and chunks that came or went.
    pub(crate) moved: u32,
    /// Its smoothed round trip and four times the variation, and its shortest one; zero if unknown.
    pub(crate) round_trip: (Duration, Duration),
    /// What the first number alone takes by forecast.
    pub(crate) carries: Duration,
}

/// The next step with a link that carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duty {
    Nothing,
    /// Ask the peer what has arrived; this is the number of the question.
    Ask(u32),
    /// Leave the link: nothing has arrived for this time; zero: only other links tell what arrives.
    Leave(Duration),
}

/// The next step with a link that was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    Nothing,
    Begin,
    /// It has taken too long.
    End,
}

/// The history of one link.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    /// The first number and the parts at the last look.
    seen: Option<(u32, u32)>,
    quiet_since: Instant,
    /// Questions since it is quiet, and when the last one was asked.
    asked: u32,
    asked_at: Instant,
    /// Number of the last question, and of the first one since it is quiet that has no answer.
    question: u32,
    unanswered: u32,
    /// What the peer told last, and how often in a row.
    told: Option<(u32, u64, u32)>,
    answers: u32,
    /// The last news came by an answer, and how often it did so in a row.
    by_answer: bool,
    deaf: u32,
    /// Numbers and losses at the last sample, and samples in a row with too many.
    sampled: (u32, u32),
    lossy_samples: u32,
    /// When it was left.
    left_at: Option<Instant>,
    next_at: Instant,
    pause: Duration,
    /// Since when nobody tries.
    rests_since: Instant,
    /// When the try that is under way is over.
    until: Option<Instant>,
    tries: u32,
    /// How often it was left soon after it had come back.
    fickle: u32,
    back_at: Option<Instant>,
}

impl Suspicion {
    /// Looks at a link that carries.
    pub(crate) fn look(&mut self, now: Instant, sight: Sight) -> Duty {
        let Some((first, since)) = sight.first else {
            (self.seen, self.asked, self.by_answer, self.deaf) = (None, 0, false, 0);
            return Duty::Nothing;
        };
        if self.seen != Some((first, sight.moved)) {
            let began = if self.seen.is_none() { since } else { now };
            self.seen = Some((first, sight.moved));
            self.deaf = if core::mem::take(&mut self.by_answer) { self.deaf + 1 } else { 0 };
            (self.quiet_since, self.asked, self.told, self.answers) = (began, 0, None, 0);
            self.unanswered = self.question.wrapping_add(1);
        }
        if now < self.doubted_at(sight) {
            return Duty::Nothing;
        }
        if self.deaf >= ANSWERS {
            return Duty::Leave(Duration::ZERO);
        }
        if self.answers >= ANSWERS {
            return Duty::Leave(now.since(self.quiet_since));
        }
        if self.asked > 0 && now < self.asked_at + self.ask_pause() {
            return Duty::Nothing;
        }
        (self.asked, self.asked_at) = (self.asked + 1, now);
        self.question = self.question.wrapping_add(1);
        Duty::Ask(self.question)
    }

    /// It is to be left, and is the last one: all that was heard of it is forgotten.
    pub(crate) fn stays(&mut self, now: Instant) {
        (self.quiet_since, self.asked, self.told, self.answers, self.deaf) = (now, 0, None, 0, 0);
    }

    /// Whether nothing is acknowledged and nobody answers, as far as was looked.
    pub(crate) fn has_no_answer(&self) -> bool {
        self.asked > ASKED_IN_VAIN
    }

    /// Whether too much is lost: `numbers` were sent so far, of which `lost` once more or more often, in so
    /// many datagrams each. The share in percent that is lost.
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

    /// The peer has told what has arrived: everything below a number, more beyond it, and how often parts
    /// have. `late`: the link itself should have said so before.
    pub(crate) fn answered(&mut self, question: u32, told: (u32, u64, u32), late: bool) {
        self.by_answer |= late;
        // An answer that was under way for long tells of what was, and one of two to a question is enough.
        if question.wrapping_sub(self.unanswered) >= 1 << 31 {
            return;
        }
        self.unanswered = question.wrapping_add(1);
        self.answers = if self.told == Some(told) { self.answers + 1 } else { 1 };
        self.told = Some(told);
        // Who answers may be asked again soon.
        self.asked = self.asked.min(1);
    }

    /// When to look again at a link that carries, if nothing happens on it. None: the next turn of the pump
    /// looks.
    /// A peer that answers nothing is not there, or rests, and nobody is woken to ask it again.
    pub(crate) fn due_at(&self, sight: Sight) -> Option<Instant> {
        sight.first?;
        if self.asked > ASKED_ASLEEP {
            return None;
        }
        let doubted = self.doubted_at(sight);
        Some(if self.asked > 0 { doubted.max(self.asked_at + self.ask_pause()) } else { doubted })
    }

    /// Since when nothing of what is under way was acknowledged, as far as was looked.
    pub(crate) fn quiet_since(&self, sight: Sight) -> Option<Instant> {
        let (first, since) = sight.first?;
        Some(match self.seen {
            Some((seen, _)) if seen == first => self.quiet_since,
            Some(_) => return None,
            None => since,
        })
    }

    fn doubted_at(&self, sight: Sight) -> Instant {
        let quiet_since = match (self.seen, sight.first) {
            (None, Some((_, since))) => since,
            _ => self.quiet_since,
        };
        let (usual, shortest) = sight.round_trip;
        let usual = match usual.as_ns() {
            0 => QUIET_UNKNOWN,
            _ => usual.max(QUIET_MIN).min(QUIET_VARIED).max(twice(shortest).min(QUIET_MAX)),
        };
        quiet_since + Duration::from_ns(usual.as_ns() + 2 * sight.carries.as_ns())
    }

    fn ask_pause(&self) -> Duration {
        let doublings = self.asked.saturating_sub(ASKS).min(6);
        Duration::from_ns(ASK_EVERY.as_ns() << doublings).min(ASK_MAX)
    }

    /// The link is left, or could not be opened. `second`: the other side tries first.
    pub(crate) fn left(&mut self, now: Instant, was_up: bool, second: bool) {
        if let Some(back_at) = self.back_at {
            let steady = (now.since(back_at).as_ns() / STEADY.as_ns()).min(31) as u32;
            self.fickle = if steady == 0 { self.fickle + 1 } else { self.fickle >> steady };
        }
        self.pause = match was_up {
            true => Duration::from_ns(PAUSE_MIN.as_ns() << self.fickle.min(10)).min(COOL_MAX),
            false => PAUSE_UNOPENED,
        };
        (self.seen, self.until, self.tries) = (None, None, 0);
        (self.left_at, self.rests_since) = (Some(now), now);
        // Both sides may try, since it may be possible from one side only, but not at the same time.
        let pause = if second { Duration::from_ns(3 * self.pause.as_ns()) } else { self.pause };
        self.next_at = now + pause;
    }

    /// Looks at a link that was left.
    pub(crate) fn look_away(&mut self, now: Instant) -> Try {
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

    /// A try has failed.
    pub(crate) fn failed(&mut self, now: Instant) {
        if self.until.take().is_some() {
            let longest = PAUSE_MAX.max(self.pause);
            self.pause = twice(self.pause).min(longest);
            (self.rests_since, self.next_at) = (now, now + self.pause);
        }
    }

    /// Something says that it carries again: it is tried at once, unless it is known to come and go.
    pub(crate) fn hasten(&mut self, now: Instant) {
        if self.fickle == 0 && self.until.is_none() {
            self.next_at = now;
        }
    }

    /// There is no other link that carries: it is tried after the shortest pause.
    pub(crate) fn hurry(&mut self) {
        if self.until.is_none() {
            self.next_at = self.next_at.min(self.rests_since + PAUSE_MIN);
        }
    }

    /// When to look again at a link that was left.
    pub(crate) fn away_until(&self) -> Instant {
        self.until.unwrap_or(self.next_at)
    }

    /// The link carries again; for how long it did not.
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
