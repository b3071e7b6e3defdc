//! The selector: by which method long data goes, chosen by measured cost.
//!
//! There are three methods. Two copies through bounce buffers, of which the second comes from the cache; the
//! same with non-temporal stores, which spare the fetch of lines that the other core had last; and a single
//! copy by the system, page by page ([`crate::shm::cma`]). Which one is fastest depends on the distance of
//! the two cores, on the pages and on the system, by a factor of two either way, so the selector measures it
//! on the messages that pass.
//!
//! A rail has one selector. It keeps one row for each distance of cores (they share a cache, or not)
//! and class of length, for all peers together: the first messages to one peer serve all others at
//! that distance, and the next job begins with them ([`super::learnt`]). What needs no measurement is a rule,
//! and stands where it applies: short data takes bounce buffers; when oversubscribed or in an exchange the
//! receiver copies, since every core has enough to do.

use crate::node::Segment;
use std::time::Duration;

/// Shorter messages are not measured: all methods take the same time, within some percent (Zen 3). Half adds
/// a reading of the clock to messages of 2 KiB; with twice 4 KiB never skip the caches.
pub const LEAST: u64 = 4 << 10;
/// Classes of length, each twice as long as the one before, up to 1 MiB and more.
pub(super) const CLASSES: usize = ((1 << 20) / LEAST).ilog2() as usize + 1;
/// Messages in a row that take one method when methods are compared: the first finds its memory in no cache.
/// With half that one decides; twice only makes trials longer.
pub(super) const ROW: u32 = 3;
/// Rows of each method at first; the very first messages meet memory that was never touched. With half that
/// decides until the next trial; twice only makes the beginning longer.
const TRIALS: u32 = 2;
/// Then one row in this number of messages tries another method, which costs a percent if that takes twice as
/// long: half costs twice as much, twice notices a change half as fast. Before that, intervals double.
const AGAIN: u32 = 256;
/// Samples of which the second fastest counts: a late peer or a core that is taken away makes any method
/// slow, and now and then luck makes one fast. With half both decide; with twice a change needs several
/// trials.
const SAMPLES: usize = 5;
/// A way of copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Through bounce buffers.
    Bounce,
    /// Straight from memory to memory.
    Cma,
    /// Through bounce buffers that are written past the caches.
    NonTemporal,
}

impl Method {
    /// Its names in files.
    pub(super) const NAMES: [&str; 3] = ["bounce", "cma", "non-temporal"];

    /// All that this processor has. Of equal ones the first is taken, and tried first.
    pub const ALL: &[Method] = match Segment::HAS_NON_TEMPORAL {
        true => &[Method::Bounce, Method::Cma, Method::NonTemporal],
        false => &[Method::Bounce, Method::Cma],
    };
    /// Those that need no access to the peer's memory.
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
    /// It is taken to learn about it, so it shall be measured.
    pub is_trial: bool,
    is_near: bool,
    len: u64,
}

/// The speeds of the methods, by distance and class of length.
#[derive(Debug, Default)]
pub struct Selector {
    pub(super) rows: [[Row; CLASSES]; 2],
}

/// The class of a length.
pub fn class(len: u64) -> usize {
    let class = (len.saturating_sub(1) / LEAST).max(1).ilog2() as usize;
    class.min(CLASSES - 1)
}

impl Selector {
    pub(super) fn choose(&mut self, is_near: bool, len: u64, among: &[Method], can_measure: bool) -> Choice {
        let row = self.row(is_near, len);
        let (method, is_trial) = match row.last.filter(|last| !can_measure && among.contains(last)) {
            Some(last) => (last, false),
            None => row.next(among),
        };
        row.last = Some(method);
        Choice { method, is_trial: is_trial && can_measure, is_near, len }
    }

    /// The time that a message took with the method that was chosen; none: it was never done.
    pub fn note(&mut self, of: Choice, took: Option<Duration>) {
        let speed = took.map_or(0.0, |took| of.len as f64 / (took.as_nanos() as f64).max(1.0));
        self.row(of.is_near, of.len).speeds[of.method as usize].note(speed);
    }

    fn row(&mut self, is_near: bool, len: u64) -> &mut Row {
        &mut self.rows[usize::from(is_near)][class(len)]
    }
}

/// The speeds of the methods for one kind of message.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Choices so far.
    count: u32,
    /// The fastest method when the rail was opened, as earlier jobs have found.
    recalled: Option<Method>,
    last: Option<Method>,
    /// Rows that tried another method than the best one, and which the last of them did.
    again: usize,
    tried: usize,
    speeds: [Speed; 3],
}

impl Row {
    /// Earlier jobs have found these speeds, in bytes a nanosecond; zero: nothing is known.
    pub(super) fn recall(&mut self, speeds: [f64; 3]) {
        self.speeds = speeds.map(Speed::recalled);
        self.recalled = self.fastest();
        if Method::ALL.iter().all(|method| speeds[*method as usize] > 0.0) {
            // No first trials, and none at once: the next is where intervals double next.
            self.count = (TRIALS * ROW * Method::ALL.len() as u32).next_power_of_two() + ROW;
        }
    }

    /// The speeds, if they have shown another method to be the fastest than earlier jobs had found.
    pub(super) fn news(&self) -> Option<[f64; 3]> {
        let is_known = self.speeds.iter().filter(|speed| speed.speed > 0.0).count() > 1;
        (is_known && self.fastest() != self.recalled).then(|| self.speeds.map(|speed| speed.speed))
    }

    fn fastest(&self) -> Option<Method> {
        let best = Method::ALL[self.best(Method::ALL)];
        Some(best).filter(|best| self.speeds[*best as usize].speed > 0.0)
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
            // The others in turn.
            self.again += 1;
            self.tried = best + 1 + self.again % (among.len() - 1).max(1);
        }
        let is_trial = place < ROW;
        (among[if is_trial { self.tried % among.len() } else { best }], is_trial)
    }

    /// The place of the fastest method so far, of equal ones the first.
    fn best(&self, among: &[Method]) -> usize {
        let speed = |place: usize| self.speeds[among[place] as usize].speed;
        (1..among.len()).fold(0, |best, place| if speed(place) > speed(best) { place } else { best })
    }
}

/// How fast a method is, in bytes a nanosecond.
#[derive(Debug, Default, Clone, Copy)]
struct Speed {
    samples: [f64; SAMPLES],
    /// The second fastest of them; zero: nothing is known.
    speed: f64,
}

impl Speed {
    /// That of an earlier job: the first two samples of this one replace it.
    fn recalled(speed: f64) -> Speed {
        let mut samples = [0.0; SAMPLES];
        samples[..2].fill(speed);
        Speed { samples, speed }
    }

    fn note(&mut self, speed: f64) {
        self.samples.rotate_left(1);
        self.samples[SAMPLES - 1] = speed;
        let mut sorted = self.samples;
        sorted.sort_by(f64::total_cmp);
        self.speed = sorted[SAMPLES - 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 100_000;

    /// How many of a thousand messages take each method, when methods are so fast.
    fn taken(selector: &mut Selector, speeds: [u64; 3], among: &[Method]) -> [usize; 3] {
        let mut taken = [0; 3];
        for _ in 0..1000 {
            let choice = selector.choose(true, LEN, among, true);
            selector.note(choice, Some(Duration::from_micros(1000 / speeds[choice.method as usize])));
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
            let choice = selector.choose(true, LEN, TWO, true);
            let next = |_| selector.choose(true, LEN, TWO, false);
            assert!((0..3).map(next).all(|next| next.method == choice.method && !next.is_trial));
            let speed = [10, 20][choice.method as usize];
            selector.note(choice, Some(Duration::from_micros(1000 / speed)));
            choice.method
        };
        let cma = (0..100).map(&mut four).filter(|method| *method == Method::Cma).count();
        assert!(cma > 70, "{cma}");
    }

    #[test]
    fn a_slow_beginning_is_soon_forgotten() {
        let mut selector = Selector::default();
        for _ in 0..2 * TRIALS * ROW {
            let choice = selector.choose(true, LEN, TWO, true);
            selector.note(choice, Some(Duration::from_micros([100, 125][choice.method as usize])));
        }
        let [_, cma, _] = taken(&mut selector, [10, 20, 1], TWO);
        assert!(cma > 950, "found by the next trial: {cma}");
    }

    #[test]
    fn a_method_that_was_slow_or_fast_for_once_is_judged_as_before() {
        let mut selector = Selector::default();
        taken(&mut selector, [20, 10, 1], TWO);
        let row = selector.row(true, LEN);
        (0..3).for_each(|_| row.speeds[0].note(0.01));
        row.speeds[1].note(1e9);
        let next = selector.choose(true, LEN, TWO, true);
        assert!(!next.is_trial && next.method == Method::Bounce, "{next:?}");
    }

    #[test]
    fn a_method_that_is_never_done_is_left_and_rows_are_apart() {
        let mut selector = Selector::default();
        let mut taken = |len, took: [Option<u64>; 3]| {
            let one = |_: &i32| {
                let choice = selector.choose(false, len, Method::ALL, true);
                selector.note(choice, took[choice.method as usize].map(Duration::from_micros));
                choice.method == Method::Cma
            };
            (0..1000).filter(one).count()
        };
        assert!(taken(100_000, [Some(10), Some(5), Some(10)]) > 900);
        assert!(taken(100_000, [Some(10), None, Some(10)]) < 500);
        assert!(taken(100_000, [Some(10), Some(20), Some(10)]) < 100);
        assert!(taken(16 << 10, [Some(10), Some(5), Some(10)]) > 900, "another class");
    }
}
