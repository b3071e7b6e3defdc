//! Measurements on one link for the selector: which messages are measured, and how.

use super::selector::{Choice, LEAST, Method, Selector};
use super::shape::Shape;
use crate::shm::shared::Shared;
use std::time::{Duration, Instant};

/// One packet in this number is measured while nothing is tried, since a reading of the clock takes as long
/// as copying half a KiB; not a power of two, since a program's pattern often is one. Zen 4: none at all is
/// within the spread.
const SAMPLE: u32 = 7;

/// The measurements of one link. One message at a time is measured: its receiver reports how long it took,
/// because only the receiver knows when the bounce buffers are empty again.
#[derive(Debug, Default)]
pub struct Probe {
    is_near: bool,
    asked: Option<Asked>,
    /// The number of the last question about a packet; a question about a chunk has the chunk's name.
    number: u32,
    packets: u32,
}

/// A measured message whose receiver was asked.
#[derive(Debug)]
struct Asked {
    question: u32,
    choice: Choice,
    /// Time that the sender spent on it.
    sent_in: Option<Duration>,
}

/// Flag of questions about chunks.
const CHUNK: u32 = 1 << 31;

/// The question about the chunk with this name.
pub fn question(name: u32) -> u32 {
    name | CHUNK
}

impl Probe {
    pub fn new(is_near: bool) -> Probe {
        Probe { is_near, ..Probe::default() }
    }

    /// Chooses the method for a message. While a measurement is pending, returns the method of the last
    /// message without measuring. The same holds while chunks of several methods are under way (`mixed`),
    /// because they delay each other: in a stream, the chunks of a trial would be measured behind those of
    /// the previous method.
    pub fn choose(
        &self,
        selector: &mut Selector,
        (len, shape): (u64, Shape),
        among: &[Method],
        mixed: bool,
    ) -> Choice {
        selector.choose((self.is_near, shape), len, among, self.asked.is_none() && !mixed)
    }

    /// Chooses how to write a packet with `len` bytes of data of this shape; returns the start time if the
    /// packet is to be measured.
    #[inline]
    pub fn begin(
        &mut self,
        b: &Shared,
        selector: &mut Selector,
        (len, shape): (u64, Shape),
    ) -> Option<(Choice, Option<Instant>)> {
        // When oversubscribed, both processes may share a core and so its cache: nothing to choose.
        if len < LEAST || b.is_oversubscribed || Method::BOUNCED.len() < 2 {
            return None;
        }
        self.learn(b, selector);
        let choice = self.choose(selector, (len, shape), Method::BOUNCED, false);
        self.packets = self.packets.wrapping_add(1);
        let is_sampled = choice.is_trial || self.packets.is_multiple_of(SAMPLE);
        Some((choice, (self.asked.is_none() && is_sampled).then(Instant::now)))
    }

    /// Ends the writing of a packet; returns the question to its reader, zero for none.
    #[inline]
    pub fn end(&mut self, written: Option<(Choice, Option<Instant>)>) -> u32 {
        let Some((choice, Some(begun))) = written else { return 0 };
        // Zero means no question.
        self.number = ((self.number + 1) % CHUNK).max(1);
        self.asked = Some(Asked { question: self.number, choice, sent_in: Some(begun.elapsed()) });
        self.number
    }

    /// Records that the chunk with this name uses `choice`. Returns whether the receiver is to report its
    /// time.
    pub fn ask(&mut self, choice: Choice, name: u32) -> bool {
        let is_measured = self.asked.is_none();
        if is_measured {
            self.asked = Some(Asked { question: question(name), choice, sent_in: None });
        }
        is_measured
    }

    /// Records the time of the sender's part of the chunk; none if it says nothing about the method.
    pub fn sent(&mut self, name: u32, took: Option<Duration>) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.question == question(name)) {
            asked.sent_in = took;
            if took.is_none() {
                self.asked = None;
            }
        }
    }

    /// Passes a finished measurement to the selector, once the receiver has answered. A packet is read
    /// after it was written, so the times add up; a chunk is read while it is written.
    pub fn learn(&mut self, b: &Shared, selector: &mut Selector) {
        if let Some(Asked { question, choice, sent_in: Some(sent_in) }) = self.asked
            && let Some(received_in) = b.answered(question)
        {
            self.asked = None;
            let is_chunk = question & CHUNK != 0;
            let took = if is_chunk { sent_in.max(received_in) } else { sent_in + received_in };
            selector.note(choice, took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::selector::ROW;
    use crate::shm::shared::tests::pair;

    const LEN: u64 = 100_000;

    /// Counts how many of a thousand packets use non-temporal stores, given the times of reading.
    fn non_temporal(
        (probe, selector): (&mut Probe, &mut Selector),
        [b, peer]: &[Shared; 2],
        len: u64,
        read_in: [u64; 2],
    ) -> usize {
        let mut one = || {
            let writing = probe.begin(b, selector, (len, Shape::Whole));
            let is_non_temporal = writing.is_some_and(|(choice, _)| choice.method == Method::NonTemporal);
            let question = probe.end(writing);
            if question != 0 {
                peer.answer(question, Duration::from_micros(read_in[usize::from(is_non_temporal)]));
            }
            is_non_temporal
        };
        (0..1000).filter(|_| one()).count()
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn packets_are_written_so_that_they_are_read_sooner_by_class_of_length() {
        let (mut ends, mut probe, mut selector) = (pair(), Probe::default(), Selector::default());
        let mut count =
            |ends: &_, len, read_in| non_temporal((&mut probe, &mut selector), ends, len, read_in);
        assert!(count(&ends, 8 << 10, [1000, 10]) > 900);
        assert!(count(&ends, 16 << 10, [10, 1000]) < 100);
        assert!(count(&ends, LEAST - 1, [1000, 10]) == 0, "short ones are not tried");
        ends[0].is_oversubscribed = true;
        assert!(count(&ends, 8 << 10, [1000, 10]) == 0, "nor is anything when oversubscribed");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_reader_that_does_not_answer_is_not_asked_again() {
        let ([b, _], mut probe, mut selector) = (pair(), Probe::default(), Selector::default());
        let questions = (0..100).filter(|_| {
            let writing = probe.begin(&b, &mut selector, (LEAST, Shape::Whole));
            probe.end(writing) != 0
        });
        assert_eq!(questions.count(), 1);
    }

    #[test]
    fn while_methods_are_mixed_the_last_one_is_kept_and_no_trial_is_used_up() {
        let (probe, mut selector) = (Probe::default(), Selector::default());
        let mut choose = |mixed| probe.choose(&mut selector, (LEN, Shape::Whole), Method::ALL, mixed);
        let first = choose(false);
        assert!(first.is_trial);
        let mixed = (0..100).map(|_| choose(true));
        assert!(mixed.into_iter().all(|choice| choice.method == first.method && !choice.is_trial));
        let rest = (1..ROW).map(|_| choose(false));
        assert!(rest.into_iter().all(|choice| choice.method == first.method && choice.is_trial));
        assert_ne!(choose(false).method, first.method);
    }

    #[test]
    fn one_of_several_chunks_is_measured() {
        let ([b, peer], mut probe, mut selector) = (pair(), Probe::default(), Selector::default());
        let mut message = |name| {
            probe.learn(&b, &mut selector);
            let chosen = probe.choose(&mut selector, (LEN, Shape::Whole), Method::ALL, false);
            assert!(probe.ask(chosen, name));
            for _ in 0..3 {
                let next = probe.choose(&mut selector, (LEN, Shape::Whole), Method::ALL, false);
                assert!(next.method == chosen.method && !probe.ask(next, name + 1), "one at a time");
            }
            let took = Duration::from_micros(if chosen.method == Method::Cma { 50 } else { 100 });
            probe.sent(name, Some(took));
            peer.answer(question(name), took);
            chosen.method
        };
        let taken: Vec<Method> = (0..60).map(|number| message(4 * number)).collect();
        let cma = taken.iter().filter(|method| **method == Method::Cma).count();
        assert!(cma > 35, "{taken:?}");
    }
}
