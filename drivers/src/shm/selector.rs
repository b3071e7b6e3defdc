//! The selector: chooses the method for long data by measured cost.
//!
//! There are three methods. Two copies through bounce buffers, the second of which reads from the cache;
//! two copies with non-temporal stores, which avoid fetching lines that the other core used last; and a
//! single copy by the kernel, page by page ([`crate::shm::cma`]). The fastest one depends on the distance
//! of the two cores, on the pages and on the system, by a factor of two either way, so the selector
//! measures passing messages.
//!
//! A rail has one selector. It keeps one row for each distance of cores (they share a cache, or not), shape
//! of the data and class of length, for all peers together: the first messages to one peer serve all others
//! at that distance, and the next job starts from these measurements ([`super::learnt`]). Decisions that need
//! no measurement are rules at their place in the code: short data takes bounce buffers; when oversubscribed
//! or in an exchange the receiver copies, since every core has enough to do.

use crate::node::Segment;
use crate::shm::cma::regions;
use crate::shm::shape::Shape;
use nmad_engine::profile::estimate::window::Window;
use std::time::Duration;

/// Shorter messages are not measured: all methods take the same time, within some percent (Zen 3). Half
/// adds a reading of the clock to messages of 2 KiB; with twice, 4 KiB messages never use non-temporal
/// stores.
pub const LEAST: u64 = 4 << 10;
/// Classes of length, each twice as long as the one before, up to 1 MiB and more.
pub(super) const CLASSES: usize = ((1 << 20) / LEAST).ilog2() as usize + 1;
/// Consecutive messages with one method when methods are compared: the first finds its memory in no cache.
/// With half, that one decides; twice only makes trials longer.
pub(super) const ROW: u32 = 3;
/// Rows of each method at first, because the very first messages touch fresh memory. With half, those
/// decide until the next trial; twice only makes the beginning longer.
const TRIALS: u32 = 2;
/// Afterwards, one row in this number of messages tries another method, which costs a percent if that
/// method takes twice as long. Half costs twice as much, twice notices a change half as fast. Before that,
/// intervals double.
const AGAIN: u32 = 256;
/// Number of samples, of which the second fastest counts ([`Window::low`]). With half, single ones decide;
/// with twice, a change needs several trials.
const SAMPLES: usize = 5;
/// Kinds of rows: distance and shape.
pub(super) const KINDS: usize = 2 * Shape::ALL;

/// A way of copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Two copies through bounce buffers.
    Bounce,
    /// A single copy by the kernel.
    Cma,
    /// Two copies through bounce buffers, the first with non-temporal stores.
    NonTemporal,
}

impl Method {
    /// Names in profile files.
    pub(super) const NAMES: [&str; 3] = ["bounce", "cma", "non-temporal"];

    /// All methods that this processor has. Among equally fast ones the first is preferred, and tried
    /// first.
    pub const ALL: &[Method] = match Segment::HAS_NON_TEMPORAL {
        true => &[Method::Bounce, Method::Cma, Method::NonTemporal],
        false => &[Method::Bounce, Method::Cma],
    };
    /// Methods that need no access to the peer's memory.
    pub const BOUNCED: &[Method] = match Segment::HAS_NON_TEMPORAL {
        true => &[Method::Bounce, Method::NonTemporal],
        false => &[Method::Bounce],
    };

    pub fn of(number: u32) -> Option<Method> {
        [Method::Bounce, Method::Cma, Method::NonTemporal].get(number as usize).copied()
    }
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub method: Method,
    /// The choice is a trial, so the message is to be measured.
    pub is_trial: bool,
    kind: usize,
    len: u64,
}

/// Speeds of the methods, by distance, shape and class of length.
#[derive(Debug)]
pub struct Selector {
    pub(super) rows: [[Row; CLASSES]; KINDS],
    /// Memory in pieces shorter than this on average is copied twice by rule.
    pub piece_min: u64,
}

impl Default for Selector {
    fn default() -> Self {
        Selector { rows: Default::default(), piece_min: regions::nominal() }
    }
}

/// The class of a length.
pub fn class(len: u64) -> usize {
    let class = (len.saturating_sub(1) / LEAST).max(1).ilog2() as usize;
    class.min(CLASSES - 1)
}

impl Selector {
    pub(super) fn choose(
        &mut self,
        (is_near, shape): (bool, Shape),
        len: u64,
        among: &[Method],
        can_measure: bool,
    ) -> Choice {
        let kind = 2 * shape as usize + usize::from(is_near);
        let row = self.row(kind, len);
        let (method, is_trial) = match row.last.filter(|last| !can_measure && among.contains(last)) {
            Some(last) => (last, false),
            None => row.next(among),
        };
        row.last = Some(method);
        Choice { method, is_trial: is_trial && can_measure, kind, len }
    }

    /// Records the time of a message with the chosen method.
    pub fn note(&mut self, of: Choice, took: Duration) {
        let cost = (took.as_nanos() as f64).max(1.0) / of.len.max(1) as f64;
        self.row(of.kind, of.len).costs[of.method as usize].note(cost);
    }

    fn row(&mut self, kind: usize, len: u64) -> &mut Row {
        &mut self.rows[kind][class(len)]
    }
}

/// Speeds of the methods for one distance, shape and class.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Choices so far.
    count: u32,
    /// The fastest method according to earlier jobs, when the rail was opened.
    recalled: Option<Method>,
    last: Option<Method>,
    /// Number of rows that tried a method other than the best one; selects the next one to try.
    again: usize,
    tried: usize,
    /// Nanoseconds for each byte.
    costs: [Window<SAMPLES>; 3],
}

impl Row {
    /// Loads the speeds that earlier jobs have found, in bytes per nanosecond; zero: unknown.
    pub(super) fn recall(&mut self, speeds: [f64; 3]) {
        self.costs = speeds.map(|speed| {
            let mut cost = Window::default();
            if speed > 0.0 {
                cost.note(1.0 / speed);
            }
            cost
        });
        self.recalled = self.fastest();
        if Method::ALL.iter().all(|method| speeds[*method as usize] > 0.0) {
            // Skips the first trials; the next trial comes at the next doubling of the interval.
            self.count = (TRIALS * ROW * Method::ALL.len() as u32).next_power_of_two() + ROW;
        }
    }

    /// Returns the speeds, if the fastest method differs from the one that earlier jobs had found.
    pub(super) fn news(&self) -> Option<[f64; 3]> {
        let speeds = self.costs.map(|cost| cost.low().map_or(0.0, |cost| 1.0 / cost));
        let is_known = speeds.iter().filter(|speed| **speed > 0.0).count() > 1;
        (is_known && self.fastest() != self.recalled).then_some(speeds)
    }

    fn fastest(&self) -> Option<Method> {
        let best = Method::ALL[self.best(Method::ALL)];
        Some(best).filter(|best| self.costs[*best as usize].low().is_some())
    }

    fn next(&mut self, among: &[Method]) -> (Method, bool) {
        let count = self.count;
        self.count = count.wrapping_add(1);
        let row = (count / ROW) as usize;
        if row < TRIALS as usize * among.len() {
            return (among[row % among.len()], true);
        }
        let best = self.best(among);
        let place = count % AGAIN.min(1 << count.ilog2());
        if place == 0 {
            // Tries the other methods in turn.
            self.again += 1;
            self.tried = best + 1 + self.again % (among.len() - 1).max(1);
        }
        let is_trial = place < ROW;
        (among[if is_trial { self.tried % among.len() } else { best }], is_trial)
    }

    /// Index of the fastest method so far; among equally fast ones, the first.
    fn best(&self, among: &[Method]) -> usize {
        let cost = |place: usize| self.costs[among[place] as usize].low().unwrap_or(f64::INFINITY);
        (1..among.len()).fold(0, |best, place| if cost(place) < cost(best) { place } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 100_000;
    const NEAR: (bool, Shape) = (true, Shape::Whole);

    /// Counts how many of a thousand messages take each method, given the methods' speeds.
    fn taken(selector: &mut Selector, speeds: [u64; 3], among: &[Method]) -> [usize; 3] {
        let mut taken = [0; 3];
        for _ in 0..1000 {
            let choice = selector.choose(NEAR, LEN, among, true);
            selector.note(choice, Duration::from_micros(1000 / speeds[choice.method as usize]));
            taken[choice.method as usize] += 1;
        }
        taken
    }

    const TWO: &[Method] = &[Method::Bounce, Method::Cma];

    #[test]
    fn the_faster_method_is_found_and_found_again_when_it_changes() {
        let mut selector = Selector::default();
        let [_, cma, _] = taken(&mut selector, [20, 10, 1], TWO);
        assert!((6..40).contains(&cma), "tried and left: {cma}");
        assert!(taken(&mut selector, [10, 20, 1], TWO)[1] > 400);
        assert!(taken(&mut Selector::default(), [10, 20, 1], TWO)[1] > 960);
    }

    #[test]
    fn a_method_that_has_become_the_faster_one_needs_one_trial() {
        let mut selector = Selector::default();
        taken(&mut selector, [20, 10, 1], TWO);
        let [_, cma, _] = taken(&mut selector, [20, 40, 1], TWO);
        assert!(cma > 1000 - AGAIN as usize, "{cma}");
    }

    #[test]
    fn the_fastest_of_three_is_found_the_others_are_tried_again_and_one_alone_is_taken() {
        let all = [Method::Cma, Method::Bounce, Method::NonTemporal];
        let taken_of_three = taken(&mut Selector::default(), [10, 20, 30], &all);
        assert!(taken_of_three[2] > 950 && taken_of_three.iter().all(|count| *count >= 6));
        assert_eq!(taken(&mut Selector::default(), [10, 20, 30], &all[1..2]), [1000, 0, 0]);
    }

    #[test]
    fn a_message_that_cannot_be_measured_uses_up_no_trial() {
        let mut selector = Selector::default();
        let mut four = |_| {
            let choice = selector.choose(NEAR, LEN, TWO, true);
            let next = |_| selector.choose(NEAR, LEN, TWO, false);
            assert!((0..3).map(next).all(|next| next.method == choice.method && !next.is_trial));
            let speed = [10, 20][choice.method as usize];
            selector.note(choice, Duration::from_micros(1000 / speed));
            choice.method
        };
        let cma = (0..100).map(&mut four).filter(|method| *method == Method::Cma).count();
        assert!(cma > 70, "{cma}");
    }

    #[test]
    fn a_slow_beginning_is_soon_forgotten() {
        let mut selector = Selector::default();
        for _ in 0..2 * TRIALS * ROW {
            let choice = selector.choose(NEAR, LEN, TWO, true);
            selector.note(choice, Duration::from_micros([100, 125][choice.method as usize]));
        }
        let [_, cma, _] = taken(&mut selector, [10, 20, 1], TWO);
        assert!(cma > 950, "found by the next trial: {cma}");
    }

    #[test]
    fn a_method_that_was_slow_or_fast_for_once_is_judged_as_before() {
        let mut selector = Selector::default();
        taken(&mut selector, [20, 10, 1], TWO);
        let row = selector.row(1, LEN);
        (0..3).for_each(|_| row.costs[0].note(100.0));
        row.costs[1].note(1e-9);
        let next = selector.choose(NEAR, LEN, TWO, true);
        assert!(!next.is_trial && next.method == Method::Bounce, "{next:?}");
    }

    #[test]
    fn a_method_that_takes_very_long_is_left_and_rows_are_apart() {
        let mut selector = Selector::default();
        let mut taken = |len, took: [u64; 3]| {
            let one = |_: &i32| {
                let choice = selector.choose((false, Shape::Whole), len, Method::ALL, true);
                selector.note(choice, Duration::from_micros(took[choice.method as usize]));
                choice.method == Method::Cma
            };
            (0..1000).filter(one).count()
        };
        assert!(taken(100_000, [10, 5, 10]) > 900);
        assert!(taken(100_000, [10, 1_000_000, 10]) < 500);
        assert!(taken(100_000, [10, 20, 10]) < 100);
        assert!(taken(16 << 10, [10, 5, 10]) > 900, "another class");
        let blocks = selector.choose((false, Shape::Blocks), 100_000, Method::ALL, true);
        assert!(blocks.is_trial, "another shape");
    }
}
