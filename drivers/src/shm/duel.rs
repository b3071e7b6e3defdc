//! Which of some ways to do the same is the fastest one, when that depends on the machine and on what else it
//! does: all are tried, again and again, on what passes anyway.

use std::time::Duration;

/// Times in a row that one way is taken when they are compared: the first finds the memory of that way in
/// nobody's cache.
const ROW: u32 = 3;
/// Rows of each way in the beginning, in turn; the very first meet memory that was never touched and peers
/// who are late.
const TRIALS: u32 = 2;
/// Then one row in so many times takes a slower way, in case that it is not slower any more. Before that, the
/// intervals double.
const AGAIN: u32 = 256;
/// Samples of which the best counts: much makes a way slow that has nothing to do with it (a peer who comes
/// late, a core that is taken away).
const GROUP: u32 = 3;
/// And of so many groups the median: now and then luck makes one fast.
const GROUPS: usize = 3;

/// How fast `len` bytes are that take so long.
pub fn rate(len: u64, took: Duration) -> f64 {
    len as f64 / (took.as_nanos() as f64).max(1.0)
}

/// What is known of the ways, which are numbered from zero.
#[derive(Debug)]
pub struct Duel<const WAYS: usize> {
    /// Choices of what could be measured.
    count: u32,
    /// The way that was chosen last.
    last: usize,
    /// Rows that tried a slower way, and which one the last did.
    again: usize,
    tried: usize,
    rates: [Rate; WAYS],
}

/// How fast a way is.
#[derive(Debug, Default, Clone, Copy)]
struct Rate {
    samples: u32,
    best: f64,
    /// The best of the last groups, the oldest first, and how many there are.
    groups: [f64; GROUPS],
    count: usize,
    /// Their median; zero: nothing is known.
    median: f64,
}

impl Rate {
    fn note(&mut self, rate: f64) {
        self.best = self.best.max(rate);
        self.samples += 1;
        if self.samples == GROUP {
            self.groups.rotate_left(1);
            self.groups[GROUPS - 1] = std::mem::take(&mut self.best);
            self.count = GROUPS.min(self.count + 1);
            self.samples = 0;
            let mut sorted = self.groups;
            sorted[GROUPS - self.count..].sort_by(f64::total_cmp);
            self.median = sorted[GROUPS - self.count.div_ceil(2)];
        }
    }
}

/// What a duel decides.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The way to take.
    pub way: usize,
    /// It is taken to learn about it: it shall be measured.
    pub is_trial: bool,
}

impl<const WAYS: usize> Default for Duel<WAYS> {
    fn default() -> Self {
        Duel { count: 0, last: 0, again: 0, tried: 0, rates: [Rate::default(); WAYS] }
    }
}

impl<const WAYS: usize> Duel<WAYS> {
    /// The way to take this time. What cannot be measured, since something else still is, goes the way of the
    /// last one: it is no trial, and shall not disturb one.
    pub fn choose(&mut self, can_measure: bool) -> Choice {
        if !can_measure {
            return Choice { way: self.last, is_trial: false };
        }
        let choice = self.next();
        self.last = choice.way;
        choice
    }

    fn next(&mut self) -> Choice {
        let count = self.count;
        self.count = count.wrapping_add(1);
        let row = (count / ROW) as usize;
        if row < TRIALS as usize * WAYS {
            return Choice { way: row % WAYS, is_trial: true };
        }
        let best = self.best();
        let place = count % AGAIN.min(1 << count.ilog2());
        if place == 0 {
            // The others in turn.
            self.again += 1;
            self.tried = (best + 1 + self.again % (WAYS - 1).max(1)) % WAYS;
        } else if place == ROW && self.is_promising(best) {
            self.count = count - ROW + 1;
        } else if place >= ROW {
            return Choice { way: best, is_trial: false };
        }
        Choice { way: self.tried, is_trial: true }
    }

    /// Whether what was tried has been faster than what is the fastest so far. Then it is tried once more at
    /// once: its earlier groups are old, and its next turn is far.
    fn is_promising(&self, best: usize) -> bool {
        let Rate { groups, samples, .. } = self.rates[self.tried];
        self.tried != best && samples == 0 && groups[GROUPS - 1] > self.rates[best].median
    }

    /// The fastest way so far, of equal ones the first.
    fn best(&self) -> usize {
        let faster = |way: usize, than: usize| self.rates[way].median > self.rates[than].median;
        (1..WAYS).fold(0, |best, way| if faster(way, best) { way } else { best })
    }

    /// The way was so fast, in any unit.
    pub fn note(&mut self, way: usize, rate: f64) {
        self.rates[way].note(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a thousand times the second way is taken, when the ways are so fast.
    fn seconds(duel: &mut Duel<2>, rates: [f64; 2]) -> usize {
        let one = |_| {
            let way = duel.choose(true).way;
            duel.note(way, rates[way]);
            way
        };
        (0..1000).map(one).filter(|way| *way == 1).count()
    }

    #[test]
    fn the_faster_way_is_found_and_found_again_when_it_changes() {
        let mut duel = Duel::default();
        let second = seconds(&mut duel, [20.0, 10.0]);
        assert!((6..40).contains(&second), "tried and left: {second}");
        assert!(seconds(&mut duel, [10.0, 20.0]) > 400);
        assert!(seconds(&mut Duel::default(), [10.0, 20.0]) > 960);
    }

    #[test]
    fn a_way_that_has_become_the_faster_one_needs_one_trial() {
        let mut duel = Duel::default();
        seconds(&mut duel, [20.0, 10.0]);
        let second = seconds(&mut duel, [20.0, 40.0]);
        assert!(second > 1000 - AGAIN as usize, "{second}");
    }

    #[test]
    fn the_only_way_is_taken() {
        let mut duel = Duel::<1>::default();
        assert!((0..1000).all(|_| duel.choose(true).way == 0));
    }

    #[test]
    fn the_fastest_of_three_is_found_and_the_others_are_tried_again() {
        let mut duel = Duel::<3>::default();
        let rates = [10.0, 20.0, 30.0];
        let mut taken = [0; 3];
        for _ in 0..4000 {
            let way = duel.choose(true).way;
            duel.note(way, rates[way]);
            taken[way] += 1;
        }
        assert!(taken[2] > 3900 && taken[0] > 20 && taken[1] > 20, "{taken:?}");
    }

    #[test]
    fn what_cannot_be_measured_uses_up_no_trial() {
        let mut duel = Duel::<3>::default();
        let mut four = |_| {
            let way = duel.choose(true).way;
            assert!((0..3).all(|_| duel.choose(false).way == way), "nor does it go another way meanwhile");
            duel.note(way, [10.0, 30.0, 20.0][way]);
            way
        };
        let taken: Vec<usize> = (0..100).map(&mut four).collect();
        let second = taken.iter().filter(|way| **way == 1).count();
        assert!(second > 70, "{taken:?}");
    }

    #[test]
    fn a_slow_beginning_is_soon_forgotten() {
        let mut duel = Duel::default();
        for _ in 0..2 * TRIALS * ROW {
            let way = duel.choose(true).way;
            duel.note(way, [10.0, 8.0][way]);
        }
        let second = seconds(&mut duel, [10.0, 20.0]);
        assert!(second > 950, "found by the next trial: {second}");
    }

    #[test]
    fn what_makes_a_way_slow_or_fast_for_once_says_nothing_about_it() {
        let mut duel = Duel::default();
        seconds(&mut duel, [20.0, 10.0]);
        (0..GROUP).for_each(|_| duel.note(0, 0.01));
        (0..GROUP).for_each(|_| duel.note(1, 1000.0));
        let next = duel.choose(true);
        assert!(!next.is_trial && next.way == 0, "nor does what makes the other fast: {duel:?}");
    }
}
