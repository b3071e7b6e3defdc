//! The transfers of a rail that are being timed, and what earlier ones have taught.

use super::learned::Learned;
use super::measured::Profile;
use super::origin::Way;
use super::recent::Learnt;
use crate::clock::{Duration, Instant};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Questions with this bit are about what is timed; those about silence count from zero.
pub(crate) const TIMED: u32 = 1 << 31;
/// An answer that takes longer than this does not come: the question or the answer is lost.
const LOST: Duration = Duration::from_ms(5);
/// Nor does one that has not come after this number of messages.
const SKIPPED_MAX: u32 = 16;
/// Large messages that are timed at once.
const LARGE_MAX: usize = 64;

/// What transfers have made of what was known of a rail to a peer.
#[derive(Debug, Clone, PartialEq)]
pub struct Taught {
    /// The profile in use.
    pub profile: Arc<Profile>,
    /// Since when it is another one than was known before.
    pub since: Instant,
    /// Transfers and answers that were observed.
    pub count: u32,
}

/// Observations of a link, and the transfers that are being timed.
#[derive(Debug)]
pub(crate) struct Learning {
    pub(crate) learned: Learned,
    /// A packet, or nothing, whose answer has not come.
    pub(crate) pending: Option<Pending>,
    /// Large messages that are on their way, in the order in which they left, where one rail is alone.
    large: Vec<Large>,
    /// When the last one of them had arrived.
    arrived_at: Instant,
    question: u32,
    /// Messages since what is timed has left.
    skipped: u32,
    /// The user knows that the measured profile was wrong.
    pub(crate) is_told: bool,
    /// Since when the profile in use is the corrected one; none: it is not.
    pub(crate) used_since: Option<Instant>,
}

/// A packet whose answer has not come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    /// The number of the question.
    pub(crate) question: u32,
    /// Its way and length; none: an answer to nothing.
    pub(crate) what: Option<(Way, u64)>,
    /// Its number on the link; of nothing the number of what follows.
    pub(crate) number: u32,
    /// When it left; zero: it has not.
    pub(crate) from: Instant,
}

/// A large message whose receiver has not said that it is there.
#[derive(Debug, Clone, Copy)]
struct Large {
    request: u64,
    len: u64,
    left_at: Instant,
    /// The rail had nothing else to do.
    is_alone: bool,
}

impl Learning {
    /// Since when the profile in use is the corrected one, and from how many observations; none: it is not.
    pub(crate) fn taught(&self) -> Option<(Instant, u32)> {
        Some((self.used_since?, self.learned.count()))
    }

    /// Nothing is observed yet; see [`Learned::new`].
    pub(crate) fn new(profile: &Profile, in_place_min: u64, pushes: bool) -> Box<Learning> {
        Box::new(Learning {
            learned: Learned::new(profile, in_place_min, pushes),
            pending: None,
            large: Vec::new(),
            arrived_at: Instant::default(),
            question: 0,
            skipped: 0,
            is_told: false,
            used_since: None,
        })
    }

    /// Whether an answer is awaited, asked once for each message: after some of them it is not any more.
    pub(crate) fn is_busy(&mut self) -> bool {
        let waits = self.pending.is_some() || !self.large.is_empty();
        self.skipped = if waits { self.skipped + 1 } else { 0 };
        if self.skipped > SKIPPED_MAX {
            self.pending = None;
        }
        if self.skipped as usize > LARGE_MAX {
            self.large.clear();
        }
        waits
    }

    /// Begins to time a packet, unless something else is timed; the number of the question.
    pub(crate) fn begin(&mut self, now: Instant, number: u32, what: (Way, u64)) -> Option<u32> {
        let waits = self.pending.is_some_and(|pending| now.since(pending.from) < LOST);
        (!waits && self.large.is_empty()).then(|| self.ask(number, Some(what), now))
    }

    /// The number of the question about what left at `from`.
    pub(crate) fn ask(&mut self, number: u32, what: Option<(Way, u64)>, from: Instant) -> u32 {
        (self.question, self.skipped) = (self.question.wrapping_add(1), 0);
        let question = self.question | TIMED;
        self.pending = Some(Pending { question, what, number, from });
        question
    }

    /// A large message begins to leave; `is_idle`: the rail has nothing else to do, as far as is known.
    pub(crate) fn leaves(&mut self, now: Instant, request: u64, len: u64, is_idle: bool) {
        let is_alone = is_idle && self.large.is_empty();
        if self.large.len() < LARGE_MAX {
            self.large.push(Large { request, len, left_at: now, is_alone });
        }
    }

    /// The receiver has all of a large message. A rail carries one after the other: one that left before the
    /// last one had arrived has taken the time from that arrival on.
    pub(crate) fn arrived(&mut self, now: Instant, request: u64) -> Learnt {
        let before = core::mem::replace(&mut self.arrived_at, now);
        let Some(place) = self.large.iter().position(|large| large.request == request) else {
            return Learnt::Nothing;
        };
        let Large { len, left_at, is_alone, .. } = self.large.remove(place);
        match () {
            () if is_alone && self.learned.wants(Way::Body, len) => {
                self.learned.note(Way::Body, len, now.since(left_at).as_ns(), 1.0)
            }
            () if !is_alone && before > left_at => {
                self.learned.note_behind(len, now.since(before).as_ns(), 1.0)
            }
            () => Learnt::Nothing,
        }
    }
}
