//! A forecast: what a rail to one peer will take, from its profile and from how it fares now.

use super::correction::{Accuracy, Correction};
use super::curve::{Curve, scaled};
use super::measured::Profile;
use crate::clock::Instant;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// A latency that is unknown, in nanoseconds.
const LATENCY_GUESS_NS: u64 = 10_000;
/// Nothing is faster than the quiet rail that was measured: what seems so is a burst that a shaper had saved.
/// Nominal figures may be far too low, and so may what was measured while something else disturbed it.
const LOAD_MIN_MEASURED: f64 = 1.0;
const LOAD_MIN_UNSURE: f64 = 0.25;

/// The load that is assumed of a rail that is used again after it was left.
const LOAD_DOUBTED: f64 = 2.0;

/// Predictions for one peer over one rail.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    profile: Arc<Profile>,
    /// What everything takes now, relative to the profile; one on a quiet rail.
    load: f64,
    /// Its inverse, since decisions multiply.
    pace: f64,
    /// Whether the bandwidth is more than a guess, so that the rail's clock may count on it.
    is_known: bool,
    /// Nothing stays in place, since everything has to be kept.
    pub(crate) staged: bool,
    /// Observations; none before the first one, so that peers that are never heard cost little.
    correction: Option<Box<Correction>>,
}

impl Forecast {
    /// As the profile says.
    pub fn new(profile: Arc<Profile>) -> Forecast {
        Forecast { profile, load: 1.0, pace: 1.0, is_known: true, staged: false, correction: None }
    }

    /// A straight line through nominal figures (see [`Profile::nominal`]), zero for an unknown one. An
    /// unknown bandwidth counts as `guess` where rails are compared, and leaves the rail idle.
    pub fn nominal(latency_ns: u64, bandwidth: u64, guess: u64) -> Forecast {
        let latency_ns = if latency_ns > 0 { latency_ns } else { LATENCY_GUESS_NS };
        let is_known = bandwidth > 0;
        let profile = Profile::nominal(latency_ns, if is_known { bandwidth } else { guess });
        Forecast { is_known, ..Forecast::new(Arc::new(profile)) }
    }

    /// The same with nothing observed yet.
    pub(crate) fn fresh(&self) -> Forecast {
        Forecast { is_known: self.is_known, ..Forecast::new(self.profile.clone()) }
    }

    /// Another profile holds from now on, which includes earlier observations.
    pub(crate) fn rebase(&mut self, profile: Arc<Profile>) {
        (self.profile, self.is_known) = (profile, true);
        self.forgive();
    }

    /// Whether it comes from measurements.
    pub fn is_measured(&self) -> bool {
        self.profile.thresholds().is_some()
    }

    /// The profile that it is based on.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Nanoseconds for a message of `len` bytes in a packet: copied or in place, whichever is better, but
    /// copied where it has to be kept for another rail.
    #[inline]
    pub fn eager_ns(&self, len: u64) -> u64 {
        self.loaded(self.eager_curve().ns(len))
    }

    /// Most bytes of a message in a packet that arrive within `ns` nanoseconds, and how many more a further
    /// nanosecond brings.
    pub(crate) fn eager_bytes_and_rate(&self, ns: u64) -> (u64, f64) {
        let (bytes, rate) = self.eager_curve().bytes_and_rate(scaled(ns, self.pace));
        (bytes, rate * self.pace)
    }

    #[inline]
    fn eager_curve(&self) -> &Curve {
        if self.staged { self.profile.copied() } else { self.profile.eager() }
    }

    /// Nanoseconds for a part of `len` bytes of a large message, from its post to its arrival.
    #[inline]
    pub fn body_ns(&self, len: u64) -> u64 {
        self.loaded(self.profile.body().ns(len))
    }

    /// Most bytes of a large message that arrive within `ns` nanoseconds after they are posted.
    #[inline]
    pub fn body_bytes(&self, ns: u64) -> u64 {
        self.body_bytes_and_rate(ns).0
    }

    /// The same, and how many more a further nanosecond brings.
    #[inline]
    pub(crate) fn body_bytes_and_rate(&self, ns: u64) -> (u64, f64) {
        let (bytes, rate) = self.profile.body().bytes_and_rate(scaled(ns, self.pace));
        (bytes, rate * self.pace)
    }

    /// Nanoseconds for which the rail is busy with `len` bytes in a row of others: at its asymptotic
    /// bandwidth. What a short transfer takes besides is latency, during which the next bytes may already go,
    /// and a burst that a quiet rail may begin with is used up. Zero if the bandwidth is unknown.
    #[inline]
    pub fn busy_ns(&self, len: u64) -> u64 {
        if !self.is_known {
            return 0;
        }
        scaled(len, self.profile.body().last_ns_per_byte() * self.load)
    }

    /// Nanoseconds that a second packet takes beyond a first one that could have held both.
    #[inline]
    pub fn packet_ns(&self) -> u64 {
        self.loaded(self.profile.packet_ns())
    }

    /// Bytes that a further nanosecond brings when it carries much: the asymptotic bandwidth.
    pub fn bandwidth(&self) -> f64 {
        self.profile.body().bandwidth() as f64 / 1e9 * self.pace
    }

    /// Bytes per nanosecond that the rail was measured to carry; none if nobody has measured it.
    #[inline]
    pub(crate) fn capacity(&self) -> Option<f64> {
        self.is_measured().then(|| self.bandwidth())
    }

    /// Shortest share of a large message that this rail should carry, in bytes.
    #[inline]
    pub fn chunk_min(&self) -> u64 {
        self.profile.chunk_min()
    }

    /// Nanoseconds that such a share takes.
    #[inline]
    pub(crate) fn chunk_ns(&self) -> u64 {
        self.loaded(self.profile.chunk_ns())
    }

    /// `len` bytes of large messages were served in `observed_ns`: from the moment the rail was free for
    /// them until their acknowledgement came; `idle` says that the rail had nothing to do before, so that
    /// their latency and that of the acknowledgement count too. A rail that was idle may begin with a burst,
    /// of which only a measured profile knows.
    pub(crate) fn observe(&mut self, now: Instant, len: u64, observed_ns: u64, idle: bool) {
        let (body, eager) = (self.profile.body(), self.profile.eager());
        let expected_ns = match idle {
            true => body.ns(len).saturating_add(eager.start_ns()),
            false => scaled(len, body.last_ns_per_byte()),
        };
        if self.is_known && (!idle || self.is_measured()) {
            let correction = self.correction.get_or_insert_default();
            let is_sure = self.profile.thresholds().is_some() && self.profile.provenance().doubt.is_none();
            let floor = if is_sure { LOAD_MIN_MEASURED } else { LOAD_MIN_UNSURE };
            let load = correction.observe(now, (observed_ns, expected_ns), self.load, floor);
            self.set_load(load);
        }
    }

    /// Forgives a rail that was not observed for a while.
    pub(crate) fn relax(&mut self, now: Instant) {
        if let Some(correction) = &mut self.correction {
            let load = correction.relaxed(now, self.load);
            self.set_load(load);
        }
    }

    /// The rail is used again after it was left: it is given less at first, until what it carries is
    /// observed.
    pub(crate) fn doubt(&mut self) {
        self.set_load(self.load.max(LOAD_DOUBTED));
        self.correction.get_or_insert_default();
    }

    /// Forgets what was observed: it was not the rail's doing.
    pub(crate) fn forgive(&mut self) {
        self.correction.iter_mut().for_each(|correction| correction.begin_anew());
        self.set_load(1.0);
    }

    fn set_load(&mut self, load: f64) {
        (self.load, self.pace) = (load, 1.0 / load);
    }

    /// How well it predicts; none before the first observation.
    pub fn accuracy(&self) -> Option<Accuracy> {
        self.correction.as_ref()?.accuracy(self.load)
    }

    /// What everything takes now, relative to the profile.
    pub fn load(&self) -> f64 {
        self.load
    }

    #[inline]
    fn loaded(&self, ns: u64) -> u64 {
        scaled(ns, self.load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::doubt::Doubt;
    use crate::profile::measured::Provenance;
    use crate::profile::sample::{Method, Sample};

    /// The load of a rail that carries a byte in a nanosecond, after it was measured to need four for it.
    fn load(doubt: Option<Doubt>) -> f64 {
        let sample = |method, len: u64| (method, Sample::of(len, &mut [1_000 + 4 * len]).unwrap());
        let lens = [(Method::Copy, 8), (Method::Copy, 4096), (Method::Rendezvous, 4096)];
        let samples = lens.into_iter().chain([(Method::Rendezvous, 1 << 20)]);
        let samples = samples.map(|(method, len)| sample(method, len));
        let profile = Profile::new(Provenance::default(), samples).unwrap().doubted(doubt);
        let mut forecast = Forecast::new(Arc::new(profile));
        for ms in 0..40 {
            forecast.observe(Instant::from_ns(ms * 1_000_000), 1 << 20, 1 << 20, false);
        }
        forecast.load()
    }

    #[test]
    fn a_rail_is_found_faster_than_its_profile_only_if_that_is_in_doubt() {
        assert_eq!(load(None), 1.0);
        let doubt = Doubt { count: 1, degree: 400, why: "a test".into() };
        assert!((load(Some(doubt)) - 0.25).abs() < 0.01);
    }
}
