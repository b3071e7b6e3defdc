//! Which way of copying a chunk is the fastest one between two processes: through the area, by both cores one
//! after the other, or straight from memory to memory, by both cores at once.
//!
//! The first costs two copies, of which the second comes from the cache; the second costs one, and what the
//! system asks for it page by page. Between cores that share no cache the lines of the area go to and fro,
//! and it costs less to write them past the caches. Which is best depends on the cores, on the pages and on
//! the system, and by a factor of two either way; so it is measured, on the chunks that pass
//! ([`super::effort`] says what).

use super::duel::{Duel, rate};
use super::layout::AREA;
use super::segment::Segment;
use super::shared::{Shared, Topic};
use std::time::Duration;

/// Shorter chunks tell more of latency than of copying.
const LEAST: u64 = 16 << 10;

/// A way of copying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Through the area.
    Area,
    /// From memory to memory.
    Across,
    /// Through the area, into which it is written past the caches.
    Uncached,
}

impl Way {
    /// All of them, by number.
    pub const ALL: [Way; 3] = [Way::Area, Way::Across, Way::Uncached];
}

/// So many of them this processor knows.
const KNOWN: usize = if Segment::HAS_UNCACHED { 3 } else { 2 };
/// The ways of chunks that cannot go across.
const WITHIN: [Way; 2] = [Way::Area, Way::Uncached];

/// Who may copy a chunk that goes across.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Both sides at once.
    Both,
    /// The receiver, as soon as he knows where it goes.
    Receiver,
    /// Neither.
    Nobody,
}

/// Classes of length, each twice as long as the one before: short chunks may be faster the one way, long ones
/// the other.
const CLASSES: usize = 7;

/// What is known of chunks of about one length.
#[derive(Debug, Default)]
struct Class {
    /// Of those that both sides may copy across.
    both: Duel<KNOWN>,
    /// Of those that only the receiver may.
    pulled: Duel<KNOWN>,
    /// Of those that cannot go across.
    within: Duel<{ KNOWN - 1 }>,
    /// Of messages that may be lent instead, which is what [`Way::Across`] means here.
    lone: Duel<KNOWN>,
}

/// What is known of all, for each class of length.
#[derive(Debug, Default)]
pub struct Pace {
    classes: [Class; CLASSES],
    asked: Option<Asked>,
    /// What was chosen for a message of so many bytes that could be lent, but is pushed.
    chosen: Option<(u64, Way)>,
}

/// A chunk whose receiver was asked how long it took. Nobody else knows: the sender is done with his part,
/// and may use the memory again, while the receiver still takes it out of the area.
#[derive(Debug)]
struct Asked {
    question: u32,
    way: Way,
    of: Of,
    len: u64,
    /// How long it took the sender, or, in a crowd, how long he copied.
    sent_in: Option<Duration>,
}

/// Among which ways one was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Those of a chunk.
    Chunk(Reach),
    /// Those of a message that could have been lent.
    Lone,
}

impl Pace {
    /// Whether to lend a message that may be lent; otherwise it is pushed next, the way that was chosen.
    pub fn lends(&mut self, b: &Shared, len: u64) -> bool {
        self.learn(b);
        let can_measure = self.asked.is_none();
        let way = Way::ALL[self.class(len).lone.choose(can_measure).way];
        self.chosen = (way != Way::Across).then_some((len, way));
        way == Way::Across
    }

    /// A loan took so long; none: it was not taken.
    pub fn lent(&mut self, len: u64, took: Option<Duration>) {
        let rate = took.map_or(0.0, |took| rate(len, took));
        self.class(len).lone.note(Way::Across as usize, rate);
    }

    /// The way for a chunk of `len` bytes, and among which it was chosen. `theirs` is that of a chunk that
    /// comes the other way just now: both go the same way, since each is slow while the peer is busy with the
    /// other one, which says nothing about it. It makes neither more work, and in a crowd work counts.
    pub fn choose(&mut self, b: &Shared, len: u64, reach: Reach, theirs: Option<Way>) -> (Way, Of) {
        self.learn(b);
        let of = Of::Chunk(reach);
        if !knows(len) {
            return (Way::Area, of);
        }
        let crosses = reach != Reach::Nobody;
        // What the area does not hold needs both sides several times, each of which has to get a core first.
        if b.is_crowded && crosses && len > u64::from(AREA) {
            return (Way::Across, of);
        }
        let theirs = theirs.filter(|way| !b.is_crowded && (crosses || *way != Way::Across));
        if let Some((_, way)) = self.chosen.take_if(|(of, _)| *of == len && reach == Reach::Receiver) {
            return (theirs.unwrap_or(way), Of::Lone);
        }
        let (can_measure, class) = (self.asked.is_none(), self.class(len));
        let own = match reach {
            Reach::Both => Way::ALL[class.both.choose(can_measure).way],
            Reach::Receiver => Way::ALL[class.pulled.choose(can_measure).way],
            Reach::Nobody => WITHIN[class.within.choose(can_measure).way],
        };
        (theirs.unwrap_or(own), of)
    }

    /// The way for one that may go across and meets another (see [`super::exchange`]).
    pub fn meeting(len: u64) -> Way {
        if knows(len) { Way::Across } else { Way::Area }
    }

    /// A chunk goes this way. Whether its receiver shall answer how long it took; the question has this
    /// number.
    pub fn ask(&mut self, (way, of): (Way, Of), len: u64, question: u32) -> bool {
        if self.asked.is_some() || !knows(len) {
            return false;
        }
        self.asked = Some(Asked { question, way, of, len, sent_in: None });
        true
    }

    /// The sender's part of the chunk about which the question was took so long, or so much work; none: that
    /// says nothing of the way.
    pub fn sent(&mut self, question: u32, took: Option<Duration>) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.question == question) {
            asked.sent_in = took;
            if took.is_none() {
                self.asked = None;
            }
        }
    }

    /// Learns what the receiver has answered, if he has. In a crowd the work counts that a way makes for
    /// both, not how soon the one is done who takes longer.
    fn learn(&mut self, b: &Shared) {
        if let Some(Asked { question, way, of, len, sent_in: Some(sent_in) }) = self.asked
            && let Some(received_in) = b.answered(Topic::Chunk, question)
        {
            let took = if b.is_crowded { sent_in + received_in } else { sent_in.max(received_in) };
            let rate = rate(len, took);
            self.asked = None;
            let class = self.class(len);
            match of {
                Of::Chunk(Reach::Both) => class.both.note(way as usize, rate),
                Of::Chunk(Reach::Receiver) => class.pulled.note(way as usize, rate),
                Of::Chunk(Reach::Nobody) => class.within.note(usize::from(way == Way::Uncached), rate),
                // A message that goes across without being lent tells nothing of that.
                Of::Lone if way == Way::Across => {}
                Of::Lone => class.lone.note(way as usize, rate),
            }
        }
    }

    fn class(&mut self, len: u64) -> &mut Class {
        &mut self.classes[((len / LEAST).max(1).ilog2() as usize).min(CLASSES - 1)]
    }
}

/// Whether chunks of `len` bytes go this way or that: two copies of little data are all in the cache.
fn knows(len: u64) -> bool {
    len >= LEAST
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::shared::tests::pair;

    #[test]
    fn an_exchange_goes_one_way() {
        let ([b, _], mut pace) = (pair(), Pace::default());
        for theirs in Way::ALL {
            assert!((0..100).all(|_| pace.choose(&b, 1 << 20, Reach::Both, Some(theirs)).0 == theirs));
        }
        assert_eq!((Pace::meeting(1 << 20), Pace::meeting(LEAST - 1)), (Way::Across, Way::Area));
    }

    #[test]
    fn in_a_crowd_the_way_with_the_least_work_is_taken_whatever_comes_the_other_way() {
        let ([mut b, peer], mut pace) = (pair(), Pace::default());
        b.is_crowded = true;
        // Sender and receiver work so many microseconds: more in all, though each less than one alone.
        let work = |way| match way {
            Way::Area => (60, 60),
            Way::Across => (0, 100),
            Way::Uncached => (90, 90),
        };
        let mut taken = Vec::new();
        for question in 0..100 {
            let (way, of) = pace.choose(&b, 256 << 10, Reach::Both, Some(Way::Area));
            let (sent, received) = work(way);
            assert!(pace.ask((way, of), 256 << 10, question));
            pace.sent(question, Some(Duration::from_micros(sent)));
            peer.answer(Topic::Chunk, question, Duration::from_micros(received));
            taken.push(way);
        }
        assert!(Way::ALL[..KNOWN].iter().all(|way| taken.contains(way)), "all are tried: {taken:?}");
        let across = taken.iter().filter(|way| **way == Way::Across).count();
        assert!(across > 60, "{taken:?}");
        let mut longer = || pace.choose(&b, (256 << 10) + 1, Reach::Receiver, None).0;
        assert!((0..100).all(|_| longer() == Way::Across), "what the area does not hold");
        assert_ne!(pace.choose(&b, 1 << 20, Reach::Nobody, None).0, Way::Across);
    }

    #[test]
    fn a_row_of_chunks_goes_one_way_of_which_the_first_one_tells() {
        let ([b, peer], mut pace) = (pair(), Pace::default());
        let mut message = |question| {
            let chosen = pace.choose(&b, 1 << 20, Reach::Both, None);
            assert!(pace.ask(chosen, 1 << 20, question));
            for _ in 0..3 {
                let next = pace.choose(&b, 1 << 20, Reach::Both, None);
                assert!(next == chosen && !pace.ask(next, 1 << 20, question + 1), "one question at a time");
            }
            let took = Duration::from_micros(if chosen.0 == Way::Across { 50 } else { 100 });
            pace.sent(question, Some(took));
            peer.answer(Topic::Chunk, question, took);
            chosen.0
        };
        let taken: Vec<Way> = (0..60).map(|number| message(4 * number)).collect();
        let across = taken.iter().filter(|way| **way == Way::Across).count();
        assert!(across > 35, "{taken:?}");
    }

    #[test]
    fn little_data_goes_through_the_area() {
        let ([b, _], mut pace) = (pair(), Pace::default());
        assert!((0..100).all(|_| pace.choose(&b, LEAST - 1, Reach::Both, None).0 == Way::Area));
        for reach in [Reach::Both, Reach::Receiver] {
            let ways = &Way::ALL[..KNOWN];
            let is_tried = |way: &Way| (0..100).any(|_| pace.choose(&b, LEAST, reach, None).0 == *way);
            assert!(ways.iter().all(is_tried), "all are, whoever may copy across: {reach:?}");
        }
    }

    #[test]
    fn what_may_be_lent_is_if_that_is_faster_than_each_way_of_pushing_it() {
        let ([b, peer], mut pace) = (pair(), Pace::default());
        // Microseconds of each way.
        let mut lent = |times: [u64; 3]| {
            let mut one = |question| {
                let lends = pace.lends(&b, 100_000);
                if lends {
                    let took = times[Way::Across as usize];
                    pace.lent(100_000, (took > 0).then_some(Duration::from_micros(took)));
                    return true;
                }
                let (way, of) = pace.choose(&b, 100_000, Reach::Receiver, None);
                assert!(of == Of::Lone && way != Way::Across);
                let took = Duration::from_micros(times[way as usize]);
                assert!(pace.ask((way, of), 100_000, question));
                pace.sent(question, Some(took));
                peer.answer(Topic::Chunk, question, took);
                false
            };
            (0..1000).filter(|question| one(*question)).count()
        };
        assert!(lent([10, 5, 10]) > 900);
        assert!(lent([10, 0, 10]) < 500, "a receiver who does not take it");
        assert!(lent([10, 20, 10]) < 100);
    }
}
