//! A record of what the estimators are told, for replays ([`crate::replay`]). It is empty until
//! [`crate::Setup::record_observations`] is called; until then the paths only test one pointer.

use crate::clock::{Duration, Instant};
use crate::engine::{Engine, Setup};
use crate::packet::{PeerId, RailId};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Observations that are kept; later ones are dropped. As text they take some 30 KB.
pub const KEPT: usize = 3_000;

/// Consecutive transfers on a busy rail are summed until they cover 2 ms. The estimators do the same, and a
/// record covers seconds.
const TOGETHER_NS: u64 = 2_000_000;

/// What was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// Bytes and time of a transfer that followed another on this rail.
    Behind,
    /// Bytes and time of a transfer on an idle rail.
    Alone,
    /// How long a large message has waited for its receiver, beyond the time of the rails; `other_ns`: the
    /// copies that would have avoided it.
    Waited,
    /// A body that `which` rails have carried; `other_ns`: the predicted time.
    Carried,
    /// The answer to an empty query.
    Answered,
    /// A burst of `len` submissions, from the first one to the wait; `which` is 1 if the program has computed
    /// in between.
    Burst,
}

impl Observed {
    /// All kinds.
    pub const ALL: [Observed; 6] = [
        Observed::Behind,
        Observed::Alone,
        Observed::Waited,
        Observed::Carried,
        Observed::Answered,
        Observed::Burst,
    ];

    /// Returns the letter that stands for it in a file.
    pub const fn letter(self) -> u8 {
        match self {
            Observed::Behind => b'r',
            Observed::Alone => b'i',
            Observed::Waited => b'w',
            Observed::Carried => b'c',
            Observed::Answered => b'e',
            Observed::Burst => b'b',
        }
    }
}

/// One observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// When it was made.
    pub at: Instant,
    /// What was observed.
    pub what: Observed,
    /// The rail, unless [`Observed`] says otherwise; below 64.
    pub which: u8,
    /// Bytes, unless [`Observed`] says otherwise.
    pub len: u64,
    /// The observed time in nanoseconds.
    pub ns: u64,
    /// See [`Observed`].
    pub other_ns: u64,
}

/// Observations of the first peer with any.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    peer: Option<PeerId>,
    kept: Vec<Observation>,
    /// What each rail has carried since its last observation.
    sums: Vec<Observation>,
}

impl Recorded {
    fn add(&mut self, peer: PeerId, observation: Observation) {
        if *self.peer.get_or_insert(peer) != peer || self.kept.len() >= KEPT {
            return;
        }
        let whole =
            if observation.what == Observed::Behind { self.added(observation) } else { Some(observation) };
        self.kept.extend(whole);
    }

    /// Adds what a rail has carried behind others to the sum of that rail; returns the sum once it is long
    /// enough.
    fn added(&mut self, one: Observation) -> Option<Observation> {
        let place = self.sums.iter().position(|sum| sum.which == one.which);
        let mut sum = one;
        if let Some(place) = place {
            let before = self.sums.swap_remove(place);
            (sum.len, sum.ns) = (before.len + one.len, before.ns + one.ns);
        }
        if sum.ns >= TOGETHER_NS {
            return Some(sum);
        }
        self.sums.push(sum);
        None
    }
}

impl Engine {
    /// Removes and returns the observations so far.
    pub fn take_observations(&mut self) -> Vec<Observation> {
        self.observers.observations.as_mut().map(|all| core::mem::take(&mut all.kept)).unwrap_or_default()
    }

    /// Adds an observation of a peer. Callers test first whether observations are recorded.
    #[cold]
    pub(crate) fn note_observation(&mut self, peer: PeerId, observation: Observation) {
        self.observers.observations.iter_mut().for_each(|all| all.add(peer, observation));
    }

    /// Adds the time that a body took, and the predicted one.
    pub(crate) fn note_carried(
        &mut self,
        now: Instant,
        from: PeerId,
        due: Instant,
        (at, len, rails): (Instant, u64, usize),
    ) {
        if self.observers.observations.is_some() {
            let (ns, other_ns) = (now.since(at).as_ns(), due.since(at).as_ns());
            let observation =
                Observation { at: now, what: Observed::Carried, which: rails as u8, len, ns, other_ns };
            self.note_observation(from, observation);
        }
    }

    /// Adds the time that a rail took for bytes of large messages.
    pub(crate) fn note_served(
        &mut self,
        now: Instant,
        (from, rail): (PeerId, RailId),
        len: u64,
        (ns, is_alone): (u64, bool),
    ) {
        if self.observers.observations.is_some() {
            let what = if is_alone { Observed::Alone } else { Observed::Behind };
            self.note_observation(from, Observation { at: now, what, which: rail.0, len, ns, other_ns: 0 });
        }
    }
}

impl Setup<'_> {
    /// Begins to record what the estimators are told about one peer, the first with any traffic; or ends
    /// that, and drops what was recorded. The first [`KEPT`] observations are kept.
    pub fn record_observations(&mut self, on: bool) {
        self.0.observers.observations = on.then(Box::default);
    }

    /// Adds a burst of submissions that a wait has ended, if observations are recorded.
    pub fn note_burst(&mut self, now: Instant, count: u32, took: Duration, computed: bool) {
        let observation = Observation {
            at: now,
            what: Observed::Burst,
            which: u8::from(computed),
            len: u64::from(count),
            ns: took.as_ns(),
            other_ns: 0,
        };
        // The program's habit concerns no peer in particular.
        let all = self.0.observers.observations.as_mut().filter(|all| all.kept.len() < KEPT);
        all.into_iter().for_each(|all| all.kept.push(observation));
    }
}
