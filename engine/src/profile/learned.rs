//! A profile that completed transfers correct, by size (P4's future work: sampling without a separate
//! pass).
//!
//! A transfer on an idle rail is timed: the peer answers at once when it has arrived. Its time, less the
//! time of the answer, is divided by that of the profile; the ratio is a *factor*. The last few factors are
//! stored per method and octave of lengths ([`Recent`]). A transfer that waited behind another one gives no
//! start time, but the time between the two arrivals is the time of its bytes: these times correct the
//! *rate*, some milliseconds of them at once, since a late answer makes one transfer seem slow and the next
//! one fast.
//!
//! Between observed lengths the base profile is scaled to go through both. Longer messages use the observed
//! rate or, while that is unknown, the base plus a constant; shorter ones are scaled by the factor of the
//! shortest observed length, since the start is paid once and each byte adds its time.
//!
//! The corrected profile is made of corrected samples like any other, so thresholds follow. Without a
//! measured profile the base is the line through nominal figures, with the default thresholds for lengths
//! that were not observed; a few transfers of each length are then sent by each method, as in a sampling
//! pass. The time of a copy in memory is taken from the difference between data copied and in place.
//!
//! A measured profile is trusted ([`trust`]): it is checked, and corrected where the receiver cannot be the
//! cause. If transfers clearly contradict it, it is no longer trusted, and all is learnt again as from
//! nominal figures.

mod trust;

pub(crate) use trust::Refuted;

use super::curve::scaled;
use super::estimate::change::Change;
use super::measured::{Profile, Provenance};
use super::origin::{BODY_FROM, Base, Way, exactly};
use super::recent::{ENOUGH, KEPT_OF_MANY, Learnt, Recent};
use super::sample::{Method, Sample};
use alloc::format;
use alloc::vec::Vec;
use trust::{Delay, LONG_NS};

/// An observed length and its factor.
type Point = (u64, f64);

/// Octaves of lengths; the last one has all longer lengths.
const OCTAVES: usize = 32;
/// Attempts after which observation stops: answers do not arrive, or the rail is never idle.
const ATTEMPTS_MAX: u32 = 12;
/// The same of the checks of a measured profile, which cost nothing.
const CHECK_ATTEMPTS_MAX: u32 = 32;
/// Attempts after which observation of the rate stops; several messages make one observation of it.
const RATE_ATTEMPTS_MAX: u32 = 64;
/// Times of transfers behind others are added up to this much before they make a factor.
const TOGETHER_NS: u64 = 2_000_000;
/// A method that takes this many times as long as the best one is not tried again.
const SLOW: f64 = 2.0;
/// Longest message whose bytes take negligible time.
const SHORT: u64 = 128;
/// Shortest message that is tried in place; below it that never pays.
const IN_PLACE_FROM: u64 = 64;
/// Shortest chunk by which a measured profile is checked.
const CHECK_FROM: u64 = 32 << 10;

/// Observations of one rail to one peer.
#[derive(Debug)]
pub(crate) struct Learned {
    recent: [[Recent; OCTAVES]; Way::ALL.len()],
    /// Time of further bytes relative to the end of the base.
    rate: Recent<KEPT_OF_MANY>,
    /// Sums of observed and expected nanoseconds of transfers behind others that do not make a factor yet.
    behind: (u64, u64),
    /// Last round trips of empty queries, in nanoseconds.
    empty: Recent,
    base: Base,
    /// The time of answers may have changed, too.
    answers_change: bool,
    /// Additional latency since the first answers, while a measured base is trusted.
    delay: Delay,
    /// Time of the last long transfer relative to the base; zero: there was none.
    latest: f64,
    /// Whether long transfers contradict a measured base.
    contradicts: Change,
    /// The contradiction to a measured base, if there is one.
    refuted: Option<Refuted>,
}

fn octave(len: u64) -> usize {
    (len.max(1).ilog2() as usize).min(OCTAVES - 1)
}

impl Learned {
    /// Creates it without observations for a rail with this profile. A nominal profile assumes that data is
    /// sent in place from `in_place_min` bytes on. `pushes`: the data of large messages may follow their
    /// requests at once.
    pub(crate) fn new(profile: &Profile, in_place_min: u64, pushes: bool) -> Learned {
        let base = Base::of(profile, in_place_min, pushes);
        // One observation suffices to confirm a measured profile.
        let each = Recent::new(base.is_measured);
        Learned {
            recent: [[each; OCTAVES]; Way::ALL.len()],
            rate: Recent::new(base.is_measured),
            behind: (0, 0),
            empty: Recent::new(false),
            answers_change: false,
            delay: Delay::default(),
            latest: 0.0,
            contradicts: Change::default(),
            refuted: None,
            base,
        }
    }

    /// Returns the nanoseconds that the base profile gives for a body of `len` bytes, without corrections
    /// that a late receiver may have caused.
    pub(crate) fn first_ns(&self, len: u64) -> u64 {
        self.base.ns(Way::Body, len) as u64
    }

    /// Returns the time of an answer to an empty query that the profile in use includes.
    pub(crate) fn answer_ns(&self) -> Option<f64> {
        if self.is_trusted() { self.delay.answer_ns() } else { self.empty.value() }
    }

    /// Whether the time of an answer has to be measured first.
    pub(crate) fn wants_empty(&self) -> bool {
        self.empty.wants(ENOUGH, ATTEMPTS_MAX)
    }

    /// Whether more observations of a method at this length are wanted.
    pub(crate) fn wants(&self, way: Way, len: u64) -> bool {
        if self.empty.count() == 0 || self.is_trusted() && (way != Way::Body || len < CHECK_FROM) {
            return false;
        }
        let attempts_max = if self.is_trusted() { CHECK_ATTEMPTS_MAX } else { ATTEMPTS_MAX };
        self.of(way, len).wants(self.enough(), attempts_max)
    }

    /// Whether the rate is being observed and a message of this length may contribute; counts an attempt,
    /// so call it once per message.
    pub(crate) fn wants_rate(&mut self, len: u64) -> bool {
        let begun = len >= CHECK_FROM && (self.behind.0 > 0 || self.rate.count() > 0);
        let wants = begun && self.rate.wants(self.enough(), RATE_ATTEMPTS_MAX);
        if wants {
            self.rate.attempt();
        }
        wants
    }

    fn enough(&self) -> u32 {
        if self.is_trusted() { 1 } else { ENOUGH }
    }

    /// Returns the method that a message should use so that it is observed; `None`: enough is known.
    /// Messages up to `eager_max` fit into a packet, those from `large_from` on may be sent as large
    /// messages.
    pub(crate) fn next_method(
        &self,
        len: u64,
        (eager_max, large_from): (u64, u64),
        gathers: bool,
    ) -> Option<Way> {
        if self.is_trusted() {
            return None;
        }
        let is_possible = |way: &Way| match way {
            Way::Copy => len <= eager_max,
            Way::InPlace => gathers && (IN_PLACE_FROM..=eager_max).contains(&len),
            Way::Body => len >= BODY_FROM.max(large_from),
        };
        let possible = || Way::ALL.into_iter().filter(is_possible);
        let taken = |way: Way| self.of(way, len).value().map(|factor| factor * self.base.ns(way, len));
        let best = possible().filter_map(taken).fold(f64::MAX, f64::min);
        let is_slow = |way: &Way| taken(*way).is_some_and(|ns| ns > SLOW * best);
        let wanted = possible().filter(|way| self.wants(*way, len) && !is_slow(way));
        wanted.min_by_key(|way| self.of(*way, len).attempts())
    }

    /// Counts an attempt to observe a method; `None`: an empty query.
    pub(crate) fn attempt(&mut self, way: Option<Way>, len: u64) {
        match way {
            Some(way) => self.recent[way as usize][octave(len)].attempt(),
            None => self.empty.attempt(),
        }
    }

    /// Adds the answer to an empty query after `ns` nanoseconds.
    pub(crate) fn note_empty(&mut self, ns: u64) -> Learnt {
        self.empty.note(ns as f64);
        if self.is_trusted() {
            return self.delay.note(&mut self.empty, self.base.ns(Way::Copy, 0));
        }
        if self.empty.count() == ENOUGH { Learnt::News } else { Learnt::Nothing }
    }

    /// Adds the answer to `len` bytes that were sent by this method over an idle rail, after `ns`
    /// nanoseconds; `common` is the factor by which the peer's other rails are slower as well (see
    /// [`Learned::latest`]).
    pub(crate) fn note(&mut self, way: Way, len: u64, ns: u64, common: f64) -> Learnt {
        let Some(empty_ns) = self.empty.value() else { return Learnt::Nothing };
        if self.is_trusted() {
            return self.check(way, len, (ns as f64, empty_ns), common);
        }
        let there_ns = (ns as f64 - empty_ns / 2.0).max(empty_ns / 4.0);
        let factor = there_ns / self.base.ns(way, len).max(1.0);
        let recent = &mut self.recent[way as usize][octave(len)];
        recent.len = len;
        let learnt = recent.note(factor);
        // Only short messages measure latency.
        self.answers_change |= learnt == Learnt::Change && way == Way::Copy && len <= SHORT;
        learnt
    }

    /// Records that the rail was idle: its shaper, if it has one, has saved up a burst.
    pub(crate) fn note_pause(&mut self) {
        if self.may_be_burst() {
            self.behind = (0, 0);
        }
    }

    /// Adds `len` bytes that waited behind others and arrived `ns` nanoseconds after them; `common` as in
    /// [`Learned::note`].
    pub(crate) fn note_behind(&mut self, len: u64, ns: u64, common: f64) -> Learnt {
        self.behind.0 += ns;
        self.behind.1 += scaled(len, self.base.ns_per_byte());
        let enough_ns = if self.may_be_burst() { LONG_NS as u64 } else { TOGETHER_NS };
        if self.empty.count() == 0 || self.behind.0.max(self.behind.1) < enough_ns {
            return Learnt::Nothing;
        }
        let (observed, expected) = core::mem::take(&mut self.behind);
        let factor = observed as f64 / expected.max(1) as f64;
        self.latest = factor;
        match self.is_trusted() {
            true => self.check_rate(factor, common),
            false => self.rate.note(factor),
        }
    }

    /// Observes all methods again; present values count until then.
    pub(crate) fn restart(&mut self) {
        self.all().for_each(Recent::forget);
        self.rate.forget();
        if core::mem::take(&mut self.answers_change) {
            self.empty = Recent::new(false);
        }
        self.recheck();
    }

    /// Requests another observation of each known method and octave.
    pub(crate) fn recheck(&mut self) {
        self.all().for_each(Recent::recheck);
        self.rate.recheck();
        self.behind = (0, 0);
        match self.is_trusted() {
            true => self.recheck_latency(),
            false => self.empty.retry(),
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Recent> {
        self.recent.iter_mut().flatten()
    }

    /// Returns the corrected profile; `None` while too little is known.
    pub(crate) fn profile(&mut self) -> Option<Profile> {
        let empty_ns = self.empty.value()? as u64;
        let samples = self.base.samples.iter();
        let mut samples: Vec<(Method, Sample)> =
            samples.map(|&(method, sample)| (method, self.corrected(method, sample, empty_ns))).collect();
        if !self.base.is_measured {
            self.add_copies(&mut samples, empty_ns);
        }
        let provenance = self.base.provenance.clone();
        if self.is_trusted() {
            let how = self.delay.describe(&provenance.how);
            return Profile::new(Provenance { how, ..provenance }, samples).ok();
        }
        self.all().for_each(Recent::use_value);
        self.rate.use_value();
        let how = format!("{}, corrected by transfers", provenance.how);
        Profile::new(Provenance { how, doubt: None, ..provenance }, samples).ok()
    }

    /// Returns the number of observed transfers and answers.
    pub(crate) fn count(&self) -> u32 {
        let known = self.recent.iter().flatten().chain([&self.empty]);
        known.map(Recent::count).sum::<u32>() + self.rate.count()
    }

    /// Adds copies in memory: they take the time that data in place saves, if both were observed.
    fn add_copies(&self, samples: &mut Vec<(Method, Sample)>, empty_ns: u64) {
        let is_known = |way: Way, len: u64| self.of(way, len).count() > 0;
        let lens = (0..OCTAVES as u32).map(|bits| 1 << bits);
        let known = lens.filter(|&len| is_known(Way::Copy, len) && is_known(Way::InPlace, len));
        let copies = known.filter_map(|len| {
            let saved =
                self.ns(Way::Copy, len, empty_ns).checked_sub(self.ns(Way::InPlace, len, empty_ns))?;
            (saved > 0).then_some((Method::Memcpy, exactly(len, saved)))
        });
        samples.extend(copies);
    }

    fn corrected(&self, method: Method, sample: Sample, empty_ns: u64) -> Sample {
        if self.is_trusted() {
            return self.delay.added_to(method, sample);
        }
        let Sample { len, ns, .. } = sample;
        let way = match method {
            Method::Copy | Method::Pair | Method::Aggregate => Way::Copy,
            Method::InPlace => Way::InPlace,
            Method::Pushed | Method::Read | Method::Rendezvous => Way::Body,
            Method::Packed | Method::Gathered => return sample,
            Method::Post | Method::Memcpy | Method::HandOff(_) => return sample,
        };
        let factor = self.ns(way, len, empty_ns) as f64 / self.base.ns(way, len).max(1.0);
        let corrected = |ns: u64| match method {
            Method::Rendezvous => {
                let asked_ns = self.base.handshake_ns;
                // A measured handshake includes more than an answer, for example registration.
                let asks_ns = if self.base.is_measured { asked_ns / 2 } else { 0 };
                scaled(ns.saturating_sub(asked_ns), factor) + empty_ns.max(asks_ns)
            }
            _ => scaled(ns, factor),
        };
        Sample {
            ns: corrected(ns),
            low_ns: corrected(sample.low_ns),
            high_ns: corrected(sample.high_ns),
            len,
            ..sample
        }
    }

    /// Returns the nanoseconds of `len` bytes by a method: interpolated between two observed lengths in
    /// proportion to the base; without observations half of the round trip of an empty query plus the
    /// base's bytes.
    fn ns(&self, way: Way, len: u64, empty_ns: u64) -> u64 {
        let base = |len: u64| self.base.ns(way, len);
        let here = base(len);
        let ns = match self.around(way, len) {
            (Some((from, low)), Some((to, high))) => {
                let (start, end) = (base(from), base(to));
                low * start + (high * end - low * start) * (here - start) / (end - start).max(1.0)
            }
            (Some(last), None) => last.1 * base(last.0) + self.rate_beyond(way, last) * (here - base(last.0)),
            (None, Some((_, first))) => first * here,
            (None, None) => empty_ns as f64 / 2.0 + self.rate.value().unwrap_or(1.0) * (here - base(0)),
        };
        ns.max(empty_ns as f64 / 2.0) as u64
    }

    /// Returns the largest plausible factor of a method and length: a short message takes no longer than an
    /// empty query. It may seem slower because the receiver first answers the message itself.
    fn most(&self, way: Way, len: u64) -> f64 {
        match self.empty.value() {
            Some(empty_ns) if way == Way::Copy && len <= SHORT => empty_ns / 2.0 / self.base.ns(way, len),
            _ => f64::MAX,
        }
    }

    /// Returns the time of further bytes beyond a length with this factor, relative to the base: the
    /// observed rate; else the rate of the bytes of that length, if there are enough of them; else one.
    fn rate_beyond(&self, way: Way, (at, factor): Point) -> f64 {
        if let Some(rate) = self.rate.value() {
            return rate;
        }
        let (start, there) = (self.base.ns(way, 0), self.base.ns(way, at));
        if at < CHECK_FROM || there <= start {
            return 1.0;
        }
        let shortest = self.around(way, 0).1.map_or(factor, |first| first.1);
        ((factor * there - shortest * start) / (there - start)).max(factor / 4.0)
    }

    /// Returns the nearest observed lengths of a method, not above `len` and above it, with their factors.
    /// If copies were observed at much nearer lengths, theirs are the better estimate.
    fn around(&self, way: Way, len: u64) -> (Option<Point>, Option<Point>) {
        let observed = |way: Way| {
            let known = || {
                let all = self.recent[way as usize].iter();
                all.filter_map(|each| Some((each.len, each.value()?.min(self.most(way, each.len)))))
            };
            (known().rfind(|point| point.0 <= len), known().find(|point| point.0 > len))
        };
        let away = |(below, above): &(Option<Point>, Option<Point>)| {
            let points = below.iter().chain(above);
            points.map(|point| octave(point.0).abs_diff(octave(len))).min().unwrap_or(OCTAVES)
        };
        let own = observed(way);
        let is_like_copies = way == Way::InPlace || !self.base.is_measured;
        let copied = if is_like_copies { observed(Way::Copy) } else { (None, None) };
        if away(&own) > away(&copied) + 1 { copied } else { own }
    }

    fn of(&self, way: Way, len: u64) -> &Recent {
        &self.recent[way as usize][octave(len)]
    }
}

#[cfg(test)]
mod tests;
