//! `split`: large bodies so that all rails that take part are predicted to finish at the same time (figure
//! 3c of P4, for any number of rails). Small messages are coalesced on the rail with the lowest latency.
//!
//! With `busy` the time until a rail is idle and `predict` its forecast, the finish T is the smallest time
//! by which the rails together carry the body: `sum max { n : busy + predict(n) <= T } = len`. The sum grows
//! with T, on straight lines between the knots of the forecasts, so Newton's method finds T in two or three
//! steps; where a step leaves the bracket, the bracket is halved.
//!
//! A rail that could not carry its smallest useful chunk by T gets nothing, and T is found anew without it
//! (figure 2 of P3), unless the others then take even longer than that chunk. A rail that is busy takes part with what is left of the time when it is idle: a message
//! waits for it, wholly if need be. T is never later than the finish of the best rail alone.

use super::aggregate::coalesce;
use super::builder::PacketBuilder;
use super::strategy::{RailView, ShareList, Shares, Strategy};
use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::profile::forecast::Forecast;

pub(super) struct Split;

impl Strategy for Split {
    fn name(&self) -> &'static str {
        "split"
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        coalesce(rail.scope(rail.fastest), window, packet);
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        Shares::Fixed(equal_finish(now, len, rails).0)
    }

    fn revises(&self) -> bool {
        true
    }
}

/// Steps until the equation counts as solved; halving alone ends within 64.
const STEPS_MAX: u32 = 80;
/// The finish is exact enough when what is too much or too little is less than this part of the body.
const TOLERANCE: u64 = 1 << 16;

/// A rail as the equation sees it.
#[derive(Clone, Copy)]
struct Lane<'a> {
    rail: RailId,
    forecast: &'a Forecast,
    /// Until it is idle, in nanoseconds.
    busy_ns: u64,
    /// When it would have carried its smallest useful chunk.
    useful_ns: u64,
}

impl Lane<'_> {
    /// Bytes carried by `at_ns`, and how many more a further nanosecond brings.
    #[inline]
    fn carried(&self, at_ns: u64) -> (u64, f64) {
        match at_ns.checked_sub(self.busy_ns) {
            Some(ns) => self.forecast.body_bytes_and_rate(ns),
            None => (0, 0.0),
        }
    }

    #[inline]
    fn finish_ns(&self, len: u64) -> u64 {
        self.busy_ns.saturating_add(self.forecast.body_ns(len))
    }
}

/// The rails that may take part.
struct Lanes<'a> {
    list: [Lane<'a>; nmad_wire::MAX_RAILS],
    count: usize,
}

/// Shares of `len` bytes with equal predicted finish, and that finish in nanoseconds from `now`. None of the
/// shares is zero; they add up to `len`.
pub(crate) fn equal_finish(now: Instant, len: u64, rails: &[RailView]) -> (ShareList, u64) {
    let Some(lane) = rails.first().map(|rail| lane(now, len, rail)) else { return Default::default() };
    let (mut best, mut best_ns) = (lane, lane.finish_ns(len));
    let mut lanes =
        Lanes { list: [lane; nmad_wire::MAX_RAILS], count: rails.len().min(nmad_wire::MAX_RAILS) };
    for (place, rail) in lanes.list[..lanes.count].iter_mut().zip(rails).skip(1) {
        *place = self::lane(now, len, rail);
        let alone_ns = place.finish_ns(len);
        if alone_ns < best_ns {
            (best, best_ns) = (*place, alone_ns);
        }
    }
    lanes.retain(|lane| lane.useful_ns < best_ns || lane.rail == best.rail);
    let mut at_ns = lanes.solve(len, 0, best_ns);
    while let Some(useless) = lanes.take_useless(at_ns) {
        let without_ns = lanes.solve(len, at_ns, best_ns);
        if useless.useful_ns <= without_ns {
            // It is of use after all: the others alone would take longer than its smallest chunk.
            lanes.list[lanes.count] = useless;
            lanes.count += 1;
            break;
        }
        at_ns = without_ns;
    }
    if at_ns < best_ns {
        return (lanes.shares(len, at_ns), at_ns);
    }
    let mut shares = ShareList::default();
    shares.push(best.rail, len);
    (shares, best_ns)
}

#[inline]
fn lane<'a>(now: Instant, len: u64, rail: &RailView<'a>) -> Lane<'a> {
    let (forecast, busy_ns) = (rail.forecast, rail.idle_at.since(now).as_ns());
    let useful_ns = busy_ns.saturating_add(forecast.body_ns(forecast.chunk_min().min(len)));
    Lane { rail: rail.rail, forecast, busy_ns, useful_ns }
}

impl<'a> Lanes<'a> {
    fn retain(&mut self, keep: impl Fn(&Lane) -> bool) {
        let mut kept = 0;
        for index in 0..self.count {
            if keep(&self.list[index]) {
                self.list[kept] = self.list[index];
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Takes away the rail that would have carried something useful last of all, if that is after `at_ns`
    /// and it is not the only one.
    fn take_useless(&mut self, at_ns: u64) -> Option<Lane<'a>> {
        let slowest = (0..self.count).max_by_key(|&index| self.list[index].useful_ns)?;
        let lane = self.list[slowest];
        if lane.useful_ns <= at_ns || self.count == 1 {
            return None;
        }
        self.count -= 1;
        self.list[slowest] = self.list[self.count];
        Some(lane)
    }

    /// The time by which they carry `len` bytes: at least `low_ns`, where they carry less, and at most
    /// `high_ns`, which is the answer too if they do not carry as much even then.
    fn solve(&self, len: u64, mut low_ns: u64, mut high_ns: u64) -> u64 {
        // Each of them rounds down to a byte.
        let tolerance = len / TOLERANCE + self.count as u64;
        let mut at_ns = high_ns;
        for _ in 0..STEPS_MAX {
            let (mut sum, mut rate) = (0u64, 0.0);
            for lane in &self.list[..self.count] {
                let (bytes, more) = lane.carried(at_ns);
                sum = sum.saturating_add(bytes);
                rate += more;
            }
            if sum.abs_diff(len) <= tolerance || high_ns - low_ns <= 1 {
                break;
            }
            let off_ns = (sum.abs_diff(len) as f64 / rate) as u64;
            let next_ns = if sum > len {
                high_ns = at_ns;
                at_ns.saturating_sub(off_ns)
            } else {
                low_ns = at_ns;
                at_ns.saturating_add(off_ns)
            };
            let middle_ns = low_ns + (high_ns - low_ns) / 2;
            at_ns = if low_ns < next_ns && next_ns < high_ns { next_ns } else { middle_ns };
        }
        at_ns
    }

    /// What each carries by `at_ns`, made to add up to `len`.
    fn shares(&self, len: u64, at_ns: u64) -> ShareList {
        let mut given = [0u64; nmad_wire::MAX_RAILS];
        let given = &mut given[..self.count];
        let mut sum = 0u128;
        for (given, lane) in given.iter_mut().zip(&self.list) {
            *given = lane.carried(at_ns).0.min(len);
            sum += u128::from(*given);
        }
        // What is too much or too little is little, and least of all for who carries most.
        let len = u128::from(len);
        while sum != len
            && let Some(most) = given.iter_mut().max()
        {
            let others = sum - u128::from(*most);
            *most = len.saturating_sub(others) as u64;
            sum = others + u128::from(*most);
        }
        let shares = self.list.iter().zip(given.iter()).filter(|(_, given)| **given > 0);
        shares.map(|(lane, &given)| (lane.rail, given)).collect()
    }
}
