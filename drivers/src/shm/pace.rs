//! Which way of copying is the faster one between two processes: through the area, by both cores one
//! after the other, or straight from memory to memory, by both cores at once.
//!
//! The first costs two copies, of which the second comes from the cache; the second costs one, and what the
//! system asks for it page by page. Which is less depends on the cores (do they share a cache?), on the pages
//! and on the system, and by a factor of two either way; so it is measured, on the chunks that pass.

use std::time::Instant;

/// Chunks in the beginning that take the two ways in turn.
const TRIALS: u32 = 6;
/// Then one chunk in so many takes the slower way, in case that it is not slower any more. Before that, since
/// the first chunks of all meet cold memory and peers who are late, the intervals double.
const AGAIN: u32 = 128;
/// Shorter chunks tell more of latency than of copying.
const LEAST: u64 = 128 << 10;
/// A sample so many times below what is known tells of a peer who came late.
const LATE: f64 = 4.0;

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
}

#[derive(Debug, Default)]
struct Class {
    count: u32,
    /// Bytes per nanosecond through the area and across; zero: not known.
    rates: [f64; 2],
}

impl Pace {
    /// The way for a chunk of `len` bytes.
    pub fn choose(&mut self, len: u64) -> Way {
        // Two copies of little data are all in the cache.
        if len < LEAST {
            return Way::Area;
        }
        let class = self.class(len);
        let [area, across] = class.rates;
        let better = if across > area { Way::Across } else { Way::Area };
        class.count = class.count.wrapping_add(1);
        match class.count {
            count if count < TRIALS => {
                if count % 2 == 0 {
                    Way::Across
                } else {
                    Way::Area
                }
            }
            count if count % AGAIN == 0 || (count < AGAIN && count.is_power_of_two()) => {
                if better == Way::Area { Way::Across } else { Way::Area }
            }
            _ => better,
        }
    }

    /// A chunk of `len` bytes went this way, from `begun` until now.
    pub fn learn(&mut self, way: Way, len: u64, begun: Instant) {
        self.note(way, len, begun.elapsed().as_nanos() as f64);
    }

    fn class(&mut self, len: u64) -> &mut Class {
        &mut self.classes[((len / LEAST).max(1).ilog2() as usize).min(CLASSES - 1)]
    }

    fn note(&mut self, way: Way, len: u64, ns: f64) {
        if len < LEAST {
            return;
        }
        let known = &mut self.class(len).rates[way as usize];
        let rate = len as f64 / ns.max(1.0);
        if rate * LATE < *known {
            return;
        }
        // Much makes a chunk slow that has nothing to do with its way, and nothing makes it fast.
        *known = if rate > *known { rate } else { *known + (rate - *known) / 8.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways of a hundred chunks, when each way has this rate.
    fn ways(pace: &mut Pace, area: f64, across: f64) -> usize {
        let len = 1 << 20;
        let one = |_| {
            let way = pace.choose(len);
            let rate = if way == Way::Area { area } else { across };
            pace.note(way, len, len as f64 / rate);
            way
        };
        (0..1000).map(one).filter(|way| *way == Way::Across).count()
    }

    #[test]
    fn the_faster_way_is_found_and_found_again_when_it_changes() {
        let mut pace = Pace::default();
        assert!(ways(&mut pace, 20.0, 10.0) < 20);
        assert!(ways(&mut pace, 10.0, 20.0) > 500);
        assert!(ways(&mut Pace::default(), 10.0, 20.0) > 980);
    }

    #[test]
    fn a_slow_beginning_is_soon_forgotten() {
        let mut pace = Pace::default();
        let len = 1 << 20;
        for _ in 0..TRIALS {
            let way = pace.choose(len);
            let rate = if way == Way::Area { 10.0 } else { 8.0 };
            pace.note(way, len, len as f64 / rate);
        }
        assert_eq!(pace.choose(len), Way::Area);
        let across = ways(&mut pace, 10.0, 20.0);
        assert!(across > 970, "found by the next trial: {across}");
    }

    #[test]
    fn a_peer_who_comes_late_says_nothing_about_the_way() {
        let mut pace = Pace::default();
        ways(&mut pace, 20.0, 10.0);
        pace.note(Way::Area, 1 << 20, 1e9);
        assert_eq!(pace.choose(1 << 20), Way::Area);
    }
}
