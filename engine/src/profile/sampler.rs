//! The sampler: a plan of probes, without clock or I/O (P4 section III-A).
//!
//! ```text
//! while let Some(probe) = sampler.next_probe() {
//!     let times_ns = ...;                        // carry it out, a time for each repetition
//!     sampler.measured(&probe, &mut times_ns);
//! }
//! let profile = sampler.finish(provenance)?;
//! ```
//!
//! Two hosts run it for one rail. Both call [`crate::Setup::measure`] with their number of that rail, so
//! that it carries nothing else. The host with the sampler sends each probe to the other; then,
//! `probe.round_trips` times per repetition, it sends one message of `probe.len` bytes (two, one after the
//! other, for [`Method::Pair`] and [`Method::Aggregate`]) with [`crate::Hints::probe`] set to the method,
//! and waits for as much to come back. The time of a repetition is the elapsed time divided by twice the
//! round trips. Receives accept any tag: one with a sender and a tag might send an Rtr, which would save
//! the handshake that is part of the measured rendezvous. Messages of [`Method::Packed`] and
//! [`Method::Gathered`] have [`super::sample::BLOCKS_LEN`] bytes in blocks of `probe.len`, and both hosts
//! tell their drivers what to do with blocks. The time of [`Method::Post`] is that of the call which submits
//! the message, on an idle rail. [`Method::Memcpy`] and [`Method::HandOff`] concern the host alone; their
//! time is that of one copy or hand-off.
//!
//! **An outline** of both curves comes first, at few sizes up to long ones. A very busy machine leaves time
//! for no more, and without it nothing is known of the rail, since the noise at short sizes says nothing
//! about long ones. **Sizes** are then spaced logarithmically, and refined around each crossing by halving
//! the ratio of its neighbours. **Noise** on shared machines adds time, in bursts, so each point is visited
//! in several rounds far apart, each visit gives the first quartile of its repetitions, and the smallest of
//! these counts: only a disturbance that hits every round has an effect. Points whose two best rounds
//! differ by more than the tolerance are visited again while the budget lasts. A point that took longer
//! than a longer message is left out. A traffic shaper that was idle during a disturbance lets a burst pass
//! afterwards, which is faster than the rail: a visit that is much faster than the bandwidth of the longest
//! message does not count, and where the limit of the rail is known ([`Sampler::limit`]), nothing is
//! faster. **Time** is bounded: repetitions and the longest size follow from the times of the shorter
//! sizes, and when the budget is spent the plan ends with the results it has.

use super::curve::Curve;
pub use super::effort::Effort;
use super::floor::{self, Floor, Point, is_local};
use super::measured::{Profile, Provenance, TooFew};
pub use super::probe::{Probe, Reach};
use super::sample::{BLOCKS, BLOCKS_LEN, Method, Pair, Sample};
use super::threshold::{best_eager, changes_at, points, unexpected};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Shortest and longest size of copies in memory.
const MEMCPY: (u64, u64) = (256, 1 << 20);
/// Shortest message measured by rendezvous; below it rendezvous never pays.
const RENDEZVOUS_MIN: u64 = 1 << 10;
/// Longest message measured by reading: longer ones are read by two cores, which is much faster than one.
const READ_MAX: u64 = 256 << 10;
/// Ratio of one size of the outline to the next; a power of the ratio of sizes.
const OUTLINE_RATIO: u64 = 16;
/// If a longer message takes less than this multiple of the shorter ones' time, its time is mostly latency.
const UNSEEN: u64 = 2;
/// A point does not count if it took this many times as long as a longer one: a queue that is full at some
/// lengths and not at others makes up to 1.7. If its visits disagree, the lower bound is used.
const STRAY: f64 = 2.0;
const STRAY_UNSURE: f64 = 1.15;
/// Blocks are measured in every round if one message of them takes at most this part of the budget: all of
/// theirs are then below a tenth of it. On slower rails one round has to suffice.
const BLOCKS_PART: u64 = 3_000;
const BLOCKS_PART_ONCE: u64 = 1_000;
/// A repetition has as many round trips as take at least this long.
const REPETITION_NS: u64 = 4_000;

/// The plan of probes and the results so far.
#[derive(Debug)]
pub struct Sampler {
    reach: Reach,
    effort: Effort,
    /// Visits of each point, fastest first.
    found: BTreeMap<Point, Vec<Sample>>,
    queue: VecDeque<Point>,
    stage: Stage,
    spent_ns: u64,
    /// Visits after which a point is left as it is.
    visits_max: usize,
    /// Nanoseconds per byte at the rate to which the rail is limited; zero: no limit is known.
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A few short and long sizes, once each.
    Outline,
    /// The grid of sizes; this is the number of the round.
    Grid(u32),
    /// Sizes around crossings.
    Refine,
    /// More visits of uncertain points.
    Settle,
}

impl Sampler {
    /// Creates the plan for one rail.
    pub fn new(reach: Reach, effort: Effort) -> Sampler {
        let mut sampler = Sampler {
            reach,
            effort,
            found: BTreeMap::new(),
            queue: VecDeque::new(),
            stage: Stage::Outline,
            spent_ns: 0,
            visits_max: 3 * effort.rounds as usize,
            limit: 0.0,
        };
        sampler.queue = sampler.outline();
        sampler
    }

    /// Sets the bytes per second to which the rail is limited, as the system says: what seems faster is what
    /// a shaper has saved up.
    pub fn limit(&mut self, bytes_per_second: u64) {
        self.limit = if bytes_per_second > 0 { 1e9 / bytes_per_second as f64 } else { 0.0 };
    }

    /// Returns the next probe; `None` when the plan is complete or its time is spent.
    pub fn next_probe(&mut self) -> Option<Probe> {
        loop {
            if self.spent_ns >= self.effort.budget_ns && self.suffices() {
                return None;
            }
            while let Some(point) = self.queue.pop_front() {
                if !self.is_too_long(point) {
                    return Some(self.probe(point));
                }
                if let Some(shorter) = self.unconfirmed(point) {
                    self.queue.push_front(point);
                    return Some(self.probe(shorter));
                }
                // The outline measured this point once, with few results; three visits of a shorter one are
                // better.
                if self.exceeds_latency(point) {
                    self.found.remove(&point);
                }
            }
            self.advance()?;
        }
    }

    /// Adds this time to the budget, so that uncertain points are visited again; false: there are none.
    pub fn prolong(&mut self, ns: u64) -> bool {
        self.effort.budget_ns += ns;
        self.stage != Stage::Settle || !self.queue.is_empty() || self.settle_again()
    }

    /// Whether the results suffice for a profile. On a very busy machine the outline may take longer than
    /// the whole budget.
    pub fn suffices(&self) -> bool {
        self.stage != Stage::Outline
    }

    /// Returns the spent part of the budget, zero to one, to show progress.
    pub fn progress(&self) -> f64 {
        (self.spent_ns as f64 / self.effort.budget_ns.max(1) as f64).min(1.0)
    }

    /// Adds the times of a probe, in nanoseconds; reorders `times_ns`.
    pub fn measured(&mut self, probe: &Probe, times_ns: &mut [u64]) {
        let sum: u64 = match probe.method {
            // After its post a message makes a round trip as any other.
            Method::Post => {
                self.half_round_trip_ns((Method::Post, probe.len)).unwrap_or(0) * times_ns.len() as u64
            }
            _ => times_ns.iter().sum(),
        };
        let ways = if matches!(probe.method, Method::Memcpy | Method::HandOff(_)) { 1 } else { 2 };
        self.spent_ns += sum.max(1).saturating_mul(ways * u64::from(probe.round_trips));
        let Some(sample) = Sample::low_of(probe.len, times_ns) else { return };
        let visits = self.found.entry((probe.method, probe.len)).or_default();
        visits.push(sample);
        visits.sort_by_key(|visit| visit.ns);
    }

    /// Adds `ns` to all times measured so far: too much was subtracted for the answer.
    pub fn lengthen(&mut self, ns: u64) {
        let on_wire = self.found.iter_mut().filter(|(point, _)| !is_local(point.0));
        for Sample { ns: median, low_ns, high_ns, .. } in on_wire.flat_map(|(_, visits)| visits) {
            for time in [median, low_ns, high_ns] {
                *time = time.saturating_add(ns).min(Sample::NS_MAX);
            }
        }
    }

    /// Returns the part of the points on the wire, zero to one, whose counting visit is not confirmed by
    /// another one, so that it may be disturbed. Points with a single visit are left out.
    pub fn disagreement(&self) -> f64 {
        let floor = self.floor();
        let on_wire = self.found.iter().filter(|(point, _)| !is_local(point.0));
        let (mut all, mut apart) = (0, 0);
        for agree in on_wire.filter_map(|(point, visits)| floor.agree(*point, visits)) {
            all += 1;
            apart += u32::from(!agree);
        }
        f64::from(apart) / f64::from(all.max(1))
    }

    /// Makes the profile.
    ///
    /// # Errors
    /// Too few probes were measured.
    pub fn finish(self, provenance: Provenance) -> Result<Profile, TooFew> {
        if !self.suffices() {
            return Err(TooFew);
        }
        let floor = self.floor();
        let sample = |(&point, visits): (&Point, &Vec<Sample>)| {
            let count = visits.iter().map(|visit| visit.count).sum();
            let sample = floor.believed(point, visits)?;
            (!self.is_stray(point, visits)).then_some((point.0, Sample { count, ..sample }))
        };
        Profile::new(provenance, self.found.iter().filter_map(sample))
    }

    /// Whether a point took longer than a longer message of the same method that several visits agree on:
    /// other programs used the cores whenever it was visited. A single visit is more likely to be disturbed
    /// than several that agree.
    fn is_stray(&self, (method, len): Point, visits: &[Sample]) -> bool {
        // Shorter blocks may well take longer.
        if method.has_blocks() {
            return false;
        }
        let floor = self.floor();
        let is_sure = |point: Point, visits: &[Sample]| floor.agree(point, visits) == Some(true);
        let longer = self.found.range((method, len + 1)..=(method, u64::MAX));
        let confirmed = longer.filter(|(point, others)| is_sure(**point, others));
        let least_ns = confirmed.filter_map(|(_, others)| Some(others.first()?.ns)).min();
        let allowed = if is_sure((method, len), visits) { STRAY } else { STRAY_UNSURE };
        let first = visits.first().zip(least_ns);
        first.is_some_and(|(visit, ns)| visit.ns as f64 > allowed * ns as f64)
    }

    /// Returns the points of the outline.
    fn outline(&self) -> VecDeque<Point> {
        let packet_max = self.reach.packet_max;
        let mut points = VecDeque::new();
        let sizes = core::iter::successors(Some(self.longest()), |len| {
            Some(len / OUTLINE_RATIO).filter(|len| *len > 0)
        });
        let mut sizes: Vec<u64> = sizes.collect();
        sizes.push(1);
        sizes.dedup();
        for len in sizes.into_iter().rev() {
            let ways = [(Method::Copy, len <= packet_max), (Method::Rendezvous, len >= RENDEZVOUS_MIN)];
            points.extend(ways.into_iter().filter(|(_, possible)| *possible).map(|(way, _)| (way, len)));
        }
        points
    }

    /// Returns the longest size of the grid.
    fn longest(&self) -> u64 {
        self.effort.ratio.pow(self.reach.len_max.max(1).ilog(self.effort.ratio))
    }

    /// Returns all points of one round: blocks, then short sizes first. The methods of one size are measured
    /// together, so that they are compared under the same conditions.
    fn grid(&self) -> VecDeque<Point> {
        let Reach { packet_max, gathers, pushes, reads, posts, host, hand_offs, .. } = self.reach;
        let mut points = self.blocks();
        let mut len = 1;
        while len <= self.longest() {
            let two = 2 * len <= packet_max;
            let ways = [
                (Method::Copy, len <= packet_max),
                (Method::InPlace, len <= packet_max && gathers),
                (Method::Pair, two),
                (Method::Aggregate, two),
                (Method::Rendezvous, len >= RENDEZVOUS_MIN),
                (Method::Pushed, pushes && (RENDEZVOUS_MIN..=packet_max).contains(&len)),
                (Method::Read, reads && (RENDEZVOUS_MIN..=READ_MAX).contains(&len)),
                (Method::Post, posts && len <= packet_max),
                (Method::Memcpy, host && (MEMCPY.0..=MEMCPY.1).contains(&len)),
            ];
            points.extend(ways.into_iter().filter(|(_, possible)| *possible).map(|(way, _)| (way, len)));
            len *= self.effort.ratio;
        }
        // Hand-offs come last, since they take milliseconds while other threads use the cores.
        let pairs = Pair::ALL.into_iter().zip(hand_offs).filter(|(_, exists)| *exists);
        points.extend(pairs.map(|(pair, _)| (Method::HandOff(pair), 0)));
        points
    }

    /// Returns the points of messages in blocks for one round. They come first: they take little time, and
    /// on a busy machine what comes last is not measured. On slow rails the bytes take far longer than the
    /// blocks; the time is left to other points.
    fn blocks(&self) -> VecDeque<Point> {
        let is_known = self.found.contains_key(&(Method::Gathered, BLOCKS.1));
        let part = if is_known { BLOCKS_PART } else { BLOCKS_PART_ONCE };
        let whole_ns = self.expected_ns((Method::Rendezvous, BLOCKS_LEN)).unwrap_or(u64::MAX);
        if !self.reach.blocks || whole_ns > self.effort.budget_ns / part {
            return VecDeque::new();
        }
        let sizes = core::iter::successors(Some(1), |len| Some(len * self.effort.ratio));
        let sizes = sizes.skip_while(|len| *len < BLOCKS.0).take_while(|len| *len <= BLOCKS.1);
        sizes.flat_map(|len| [(Method::Packed, len), (Method::Gathered, len)]).collect()
    }

    /// Moves on to the next stage and fills the queue; `None`: the plan is complete.
    fn advance(&mut self) -> Option<()> {
        self.stage = match self.stage {
            Stage::Outline => {
                self.queue = self.grid();
                Stage::Grid(1)
            }
            Stage::Grid(round) if round < self.effort.rounds => {
                self.queue = self.grid();
                Stage::Grid(round + 1)
            }
            Stage::Grid(_) | Stage::Refine => {
                self.refine();
                if self.queue.is_empty() { self.settle() } else { Stage::Refine }
            }
            Stage::Settle => self.settle(),
        };
        if self.queue.is_empty() { None } else { Some(()) }
    }

    /// Adds points between the neighbours of each crossing, until these are close.
    fn refine(&mut self) {
        let (copy, in_place) = (self.curve_of(Method::Copy), self.curve_of(Method::InPlace));
        let memcpy = Curve::through(points(&self.curve_of(Method::Memcpy)));
        let iovec = changes_at(&points(&copy), &points(&in_place));
        let in_place_min = iovec.map_or(u64::MAX, |(_, above)| above);
        let eager = unexpected(&best_eager(&copy, &in_place, in_place_min), memcpy.as_ref());
        let rendezvous = points(&self.curve_of(Method::Rendezvous));
        let pushed = points(&self.curve_of(Method::Pushed));
        let packets = best_eager(&copy, &in_place, in_place_min);
        let read = points(&self.curve_of(Method::Read));
        let together = (points(&self.curve_of(Method::Aggregate)), points(&self.curve_of(Method::Pair)));
        let blocks = (points(&self.curve_of(Method::Packed)), points(&self.curve_of(Method::Gathered)));
        let crossings: [(_, &[Method]); 7] = [
            (iovec, &[Method::Copy, Method::InPlace]),
            (changes_at(&eager, &rendezvous), &[Method::Copy, Method::InPlace, Method::Rendezvous]),
            (changes_at(&eager, &pushed), &[Method::Copy, Method::InPlace, Method::Pushed]),
            (changes_at(&packets, &read), &[Method::Copy, Method::InPlace, Method::Read]),
            (changes_at(&read, &rendezvous), &[Method::Read, Method::Rendezvous]),
            (changes_at(&together.0, &together.1), &[Method::Aggregate, Method::Pair]),
            (changes_at(&blocks.0, &blocks.1), &[Method::Packed, Method::Gathered]),
        ];
        for (crossing, methods) in crossings {
            let Some((below, above)) = crossing else { continue };
            if above as f64 <= below as f64 * self.effort.refined {
                continue;
            }
            let middle = geometric_mean(below, above);
            let missing = |method: &&Method| {
                !self.found.contains_key(&(**method, middle))
                    && (**method != Method::InPlace || self.reach.gathers)
            };
            // One visit shows where to continue; the others come later, when a disturbance is over.
            let wanted = methods.iter().filter(missing).map(|&method| (method, middle));
            self.queue.extend(wanted.collect::<Vec<_>>());
        }
    }

    /// Adds the points that were visited in too few rounds, or whose two best visits differ.
    fn settle(&mut self) -> Stage {
        let tolerance = self.effort.tolerance;
        let most = self.visits_max;
        let rounds = self.effort.rounds as usize;
        let differs = |visits: &[Sample]| match visits {
            [first, second, ..] => second.ns as f64 > first.ns as f64 * (1.0 + tolerance),
            _ => true,
        };
        let floor = self.floor();
        let is_uncertain = |point: &Point, visits: &[Sample]| {
            visits.len() < rounds || differs(floor.plausible(*point, visits))
        };
        let uncertain =
            self.found.iter().filter(|(point, visits)| visits.len() < most && is_uncertain(point, visits));
        self.queue = uncertain.map(|(point, _)| *point).collect();
        Stage::Settle
    }

    /// Queues uncertain points again, with more visits than before; false: there are none.
    fn settle_again(&mut self) -> bool {
        self.visits_max += self.effort.rounds as usize;
        self.settle();
        !self.queue.is_empty()
    }

    /// Returns the lower bound of times on the wire. Copies in memory are usually faster; it does not apply
    /// to them. The longest message tells the bandwidth if two of its visits agree, and otherwise a shorter
    /// one does: a single visit while other programs had the cores would make all shorter messages seem to
    /// be bursts.
    fn floor(&self) -> Floor {
        let announced = self.found.range((Method::Rendezvous, 0)..=(Method::Rendezvous, u64::MAX)).rev();
        let rates = announced.filter_map(|((_, len), visits)| {
            let ns = visits.first()?.ns;
            Some((ns as f64 / (*len).max(1) as f64, floor::confirmed(visits)))
        });
        let (mut sure, mut any) = (rates.clone().filter(|(_, is_sure)| *is_sure), rates);
        let longest = sure.next().or_else(|| any.next()).map_or(0.0, |(rate, _)| rate);
        Floor { longest: longest.max(self.limit), limit: self.limit }
    }

    /// Returns the visit that counts of each point of a method.
    fn curve_of(&self, method: Method) -> Vec<Sample> {
        let mine = self.found.range((method, 0)..=(method, u64::MAX));
        let floor = self.floor();
        mine.filter_map(|(point, visits)| floor.believed(*point, visits)).collect()
    }

    /// Predicts the time of a probe, from the same point, or from the next shorter one in proportion.
    fn expected_ns(&self, (method, len): Point) -> Option<u64> {
        let ((_, known), visits) = self.found.range((method, 0)..=(method, len)).next_back()?;
        let ns = visits.first()?.ns;
        Some(if *known == len { ns } else { (ns as f64 * len as f64 / (*known).max(1) as f64) as u64 })
    }

    /// Predicts half of the time of a repetition, or all of it on the host.
    fn half_round_trip_ns(&self, (method, len): Point) -> Option<u64> {
        self.expected_ns((if method == Method::Post { Method::Copy } else { method }, len))
    }

    /// Whether a few visits of a point would cost a large part of the budget. Such a point is left out: the
    /// last line of the curve continues from the longest measured size. Points that are refined or repeated
    /// are shorter.
    fn is_too_long(&self, point: Point) -> bool {
        let visits = u64::from(self.effort.repetitions.0) * u64::from(self.effort.rounds);
        let ways = if is_local(point.0) { 1 } else { 2 };
        let is_long = |ns: u64| ns.saturating_mul(ways * visits) > self.effort.budget_ns / 4;
        // A prediction in proportion to the size is too high for short sizes.
        self.expected_ns(point).is_some_and(is_long)
            && match self.stage {
                Stage::Outline => self.exceeds_latency(point),
                Stage::Grid(_) => point.0 == Method::Rendezvous,
                Stage::Refine | Stage::Settle => false,
            }
    }

    /// Returns the next shorter point of the outline if it has too few visits to leave out longer ones
    /// because of it.
    fn unconfirmed(&self, point: Point) -> Option<Point> {
        let (shorter, visits) = self.shorter(point).filter(|_| self.stage == Stage::Outline)?;
        (visits.len() < self.effort.rounds as usize).then_some(shorter)
    }

    /// Returns the next shorter point of the same method and its visits.
    fn shorter(&self, (method, len): Point) -> Option<(Point, &[Sample])> {
        let known = self.found.range((method, 0)..(method, len)).next_back();
        known.map(|(point, visits)| (*point, &visits[..]))
    }

    /// Whether the next shorter message took much longer than all shorter ones. If not, its time is
    /// latency, or other programs used the cores, and it predicts nothing for longer messages.
    fn exceeds_latency(&self, point: Point) -> bool {
        let Some(((_, len), [visit, ..])) = self.shorter(point) else { return false };
        let shortest = self.found.iter().filter(|(point, _)| !is_local(point.0) && point.1 < len);
        let slowest_ns = shortest.filter_map(|(_, visits)| Some(visits.first()?.low_ns)).max();
        slowest_ns.is_some_and(|ns| visit.low_ns >= ns.saturating_mul(UNSEEN))
    }

    fn probe(&self, (method, len): Point) -> Probe {
        let (least, most) = self.effort.repetitions;
        let Some(expected_ns) = self.half_round_trip_ns((method, len)).map(|ns| ns.max(1)) else {
            return Probe { method, len, repetitions: least, round_trips: 1 };
        };
        // A point may take 1/500 of the budget.
        let share_ns = self.effort.budget_ns / 500;
        let repetitions = (share_ns / (2 * expected_ns)).clamp(u64::from(least), u64::from(most)) as u32;
        let round_trips = (REPETITION_NS / (2 * expected_ns)).clamp(1, 64) as u32;
        Probe { method, len, repetitions, round_trips }
    }
}

/// Returns the geometric mean, rounded down.
fn geometric_mean(below: u64, above: u64) -> u64 {
    (u128::from(below.max(1)) * u128::from(above)).isqrt() as u64
}

#[cfg(test)]
mod tests;
