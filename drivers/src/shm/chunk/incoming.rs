//! Chunks that this side receives. It pulls them from the peer's memory or copies them out of bounce
//! buffers, unless the peer pushes them.

use super::Silence;
use crate::node::across::Remote;
use crate::node::claim::{self, Round, Side};
use crate::shm::cma::regions;
use crate::shm::layout::{CHUNKS, CUT};
use crate::shm::probe::question;
use crate::shm::ring::cell::{About, Chunk, Range};
use crate::shm::selector::Method;
use crate::shm::shared::{Obstacle, Shared};
use crate::shm::turn::Turn;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, RegionId};
use nmad_engine::transfer::driver::Event;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A chunk that this side receives.
#[derive(Debug)]
struct In {
    chunk: Chunk,
    about: About,
    place: usize,
    round: Round,
    /// Start of its measurement, if the sender wants to know its duration: when all earlier chunks were
    /// complete.
    begun: Option<Instant>,
    /// The sender's memory, once its description was read.
    source: Option<Remote>,
    /// Bytes that came through bounce buffers.
    bounced: u64,
    /// The engine has not yet assigned a receive region.
    is_held: bool,
    /// The peer does not know the receive region and so does not push the chunk.
    is_left: bool,
}

impl In {
    /// Returns whether the whole chunk has been copied, including what went through bounce buffers. If its
    /// claim word already describes another chunk, the sender has seen the chunk complete.
    fn is_complete(&self, b: &Shared) -> bool {
        let (other, word) = (b.end.other(), self.word(b));
        claim::is_complete(word, self.round)
            && (claim::is_over(word, self.round)
                || b.segment.word(other.bounced(self.place)).load(Ordering::Acquire) & !CUT == self.bounced)
    }

    /// Returns whether the sender has counted parts in bounce buffers that this side has not taken yet, or
    /// has an unclaimed rest for bounce buffers, for which it may have found no room.
    fn lacks_parts(&self, b: &Shared) -> bool {
        let word = self.word(b);
        if claim::is_over(word, self.round) {
            return false;
        }
        let bounced = b.segment.word(b.end.other().bounced(self.place)).load(Ordering::Acquire);
        let has_rest = bounced & CUT == 0 && !claim::is_claimed(word, self.round);
        has_rest || bounced & !CUT != self.bounced
    }

    fn word<'a>(&self, b: &'a Shared) -> &'a AtomicU64 {
        b.segment.word(b.end.other().claim(self.place))
    }

    /// Returns whether the chunk comes through bounce buffers, unless the sender gives that up. Meanwhile
    /// this side does not read the claim word, because the sender would have to fetch its line back for
    /// every part.
    fn is_bounced(&self) -> bool {
        self.about.method != Method::Cma
    }

    /// Returns whether the sender has published its address. Scattered memory comes through bounce buffers
    /// only.
    fn is_described(&self) -> bool {
        self.chunk.pieces > 0
    }
}

/// Chunks that this side receives, in order.
#[derive(Debug, Default)]
pub struct Incoming {
    chunks: VecDeque<In>,
    /// Time since the peer last filled a bounce buffer.
    pub silence: Silence,
}

impl Incoming {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The method of the chunk that is being received.
    pub fn method(&self) -> Option<Method> {
        self.chunks.front().map(|incoming| incoming.about.method)
    }

    /// Adds the chunk that a cell describes.
    ///
    /// # Errors
    /// The chunk is longer than possible.
    pub fn add(&mut self, about: About, chunk: Chunk) -> Result<(), String> {
        let (place, round) = (about.name as usize & (CHUNKS - 1), Round::of(u64::from(about.name >> 3)));
        if chunk.len > claim::LONGEST {
            return Err("broke the protocol: impossible chunk".into());
        }
        self.silence.end();
        let begun = about.is_measured.then(Instant::now);
        let is_held = chunk.key == Key::PUSH;
        let (source, bounced, is_left) = (None, 0, is_held);
        self.chunks.push_back(In { chunk, about, place, round, begun, source, bounced, is_held, is_left });
        Ok(())
    }

    /// Returns whether the last chunk still needs a receive region.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.chunks.back().is_some_and(|incoming| incoming.is_held)
    }

    /// Assigns a receive region to the held chunk; without a `key` its data is discarded. If the chunk
    /// takes a single copy and the sender has time to help, the key is published, so that the sender may
    /// push part of it after all.
    pub fn accept(&mut self, b: &Shared, region: RegionId, key: Option<Key>, helps: bool) {
        let Some(incoming) = self.chunks.back_mut().filter(|incoming| incoming.is_held) else { return };
        let Chunk { region: to, key: with, .. } = &mut incoming.chunk;
        (*to, *with, incoming.is_held) = (region, key.unwrap_or(Key::PUSH), false);
        if let Some(key) = key.filter(|_| helps && !incoming.is_bounced() && b.peer_can()) {
            let told = b.segment.word(b.end.other().goes_to(incoming.place));
            told.store(key.0, Ordering::Release);
            incoming.is_left = false;
        }
        self.silence.end();
    }

    /// Returns whether parts of a chunk are still to come through bounce buffers. If the next cell is a
    /// packet, they come behind it, because single copies have become impossible after it was written.
    pub fn lacks_parts(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|incoming| !incoming.is_held && incoming.lacks_parts(b))
    }

    /// Returns whether this part may be taken now.
    pub fn takes(&self, part: &Range) -> bool {
        self.chunks.iter().any(|incoming| incoming.about.name == part.of && !incoming.is_held)
    }

    /// Copies bytes of a chunk out of a bounce buffer.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn take(&mut self, part: &Range, bytes: &[u8], turn: &Turn<'_>) -> Result<(), String> {
        let of = self.chunks.iter_mut().find(|incoming| incoming.about.name == part.of);
        let len = bytes.len() as u64;
        let fits = |incoming: &&mut In| {
            part.at.checked_add(len).is_some_and(|end| end <= incoming.chunk.len)
                && incoming.bounced + len <= incoming.chunk.len
        };
        let incoming = of.filter(fits).ok_or("broke the protocol: part of no chunk")?;
        let Chunk { region, key, offset, .. } = incoming.chunk;
        let found = turn.regions.find(turn.peer, region, key, offset + part.at, len);
        if let Some(into) = found.map_err(|_| PAST_END)? {
            into.write(0, bytes);
        }
        incoming.bounced += len;
        self.silence.end();
        Ok(())
    }

    /// Pulls one piece, if an unclaimed one is left. Returns the number of bytes. `alone`: the peer does
    /// not help, so the pieces are large.
    ///
    /// # Errors
    /// The peer broke the protocol, or the copy failed: then nothing was copied, and the piece can be
    /// claimed again.
    pub fn step(&mut self, b: &Shared, alone: bool, turn: &Turn<'_>) -> Result<u64, Obstacle> {
        for incoming in &mut self.chunks {
            let waits = incoming.is_bounced() && !self.silence.is_long(b);
            if incoming.is_held || !incoming.is_described() || waits {
                return Ok(0);
            }
            let word = incoming.word(b);
            if claim::is_claimed(word, incoming.round) {
                continue;
            }
            let Some(into) = find(turn, &incoming.chunk)? else {
                claim::revoke(word, incoming.round, Side::Pull);
                continue;
            };
            let Some(process) = &b.process else { continue };
            if incoming.source.is_none() {
                let Chunk { address, pieces, len, .. } = incoming.chunk;
                match regions::fetch(process, (address, pieces), len) {
                    Ok(source) => incoming.source = Some(source),
                    // The sender has claimed the rest meanwhile, so its list of pieces may have been freed.
                    Err(_) if claim::is_claimed(word, incoming.round) => continue,
                    Err(e) => return Err(failed(e)),
                }
            }
            // When oversubscribed, two system calls are more work than one.
            let alone = alone || incoming.is_left || b.is_oversubscribed;
            let claimed = claim::claim(word, incoming.round, Side::Pull, incoming.chunk.len, alone);
            let (Some(source), Some(range)) = (&incoming.source, claimed) else { continue };
            let part = into.slice(range.0, range.1 - range.0);
            let copied = source.read(process, range.0, &part);
            claim::end(word, incoming.round, Side::Pull, range, copied.is_ok());
            return copied.map(|()| part.len()).map_err(failed);
        }
        Ok(0)
    }

    /// Reports complete chunks, in order.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn collect(&mut self, b: &Shared, turn: &mut Turn<'_>) -> Result<bool, String> {
        let mut any = false;
        while let Some(incoming) = self.chunks.front() {
            let bounced = incoming.bounced == incoming.chunk.len;
            let looks = !incoming.is_bounced() || self.silence.is_long(b);
            let complete = bounced || (looks && incoming.is_complete(b));
            if incoming.is_held || !complete {
                break;
            }
            if let Some(begun) = &incoming.begun {
                b.answer(question(incoming.about.name), begun.elapsed());
            }
            let kept = find(turn, &incoming.chunk)?.is_some();
            let Chunk { number, ack, region, offset, len, .. } = incoming.chunk;
            self.chunks.pop_front();
            // The measurement of the next chunk starts now.
            if let Some(In { begun: Some(begun), .. }) = self.chunks.front_mut() {
                *begun = Instant::now();
            }
            let from = turn.peer;
            (turn.report)(Event::Landed { from, number, ack, region, offset, len, kept });
            any = true;
        }
        Ok(any)
    }

    /// Returns whether this side has work to do.
    pub fn has_work(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|incoming| {
            let may_pull = b.process.is_some() && incoming.is_described();
            incoming.is_complete(b) || (may_pull && !claim::is_claimed(incoming.word(b), incoming.round))
        })
    }
}

const PAST_END: &str = "broke the protocol: chunk past the end of its region";

fn find(turn: &Turn<'_>, chunk: &Chunk) -> Result<Option<Segments>, String> {
    let found = turn.regions.find(turn.peer, chunk.region, chunk.key, chunk.offset, chunk.len);
    found.map_err(|_| PAST_END.into())
}

fn failed(e: std::io::Error) -> Obstacle {
    Obstacle::of("read from", e)
}
