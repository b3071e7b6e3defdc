//! A profile: what one rail between two kinds of host was measured to do, and what follows from it.

use super::curve::Curve;
use super::doubt::Doubt;
use super::sample::{Method, Pair, Sample};
use super::threshold::{self, Thresholds};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Where a profile comes from; one line of text each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Of which hardware it is; a profile is used for rails with the same key only.
    pub key: String,
    /// When it was measured.
    pub when: String,
    /// On which hosts.
    pub place: String,
    /// By what, with which effort.
    pub how: String,
    /// Why it is provisional; none: it is not.
    pub doubt: Option<Doubt>,
}

/// Samples by method, the results derived from them, and their origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    provenance: Provenance,
    samples: [Vec<Sample>; Method::ALL.len()],
    crossings: Option<Thresholds>,
    thresholds: Option<Thresholds>,
    eager: Curve,
    copied: Curve,
    body: Curve,
    memcpy: Option<Curve>,
    /// Shortest useful share of a body: bytes and nanoseconds.
    chunk: (u64, u64),
    /// What announcing costs before the body may go.
    handshake_ns: u64,
    /// What a second packet costs.
    packet_ns: u64,
    learnt: Vec<String>,
}

impl Profile {
    /// Derives curves and thresholds from samples. Several samples of one method and size: the last counts.
    ///
    /// # Errors
    /// Neither messages by copy or in place nor by rendezvous were measured at two sizes, so nothing can be
    /// predicted.
    pub fn new(
        provenance: Provenance,
        samples: impl IntoIterator<Item = (Method, Sample)>,
    ) -> Result<Profile, TooFew> {
        let mut by_method = [const { Vec::new() }; Method::ALL.len()];
        for (method, sample) in samples {
            let list: &mut Vec<Sample> = &mut by_method[method.index()];
            match list.binary_search_by_key(&sample.len, |other| other.len) {
                Ok(place) => list[place] = sample,
                Err(place) => list.insert(place, sample),
            }
        }
        let of = |method: Method| &by_method[method.index()][..];
        let points = |method: Method| threshold::points(of(method));
        let crossing = |first, second| threshold::crossing(&points(first), &points(second));
        let memcpy = Curve::through(points(Method::Memcpy));
        let in_place_min = crossing(Method::Copy, Method::InPlace).unwrap_or(u64::MAX);
        let eager = threshold::best_eager(of(Method::Copy), of(Method::InPlace), in_place_min);
        let rendezvous = points(Method::Rendezvous);
        let (body, handshake_ns) = body(&eager, &rendezvous);
        if body.len() < 2 {
            return Err(TooFew);
        }
        let eager_curve = if eager.len() < 2 { &body } else { &eager };
        let eager_curve = Curve::through(eager_curve.iter().copied()).ok_or(TooFew)?;
        let copied = points(Method::Copy);
        let copied = if copied.len() < 2 { None } else { Curve::through(copied) };
        let copied = copied.unwrap_or_else(|| eager_curve.clone());
        let (read_min, read_max) = threshold::read(&eager, &points(Method::Read), &body);
        let body = Curve::through(body).ok_or(TooFew)?;
        let crossings = Thresholds {
            in_place_min,
            rendezvous_min: threshold::rendezvous_min(&eager, &rendezvous, memcpy.as_ref()),
            push_min: threshold::push_min(&eager, &points(Method::Pushed), memcpy.as_ref()),
            read_min,
            read_max,
            aggregate_max: crossing(Method::Aggregate, Method::Pair).unwrap_or(u64::MAX),
            block_min: threshold::block_min(
                of(Method::Copy),
                of(Method::InPlace),
                memcpy.as_ref(),
                in_place_min,
            ),
            chunk_min: threshold::chunk_min(&body),
        };
        let thresholds = Some(crossings.but_for_trifles(threshold::trifle(memcpy.as_ref())));
        let chunk = (crossings.chunk_min, body.ns(crossings.chunk_min));
        let handshake_ns = handshake_ns.unwrap_or(2 * eager_curve.start_ns());
        let packet_ns = threshold::packet_ns(of(Method::Aggregate), of(Method::Pair));
        let packet_ns = packet_ns.unwrap_or(eager_curve.start_ns());
        let (samples, eager, crossings) = (by_method, eager_curve, Some(crossings));
        Ok(Profile {
            provenance,
            samples,
            crossings,
            thresholds,
            eager,
            copied,
            body,
            memcpy,
            chunk,
            handshake_ns,
            packet_ns,
            learnt: Vec::new(),
        })
    }

    /// What can be said of a rail that nobody has measured: a straight line through its nominal latency (in
    /// nanoseconds) and bandwidth (in bytes per second). It has no samples and no thresholds.
    pub fn nominal(latency_ns: u64, bandwidth: u64) -> Profile {
        let line = Curve::line(latency_ns, bandwidth);
        let chunk_min = threshold::chunk_min(&line);
        Profile {
            provenance: Provenance { how: String::from("nominal figures"), ..Provenance::default() },
            samples: [const { Vec::new() }; Method::ALL.len()],
            crossings: None,
            thresholds: None,
            eager: line.clone(),
            copied: line.clone(),
            memcpy: None,
            chunk: (chunk_min, line.ns(chunk_min)),
            handshake_ns: 2 * line.start_ns(),
            packet_ns: line.start_ns(),
            body: line,
            learnt: Vec::new(),
        }
    }

    /// Where it comes from.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The same, provisional or not.
    pub fn doubted(mut self, doubt: Option<Doubt>) -> Profile {
        self.provenance.doubt = doubt;
        self
    }

    /// What the driver has learnt of such rails for its own choices
    /// ([`Statistics::learnt`](crate::transfer::driver::Statistics::learnt)): lines that only it understands.
    pub fn learnt(&self) -> &[String] {
        &self.learnt
    }

    /// The same with these lines.
    #[must_use]
    pub fn with_learnt(self, learnt: Vec<String>) -> Profile {
        Profile { learnt, ..self }
    }

    /// Samples of a method, by ascending size.
    pub fn samples(&self, method: Method) -> &[Sample] {
        &self.samples[method.index()]
    }

    /// How much longer, relative to it, a shorter message took than a longer one that went the same way, at
    /// worst; zero: none did. Where that is much, something else wanted the cores while the shorter one was
    /// measured, each time.
    pub fn contradiction(&self) -> f64 {
        let worst = |samples: &Vec<Sample>| {
            let mut least = u64::MAX;
            samples.iter().rev().fold(0.0, |worst: f64, sample| {
                least = least.min(sample.ns);
                worst.max(sample.ns as f64 / least as f64 - 1.0)
            })
        };
        self.samples.iter().map(worst).fold(0.0, f64::max)
    }

    /// Sizes at which the measured curves cross; none if nothing was measured.
    pub fn crossings(&self) -> Option<&Thresholds> {
        self.crossings.as_ref()
    }

    /// Sizes at which methods change: the crossings, but for what is too short for them to matter.
    pub fn thresholds(&self) -> Option<&Thresholds> {
        self.thresholds.as_ref()
    }

    /// Shortest share of a large message that this rail should carry, in bytes.
    #[inline]
    pub fn chunk_min(&self) -> u64 {
        self.chunk.0
    }

    /// Nanoseconds that it takes.
    #[inline]
    pub(super) fn chunk_ns(&self) -> u64 {
        self.chunk.1
    }

    /// A message in a packet, copied or in place, whichever is better: from the call that sends it to the
    /// end of its receive.
    pub fn eager(&self) -> &Curve {
        &self.eager
    }

    /// A message in a packet, copied: packets that are kept for sending again are copied.
    pub fn copied(&self) -> &Curve {
        &self.copied
    }

    /// The body of a large message whose receive region is known: from the first chunk's post to the arrival
    /// of the last one. The measured rendezvous without its handshake.
    pub fn body(&self) -> &Curve {
        &self.body
    }

    /// What announcing a message costs before its body may go, in nanoseconds: Rts and Cts.
    pub fn handshake_ns(&self) -> u64 {
        self.handshake_ns
    }

    /// What a second packet takes beyond a first one that could have held both, in nanoseconds; the time of a
    /// short message if that was not measured.
    pub fn packet_ns(&self) -> u64 {
        self.packet_ns
    }

    /// A message that is announced first, up to the end of its receive, in nanoseconds.
    pub fn rendezvous_ns(&self, len: u64) -> u64 {
        self.body.ns(len).saturating_add(self.handshake_ns)
    }

    /// Copying in memory; none if it was not measured.
    pub fn memcpy(&self) -> Option<&Curve> {
        self.memcpy.as_ref()
    }

    /// Handing a task to another core that spins, in nanoseconds, for such a pair of cores; if that was not
    /// measured, for the next pair that is further apart, or else for the furthest. None: no pair was
    /// measured.
    pub fn hand_off_ns(&self, pair: Pair) -> Option<u64> {
        let further = Pair::ALL.into_iter().filter(|other| *other >= pair);
        let nearer = Pair::ALL.into_iter().rev().filter(|other| *other < pair);
        further.chain(nearer).find_map(|pair| self.measured_hand_off_ns(pair))
    }

    /// The same between the pair for which it takes least.
    pub fn least_hand_off_ns(&self) -> Option<u64> {
        Pair::ALL.into_iter().filter_map(|pair| self.measured_hand_off_ns(pair)).min()
    }

    fn measured_hand_off_ns(&self, pair: Pair) -> Option<u64> {
        self.samples(Method::HandOff(pair)).first().map(|sample| sample.ns)
    }
}

/// The times of bodies, rendezvous without what the handshake costs; and that. The handshake is two short
/// messages, or less if the shortest rendezvous takes less than that beyond an eager message of its size;
/// what it takes more is the rail's own start of a large transfer (registration, a handshake inside the
/// driver). Below the shortest rendezvous the eager times and that start, without any the eager times.
fn body(eager: &[(u64, u64)], rendezvous: &[(u64, u64)]) -> (Vec<(u64, u64)>, Option<u64>) {
    let Some(&(shortest, whole)) = rendezvous.first() else { return (eager.to_vec(), None) };
    let eager_curve = Curve::through(eager.iter().copied());
    let bare = eager_curve.as_ref().map_or(whole, |curve| curve.ns(shortest));
    let short = eager_curve.as_ref().map_or(u64::MAX, |curve| curve.start_ns());
    let extra = whole.saturating_sub(bare);
    let handshake = extra.min(short.saturating_mul(2));
    let own_start = extra - handshake;
    let short = eager.iter().filter(|&&(len, _)| len < shortest).map(|&(len, ns)| (len, ns + own_start));
    let long = rendezvous.iter().map(|&(len, ns)| (len, ns.saturating_sub(handshake).max(1)));
    (short.chain(long).collect(), Some(handshake))
}

/// Samples from which nothing can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFew;

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a profile needs eager or rendezvous messages at two sizes at least")
    }
}

impl core::error::Error for TooFew {}
