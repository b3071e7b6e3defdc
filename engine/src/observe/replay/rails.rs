//! Replays of how large messages are split over rails, and of the latency of rails.

use super::outcome::{Decision, Outcome};
use crate::clock::{Duration, Instant};
use crate::config::Config;
use crate::observe::observation::{Observation, Observed};
use crate::observe::observation_text::Observations;
use crate::packet::RailId;
use crate::profile::forecast::Forecast;
use crate::profile::learned::Learned;
use crate::profile::measured::Profile;
use crate::profile::origin::Way;
use crate::profile::recent::Learnt;
use crate::schedule::split::{Bodies, equal_finish};
use crate::schedule::strategy::RailView;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Length of the message whose split is judged, in bytes.
const LEN: u64 = 4 << 20;
/// Hindsight takes the median time of a byte within this time before and after, or in the whole job if that
/// is steady. It changes when the rail does, and the host's pauses, which all rails have in common, do not
/// count.
const AROUND: Duration = Duration::from_ms(1_000);
/// At least this many observations before and after count.
const LEAST: usize = 8;
/// Length of the message that an error of the latency is compared with, in bytes.
const MEDIUM: u64 = 64 << 10;
/// A split has changed if this part of the message goes over another rail.
const PART: f64 = 0.125;
/// Answers before and after whose second lowest is the true latency.
const ANSWERS: usize = 16;
/// The latency has changed if it differs by this factor from what was assumed.
const MOVED: f64 = 1.1;

/// A rail that is slower or faster than its profile by this factor has changed.
const CLEAR: f64 = 1.5;

/// Observations of chunks after which the engine checks the profiles again (see `observe::learn`), and
/// messages without anything to learn after which it stops.
const CHUNKS: u32 = 64;
const SETTLED: u32 = 2;

/// What is known of the rails to one peer, and whether the engine learns about them now.
struct Known {
    lanes: Vec<Lane>,
    is_active: bool,
    chunks: u32,
    settled: u32,
}

/// What is known of one rail.
struct Lane {
    forecast: Forecast,
    learned: Learned,
}

/// Replays the decision how much of a message each rail carries; `None` if the trace has not two rails that
/// were measured and have carried messages. `is_steady`: nothing has changed in the whole job.
pub fn rails(all: &Observations, is_steady: bool) -> Option<Outcome> {
    let mut known = known(all);
    let lanes = known.lanes.len();
    let served: Vec<&Observation> = all.seen.iter().filter(|seen| is_of_rail(seen, lanes)).collect();
    let has_carried = |lane: usize| served.iter().any(|seen| carried_by(seen, lane));
    if lanes < 2 || !(0..lanes).all(has_carried) {
        return None;
    }
    let truth = Truth::of(&served, lanes, is_steady);
    let mut decisions = Vec::new();
    let mut before: Option<Vec<f64>> = None;
    for (place, seen) in served.iter().enumerate() {
        if seen.what == Observed::Answered {
            known.note(seen);
            continue;
        }
        let shares = decide(&mut known.lanes, seen.at);
        let rates: Option<Vec<f64>> = (0..lanes).map(|lane| truth.rate(place, lane)).collect();
        known.note(seen);
        let Some(rates) = rates else { continue };
        let cost = |shares: &[f64]| shares.iter().zip(&rates).fold(0.0, |most, (s, r)| f64::max(most, s * r));
        let last = before.get_or_insert_with(|| shares.clone());
        let apart = shares.iter().zip(&*last).fold(0.0, |most, (a, b)| f64::max(most, a - b));
        let decision = Decision {
            at: seen.at,
            cost: cost(&shares),
            best: 1.0 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>(),
            before: cost(last),
            is_switch: apart > PART,
            is_trial: false,
        };
        if decision.is_switch {
            *last = shares;
        }
        decisions.push(decision);
    }
    Outcome::of(&decisions)
}

/// Replays the estimate of each rail's latency: cost = rendezvous time of 64 KiB + 1.5 x the error of the
/// round trip (three one-way latencies). `None` if the trace has no answers to empty queries over a rail
/// that was measured.
pub fn latency(all: &Observations) -> Option<Outcome> {
    let mut lanes = known(all).lanes;
    let mut decisions = Vec::new();
    for (number, lane) in lanes.iter_mut().enumerate() {
        let is_it =
            |seen: &&Observation| seen.what == Observed::Answered && usize::from(seen.which) == number;
        let answers: Vec<&Observation> = all.seen.iter().filter(is_it).collect();
        let profile = lane.forecast.profile();
        let carries_ns = (profile.handshake_ns() + profile.body().ns(MEDIUM)) as f64;
        for (place, seen) in answers.iter().enumerate() {
            let learned = &mut lane.learned;
            let before = learned.answer_ns();
            let moved = learned.note_empty(seen.ns) != Learnt::Nothing;
            let around = answers[place.saturating_sub(ANSWERS)..].iter().take(2 * ANSWERS + 1);
            let mut around: Vec<u64> = around.map(|answer| answer.ns).collect();
            around.sort_unstable();
            let truth = around[1.min(around.len() - 1)] as f64;
            let time = |answer_ns: f64| {
                let off = if answer_ns > truth { answer_ns - truth } else { truth - answer_ns };
                carries_ns + 1.5 * off
            };
            let (Some(known), Some(before)) = (learned.answer_ns(), before) else { continue };
            decisions.push(Decision {
                at: seen.at,
                cost: time(known),
                best: carries_ns,
                before: time(before),
                is_switch: moved && !(1.0 / MOVED..=MOVED).contains(&(known / before)),
                is_trial: false,
            });
        }
    }
    Outcome::of(&decisions)
}

/// Replays the decision whether the sampled profiles of the rails are trusted: a wrong one costs as much
/// again. `None` as for [`rails`].
pub fn trust(all: &Observations, is_steady: bool) -> Option<Outcome> {
    let mut known = known(all);
    let lanes = known.lanes.len();
    let served: Vec<&Observation> = all.seen.iter().filter(|seen| is_of_rail(seen, lanes)).collect();
    let truth = Truth::of(&served, lanes, is_steady);
    let mut decisions = Vec::new();
    for (place, seen) in served.iter().enumerate() {
        let lane = usize::from(seen.which);
        let before = known.lanes[lane].learned.is_trusted();
        known.note(seen);
        let Some(rate) = truth.rate(place, lane).filter(|_| lanes > 1) else { continue };
        let measured = 1e9 / all.rails[lane].as_ref()?.body().bandwidth() as f64;
        let has_changed = !(1.0 / CLEAR..=CLEAR).contains(&(rate / measured));
        let cost = |is_trusted: bool| if is_trusted == has_changed { 2.0 } else { 1.0 };
        let after = known.lanes[lane].learned.is_trusted();
        let is_switch = before != after;
        let [cost, before] = [after, before].map(cost);
        let at = seen.at;
        decisions.push(Decision { at, cost, best: 1.0, before, is_switch, is_trial: false });
    }
    Outcome::of(&decisions)
}

fn known(all: &Observations) -> Known {
    let lane = |profile: &Profile| Lane {
        learned: Learned::new(profile, Config::IN_PLACE_MIN as u64, false),
        forecast: Forecast::new(Arc::new(profile.clone())),
    };
    let lanes = all.rails.iter().map_while(|profile| profile.as_ref().map(lane)).collect();
    Known { lanes, is_active: true, chunks: 0, settled: 0 }
}

fn is_of_rail(seen: &Observation, lanes: usize) -> bool {
    let is_it = matches!(seen.what, Observed::Behind | Observed::Alone | Observed::Answered);
    is_it && usize::from(seen.which) < lanes
}

fn carried_by(seen: &Observation, lane: usize) -> bool {
    seen.what == Observed::Behind && usize::from(seen.which) == lane
}

/// Returns the part of a message that each rail would get now, if all were idle.
fn decide(lanes: &mut [Lane], now: Instant) -> Vec<f64> {
    lanes.iter_mut().for_each(|lane| lane.forecast.relax(now));
    let views: Vec<RailView<'_>> =
        (0..).zip(&*lanes).map(|(number, lane)| view_of(number, lane, now)).collect();
    let (shares, _) = equal_finish::<Bodies>(now, LEN, &views);
    let part = |number: usize| {
        let share = shares.iter().find(|share| share.0.index() == number);
        share.map_or(0.0, |share| share.1 as f64 / LEN as f64)
    };
    (0..lanes.len()).map(part).collect()
}

fn view_of(number: u8, lane: &Lane, now: Instant) -> RailView<'_> {
    RailView {
        rail: RailId(number),
        wire: RailId(number),
        idle_at: now,
        bandwidth: 0,
        latency_ns: 0,
        primary: number == 0,
        fastest: number == 0,
        forecast: &lane.forecast,
        rivals: &[],
    }
}

impl Known {
    /// Tells the estimators of a rail what was observed, as the engine does.
    fn note(&mut self, seen: &Observation) {
        let mine = usize::from(seen.which);
        let is_alone = seen.what == Observed::Alone;
        let learned = &mut self.lanes[mine].learned;
        if seen.what == Observed::Answered {
            let learnt = learned.note_empty(seen.ns);
            return self.lanes[mine].relearn(learnt);
        }
        self.lanes[mine].forecast.observe(seen.at, seen.len, seen.ns, is_alone);
        self.chunks += 1;
        if self.chunks.is_multiple_of(CHUNKS) && !self.is_active {
            self.lanes.iter_mut().for_each(|lane| lane.learned.recheck());
            (self.is_active, self.settled) = (true, 0);
        }
        if !self.is_active {
            return;
        }
        let others = self.lanes.iter().enumerate().filter(|(lane, _)| *lane != mine);
        let factors = others.map(|(_, lane)| lane.learned.latest().unwrap_or(f64::INFINITY));
        let common = factors.reduce(f64::min).map_or(1.0, |least| least.max(1.0));
        let learned = &mut self.lanes[mine].learned;
        let learnt = match is_alone {
            true if learned.wants(Way::Body, seen.len) => learned.note(Way::Body, seen.len, seen.ns, common),
            true => Learnt::Nothing,
            false => learned.note_behind(seen.len, seen.ns, common),
        };
        self.lanes[mine].relearn(learnt);
        let wants = self.lanes.iter_mut().fold(false, |any, lane| any | lane.learned.wants_rate(LEN));
        self.settled = if wants { 0 } else { self.settled + 1 };
        self.is_active = self.settled <= SETTLED || learnt == Learnt::Change;
    }
}

impl Lane {
    /// Derives the profile again, as the engine does.
    fn relearn(&mut self, learnt: Learnt) {
        if learnt == Learnt::Nothing {
            return;
        }
        if let Some(profile) = self.learned.profile() {
            self.forecast.rebase(Arc::new(profile));
        }
        if learnt == Learnt::Change {
            self.learned.restart();
        }
    }
}

/// The rates of the rails, known by hindsight.
struct Truth<'s> {
    served: &'s [&'s Observation],
    /// The nanoseconds of a byte on each rail in a steady job.
    whole: Vec<Option<f64>>,
    is_steady: bool,
}

impl<'s> Truth<'s> {
    fn of(served: &'s [&'s Observation], lanes: usize, is_steady: bool) -> Truth<'s> {
        let all = |lane: usize| served.iter().filter(move |seen| carried_by(seen, lane));
        Truth { served, whole: (0..lanes).map(|lane| rate(all(lane))).collect(), is_steady }
    }

    /// Returns the nanoseconds that a rail needed for each byte around this place.
    fn rate(&self, place: usize, lane: usize) -> Option<f64> {
        if self.is_steady {
            return self.whole[lane];
        }
        let now = self.served[place].at;
        let is_near = |seen: &Observation| seen.at + AROUND >= now && seen.at <= now + AROUND;
        let (behind, ahead) = self.served.split_at(place);
        let earlier = behind.iter().rev().filter(|seen| carried_by(seen, lane)).enumerate();
        let later = ahead.iter().filter(|seen| carried_by(seen, lane)).enumerate();
        let counts = |(count, seen): &(usize, &&Observation)| *count < LEAST || is_near(seen);
        rate(earlier.take_while(counts).chain(later.take_while(counts)).map(|(_, seen)| seen))
    }
}

/// Returns the median by bytes of the nanoseconds of a byte.
fn rate<'s>(near: impl Iterator<Item = &'s &'s Observation>) -> Option<f64> {
    let mut rates: Vec<(f64, u64)> =
        near.map(|seen| (seen.ns.max(1) as f64 / seen.len.max(1) as f64, seen.len)).collect();
    rates.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = rates.iter().map(|rate| rate.1).sum::<u64>() / 2;
    let mut below = 0;
    let median = rates.iter().find(|rate| {
        below += rate.1;
        below >= half
    });
    median.map(|rate| rate.0)
}
