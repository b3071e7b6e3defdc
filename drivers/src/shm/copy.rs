//! Chunks that both sides copy, each for its part: pushed by the sender, pulled by the receiver.

use super::board;
use super::cell::Chunk;
use super::claim::{self, Round, Side};
use super::layout::CHUNKS;
use super::shared::Shared;
use super::sys::{self, Remote};
use crate::landings::Landings;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId};
use nmad_engine::transfer::driver::{Event, Order};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// A chunk that this side sends.
#[derive(Debug)]
struct Out {
    order: Order,
    place: usize,
    round: Round,
    key: Key,
    offset: u64,
    from: Segments,
    /// The pieces of `from`, where the peer reads them.
    _list: board::List,
    target: Target,
}

/// Whether and where the memory of the landing is known.
#[derive(Debug)]
enum Target {
    Unasked,
    Unknown,
    Known(Remote),
}

/// Chunks that this side sends and the peer has not got yet, in order.
#[derive(Debug, Default)]
pub struct Pushing {
    chunks: VecDeque<Out>,
    next: usize,
}

impl Pushing {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether there is a place for another one.
    pub fn has_room(&self) -> bool {
        self.chunks.len() < CHUNKS
    }

    /// Takes a chunk; what its cell shall say: the value and the content.
    pub fn add(&mut self, b: &Shared, order: Order) -> Option<(u32, Chunk)> {
        let Order::Chunk { number, ack, landing, key, offset, ref from, .. } = order else { return None };
        let (from, place, round) = (from.clone(), self.next % CHUNKS, Round::of((self.next / CHUNKS) as u64));
        self.next += 1;
        let (address, pieces, list) = board::describe(&from);
        let chunk = Chunk { number, ack, landing, key, offset, len: from.len(), address, pieces };
        board::aimed_at(&b.segment, b.end, place).store(key.0, Ordering::Relaxed);
        claim::begin(b.segment.word(b.end.claim(place)), round, from.len());
        let target = if b.pid.is_some() { Target::Unasked } else { Target::Unknown };
        self.chunks.push_back(Out { order, place, round, key, offset, from, _list: list, target });
        Some((place as u32 | (round.number() as u32) << 3, chunk))
    }

    /// Copies one piece, if one is left. Returns the bytes.
    ///
    /// # Errors
    /// What the system said.
    pub fn step(&mut self, b: &Shared) -> std::io::Result<u64> {
        let Some(pid) = b.pid else { return Ok(0) };
        for out in &mut self.chunks {
            let word = b.segment.word(b.end.claim(out.place));
            if claim::is_claimed(word, out.round) {
                continue;
            }
            if let Target::Unasked = out.target {
                let found = board::find(&b.segment, b.end.other(), pid, out.key);
                let reaches = |r: &Remote| out.offset + out.from.len() <= r.len();
                out.target = found.filter(reaches).map_or(Target::Unknown, Target::Known);
            }
            let Target::Known(target) = &out.target else { continue };
            let Some((from, to)) = claim::claim(word, out.round, Side::Push) else { continue };
            let part = out.from.slice(from, to - from);
            let copied = match board::is_shown(&b.segment, b.end.other(), out.key) {
                true => sys::copy(Side::Push, pid, &part, target, out.offset + from),
                // Closed: the receiver discards the chunk.
                false => Ok(()),
            };
            claim::finish(word, Side::Push);
            return copied.map(|()| part.len());
        }
        Ok(0)
    }

    /// Takes away those that have arrived.
    pub fn collect(&mut self, b: &Shared, sent: &mut Vec<Order>) -> bool {
        let before = sent.len();
        while let Some(out) = self.chunks.front() {
            if !claim::is_complete(b.segment.word(b.end.claim(out.place)), out.round) {
                break;
            }
            sent.extend(self.chunks.pop_front().map(|out| out.order));
        }
        sent.len() != before
    }

    /// Whether something is left that this side could copy.
    pub fn has_work(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| {
            let word = b.segment.word(b.end.claim(out.place));
            claim::is_complete(word, out.round)
                || (!matches!(out.target, Target::Unknown) && !claim::is_claimed(word, out.round))
        })
    }

    /// Gives up: the peer does not read the memory of any chunk after this, if it lives. The orders.
    pub fn give_up(&mut self, b: &Shared, lives: impl Fn() -> bool) -> Vec<Order> {
        for out in &self.chunks {
            let word = b.segment.word(b.end.claim(out.place));
            claim::abandon(word, out.round);
            claim::wait(&lives, || !claim::is_copying(word, out.round, Side::Pull));
        }
        self.chunks.drain(..).map(|out| out.order).collect()
    }
}

/// A chunk that this side receives.
#[derive(Debug)]
struct In {
    chunk: Chunk,
    place: usize,
    round: Round,
    /// Where its bytes are, once it was asked.
    source: Option<Remote>,
}

/// Chunks that this side receives, in order.
#[derive(Debug, Default)]
pub struct Pulling {
    chunks: VecDeque<In>,
}

impl Pulling {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// A cell told of a chunk.
    ///
    /// # Errors
    /// It cannot be so.
    pub fn add(&mut self, value: u32, chunk: Chunk) -> Result<(), String> {
        let (place, round) = (value as usize & (CHUNKS - 1), Round::of(u64::from(value >> 3)));
        if chunk.len > claim::LONGEST {
            return Err("broke the protocol: impossible chunk".into());
        }
        self.chunks.push_back(In { chunk, place, round, source: None });
        Ok(())
    }

    /// Copies one piece, if one is left. Returns the bytes.
    ///
    /// # Errors
    /// The peer broke the rules, or what the system said.
    pub fn step(&mut self, b: &Shared, from: PeerId, landings: &Landings) -> Result<u64, String> {
        for incoming in &mut self.chunks {
            let word = b.segment.word(b.end.other().claim(incoming.place));
            if claim::is_claimed(word, incoming.round) {
                continue;
            }
            let Some(into) = find(from, &incoming.chunk, landings)? else {
                claim::discard(word, incoming.round);
                continue;
            };
            let Some(pid) = b.pid else { continue };
            if incoming.source.is_none() {
                let Chunk { address, pieces, len, .. } = incoming.chunk;
                let source = board::fetch(pid, address, pieces, len).map_err(|e| failed(&e))?;
                incoming.source = Some(source);
            }
            let (Some(source), Some((start, end))) =
                (&incoming.source, claim::claim(word, incoming.round, Side::Pull))
            else {
                continue;
            };
            let part = into.slice(start, end - start);
            let copied = sys::copy(Side::Pull, pid, &part, source, start);
            claim::finish(word, Side::Pull);
            return copied.map(|()| part.len()).map_err(|e| failed(&e));
        }
        Ok(0)
    }

    /// Reports those that are complete, in order.
    ///
    /// # Errors
    /// The peer broke the rules.
    pub fn collect(
        &mut self,
        b: &Shared,
        from: PeerId,
        landings: &Landings,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, String> {
        let mut any = false;
        while let Some(In { chunk, place, round, .. }) = self.chunks.front() {
            if !claim::is_complete(b.segment.word(b.end.other().claim(*place)), *round) {
                break;
            }
            let kept = find(from, chunk, landings)?.is_some();
            let Chunk { number, ack, landing, offset, len, .. } = *chunk;
            self.chunks.pop_front();
            report(Event::Landed { from, number, ack, landing, offset, len, kept });
            any = true;
        }
        Ok(any)
    }

    /// Whether something is left that this side could do.
    pub fn has_work(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|incoming| {
            let word = b.segment.word(b.end.other().claim(incoming.place));
            claim::is_complete(word, incoming.round)
                || (b.pid.is_some() && !claim::is_claimed(word, incoming.round))
        })
    }
}

/// Waits until the peer does not push into the landing of this key any more; it is hidden already.
pub fn wait_for_pushes(b: &Shared, key: Option<Key>, lives: impl Fn() -> bool) {
    let other = b.end.other();
    for place in 0..CHUNKS {
        let word = b.segment.word(other.claim(place));
        let aims = || board::aimed_at(&b.segment, other, place).load(Ordering::Acquire);
        claim::wait(&lives, || !claim::is_pushing(word) || key.is_some_and(|key| key.0 != aims()));
    }
}

fn find(from: PeerId, chunk: &Chunk, landings: &Landings) -> Result<Option<Segments>, String> {
    let found = landings.find(from, chunk.landing, chunk.key, chunk.offset, chunk.len);
    found.map_err(|_| "broke the protocol: chunk past the end of its landing".into())
}

fn failed(e: &std::io::Error) -> String {
    format!("cannot be read from: {e} (has it died?)")
}
