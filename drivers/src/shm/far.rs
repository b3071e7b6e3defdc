//! How packets are written that lie in the area: through the caches or past them.
//!
//! Between cores that are near to each other a line goes from cache to cache. Between cores that share no
//! cache the writer first has to fetch each line from the reader, who had it last, and the reader fetches it
//! back; past the caches it costs one way to memory and one back (16 KiB on Zen 3, near: 1.4 us against 2.6;
//! apart: 6.2 against 2.6). So both are tried. What a packet costs is what it takes to write it, which the
//! writer sees, and what it takes to read it, which the reader tells if he is asked.

use super::duel::{Choice, Duel};
use super::segment::Segment;
use super::shared::{Shared, Topic};
use std::time::{Duration, Instant};

/// Shorter packets are much the same either way.
const LEAST: usize = 4 << 10;
/// Classes of length, each twice as long as the one before.
const CLASSES: usize = 4;
/// One packet in so many is measured while nothing is tried.
const SAMPLE: u32 = 8;

/// The ways: through the caches, or past them.
const UNCACHED: usize = 1;

/// What is known of both.
#[derive(Debug, Default)]
pub struct Far {
    classes: [Duel<2>; CLASSES],
    packets: u32,
    /// The number of the last question.
    number: u32,
    asked: Option<Asked>,
}

/// A packet whose reader was asked.
#[derive(Debug, Clone, Copy)]
struct Asked {
    way: usize,
    len: usize,
    written_in: Duration,
}

/// How a packet is written.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    way: usize,
    begun: Option<Instant>,
}

impl Manner {
    /// Past the caches.
    #[inline]
    pub fn is_uncached(&self) -> bool {
        self.way == UNCACHED
    }
}

impl Far {
    /// How to write a packet of `len` bytes.
    #[inline]
    pub fn begin(&mut self, b: &Shared, len: usize) -> Manner {
        // Who shares a core shares its cache.
        if len < LEAST || b.is_crowded || !Segment::HAS_UNCACHED {
            return Manner { way: 0, begun: None };
        }
        self.choose(b, len)
    }

    #[inline(never)]
    fn choose(&mut self, b: &Shared, len: usize) -> Manner {
        if let Some(Asked { way, len, written_in }) = self.asked
            && let Some(read_in) = b.answered(Topic::Packet, self.number)
        {
            let ns = (written_in + read_in).as_nanos() as f64;
            self.asked = None;
            class(&mut self.classes, len).note(way, len as f64 / ns.max(1.0));
        }
        let Choice { way, is_trial } = class(&mut self.classes, len).choose();
        self.packets = self.packets.wrapping_add(1);
        let measured = self.asked.is_none() && (is_trial || self.packets.is_multiple_of(SAMPLE));
        Manner { way, begun: measured.then(Instant::now) }
    }

    /// It is written: the question to its reader, zero for none.
    #[inline]
    pub fn end(&mut self, manner: Manner, len: usize) -> u32 {
        let Some(begun) = manner.begun else { return 0 };
        self.asked = Some(Asked { way: manner.way, len, written_in: begun.elapsed() });
        // Zero is none.
        self.number = self.number.wrapping_add(1).max(1);
        self.number
    }
}

fn class(classes: &mut [Duel<2>; CLASSES], len: usize) -> &mut Duel<2> {
    &mut classes[((len / LEAST).max(1).ilog2() as usize).min(CLASSES - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::shared::tests::pair;

    /// How many of a thousand packets go past the caches, when reading takes so long.
    fn uncached(far: &mut Far, [b, peer]: &[Shared; 2], len: usize, read_in: [Duration; 2]) -> usize {
        let mut one = || {
            let manner = far.begin(b, len);
            let question = far.end(manner, len);
            if question != 0 {
                peer.answer(Topic::Packet, question, read_in[manner.way]);
            }
            manner.is_uncached()
        };
        (0..1000).filter(|_| one()).count()
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_way_that_is_read_sooner_is_taken_for_its_class_of_length() {
        let (mut ends, mut far) = (pair(), Far::default());
        let [soon, late] = [10, 1000].map(Duration::from_micros);
        assert!(uncached(&mut far, &ends, 8 << 10, [late, soon]) > 900);
        assert!(uncached(&mut far, &ends, 16 << 10, [soon, late]) < 100);
        assert!(uncached(&mut far, &ends, LEAST - 1, [late, soon]) == 0, "short ones are not tried");
        ends[0].is_crowded = true;
        assert!(uncached(&mut far, &ends, 8 << 10, [late, soon]) == 0, "nor is anything in a crowd");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_reader_who_does_not_answer_is_not_asked_again() {
        let ([b, _], mut far) = (pair(), Far::default());
        let questions = (0..100).filter(|_| {
            let manner = far.begin(&b, LEAST);
            far.end(manner, LEAST) != 0
        });
        assert_eq!(questions.count(), 1);
    }
}
