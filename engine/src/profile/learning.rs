//! Transfers of a link that are being timed, and the results of earlier ones.

use super::learned::Learned;
use super::measured::Profile;
use super::origin::Way;
use super::recent::Learnt;
use crate::clock::{Duration, Instant};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Queries with this bit are about timed transfers; those about silent links count from zero.
pub(crate) const TIMED: u32 = 1 << 31;
/// An answer that takes longer than this does not arrive: the query or the answer is lost.
const LOST: Duration = Duration::from_ms(5);
/// An answer that has not arrived after this number of messages counts as lost.
const SKIPPED_MAX: u32 = 16;
/// Largest number of large messages timed at the same time.
const LARGE_MAX: usize = 64;

/// The profile of a rail to a peer as corrected by transfers.
#[derive(Debug, Clone, PartialEq)]
pub struct Taught {
    /// The profile in use.
    pub profile: Arc<Profile>,
    /// When the profile was first corrected.
    pub since: Instant,
    /// Number of observed transfers and answers.
    pub count: u32,
}

/// Observations of a link, and the transfers that are being timed.
#[derive(Debug)]
pub(crate) struct Learning {
    pub(crate) learned: Learned,
    /// The packet or empty query whose answer is awaited.
    pub(crate) pending: Option<Pending>,
    /// Large messages in flight, in the order in which they were sent; used if the peer has one rail.
    large: Vec<Large>,
    /// When the last large message arrived.
    arrived_at: Instant,
    question: u32,
    /// Messages sent since the timed one.
    skipped: u32,
    /// The user was told that the measured profile is wrong.
    pub(crate) is_reported: bool,
    /// When the corrected profile came into use; `None`: it is not in use.
    pub(crate) used_since: Option<Instant>,
}

/// A packet or empty query whose answer is awaited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    /// Number of the query.
    pub(crate) question: u32,
    /// Method and length; `None`: an empty query.
    pub(crate) what: Option<(Way, u64)>,
    /// Sequence number on the link; for an empty query that of the next packet.
    pub(crate) number: u32,
    /// When it was sent; zero: not yet.
    pub(crate) from: Instant,
}

/// A large message whose arrival is not reported yet.
#[derive(Debug, Clone, Copy)]
struct Large {
    request: u64,
    len: u64,
    left_at: Instant,
    /// The rail was idle.
    is_alone: bool,
}

impl Learning {
    /// Returns when the corrected profile came into use, and the number of observations; `None`: it is not
    /// in use.
    pub(crate) fn taught(&self) -> Option<(Instant, u32)> {
        Some((self.used_since?, self.learned.count()))
    }

    /// Creates it without observations; see [`Learned::new`].
    pub(crate) fn new(profile: &Profile, in_place_min: u64, pushes: bool) -> Box<Learning> {
        Box::new(Learning {
            learned: Learned::new(profile, in_place_min, pushes),
            pending: None,
            large: Vec::new(),
            arrived_at: Instant::default(),
            question: 0,
            skipped: 0,
            is_reported: false,
            used_since: None,
        })
    }

    /// Whether an answer is awaited; call it once per message. After some messages the answer counts as
    /// lost.
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

    /// Begins to time a packet, unless another transfer is timed; returns the number of the query.
    pub(crate) fn begin(&mut self, now: Instant, number: u32, what: (Way, u64)) -> Option<u32> {
        let waits = self.pending.is_some_and(|pending| now.since(pending.from) < LOST);
        (!waits && self.large.is_empty()).then(|| self.ask(number, Some(what), now))
    }

    /// Begins a query about data sent at `from`; returns its number.
    pub(crate) fn ask(&mut self, number: u32, what: Option<(Way, u64)>, from: Instant) -> u32 {
        (self.question, self.skipped) = (self.question.wrapping_add(1), 0);
        let question = self.question | TIMED;
        self.pending = Some(Pending { question, what, number, from });
        question
    }

    /// Begins to time a large message; `is_idle`: the rail has nothing else to send, as far as is known.
    pub(crate) fn started(&mut self, now: Instant, request: u64, len: u64, is_idle: bool) {
        let is_alone = is_idle && self.large.is_empty();
        if self.large.len() < LARGE_MAX {
            self.large.push(Large { request, len, left_at: now, is_alone });
        }
    }

    /// Records that the receiver has all of a large message. A rail carries messages in order: if one was
    /// sent before the previous one had arrived, its time begins at that arrival.
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
