//! How longer packets are handed over: through the area, written through the caches or past them, or lent.
//!
//! Between cores that are near to each other a line goes from cache to cache. Between cores that share no
//! cache the writer first has to fetch each line from the reader, who had it last, and the reader fetches it
//! back; past the caches it costs one way to memory and one back (16 KiB on Zen 3, near: 1.4 us against 2.6;
//! apart: 6.2 against 2.6). What is lent goes one way and is copied once, for a call of the system. So all are
//! tried. What a packet costs is what it takes to write or lend it, which the writer sees, and what it takes to
//! read it then, which the reader tells if he is asked.

use super::duel::{Choice, Duel};
use super::segment::Segment;
use super::shared::{Shared, Topic};
use std::time::{Duration, Instant};

/// Shorter packets are much the same either way.
pub const LEAST: usize = 4 << 10;
/// Classes of length, each twice as long as the one before.
const CLASSES: usize = 4;
/// One packet in so many is measured while nothing is tried. Not a power of two: one in so many that has
/// something else to carry would be measured each time.
const SAMPLE: u32 = 7;

/// A way of handing a packet over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Through the area.
    Cached,
    /// Through the area, into which it is written past the caches.
    Uncached,
    /// Its data stays where it is until its reader has fetched it: [`super::loan`].
    Lent,
}

/// The ways of packets that are written into the area, and of those that may be lent, as far as this
/// processor knows them.
const WITHIN: &[Way] = if Segment::HAS_UNCACHED { &[Way::Cached, Way::Uncached] } else { &[Way::Cached] };
const ANY: &[Way] =
    if Segment::HAS_UNCACHED { &[Way::Cached, Way::Uncached, Way::Lent] } else { &[Way::Cached, Way::Lent] };

/// What is known of packets of about one length.
#[derive(Debug, Default)]
struct Class {
    any: Duel<{ ANY.len() }>,
    within: Duel<{ WITHIN.len() }>,
}

/// What is known of all.
#[derive(Debug, Default)]
pub struct Far {
    classes: [Class; CLASSES],
    packets: u32,
    /// The number of the last question.
    number: u32,
    asked: Option<Asked>,
}

/// A packet whose reader was asked.
#[derive(Debug, Clone, Copy)]
struct Asked {
    place: usize,
    lends: bool,
    len: usize,
    written_in: Duration,
}

/// How a packet is handed over.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// The way.
    pub way: Way,
    place: usize,
    lends: bool,
    begun: Option<Instant>,
    /// What its reader shall answer; zero: nothing.
    pub question: u32,
}

/// Of packets of which nobody wants to know.
const USUAL: Manner = Manner { way: Way::Cached, place: 0, lends: false, begun: None, question: 0 };

impl Manner {
    /// It was to be lent, but its reader does not look: it is written after all. That counts as slow.
    pub fn unlent(self) -> Manner {
        Manner { way: Way::Cached, ..self }
    }
}

impl Far {
    /// How to hand over a packet of `len` bytes, which may be lent, or not.
    #[inline]
    pub fn begin(&mut self, b: &Shared, len: usize, lends: bool) -> Manner {
        // Who shares a core shares its cache.
        if len < LEAST || b.is_crowded || !(lends || Segment::HAS_UNCACHED) {
            return USUAL;
        }
        self.choose(b, len, lends)
    }

    #[inline(never)]
    fn choose(&mut self, b: &Shared, len: usize, lends: bool) -> Manner {
        if let Some(Asked { place, lends, len, written_in }) = self.asked
            && let Some(read_in) = b.answered(Topic::Packet, self.number)
        {
            let ns = (written_in + read_in).as_nanos() as f64;
            let (rate, class) = (len as f64 / ns.max(1.0), class(&mut self.classes, len));
            self.asked = None;
            if lends { class.any.note(place, rate) } else { class.within.note(place, rate) }
        }
        let class = class(&mut self.classes, len);
        let (Choice { way: place, is_trial }, ways) = match lends {
            true => (class.any.choose(), ANY),
            false => (class.within.choose(), WITHIN),
        };
        self.packets = self.packets.wrapping_add(1);
        let measured = self.asked.is_none() && (is_trial || self.packets.is_multiple_of(SAMPLE));
        if measured {
            // Zero is none.
            self.number = self.number.wrapping_add(1).max(1);
        }
        let question = if measured { self.number } else { 0 };
        Manner { way: ways[place], place, lends, begun: measured.then(Instant::now), question }
    }

    /// It is done, as far as its sender does it.
    #[inline]
    pub fn end(&mut self, manner: Manner, len: usize) {
        if let Manner { begun: Some(begun), place, lends, .. } = manner {
            self.asked = Some(Asked { place, lends, len, written_in: begun.elapsed() });
        }
    }
}

fn class(classes: &mut [Class; CLASSES], len: usize) -> &mut Class {
    &mut classes[((len / LEAST).max(1).ilog2() as usize).min(CLASSES - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::shared::tests::pair;

    /// How many of a thousand packets go past the caches, when reading takes so long.
    fn uncached(far: &mut Far, [b, peer]: &[Shared; 2], len: usize, read_in: [Duration; 2]) -> usize {
        let mut one = || {
            let manner = far.begin(b, len, false);
            far.end(manner, len);
            if manner.question != 0 {
                peer.answer(Topic::Packet, manner.question, read_in[manner.place]);
            }
            manner.way == Way::Uncached
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
    fn what_may_be_lent_is_if_that_is_faster_and_it_is_taken() {
        let (ends, mut far) = (pair(), Far::default());
        let mut lent = |is_taken: bool| {
            let mut one = || {
                let manner = far.begin(&ends[0], 16 << 10, true);
                let revoked = manner.way == Way::Lent && !is_taken;
                if revoked {
                    std::thread::sleep(Duration::from_micros(50));
                }
                far.end(if revoked { manner.unlent() } else { manner }, 16 << 10);
                let read_in = if manner.way == Way::Lent && is_taken { 1 } else { 10 };
                if manner.question != 0 {
                    ends[1].answer(Topic::Packet, manner.question, Duration::from_micros(read_in));
                }
                manner.way == Way::Lent
            };
            (0..1000).filter(|_| one()).count()
        };
        assert!(lent(true) > 900);
        assert!(lent(false) < 500, "a reader who is late is not lent anything");
        assert!(lent(false) < 50);
        assert!((0..100).all(|_| far.begin(&ends[0], 16 << 10, false).way != Way::Lent));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_reader_who_does_not_answer_is_not_asked_again() {
        let ([b, _], mut far) = (pair(), Far::default());
        let questions = (0..100).filter(|_| {
            let manner = far.begin(&b, LEAST, false);
            far.end(manner, LEAST);
            manner.question != 0
        });
        assert_eq!(questions.count(), 1);
    }
}
