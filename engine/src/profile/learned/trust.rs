//! Trust in a measured profile: what transfers change of it, and what refutes it.
//!
//! A sampling pass has compared all ways of carrying at all lengths, in quiet. A program does not: its
//! receivers look late, and some lengths never occur. So a measured profile is not learnt anew from its
//! messages, but checked, and a check is believed only if the receiver cannot be the cause:
//!
//! - **Latency.** The peer is asked about nothing from time to time. The quickest answers are those of the
//!   network as it was sampled. Where later ones take longer and agree on how much, every way takes half of
//!   that longer, and a rendezvous, which crosses the network three times, three halves. All ways move
//!   alike, so noise moves no threshold between them.
//! - **Rate.** Long chunks to a receiver that has answered at once are timed, less what it takes to look.
//!   Where several rails lead to the peer, what all of them take longer is the receiver's. If the last five
//!   agree that they take [`WRONG`] times as long, the profile is refuted.
//!
//! What a shaper has saved up makes a rail seem fast for a moment, so only long transfers find a profile too
//! slow, unless it is provisional (see [`super::super::correction`]).

use super::{Learned, Recent, Way, octave};
use crate::profile::doubt::Doubt;
use crate::profile::recent::{ENOUGH, Learnt};
use crate::profile::sample::{Method, Sample};
use alloc::format;
use alloc::string::String;

/// The profile was wrong where more than this factor, or less than its inverse, was observed.
const WRONG: f64 = 1.5;
/// More observations are wanted after one beyond this factor.
const SUSPECT: f64 = 1.3;
/// A latency that has not changed by this factor stays as it is: answers vary by less on a quiet network.
const MOVED: f64 = 1.5;
/// A transfer that should take as long has used up what a shaper may save.
const LONG_NS: f64 = 1e7;

/// Where a measured profile is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Refuted {
    /// Bytes of the transfers that say so; none: it is the rate of data that follows other data.
    pub(crate) len: Option<u64>,
    /// Their time relative to the profile.
    pub(crate) factor: f64,
}

impl Refuted {
    /// For people.
    pub(crate) fn why(&self) -> String {
        let Refuted { len, factor } = self;
        let what =
            len.map_or_else(|| "data that follows other data takes".into(), |len| format!("{len} B take"));
        let digits = if *factor < 1.0 { 2 } else { 1 };
        format!("{what} {factor:.digits$} times as long as measured")
    }

    /// The doubt about the profile that follows from it.
    pub(crate) fn doubt(&self) -> Doubt {
        let off = self.factor.max(1.0 / self.factor);
        Doubt { count: 1, degree: (100.0 * off / WRONG) as u32, why: self.why() }
    }
}

/// What the network takes longer than when it was sampled, one way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delay {
    /// The quickest answer to nothing, in nanoseconds.
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
    /// There is one more of these answers to nothing; a short message takes `start_ns` by the profile.
    pub(super) fn note(&mut self, empty: &mut Recent, start_ns: f64) -> Learnt {
        let Some(now_ns) = empty.value().filter(|_| empty.count() >= ENOUGH) else { return Learnt::Nothing };
        self.quickest_ns = self.quickest_ns.min(now_ns);
        let delay_ns = (now_ns - self.quickest_ns) / 2.0;
        let delay_ns = if delay_ns < (MOVED - 1.0) * start_ns { 0.0 } else { delay_ns };
        let (before, now) = (start_ns + self.used_ns, start_ns + delay_ns);
        // Nothing makes an answer seem quick.
        let is_sure = delay_ns < self.used_ns || empty.agreed().is_some();
        let has_moved = !(1.0 / MOVED..=MOVED).contains(&(now / before.max(1.0)));
        if has_moved && is_sure {
            self.used_ns = delay_ns;
        }
        let known_ns = self.quickest_ns + 2.0 * self.used_ns;
        empty.doubt(empty.latest() > known_ns + 2.0 * (MOVED - 1.0) * (start_ns + self.used_ns));
        if has_moved && is_sure { Learnt::News } else { Learnt::Nothing }
    }

    /// The sample as the network is now.
    pub(super) fn added_to(&self, method: Method, sample: Sample) -> Sample {
        let ways = match method {
            Method::Memcpy | Method::HandOff(_) => 0,
            Method::Copy | Method::InPlace | Method::Pushed | Method::Pair | Method::Aggregate => 1,
            // The request to send, and that the message was read.
            Method::Read => 2,
            Method::Rendezvous => 3,
        };
        let more_ns = ways * self.used_ns as u64;
        let Sample { ns, low_ns, high_ns, .. } = sample;
        Sample { ns: ns + more_ns, low_ns: low_ns + more_ns, high_ns: high_ns + more_ns, ..sample }
    }

    /// The origin of the profile, for people.
    pub(super) fn said_of(&self, how: &str) -> String {
        match self.used_ns > 0.0 {
            true => format!("{how}, with {:.1} us more of latency", self.used_ns / 1e3),
            false => how.into(),
        }
    }
}

impl Learned {
    /// Whether the base was measured, and nothing contradicts it.
    pub(crate) fn is_trusted(&self) -> bool {
        self.base.is_measured && self.refuted.is_none()
    }

    /// Whether the last of the long transfers took clearly longer than was measured, which may be due to the
    /// rail or to a receiver that looked late.
    pub(crate) fn seems_slow(&self) -> bool {
        self.is_trusted() && self.latest > SUSPECT
    }

    /// Whether the corrected profile is the measured one.
    pub(crate) fn is_as_measured(&self) -> bool {
        self.is_trusted() && self.delay.used_ns == 0.0
    }

    /// Where the measured profile is wrong, if it is.
    pub(crate) fn refuted(&self) -> Option<Refuted> {
        self.refuted
    }

    /// What the last long transfer took, relative to the base; none: there was none.
    pub(crate) fn latest(&self) -> Option<f64> {
        Some(self.latest).filter(|latest| *latest > 0.0)
    }

    /// One more answer to nothing is wanted.
    pub(crate) fn look_at_latency(&mut self) {
        self.empty.look_again();
        self.empty.retry();
    }

    /// A transfer that found its rail idle ended after `ns` nanoseconds, when answers to nothing take
    /// `empty_ns`.
    pub(super) fn check(&mut self, way: Way, len: u64, (ns, empty_ns): (f64, f64), common: f64) -> Learnt {
        let expected_ns = self.base.ns(way, len).max(1.0);
        // Of what an answer takes beyond two short messages the transfer has its part.
        let looks_ns = (empty_ns / 2.0 - self.base.ns(Way::Copy, 0)).max(0.0);
        let there_ns = (ns - empty_ns / 2.0 - looks_ns).max(empty_ns / 4.0);
        let observed = there_ns / expected_ns;
        let factor = if expected_ns < LONG_NS { self.at_rate(observed) } else { observed };
        self.latest = factor;
        let recent = &mut self.recent[way as usize][octave(len)];
        recent.len = len;
        recent.note(factor);
        recent.doubt(is_suspect(factor));
        let wrong = wrong(recent, common);
        self.judge(wrong.map(|factor| Refuted { len: Some(len), factor }))
    }

    /// Data behind other data took this time, relative to the base.
    pub(super) fn check_rate(&mut self, factor: f64, common: f64) -> Learnt {
        let factor = self.at_rate(factor);
        self.rate.note(factor);
        self.rate.doubt(is_suspect(factor));
        let wrong = wrong(&self.rate, common);
        self.judge(wrong.map(|factor| Refuted { len: None, factor }))
    }

    /// A factor without what may come of bytes that a shaper has saved up.
    fn at_rate(&self, factor: f64) -> f64 {
        if self.base.provenance.doubt.is_none() { factor.max(1.0) } else { factor }
    }

    fn judge(&mut self, refuted: Option<Refuted>) -> Learnt {
        self.refuted = refuted;
        if refuted.is_some() { Learnt::Change } else { Learnt::Nothing }
    }
}

fn is_suspect(factor: f64) -> bool {
    !(1.0 / SUSPECT..SUSPECT).contains(&factor)
}

/// By which factor transfers of a kind contradict the profile, if they do; `common`: the receiver delays all
/// by as much.
fn wrong(recent: &Recent, common: f64) -> Option<f64> {
    let is_wrong = |factor: &f64| factor / common > WRONG || *factor < 1.0 / WRONG;
    recent.agreed().filter(is_wrong)
}
