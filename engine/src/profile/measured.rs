//! A profile: the measured times of one rail between two kinds of host, and the results derived from them.

use super::blocks::{BlockCost, BlockCosts};
use super::curve::Curve;
use super::doubt::Doubt;
use super::sample::{Method, Pair, Sample};
use super::threshold::{self, InPlace, Thresholds};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Origin of a profile; one line of text each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Key of the hardware; a profile is used only for rails with the same key.
    pub key: String,
    /// Time of measurement.
    pub when: String,
    /// Hosts of the measurement.
    pub place: String,
    /// Program and effort of the measurement.
    pub how: String,
    /// Reason why it is provisional; `None`: it is final.
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
    post: Option<Curve>,
    /// Shortest useful share of a body, in bytes and nanoseconds.
    chunk: (u64, u64),
    /// Time of the rendezvous handshake before the body may be sent.
    handshake_ns: u64,
    /// Additional time of a second packet.
    packet_ns: u64,
    blocks: Option<BlockCosts>,
    learnt: Vec<String>,
}

impl Profile {
    /// Derives curves and thresholds from samples. If one method and size has several samples, the last one
    /// counts.
    ///
    /// # Errors
    /// Nothing can be predicted: neither eager messages (copied or in place) nor rendezvous were measured
    /// at two sizes.
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
        let [memcpy, post] = [Method::Memcpy, Method::Post].map(|method| Curve::through(points(method)));
        let in_place_min = crossing(Method::Copy, Method::InPlace).unwrap_or(u64::MAX);
        let eager = threshold::best_eager(of(Method::Copy), of(Method::InPlace), in_place_min);
        let rendezvous = points(Method::Rendezvous);
        let (body, handshake_ns) = body(&eager, &rendezvous);
        if body.len() < 2 {
            return Err(TooFew);
        }
        let eager_curve = if eager.len() < 2 { &body } else { &eager };
        let eager_curve = Curve::through(eager_curve.iter().copied()).ok_or(TooFew)?;
        let copied = Some(points(Method::Copy)).filter(|copied| copied.len() >= 2).and_then(Curve::through);
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
            block_min: threshold::measured_block_min(of(Method::Packed), of(Method::Gathered))
                .unwrap_or_else(|| {
                    let (copy, in_place) = (of(Method::Copy), of(Method::InPlace));
                    threshold::block_min(copy, in_place, memcpy.as_ref(), in_place_min)
                        .max(threshold::copied_below(of(Method::Packed), of(Method::Gathered)))
                }),
            chunk_min: threshold::chunk_min(&body),
        };
        let thresholds = Some(crossings.at_least(threshold::short_len(memcpy.as_ref())));
        let chunk = (crossings.chunk_min, body.ns(crossings.chunk_min));
        let handshake_ns = handshake_ns.unwrap_or(2 * eager_curve.start_ns());
        let packet_ns = threshold::packet_ns(of(Method::Aggregate), of(Method::Pair));
        let packet_ns = packet_ns.unwrap_or(eager_curve.start_ns());
        let cost = |method: Method| BlockCost::through(of(method));
        let blocks = cost(Method::Packed).zip(cost(Method::Gathered));
        let blocks = blocks.map(|(packed, gathered)| BlockCosts { packed, gathered });
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
            post,
            chunk,
            handshake_ns,
            packet_ns,
            blocks,
            learnt: Vec::new(),
        })
    }

    /// Creates the profile of an unmeasured rail: a line through its nominal latency (in nanoseconds) and
    /// bandwidth (in bytes per second). It has no samples and no thresholds.
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
            post: None,
            chunk: (chunk_min, line.ns(chunk_min)),
            handshake_ns: 2 * line.start_ns(),
            packet_ns: line.start_ns(),
            blocks: None,
            body: line,
            learnt: Vec::new(),
        }
    }

    /// Returns the origin.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Returns the profile with this reason for being provisional, or none.
    pub fn doubted(mut self, doubt: Option<Doubt>) -> Profile {
        self.provenance.doubt = doubt;
        self
    }

    /// Returns the values that the driver has measured for its own choices
    /// ([`Statistics::learnt`](crate::transfer::driver::Statistics::learnt)): lines that only the driver
    /// interprets.
    pub fn learnt(&self) -> &[String] {
        &self.learnt
    }

    /// Returns the profile with these lines.
    #[must_use]
    pub fn with_learnt(self, learnt: Vec<String>) -> Profile {
        Profile { learnt, ..self }
    }

    /// Returns the samples of a method, by ascending size.
    pub fn samples(&self, method: Method) -> &[Sample] {
        &self.samples[method.index()]
    }

    /// Returns the largest relative excess of a shorter message's time over a longer one's by the same
    /// method; zero: none. A large value means that other programs used the cores each time the shorter one
    /// was measured.
    pub fn contradiction(&self) -> f64 {
        let worst = |samples: &Vec<Sample>| {
            let mut least = u64::MAX;
            samples.iter().rev().fold(0.0, |worst: f64, sample| {
                least = least.min(sample.ns);
                worst.max(sample.ns as f64 / least as f64 - 1.0)
            })
        };
        // Data that stays in place takes less time to post than shorter data that is copied.
        let may_fall = |method: &Method| method.has_blocks() || *method == Method::Post;
        let methods = Method::ALL.into_iter().filter(|method| !may_fall(method));
        methods.map(|method| worst(&self.samples[method.index()])).fold(0.0, f64::max)
    }

    /// Returns the sizes at which the measured curves cross; `None` if nothing was measured.
    pub fn crossings(&self) -> Option<&Thresholds> {
        self.crossings.as_ref()
    }

    /// Returns the sizes at which the method changes: the crossings, raised where they are too small to
    /// matter.
    pub fn thresholds(&self) -> Option<&Thresholds> {
        self.thresholds.as_ref()
    }

    /// Returns the lengths from which a driver leaves data in place; `None`: nothing was measured.
    pub fn in_place(&self) -> Option<InPlace> {
        let thresholds = self.thresholds()?;
        let block = self.blocks.map(|_| thresholds.block_min);
        Some(InPlace { message: thresholds.in_place_min, block })
    }

    /// Returns the length in bytes of the shortest share of a large message that this rail should carry.
    #[inline]
    pub fn chunk_min(&self) -> u64 {
        self.chunk.0
    }

    /// Returns the nanoseconds that such a share takes.
    #[inline]
    pub(super) fn chunk_ns(&self) -> u64 {
        self.chunk.1
    }

    /// Returns the curve of a message in a packet, copied or in place, whichever is faster: from the call
    /// that sends it to the end of its receive.
    pub fn eager(&self) -> &Curve {
        &self.eager
    }

    /// Returns the curve of a message copied into a packet; packets that are kept for retransmission are
    /// copied.
    pub fn copied(&self) -> &Curve {
        &self.copied
    }

    /// Returns the curve of the body of a large message whose receive region is known, from the post of the
    /// first chunk to the arrival of the last one: the measured rendezvous without its handshake.
    pub fn body(&self) -> &Curve {
        &self.body
    }

    /// Returns the nanoseconds of the rendezvous handshake (Rts and Cts).
    pub fn handshake_ns(&self) -> u64 {
        self.handshake_ns
    }

    /// Returns the additional nanoseconds of a second packet compared with one packet for both; the time of
    /// a short message if that was not measured.
    pub fn packet_ns(&self) -> u64 {
        self.packet_ns
    }

    /// Returns the nanoseconds of a message by rendezvous, up to the end of its receive.
    pub fn rendezvous_ns(&self, len: u64) -> u64 {
        self.body.ns(len).saturating_add(self.handshake_ns)
    }

    /// Returns the curve of copying in memory; `None` if it was not measured.
    pub fn memcpy(&self) -> Option<&Curve> {
        self.memcpy.as_ref()
    }

    /// Returns the curve of the time for which posting a message in a packet keeps the core; `None` if it was
    /// not measured.
    pub fn post(&self) -> Option<&Curve> {
        self.post.as_ref()
    }

    /// Returns what blocks of non-contiguous data cost; `None`: messages in blocks of several sizes were not
    /// measured.
    pub fn blocks(&self) -> Option<BlockCosts> {
        self.blocks
    }

    /// Returns the nanoseconds to hand a task to another core that spins, for such a pair of cores; if that
    /// was not measured, for the next pair that is further apart, or else for the furthest. `None`: no pair
    /// was measured. To a core that computes only what was measured there counts.
    pub fn hand_off_ns(&self, pair: Pair) -> Option<u64> {
        if pair == Pair::Busy {
            return self.measured_hand_off_ns(pair);
        }
        let further = Pair::IDLE.into_iter().filter(|other| *other >= pair);
        let nearer = Pair::IDLE.into_iter().rev().filter(|other| *other < pair);
        further.chain(nearer).find_map(|pair| self.measured_hand_off_ns(pair))
    }

    /// Returns the nanoseconds to hand over a task between the pair of cores for which it is least; none of
    /// them computes.
    pub fn least_hand_off_ns(&self) -> Option<u64> {
        Pair::IDLE.into_iter().filter_map(|pair| self.measured_hand_off_ns(pair)).min()
    }

    fn measured_hand_off_ns(&self, pair: Pair) -> Option<u64> {
        self.samples(Method::HandOff(pair)).first().map(|sample| sample.ns)
    }
}

/// Returns the times of bodies (rendezvous without the handshake) and the time of the handshake. The
/// handshake takes the time of two short messages, or less if the shortest rendezvous takes less than that
/// beyond an eager message of its size; any excess is the rail's own start of a large transfer
/// (registration, a handshake inside the driver). Below the shortest rendezvous, bodies take the eager
/// times plus that start; without any rendezvous, the eager times.
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

/// Error: too few samples for any prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFew;

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a profile needs eager or rendezvous messages at two sizes at least")
    }
}

impl core::error::Error for TooFew {}
