//! Which way of copying is the faster one between two processes: through the area, by both cores one
//! after the other, or straight from memory to memory, by both cores at once.
//!
//! The first costs two copies, of which the second comes from the cache; the second costs one, and what the
//! system asks for it page by page. Which is less depends on the cores (do they share a cache?), on the pages
//! and on the system, and by a factor of two either way; so it is measured, on the chunks that pass.

use super::duel::Duel;
use std::time::Instant;

/// Shorter chunks tell more of latency than of copying.
const LEAST: u64 = 32 << 10;

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
const CLASSES: usize = 6;

/// What is known of both, for each class of length.
#[derive(Debug, Default)]
pub struct Pace {
    classes: [Duel; CLASSES],
    is_crowded: bool,
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
        let own = self.class(len).choose().way;
        theirs.unwrap_or(if own == Way::Area as usize { Way::Area } else { Way::Across })
    }

    /// A chunk of `len` bytes went this way, from `begun` until now.
    pub fn learn(&mut self, way: Way, len: u64, begun: Instant) {
        if len >= LEAST && !self.is_crowded {
            let ns = (begun.elapsed().as_nanos() as f64).max(1.0);
            self.class(len).note(way as usize, len as f64 / ns);
        }
    }

    fn class(&mut self, len: u64) -> &mut Duel {
        &mut self.classes[((len / LEAST).max(1).ilog2() as usize).min(CLASSES - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_goes_one_way() {
        let mut pace = Pace::default();
        for theirs in [Way::Across, Way::Area] {
            assert!((0..100).all(|_| pace.choose(1 << 20, Some(theirs)) == theirs));
        }
    }

    #[test]
    fn little_data_and_data_in_a_crowd_goes_through_the_area() {
        let mut pace = Pace::default();
        assert!((0..100).all(|_| pace.choose(LEAST - 1, None) == Way::Area));
        assert!((0..100).any(|_| pace.choose(LEAST, None) == Way::Across));
        pace.crowd();
        assert!((0..100).all(|_| pace.choose(LEAST, Some(Way::Across)) == Way::Area));
    }
}
