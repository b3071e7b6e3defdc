//! Chunks that this side receives: pulled from the peer's memory, or copied out of bounce buffers, unless the
//! peer pushes them.

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
    /// Since when it has its turn, if the sender wants to know how long it takes.
    begun: Option<Instant>,
    /// Where its bytes are, once it was asked.
    source: Option<Remote>,
    /// Bytes that came through bounce buffers.
    bounced: u64,
    /// Nobody knows yet where it goes.
    is_held: bool,
    /// The peer does not know that either, and so does not push it.
    is_left: bool,
}

impl In {
    /// Whether all of it is here: copied, and taken out of bounce buffers. When its word describes another
    /// chunk, the sender knows that.
    fn is_complete(&self, b: &Shared) -> bool {
        let (other, word) = (b.end.other(), self.word(b));
        claim::is_complete(word, self.round)
            && (claim::is_over(word, self.round)
                || b.segment.word(other.bounced(self.place)).load(Ordering::Acquire) & !CUT == self.bounced)
    }

    fn word<'a>(&self, b: &'a Shared) -> &'a AtomicU64 {
        b.segment.word(b.end.other().claim(self.place))
    }

    /// Whether it comes through bounce buffers, as long as the sender does not give that up: then the line of
    /// its word is left to the sender, which would have to fetch it back for every part.
    fn is_bounced(&self) -> bool {
        self.about.method != Method::Cma
    }

    /// Whether the sender has told where it is. Scattered memory comes through bounce buffers only.
    fn is_described(&self) -> bool {
        self.chunk.pieces > 0
    }
}

/// Chunks that this side receives, in order.
#[derive(Debug, Default)]
pub struct Incoming {
    chunks: VecDeque<In>,
    /// The peer fills no bounce buffers.
    pub silence: Silence,
}

impl Incoming {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The method of the chunk that is coming just now.
    pub fn method(&self) -> Option<Method> {
        self.chunks.front().map(|incoming| incoming.about.method)
    }

    /// A cell told of a chunk.
    ///
    /// # Errors
    /// It cannot be so.
    pub fn add(&mut self, about: About, chunk: Chunk) -> Result<(), String> {
        let (place, round) = (about.name as usize & (CHUNKS - 1), Round::of(u64::from(about.name >> 3)));
        if chunk.len > claim::LONGEST {
            return Err("broke the protocol: impossible chunk".into());
        }
        self.silence.end();
        let begun = about.asks.then(Instant::now);
        let is_held = chunk.key == Key::PUSH;
        let (source, bounced, is_left) = (None, 0, is_held);
        self.chunks.push_back(In { chunk, about, place, round, begun, source, bounced, is_held, is_left });
        Ok(())
    }

    /// Whether nobody knows yet where the last chunk goes.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.chunks.back().is_some_and(|incoming| incoming.is_held)
    }

    /// The chunk that is held goes to this region; nowhere, if that has no key any more. If it is copied once
    /// and the sender has time to help, the sender learns where, so that it may push some of it after all.
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

    /// Takes bytes of a chunk out of a bounce buffer.
    ///
    /// # Errors
    /// The peer broke the rules.
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

    /// Pulls one piece, if one is left for that. Returns the bytes. `alone`: the peer has something else to
    /// do than to help.
    ///
    /// # Errors
    /// The peer broke the rules, or what the system said: then nothing was copied, and others may do it.
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
                    // The sender has claimed the rest meanwhile, and its list may be gone.
                    Err(_) if claim::is_claimed(word, incoming.round) => continue,
                    Err(e) => return Err(failed(e)),
                }
            }
            // Where each core has enough to do, two calls are more work than one.
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

    /// Reports those that are complete, in order.
    ///
    /// # Errors
    /// The peer broke the rules.
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
            // The next one has its turn now.
            if let Some(In { begun: Some(begun), .. }) = self.chunks.front_mut() {
                *begun = Instant::now();
            }
            let from = turn.peer;
            (turn.report)(Event::Landed { from, number, ack, region, offset, len, kept });
            any = true;
        }
        Ok(any)
    }

    /// Whether something is left that this side could do.
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
