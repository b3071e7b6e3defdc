//! A forecast: the predicted times of a rail to one peer, from its profile and its current load.

use super::correction::{Accuracy, Correction};
use super::curve::{Curve, scaled};
use super::measured::Profile;
use crate::clock::Instant;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// Latency in nanoseconds that is assumed if it is unknown.
const LATENCY_GUESS_NS: u64 = 10_000;
/// Load that is assumed of a rail that is used again after it was given up.
const LOAD_DOUBTED: f64 = 2.0;

/// Predictions for one peer over one rail.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    profile: Arc<Profile>,
    /// Time that transfers take now, relative to the profile; one on a quiet rail.
    load: f64,
    /// Inverse of the load, so that decisions multiply instead of dividing.
    pace: f64,
    /// Whether the bandwidth is known and not a guess, so that the rail's idle time can be predicted from
    /// it.
    is_known: bool,
    /// All data is copied, since everything has to be kept for retransmission.
    pub(crate) staged: bool,
    /// Observations; `None` before the first one, so that peers without traffic use little memory.
    correction: Option<Box<Correction>>,
}

impl Forecast {
    /// Creates a forecast from a profile, with a load of one.
    pub fn new(profile: Arc<Profile>) -> Forecast {
        Forecast { profile, load: 1.0, pace: 1.0, is_known: true, staged: false, correction: None }
    }

    /// Creates a forecast from nominal figures (see [`Profile::nominal`]), zero for an unknown one. An
    /// unknown bandwidth counts as `guess` in comparisons of rails; the rail is then never predicted to be
    /// busy.
    pub fn nominal(latency_ns: u64, bandwidth: u64, guess: u64) -> Forecast {
        let latency_ns = if latency_ns > 0 { latency_ns } else { LATENCY_GUESS_NS };
        let is_known = bandwidth > 0;
        let profile = Profile::nominal(latency_ns, if is_known { bandwidth } else { guess });
        Forecast { is_known, ..Forecast::new(Arc::new(profile)) }
    }

    /// Returns a forecast from the same profile without observations.
    pub(crate) fn fresh(&self) -> Forecast {
        Forecast { is_known: self.is_known, ..Forecast::new(self.profile.clone()) }
    }

    /// Replaces the profile by one that includes the past observations.
    pub(crate) fn rebase(&mut self, profile: Arc<Profile>) {
        (self.profile, self.is_known) = (profile, true);
        self.reset_load();
    }

    /// Whether the profile was measured.
    pub fn is_measured(&self) -> bool {
        self.profile.thresholds().is_some()
    }

    /// Returns the profile.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Predicts the nanoseconds for a message of `len` bytes in a packet: copied or in place, whichever is
    /// faster, but copied if it has to be kept for another rail.
    #[inline]
    pub fn eager_ns(&self, len: u64) -> u64 {
        self.loaded(self.eager_curve().ns(len))
    }

    /// Returns the most bytes of a message in a packet that arrive within `ns` nanoseconds, and the bytes
    /// that each further nanosecond adds.
    pub(crate) fn eager_bytes_and_rate(&self, ns: u64) -> (u64, f64) {
        let (bytes, rate) = self.eager_curve().bytes_and_rate(scaled(ns, self.pace));
        (bytes, rate * self.pace)
    }

    #[inline]
    fn eager_curve(&self) -> &Curve {
        if self.staged { self.profile.copied() } else { self.profile.eager() }
    }

    /// Predicts the nanoseconds for a part of `len` bytes of a large message, from its post to its arrival.
    #[inline]
    pub fn body_ns(&self, len: u64) -> u64 {
        self.loaded(self.profile.body().ns(len))
    }

    /// Returns the most bytes of a large message that arrive within `ns` nanoseconds after their post.
    #[inline]
    pub fn body_bytes(&self, ns: u64) -> u64 {
        self.body_bytes_and_rate(ns).0
    }

    /// Returns the most bytes of a large message that arrive within `ns` nanoseconds after their post, and
    /// the bytes that each further nanosecond adds.
    #[inline]
    pub(crate) fn body_bytes_and_rate(&self, ns: u64) -> (u64, f64) {
        let (bytes, rate) = self.profile.body().bytes_and_rate(scaled(ns, self.pace));
        (bytes, rate * self.pace)
    }

    /// Predicts the nanoseconds for which `len` bytes between others keep the rail busy, at its asymptotic
    /// bandwidth. The rest of the time of a short transfer is latency, during which the next bytes are
    /// already sent; a burst at the start of a quiet rail is used up by then. Zero if the bandwidth is
    /// unknown.
    #[inline]
    pub fn busy_ns(&self, len: u64) -> u64 {
        if !self.is_known {
            return 0;
        }
        scaled(len, self.profile.body().last_ns_per_byte() * self.load)
    }

    /// Returns the nanoseconds for which `len` bytes between others keep the rail busy if nothing else uses
    /// it.
    #[inline]
    pub(crate) fn quiet_ns(&self, len: u64) -> u64 {
        scaled(len, self.profile.body().last_ns_per_byte())
    }

    /// Returns the nanoseconds for which posting `len` bytes in a packet keeps a core. Estimated where that
    /// was not measured: one more packet, and a copy of the data; all of its time without measured copies.
    pub fn core_ns(&self, len: u64) -> u64 {
        if let Some(post) = self.profile.post() {
            return post.ns(len);
        }
        let copy_ns = self.profile.memcpy().map(|curve| curve.ns(len));
        copy_ns.map_or(self.eager_ns(len), |copy_ns| copy_ns.saturating_add(self.packet_ns()))
    }

    /// Returns the additional nanoseconds of a second packet compared with one packet for both.
    #[inline]
    pub fn packet_ns(&self) -> u64 {
        self.loaded(self.profile.packet_ns())
    }

    /// Returns the asymptotic bandwidth in bytes per nanosecond.
    pub fn bandwidth(&self) -> f64 {
        self.profile.body().bandwidth() as f64 / 1e9 * self.pace
    }

    /// Returns the measured bandwidth in bytes per nanosecond; `None` if it was not measured.
    #[inline]
    pub(crate) fn capacity(&self) -> Option<f64> {
        self.is_measured().then(|| self.bandwidth())
    }

    /// Returns the length in bytes of the shortest share of a large message that this rail should carry.
    #[inline]
    pub fn chunk_min(&self) -> u64 {
        self.profile.chunk_min()
    }

    /// Returns the nanoseconds that such a share takes.
    #[inline]
    pub(crate) fn chunk_ns(&self) -> u64 {
        self.loaded(self.profile.chunk_ns())
    }

    /// Adds an observation: `len` bytes of large messages took `observed_ns` from when the rail was free
    /// for them until their acknowledgement arrived. `idle`: the rail was idle before, so that their
    /// latency and that of the acknowledgement count too. An idle rail may begin with a burst, which only a
    /// measured profile includes.
    pub(crate) fn observe(&mut self, now: Instant, len: u64, observed_ns: u64, idle: bool) {
        let (body, eager) = (self.profile.body(), self.profile.eager());
        let expected_ns = match idle {
            true => body.ns(len).saturating_add(eager.start_ns()),
            false => self.quiet_ns(len),
        };
        if self.is_known && (!idle || self.is_measured()) {
            let correction = self.correction.get_or_insert_default();
            let is_sure = self.profile.thresholds().is_some() && self.profile.provenance().doubt.is_none();
            let load = correction.observe(now, (observed_ns, expected_ns), self.load, (is_sure, idle));
            self.set_load(load);
        }
    }

    /// Lets the load of a rail that was not observed for a while decay.
    pub(crate) fn relax(&mut self, now: Instant) {
        if let Some(correction) = &mut self.correction {
            let load = correction.decayed(now, self.load);
            self.set_load(load);
        }
    }

    /// Raises the load of a rail that is used again after it was given up: it gets less at first, until its
    /// transfers are observed.
    pub(crate) fn doubt(&mut self) {
        self.set_load(self.load.max(LOAD_DOUBTED));
        self.correction.get_or_insert_default();
    }

    /// Resets the load: the observations were not caused by the rail.
    pub(crate) fn reset_load(&mut self) {
        self.correction.iter_mut().for_each(|correction| correction.reset());
        self.set_load(1.0);
    }

    fn set_load(&mut self, load: f64) {
        (self.load, self.pace) = (load, 1.0 / load);
    }

    /// Returns the accuracy of the predictions; `None` before the first observation.
    pub fn accuracy(&self) -> Option<Accuracy> {
        self.correction.as_ref()?.accuracy(self.load)
    }

    /// Returns the time that transfers take now, relative to the profile.
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

    /// Returns the load of a rail that carries a byte per nanosecond and whose profile says four
    /// nanoseconds per byte, after `count` transfers; those whose number satisfies `delayed` take as long
    /// as the profile says.
    fn load(doubt: Option<Doubt>, count: u64, delayed: impl Fn(u64) -> bool) -> f64 {
        let sample = |method, len: u64| (method, Sample::of(len, &mut [1_000 + 4 * len]).unwrap());
        let lens = [(Method::Copy, 8), (Method::Copy, 4096), (Method::Rendezvous, 4096)];
        let samples = lens.into_iter().chain([(Method::Rendezvous, 1 << 20)]);
        let samples = samples.map(|(method, len)| sample(method, len));
        let profile = Profile::new(Provenance::default(), samples).unwrap().doubted(doubt);
        let mut forecast = Forecast::new(Arc::new(profile));
        for place in 0..count {
            let ns = if delayed(place) { 4 << 20 } else { 1 << 20 };
            forecast.observe(Instant::from_ns(place * 1_000_000), 1 << 20, ns, false);
        }
        forecast.load()
    }

    #[test]
    fn a_rail_is_found_faster_than_its_profile_soon_if_that_is_in_doubt_and_else_if_it_is_clear() {
        let doubt = Doubt { count: 1, degree: 400, why: "a test".into() };
        assert!((load(Some(doubt), 20, |_| false) - 0.25).abs() < 0.01);
        assert_eq!(load(None, 20, |_| false), 1.0, "a burst");
        assert!((load(None, 40, |_| false) - 0.25).abs() < 0.01);
        assert_eq!(load(None, 200, |place| place % 4 == 0), 1.0, "bursts with pauses between them");
    }
}
