//! Which way of copying is the faster one between two processes: through the area, by both cores one
//! after the other, or straight from memory to memory, by both cores at once.
//!
//! The first costs two copies, of which the second comes from the cache; the second costs one, and what the
//! system asks for it page by page. Which is less depends on the cores (do they share a cache?), on the pages
//! and on the system, and by a factor of two either way; so it is measured, on the chunks that pass.

use std::time::Instant;

/// Chunks in a row that take the same way when the two are compared: the first finds the memory of that way
/// in nobody's cache.
const ROW: u32 = 3;
/// Rows in the beginning that take the two ways in turn; the very first meet memory that was never touched
/// and peers who are late.
const TRIALS: u32 = 4;
/// Then one row in so many chunks takes the slower way, in case that it is not slower any more. Before that,
/// the intervals double.
const AGAIN: u32 = 256;
/// Shorter chunks tell more of latency than of copying.
const LEAST: u64 = 128 << 10;
/// The best of so many samples counts, and of so many before them: much makes a chunk slow that has nothing
/// to do with its way (a peer who comes late, a core that is taken away), and nothing makes it fast.
const WINDOW: u32 = 8;

/// A way of copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Through the area.
    Area,
    /// From memory to memory.
    Across,
}

/// Classes of length, each twice as long as the one before: short chunks may be faster the one way, long ones
/// the other.
const CLASSES: usize = 4;

/// What is known of both, for each class of length.
#[derive(Debug, Default)]
pub struct Pace {
    classes: [Class; CLASSES],
    is_crowded: bool,
}

#[derive(Debug, Default)]
struct Class {
    count: u32,
    /// Through the area and across.
    rates: [Rate; 2],
}

/// How fast a way is, in bytes per nanosecond; zero: not known.
#[derive(Debug, Default)]
struct Rate {
    /// The best of the window before, and of this one so far.
    best: [f64; 2],
    samples: u32,
}

impl Rate {
    fn note(&mut self, rate: f64) {
        if self.samples == WINDOW {
            self.best = [self.best[1], 0.0];
            self.samples = 0;
        }
        self.best[1] = self.best[1].max(rate);
        self.samples += 1;
    }

    fn get(&self) -> f64 {
        self.best[0].max(self.best[1])
    }
}

impl Class {
    fn choose(&mut self) -> Way {
        let [area, across] = self.rates.each_ref().map(Rate::get);
        let (better, other) = match across > area {
            true => (Way::Across, Way::Area),
            false => (Way::Area, Way::Across),
        };
        let count = self.count;
        self.count = count.wrapping_add(1);
        let row = count / ROW;
        if row < TRIALS {
            return if row.is_multiple_of(2) { Way::Area } else { Way::Across };
        }
        let interval = AGAIN.min(1 << count.ilog2());
        if count % interval < ROW { other } else { better }
    }
}

impl Pace {
    /// There are fewer cores than processes. Then the work counts that a way makes for all of them, not how
    /// soon one is done that works alone: through the area that is less, since the second copy comes from the
    /// cache.
    pub fn crowd(&mut self) {
        self.is_crowded = true;
    }

    /// The way for a chunk of `len` bytes; `theirs` is that of a chunk that comes the other way just now. In
    /// an exchange both go the same way: each is slow while the peer is busy with the other one, which says
    /// nothing about it.
    pub fn choose(&mut self, len: u64, theirs: Option<Way>) -> Way {
        // Two copies of little data are all in the cache.
        if len < LEAST || self.is_crowded {
            return Way::Area;
        }
        let own = self.class(len).choose();
        theirs.unwrap_or(own)
    }

    /// A chunk of `len` bytes went this way, from `begun` until now.
    pub fn learn(&mut self, way: Way, len: u64, begun: Instant) {
        self.note(way, len, begun.elapsed().as_nanos() as f64);
    }

    fn class(&mut self, len: u64) -> &mut Class {
        &mut self.classes[((len / LEAST).max(1).ilog2() as usize).min(CLASSES - 1)]
    }

    fn note(&mut self, way: Way, len: u64, ns: f64) {
        if len >= LEAST && !self.is_crowded {
            self.class(len).rates[way as usize].note(len as f64 / ns.max(1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a thousand chunks go across, when each way has this rate.
    fn ways(pace: &mut Pace, area: f64, across: f64) -> usize {
        let len = 1 << 20;
        let one = |_| {
            let way = pace.choose(len, None);
            let rate = if way == Way::Area { area } else { across };
            pace.note(way, len, len as f64 / rate);
            way
        };
        (0..1000).map(one).filter(|way| *way == Way::Across).count()
    }

    #[test]
    fn the_faster_way_is_found_and_found_again_when_it_changes() {
        let mut pace = Pace::default();
        let across = ways(&mut pace, 20.0, 10.0);
        assert!((6..40).contains(&across), "tried and left: {across}");
        assert!(ways(&mut pace, 10.0, 20.0) > 500);
        assert!(ways(&mut Pace::default(), 10.0, 20.0) > 960);
    }

    #[test]
    fn a_slow_beginning_is_soon_forgotten() {
        let mut pace = Pace::default();
        let len = 1 << 20;
        for _ in 0..TRIALS * ROW {
            let way = pace.choose(len, None);
            let rate = if way == Way::Area { 10.0 } else { 8.0 };
            pace.note(way, len, len as f64 / rate);
        }
        assert_eq!(pace.choose(len, None), Way::Area);
        let across = ways(&mut pace, 10.0, 20.0);
        assert!(across > 950, "found by the next trial: {across}");
    }

    #[test]
    fn a_peer_who_comes_late_says_nothing_about_the_way() {
        let mut pace = Pace::default();
        ways(&mut pace, 20.0, 10.0);
        pace.note(Way::Area, 1 << 20, 1e9);
        assert_eq!(pace.choose(1 << 20, None), Way::Area);
    }

    #[test]
    fn in_a_crowd_nothing_goes_across() {
        let mut pace = Pace::default();
        pace.crowd();
        assert_eq!(ways(&mut pace, 10.0, 20.0), 0);
        assert_eq!(pace.choose(1 << 20, Some(Way::Across)), Way::Area);
    }

    #[test]
    fn an_exchange_goes_one_way() {
        let mut pace = Pace::default();
        ways(&mut pace, 20.0, 10.0);
        assert_eq!(pace.choose(1 << 20, Some(Way::Across)), Way::Across);
        assert_eq!(pace.choose(1 << 20, Some(Way::Area)), Way::Area);
    }
}
