//! What the selector learns on one link: which messages are measured, and how.

use super::selector::{Choice, LEAST, Method, Selector};
use crate::shm::shared::Shared;
use std::time::{Duration, Instant};

/// One packet in this number is measured while nothing is tried, since a reading of the clock takes as long
/// as copying half a KiB; not a power of two, since a program's pattern often is one. Zen 4: none at all is
/// within the spread.
const SAMPLE: u32 = 7;

/// The measurements of one link: one message at a time, whose receiver is asked how long it took, since
/// nobody else knows when the bounce buffers are empty again.
#[derive(Debug, Default)]
pub struct Probe {
    is_near: bool,
    asked: Option<Asked>,
    /// The number of the last question about a packet; those about chunks have the chunk's name.
    number: u32,
    packets: u32,
}

/// A message whose receiver was asked.
#[derive(Debug)]
struct Asked {
    question: u32,
    choice: Choice,
    /// How long it took the sender.
    sent_in: Option<Duration>,
}

/// Marks questions about chunks.
const CHUNK: u32 = 1 << 31;

/// The question about the chunk of this name.
pub fn question(name: u32) -> u32 {
    name | CHUNK
}

impl Probe {
    pub fn new(is_near: bool) -> Probe {
        Probe { is_near, ..Probe::default() }
    }

    /// How a message goes. While the answer about another one is out, it goes as the last one did; so it does
    /// after those of several methods (`mixed`), which delay each other: in a stream all chunks of a trial
    /// would otherwise be measured behind those of the method before it.
    pub fn choose(&self, selector: &mut Selector, len: u64, among: &[Method], mixed: bool) -> Choice {
        selector.choose(self.is_near, len, among, self.asked.is_none() && !mixed)
    }

    /// How to write a packet with `len` bytes of data, and since when it is written if that is to be
    /// measured.
    #[inline]
    pub fn begin(
        &mut self,
        b: &Shared,
        selector: &mut Selector,
        len: u64,
    ) -> Option<(Choice, Option<Instant>)> {
        // Processes that share a core share its cache.
        if len < LEAST || b.is_oversubscribed || Method::BOUNCED.len() < 2 {
            return None;
        }
        self.learn(b, selector);
        let choice = self.choose(selector, len, Method::BOUNCED, false);
        self.packets = self.packets.wrapping_add(1);
        let is_sampled = choice.is_trial || self.packets.is_multiple_of(SAMPLE);
        Some((choice, (self.asked.is_none() && is_sampled).then(Instant::now)))
    }

    /// A packet is written: the question to its reader, zero for none.
    #[inline]
    pub fn end(&mut self, written: Option<(Choice, Option<Instant>)>) -> u32 {
        let Some((choice, Some(begun))) = written else { return 0 };
        // Zero is none.
        self.number = ((self.number + 1) % CHUNK).max(1);
        self.asked = Some(Asked { question: self.number, choice, sent_in: Some(begun.elapsed()) });
        self.number
    }

    /// A chunk of this name goes as chosen. Whether its receiver shall answer how long it took.
    pub fn ask(&mut self, choice: Choice, name: u32) -> bool {
        let asks = self.asked.is_none();
        if asks {
            self.asked = Some(Asked { question: question(name), choice, sent_in: None });
        }
        asks
    }

    /// The sender's part of the chunk took so long; none: that says nothing of the method.
    pub fn sent(&mut self, name: u32, took: Option<Duration>) {
        if let Some(asked) = self.asked.as_mut().filter(|asked| asked.question == question(name)) {
            asked.sent_in = took;
            if took.is_none() {
                self.asked = None;
            }
        }
    }

    /// Learns what the receiver has answered, if it has. A packet is read after it was written, a chunk while
    /// it is.
    pub fn learn(&mut self, b: &Shared, selector: &mut Selector) {
        if let Some(Asked { question, choice, sent_in: Some(sent_in) }) = self.asked
            && let Some(received_in) = b.answered(question)
        {
            self.asked = None;
            let is_chunk = question & CHUNK != 0;
            let took = if is_chunk { sent_in.max(received_in) } else { sent_in + received_in };
            selector.note(choice, Some(took));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::selector::ROW;
    use crate::shm::shared::tests::pair;

    const LEN: u64 = 100_000;

    /// How many of a thousand packets are written past the caches, when reading takes so long.
    fn non_temporal(
        (probe, selector): (&mut Probe, &mut Selector),
        [b, peer]: &[Shared; 2],
        len: u64,
        read_in: [u64; 2],
    ) -> usize {
        let mut one = || {
            let writing = probe.begin(b, selector, len);
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
            let writing = probe.begin(&b, &mut selector, LEAST);
            probe.end(writing) != 0
        });
        assert_eq!(questions.count(), 1);
    }

    #[test]
    fn while_methods_are_mixed_messages_go_on_as_the_last_and_no_trial_is_used_up() {
        let (probe, mut selector) = (Probe::default(), Selector::default());
        let mut choose = |mixed| probe.choose(&mut selector, LEN, Method::ALL, mixed);
        let first = choose(false);
        assert!(first.is_trial);
        let mixed = (0..100).map(|_| choose(true));
        assert!(mixed.into_iter().all(|choice| choice.method == first.method && !choice.is_trial));
        let rest = (1..ROW).map(|_| choose(false));
        assert!(rest.into_iter().all(|choice| choice.method == first.method && choice.is_trial));
        assert_ne!(choose(false).method, first.method);
    }

    #[test]
    fn of_chunks_in_a_row_the_first_one_tells() {
        let ([b, peer], mut probe, mut selector) = (pair(), Probe::default(), Selector::default());
        let mut message = |name| {
            probe.learn(&b, &mut selector);
            let chosen = probe.choose(&mut selector, LEN, Method::ALL, false);
            assert!(probe.ask(chosen, name));
            for _ in 0..3 {
                let next = probe.choose(&mut selector, LEN, Method::ALL, false);
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
