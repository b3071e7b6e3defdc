//! Which way of copying a chunk is the fastest one between two processes: through the area, by both cores one
//! after the other, or straight from memory to memory, by both cores at once.
//!
//! The first costs two copies, of which the second comes from the cache; the second costs one, and what the
//! system asks for it page by page. Between cores that share no cache the lines of the area go to and fro,
//! and it costs less to write them past the caches. Which is best depends on the cores, on the pages and on
//! the system, and by a factor of two either way; so it is measured, on the chunks that pass
//! ([`super::effort`] says what).

use super::duel::Duel;
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

/// Classes of length, each twice as long as the one before: short chunks may be faster the one way, long ones
/// the other.
const CLASSES: usize = 7;

/// What is known of chunks of about one length.
#[derive(Debug, Default)]
struct Class {
    /// Of those that may go any way.
    any: Duel<KNOWN>,
    /// Of those that cannot go across.
    within: Duel<{ KNOWN - 1 }>,
}

/// What is known of all, for each class of length.
#[derive(Debug, Default)]
pub struct Pace {
    classes: [Class; CLASSES],
    asked: Option<Asked>,
}

/// A chunk whose receiver was asked how long it took. Nobody else knows: the sender is done with his part,
/// and may use the memory again, while the receiver still takes it out of the area.
#[derive(Debug)]
struct Asked {
    question: u32,
    way: Way,
    crosses: bool,
    len: u64,
    /// How long it took the sender, or, in a crowd, how long he copied.
    sent_in: Option<Duration>,
}

impl Pace {
    /// The way for a chunk of `len` bytes; `crosses`: it may go across. `theirs` is that of a chunk that
    /// comes the other way just now: both go the same way, since each is slow while the peer is busy with the
    /// other one, which says nothing about it. It makes neither more work, and in a crowd work counts.
    pub fn choose(&mut self, b: &Shared, len: u64, crosses: bool, theirs: Option<Way>) -> Way {
        if !knows(len) {
            return Way::Area;
        }
        let theirs = theirs.filter(|way| !b.is_crowded && (crosses || *way != Way::Across));
        let class = self.class(len);
        let own = if crosses { Way::ALL[class.any.choose().way] } else { WITHIN[class.within.choose().way] };
        theirs.unwrap_or(own)
    }

    /// The way for one that may go across and meets another (see [`super::exchange`]).
    pub fn meeting(len: u64) -> Way {
        if knows(len) { Way::Across } else { Way::Area }
    }

    /// A chunk goes this way. Whether its receiver shall answer how long it took; the question has this
    /// number.
    pub fn ask(&mut self, (way, crosses): (Way, bool), len: u64, question: u32) -> bool {
        if self.asked.is_some() || !knows(len) {
            return false;
        }
        self.asked = Some(Asked { question, way, crosses, len, sent_in: None });
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
    pub fn learn(&mut self, b: &Shared) {
        if let Some(Asked { question, way, crosses, len, sent_in: Some(sent_in) }) = self.asked
            && let Some(received_in) = b.answered(Topic::Chunk, question)
        {
            let took = if b.is_crowded { sent_in + received_in } else { sent_in.max(received_in) };
            let rate = len as f64 / (took.as_nanos() as f64).max(1.0);
            self.asked = None;
            let class = self.class(len);
            match crosses {
                true => class.any.note(way as usize, rate),
                false => class.within.note(usize::from(way == Way::Uncached), rate),
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
            assert!((0..100).all(|_| pace.choose(&b, 1 << 20, true, Some(theirs)) == theirs));
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
            let way = pace.choose(&b, 1 << 20, true, Some(Way::Area));
            let (sent, received) = work(way);
            assert!(pace.ask((way, true), 1 << 20, question));
            pace.sent(question, Some(Duration::from_micros(sent)));
            peer.answer(Topic::Chunk, question, Duration::from_micros(received));
            pace.learn(&b);
            taken.push(way);
        }
        assert!(Way::ALL[..KNOWN].iter().all(|way| taken.contains(way)), "all are tried: {taken:?}");
        let across = taken.iter().filter(|way| **way == Way::Across).count();
        assert!(across > 60, "{taken:?}");
    }

    #[test]
    fn little_data_goes_through_the_area() {
        let ([b, _], mut pace) = (pair(), Pace::default());
        assert!((0..100).all(|_| pace.choose(&b, LEAST - 1, true, None) == Way::Area));
        assert!(
            Way::ALL[..KNOWN].iter().all(|way| (0..100).any(|_| pace.choose(&b, LEAST, true, None) == *way)),
            "all are tried"
        );
    }
}
