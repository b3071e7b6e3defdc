//! How longer packets are handed over: through the area, written through the caches or past them, or lent.
//!
//! Between cores that are near to each other a line goes from cache to cache. Between cores that share no
//! cache the writer first has to fetch each line from the reader, who had it last, and the reader fetches it
//! back; past the caches it costs one way to memory and one back (16 KiB on Zen 3, near: 1.4 us against 2.6;
//! apart: 6.2 against 2.6). What is lent ([`super::loan`]) is copied once, for a call of the system. So all
//! are tried. What a packet costs is what it takes to write it, which the writer sees, and what it takes to
//! read it, which the reader tells if he is asked; or how long it is lent.

use super::duel::{Choice, Duel, rate};
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

/// The ways of packets that are written, and of those that may be lent, as far as this processor knows them.
const WITHIN: &[Way] = if Segment::HAS_UNCACHED { &[Way::Cached, Way::Uncached] } else { &[Way::Cached] };
const ANY: &[Way] =
    if Segment::HAS_UNCACHED { &[Way::Lent, Way::Cached, Way::Uncached] } else { &[Way::Lent, Way::Cached] };

/// The place of [`Way::Lent`] there.
const LENT: usize = 0;

/// What is known of packets of about one length.
#[derive(Debug, Default)]
struct Class {
    within: Duel<{ WITHIN.len() }>,
    any: Duel<{ ANY.len() }>,
}

/// What is known of all.
#[derive(Debug, Default)]
pub struct Far {
    classes: [Class; CLASSES],
    packets: u32,
    /// The number of the last question.
    number: u32,
    asked: Option<Asked>,
    /// How a packet of so many bytes shall be written that could be lent.
    chosen: Option<(usize, Chosen)>,
}

/// A way, among which.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    ways: &'static [Way],
    choice: Choice,
}

/// A packet whose reader was asked.
#[derive(Debug, Clone, Copy)]
struct Asked {
    chosen: Chosen,
    len: usize,
    written_in: Duration,
}

/// How a packet is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    is_uncached: bool,
    measured: Option<(Instant, Chosen)>,
}

impl Manner {
    /// Past the caches.
    #[inline]
    pub fn is_uncached(&self) -> bool {
        self.is_uncached
    }
}

impl Far {
    /// Whether to lend a packet of `len` bytes that may be lent; otherwise it is written next.
    pub fn lends(&mut self, b: &Shared, len: usize) -> bool {
        self.learn(b);
        let choice = class(&mut self.classes, len).any.choose(self.asked.is_none());
        let lends = choice.way == LENT;
        self.chosen = (!lends).then_some((len, Chosen { ways: ANY, choice }));
        lends
    }

    /// It took so long until that was over; none: nobody took it.
    pub fn lent(&mut self, len: usize, took: Option<Duration>) {
        class(&mut self.classes, len).any.note(LENT, took.map_or(0.0, |took| rate(len as u64, took)));
    }

    /// How to write a packet of `len` bytes.
    #[inline]
    pub fn begin(&mut self, b: &Shared, len: usize) -> Manner {
        // Who shares a core shares its cache.
        if len < LEAST || b.is_crowded || !Segment::HAS_UNCACHED {
            return Manner::default();
        }
        self.choose(b, len)
    }

    #[inline(never)]
    fn choose(&mut self, b: &Shared, len: usize) -> Manner {
        self.learn(b);
        let can_measure = self.asked.is_none();
        let chosen = match self.chosen.take_if(|(of, _)| *of == len) {
            Some((_, chosen)) => chosen,
            None => Chosen { ways: WITHIN, choice: class(&mut self.classes, len).within.choose(can_measure) },
        };
        self.packets = self.packets.wrapping_add(1);
        let sampled = chosen.choice.is_trial || self.packets.is_multiple_of(SAMPLE);
        let measured = (self.asked.is_none() && sampled).then(|| (Instant::now(), chosen));
        Manner { is_uncached: chosen.ways[chosen.choice.way] == Way::Uncached, measured }
    }

    fn learn(&mut self, b: &Shared) {
        if let Some(Asked { chosen, len, written_in }) = self.asked
            && let Some(read_in) = b.answered(Topic::Packet, self.number)
        {
            self.asked = None;
            let (rate, class) = (rate(len as u64, written_in + read_in), class(&mut self.classes, len));
            match chosen.ways.contains(&Way::Lent) {
                true => class.any.note(chosen.choice.way, rate),
                false => class.within.note(chosen.choice.way, rate),
            }
        }
    }

    /// It is written: the question to its reader, zero for none.
    #[inline]
    pub fn end(&mut self, manner: Manner, len: usize) -> u32 {
        let Some((begun, chosen)) = manner.measured else { return 0 };
        self.asked = Some(Asked { chosen, len, written_in: begun.elapsed() });
        // Zero is none.
        self.number = self.number.wrapping_add(1).max(1);
        self.number
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
            let manner = far.begin(b, len);
            let question = far.end(manner, len);
            if question != 0 {
                peer.answer(Topic::Packet, question, read_in[usize::from(manner.is_uncached())]);
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
    fn what_may_be_lent_is_if_that_is_faster_and_somebody_takes_it() {
        const LEN: usize = 16 << 10;
        let (ends, mut far) = (pair(), Far::default());
        let mut lent = |took: Option<Duration>| {
            let mut one = || {
                if far.lends(&ends[0], LEN) {
                    far.lent(LEN, took);
                    return true;
                }
                let manner = far.begin(&ends[0], LEN);
                let question = far.end(manner, LEN);
                if question != 0 {
                    ends[1].answer(Topic::Packet, question, Duration::from_millis(1));
                }
                false
            };
            (0..1000).filter(|_| one()).count()
        };
        assert!(lent(Some(Duration::from_micros(10))) > 900);
        assert!(lent(None) < 500);
        assert!(lent(None) < 100, "nobody takes it");
        assert!(lent(Some(Duration::from_millis(100))) < 100, "nor is it faster");
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
