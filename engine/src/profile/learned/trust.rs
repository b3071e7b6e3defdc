//! Trust in a measured profile: the corrections that transfers make, and the observations that refute it.
//!
//! A sampling pass has compared all methods at all lengths without load. A program does not: its receivers
//! poll late, and some lengths never occur. So a measured profile is not learnt again from messages, but
//! checked, and a check counts only if the receiver cannot be the cause:
//!
//! - **Latency.** An empty query is sent to the peer from time to time. The quickest answers are those of the
//!   network as it was sampled. If later ones take longer and agree on how much, half of the difference is
//!   added to every method, and three halves to a rendezvous, which crosses the network three times. All
//!   methods move alike, so noise moves no threshold between them.
//! - **Rate.** Long chunks to a receiver that has answered at once are timed, less the delay of its polling.
//!   If several rails lead to the peer, a delay common to all of them is the receiver's. If enough of them
//!   take [`WRONG`] times as long ([`Change`](super::Change)), and the last of one length agree by how much,
//!   the profile is refuted.
//!
//! A burst that a traffic shaper lets pass makes a rail seem fast for a moment, so only long transfers, and
//! long rows of data behind other data, show that a profile is too slow, unless it is provisional. Until
//! then the load corrects the forecast (see [`super::super::correction`]).

use super::{Learned, Recent, Way, octave};
use crate::profile::doubt::Doubt;
use crate::profile::estimate::change::Vote;
use crate::profile::recent::{ENOUGH, Learnt};
use crate::profile::sample::{Method, Sample};
use alloc::format;
use alloc::string::String;

/// A factor above this, or below its inverse, refutes the profile.
const WRONG: f64 = 1.5;
/// A factor above this requests more observations.
const SUSPECT: f64 = 1.3;
/// A change of latency below this factor is ignored: answers vary by less on a quiet network.
const MOVED: f64 = 1.5;
/// A transfer with at least this expected time has used up any burst of a traffic shaper.
pub(super) const LONG_NS: f64 = 1e7;

/// A contradiction between transfers and a measured profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Refuted {
    /// Length of the contradicting transfers; `None`: it is the rate of data that follows other data.
    pub(crate) len: Option<u64>,
    /// Their time relative to the profile.
    pub(crate) factor: f64,
}

impl Refuted {
    /// Describes the contradiction for the user.
    pub(crate) fn why(&self) -> String {
        let Refuted { len, factor } = self;
        let what =
            len.map_or_else(|| "data that follows other data takes".into(), |len| format!("{len} B take"));
        let digits = if *factor < 1.0 { 2 } else { 1 };
        format!("{what} {factor:.digits$} times as long as measured")
    }

    /// Returns the resulting doubt about the profile.
    pub(crate) fn doubt(&self) -> Doubt {
        let off = self.factor.max(1.0 / self.factor);
        Doubt { count: 1, degree: (100.0 * off / WRONG) as u32, why: self.why() }
    }
}

/// Additional one-way latency of the network since it was sampled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delay {
    /// The quickest answer to an empty query, in nanoseconds.
    quickest_ns: f64,
    /// The delay that the profile in use includes, in nanoseconds.
    used_ns: f64,
}

impl Default for Delay {
    fn default() -> Delay {
        Delay { quickest_ns: f64::MAX, used_ns: 0.0 }
    }
}

impl Delay {
    /// Updates the delay after another answer to an empty query; a short message takes `start_ns` by the
    /// profile.
    pub(super) fn note(&mut self, empty: &mut Recent, start_ns: f64) -> Learnt {
        let Some(now_ns) = empty.value().filter(|_| empty.count() >= ENOUGH) else { return Learnt::Nothing };
        self.quickest_ns = self.quickest_ns.min(now_ns);
        let delay_ns = (now_ns - self.quickest_ns) / 2.0;
        let delay_ns = if delay_ns < (MOVED - 1.0) * start_ns { 0.0 } else { delay_ns };
        let (before, now) = (start_ns + self.used_ns, start_ns + delay_ns);
        // A quick answer is reliable: no disturbance makes an answer seem quick.
        let is_sure = delay_ns < self.used_ns || empty.agreed().is_some();
        let has_moved = !(1.0 / MOVED..=MOVED).contains(&(now / before.max(1.0)));
        if has_moved && is_sure {
            self.used_ns = delay_ns;
        }
        let known_ns = self.quickest_ns + 2.0 * self.used_ns;
        empty.doubt(empty.latest() > known_ns + 2.0 * (MOVED - 1.0) * (start_ns + self.used_ns));
        if has_moved && is_sure { Learnt::News } else { Learnt::Nothing }
    }

    /// Returns the time of an answer with the current additional latency; `None` before the first ones.
    pub(super) fn answer_ns(&self) -> Option<f64> {
        (self.quickest_ns < f64::MAX).then_some(self.quickest_ns + 2.0 * self.used_ns)
    }

    /// Returns the sample with the current additional latency.
    pub(super) fn added_to(&self, method: Method, sample: Sample) -> Sample {
        let ways = match method {
            // The cost of blocks is a difference of such times.
            Method::Packed | Method::Gathered => 0,
            Method::Post | Method::Memcpy | Method::HandOff(_) => 0,
            Method::Copy | Method::InPlace | Method::Pushed | Method::Pair | Method::Aggregate => 1,
            // The request to send, and the report that the message was read.
            Method::Read => 2,
            Method::Rendezvous => 3,
        };
        let more_ns = ways * self.used_ns as u64;
        let Sample { ns, low_ns, high_ns, .. } = sample;
        Sample { ns: ns + more_ns, low_ns: low_ns + more_ns, high_ns: high_ns + more_ns, ..sample }
    }

    /// Describes the origin of the profile for the user.
    pub(super) fn describe(&self, how: &str) -> String {
        match self.used_ns > 0.0 {
            true => format!("{how}, with {:.1} us more of latency", self.used_ns / 1e3),
            false => how.into(),
        }
    }
}

impl Learned {
    /// Whether the base was measured and nothing contradicts it.
    pub(crate) fn is_trusted(&self) -> bool {
        self.base.is_measured && self.refuted.is_none()
    }

    /// Whether the last long transfer was clearly slower than measured, due to the rail or to a receiver
    /// that polled late.
    pub(crate) fn seems_slow(&self) -> bool {
        self.is_trusted() && self.latest > SUSPECT
    }

    /// Whether the corrected profile equals the measured one.
    pub(crate) fn is_as_measured(&self) -> bool {
        self.is_trusted() && self.delay.used_ns == 0.0
    }

    /// Returns the contradiction to the measured profile, if there is one.
    pub(crate) fn refuted(&self) -> Option<Refuted> {
        self.refuted
    }

    /// Returns the time of the last long transfer relative to the base; `None`: there was none.
    pub(crate) fn latest(&self) -> Option<f64> {
        Some(self.latest).filter(|latest| *latest > 0.0)
    }

    /// Requests another answer to an empty query.
    pub(crate) fn recheck_latency(&mut self) {
        self.empty.recheck();
        self.empty.retry();
    }

    /// Checks a transfer on an idle rail that ended after `ns` nanoseconds, while answers to empty queries
    /// take `empty_ns`.
    pub(super) fn check(&mut self, way: Way, len: u64, (ns, empty_ns): (f64, f64), common: f64) -> Learnt {
        let expected_ns = self.base.ns(way, len).max(1.0);
        // The answer's time beyond that of two short messages is the delay of the receiver's polling, which
        // the transfer has, too.
        let polling_ns = (empty_ns / 2.0 - self.base.ns(Way::Copy, 0)).max(0.0);
        let there_ns = (ns - empty_ns / 2.0 - polling_ns).max(empty_ns / 4.0);
        let observed = there_ns / expected_ns;
        let factor = if expected_ns < LONG_NS { self.at_rate(observed) } else { observed };
        self.latest = factor;
        let recent = &mut self.recent[way as usize][octave(len)];
        recent.len = len;
        recent.note(factor);
        recent.doubt(is_suspect(factor));
        let agreed = recent.agreed();
        self.judge((factor, common), agreed.map(|factor| Refuted { len: Some(len), factor }))
    }

    /// Whether data behind other data has been so fast since the rail was idle that a traffic shaper may
    /// have let a burst pass.
    pub(super) fn may_be_burst(&self) -> bool {
        let (observed_ns, expected_ns) = self.behind;
        let is_sure = self.is_trusted() && self.base.provenance.doubt.is_none();
        is_sure && is_suspect(observed_ns as f64 / expected_ns.max(1) as f64) && observed_ns < expected_ns
    }

    /// Checks the time of data behind other data, relative to the base. Data that was clearly faster has
    /// used up any burst.
    pub(super) fn check_rate(&mut self, factor: f64, common: f64) -> Learnt {
        let factor = if is_suspect(factor) { factor } else { self.at_rate(factor) };
        self.rate.note(factor);
        self.rate.doubt(is_suspect(factor));
        let agreed = self.rate.agreed();
        self.judge((factor, common), agreed.map(|factor| Refuted { len: None, factor }))
    }

    /// Returns the factor without the effect of a traffic shaper's burst.
    fn at_rate(&self, factor: f64) -> f64 {
        if self.base.provenance.doubt.is_none() { factor.max(1.0) } else { factor }
    }

    /// Adds the factor of a transfer, of which the receiver explains the factor `common`, and what the last
    /// transfers of its kind agree on.
    fn judge(&mut self, (factor, common): (f64, f64), agreed: Option<Refuted>) -> Learnt {
        let vote = |factor: f64| match factor {
            factor if factor / common > WRONG => Vote::Slower,
            factor if factor < 1.0 / WRONG => Vote::Faster,
            factor if is_suspect(factor) => Vote::Neither,
            _ => Vote::Against,
        };
        let has_changed = self.contradicts.note(vote(factor));
        let is_wrong = |refuted: &Refuted| matches!(vote(refuted.factor), Vote::Slower | Vote::Faster);
        self.refuted = agreed.filter(|refuted| has_changed && is_wrong(refuted));
        if self.refuted.is_some() { Learnt::Change } else { Learnt::Nothing }
    }
}

fn is_suspect(factor: f64) -> bool {
    !(1.0 / SUSPECT..SUSPECT).contains(&factor)
}
