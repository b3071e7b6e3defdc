//! `split`: splits large bodies so that all rails that take part are predicted to finish at the same time
//! (figure 3c of P4, for any number of rails). Small messages are coalesced on the rail with the lowest
//! latency.
//!
//! With `busy` the time until a rail is idle and `predict` its forecast, the finish T is the smallest time
//! by which the rails together carry the body: `sum max { n : busy + predict(n) <= T } = len`. The sum grows
//! with T, on straight lines between the knots of the forecasts, so Newton's method finds T in two or three
//! steps; where a step leaves the bracket, the bracket is halved.
//!
//! A rail that could not carry its smallest useful chunk by T gets nothing, and T is computed again without
//! it (figure 2 of P3), unless the others then take even longer than that chunk. A busy rail takes part
//! with the time left after it becomes idle; its whole share may wait for it. T is never later than the
//! finish of the best rail alone.

use super::builder::PacketBuilder;
use super::strategy::{self, RailView, ShareList, Shares, Strategy};
use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::profile::forecast::Forecast;
use core::marker::PhantomData;

pub(super) struct Split;

impl Strategy for Split {
    fn name(&self) -> &'static str {
        "split"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::fastest(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.coalesce(window, rail.scope(rail.fastest));
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        Shares::Fixed(equal_finish::<Bodies>(now, len, rails).0)
    }

    fn revises(&self) -> bool {
        true
    }

    fn parts_eager(&self) -> bool {
        true
    }
}

/// Largest number of steps; bisection alone ends within 64.
const STEPS_MAX: u32 = 80;
/// If the error is below this fraction of the length, Newton's last step is taken without another
/// evaluation: on straight lines it is exact. A bend in between is detected from the shares. With an eighth
/// of this error, a decision about two rails takes 210 ns instead of 172 (virtual core of an EPYC), since
/// most need another step.
const NEAR: u64 = 32;
/// Largest error of the sum of the shares, as a fraction of the length: missing bytes go to the rail that
/// they delay least, excess bytes are taken from the longest share.
const REST: u64 = 1024;

/// A rail in the equation; zero until computed.
#[derive(Clone, Copy, Default)]
struct Lane {
    /// Index of its view.
    index: u8,
    /// Nanoseconds until it is idle.
    busy_ns: u64,
    /// Nanoseconds until it would have carried its smallest useful chunk.
    useful_ns: u64,
}

/// Times of shares on a rail.
pub(crate) trait Course {
    /// Returns the nanoseconds that a share of `len` bytes takes.
    fn ns(forecast: &Forecast, len: u64) -> u64;
    /// Returns the most bytes that take at most `ns` nanoseconds, and the bytes that each further
    /// nanosecond adds.
    fn bytes_and_rate(forecast: &Forecast, ns: u64) -> (u64, f64);
    /// Returns the nanoseconds that the smallest useful share of `len` bytes takes.
    fn useful_ns(forecast: &Forecast, len: u64) -> u64;
}

/// Shares of a large message, in chunks.
pub(crate) struct Bodies;

/// Shares of an eager message, each in a packet.
pub(crate) struct Packets;

impl Course for Bodies {
    #[inline]
    fn ns(forecast: &Forecast, len: u64) -> u64 {
        forecast.body_ns(len)
    }

    #[inline]
    fn bytes_and_rate(forecast: &Forecast, ns: u64) -> (u64, f64) {
        forecast.body_bytes_and_rate(ns)
    }

    #[inline]
    fn useful_ns(forecast: &Forecast, len: u64) -> u64 {
        if len < forecast.chunk_min() { forecast.body_ns(len) } else { forecast.chunk_ns() }
    }
}

impl Course for Packets {
    fn ns(forecast: &Forecast, len: u64) -> u64 {
        forecast.eager_ns(len)
    }

    fn bytes_and_rate(forecast: &Forecast, ns: u64) -> (u64, f64) {
        forecast.eager_bytes_and_rate(ns)
    }

    fn useful_ns(forecast: &Forecast, _: u64) -> u64 {
        forecast.eager_ns(1)
    }
}

/// The equation for one body, or one eager message.
struct Equation<'a, C> {
    course: PhantomData<C>,
    len: u64,
    rails: &'a [RailView<'a>],
    /// Nanoseconds until the best rail alone would be finished.
    best_ns: u64,
    lanes: [Lane; nmad_wire::MAX_RAILS],
    /// Number of rails that take part: the first ones of `lanes`.
    count: usize,
}

/// Returns shares of `len` bytes with equal predicted finish, and that finish in nanoseconds from `now`. No
/// share is zero; they add up to `len`.
#[inline]
pub(crate) fn equal_finish<C: Course>(now: Instant, len: u64, rails: &[RailView]) -> (ShareList, u64) {
    let (course, lanes, count) = (PhantomData::<C>, Default::default(), rails.len());
    let mut equation = Equation { course, len, rails, best_ns: u64::MAX, lanes, count };
    let mut shares = ShareList::default();
    equation.count = equation.count.min(equation.lanes.len());
    let Some((best, guess_ns)) = equation.evaluate(now) else { return (shares, 0) };
    let best_ns = equation.best_ns;
    if equation.retain(|lane| lane.useful_ns < best_ns || lane.index == best) > 1 {
        let mut at_ns = equation.finish(guess_ns);
        if at_ns < best_ns {
            if !equation.share(at_ns, &mut shares) {
                at_ns = equation.solve(0, at_ns, 0);
                shares = ShareList::default();
                equation.share(at_ns, &mut shares);
            }
            return (shares, at_ns);
        }
    }
    shares.push(rails[usize::from(best)].rail, len);
    (shares, best_ns)
}

/// Moves the elements for which `keep` is true to the front, in their order, and returns their number.
/// `keep` gets the elements kept so far and the next one.
#[inline]
pub(crate) fn retain<T>(all: &mut [T], keep: impl Fn(&[T], &T) -> bool) -> usize {
    let mut kept = 0;
    for index in 0..all.len() {
        if keep(&all[..kept], &all[index]) {
            all.swap(kept, index);
            kept += 1;
        }
    }
    kept
}

/// Converts through a signed number, which takes one instruction; larger ones are longer than any transfer.
#[inline]
fn float(value: u64) -> f64 {
    value.min(i64::MAX as u64) as i64 as f64
}

/// Rounds a number that is not negative down, likewise; too large ones become the largest.
#[inline]
fn whole(value: f64) -> u64 {
    value as i64 as u64
}

impl<C: Course> Equation<'_, C> {
    /// Evaluates each rail alone; returns the best one, and a guess of the common finish in nanoseconds,
    /// assuming that each rail carries a part of the body as fast as all of it.
    #[inline]
    fn evaluate(&mut self, now: Instant) -> Option<(u8, u64)> {
        let len = self.len;
        let (mut best, mut work, mut rate) = (None, float(len), 0.0);
        for (index, (lane, view)) in self.lanes.iter_mut().zip(self.rails).enumerate() {
            let busy_ns = view.busy_ns(now);
            let body_ns = C::ns(view.forecast, len);
            let useful_ns = C::useful_ns(view.forecast, len);
            *lane = Lane { index: index as u8, busy_ns, useful_ns: busy_ns.saturating_add(useful_ns) };
            let alone_ns = busy_ns.saturating_add(body_ns);
            if best.is_none() || alone_ns < self.best_ns {
                (best, self.best_ns) = (Some(lane.index), alone_ns);
            }
            let pace = float(len) / float(body_ns.max(1));
            work += pace * float(busy_ns);
            rate += pace;
        }
        Some((best?, whole(work / rate)))
    }

    /// Keeps some of the rails; returns their number.
    #[inline]
    fn retain(&mut self, keep: impl Fn(&Lane) -> bool) -> usize {
        self.count = retain(&mut self.lanes[..self.count], |_, lane| keep(lane));
        self.count
    }

    /// Returns the finish of the rails that can carry a useful chunk by then, and keeps those.
    fn finish(&mut self, guess_ns: u64) -> u64 {
        let all_ns = self.solve(0, guess_ns, self.len / NEAR);
        let all = self.count;
        // With fewer rails the finish is later, so rails that are useful now stay useful.
        let useful = self.retain(|lane| lane.useful_ns <= all_ns);
        if useful == all {
            return all_ns;
        }
        let without_ns = if useful > 0 { self.solve(all_ns, all_ns, self.len / NEAR) } else { self.best_ns };
        // The others are needed, too, if these alone would take longer than the others' smallest chunks.
        self.count = all;
        if self.retain(|lane| lane.useful_ns <= without_ns) == useful {
            return without_ns;
        }
        self.solve(all_ns, all_ns, self.len / NEAR)
    }

    /// Returns the bytes that one rail carries by `at_ns`, and the bytes that each further nanosecond adds.
    #[inline]
    fn carried(&self, lane: &Lane, at_ns: u64) -> (u64, f64) {
        match at_ns.checked_sub(lane.busy_ns) {
            Some(ns) => C::bytes_and_rate(self.rails[usize::from(lane.index)].forecast, ns),
            None => (0, 0.0),
        }
    }

    /// Returns the time by which the rails carry the body: at least `low_ns`, by which they carry less, and
    /// at most the finish of the best rail, which is also returned if they carry less even by then. With an
    /// error of at most `near` bytes the next step is the last.
    fn solve(&self, mut low_ns: u64, guess_ns: u64, near: u64) -> u64 {
        let mut high_ns = self.best_ns;
        let mut at_ns = guess_ns.clamp(low_ns, high_ns);
        for _ in 0..STEPS_MAX {
            let (mut sum, mut rate) = (0u64, 0.0);
            for lane in &self.lanes[..self.count] {
                let (bytes, more) = self.carried(lane, at_ns);
                sum = sum.saturating_add(bytes);
                rate += more;
            }
            let off = sum.abs_diff(self.len);
            let off_ns = whole(float(off) / rate);
            let next_ns = if sum > self.len {
                high_ns = at_ns;
                at_ns.saturating_sub(off_ns)
            } else {
                low_ns = at_ns;
                at_ns.saturating_add(off_ns)
            };
            let is_inside = low_ns <= next_ns && next_ns <= high_ns;
            if high_ns - low_ns <= 1 || (is_inside && off <= near) {
                return if is_inside { next_ns } else { high_ns };
            }
            // The next step would undo a step to an end of the bracket.
            let is_new = low_ns < next_ns && next_ns < high_ns;
            at_ns = if is_new { next_ns } else { low_ns + (high_ns - low_ns) / 2 };
        }
        high_ns
    }

    /// Adds the share that each rail carries by `at_ns` and corrects their sum to the length; false: the
    /// error was too large.
    fn share(&self, at_ns: u64, shares: &mut ShareList) -> bool {
        let (mut sum, mut fastest) = (0u64, (0.0, 0));
        for (place, lane) in self.lanes[..self.count].iter().enumerate() {
            let (bytes, more) = self.carried(lane, at_ns);
            let bytes = bytes.min(self.len);
            shares.push(self.rails[usize::from(lane.index)].rail, bytes);
            sum = sum.saturating_add(bytes);
            if more > fastest.0 {
                fastest = (more, place);
            }
        }
        let rest = self.len.saturating_sub(sum);
        shares.add_to(fastest.1, rest);
        shares.add_up_to(self.len);
        sum.abs_diff(self.len) <= self.len / REST
    }
}
