//! Chunks that are copied from process to process: pushed by the sender, pulled by the receiver, or
//! handed over in parts through the area ([`super::stream`]).

use super::board::{self, CUT};
use super::cell::{Chunk, Part};
use super::claim::{self, Round, Side};
use super::layout::CHUNKS;
use super::pace::{Pace, Way};
use super::shared::Shared;
use super::sys::{self, Remote};
use crate::landings::Landings;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId};
use nmad_engine::transfer::driver::{Event, Order};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a side waits for the other, who would take or leave parts in the area, before it copies
/// alone: the other does not look just now. In an exchange it looks after 256 KiB that it has taken, and as
/// much that it has left.
const PATIENCE: Duration = Duration::from_micros(30);
/// The same where the other may have no core just now, for somebody who has something else to do: some turns
/// of those who share one.
const PATIENCE_IN_A_CROWD: Duration = Duration::from_micros(500);

/// Since when nothing went through the area.
#[derive(Debug, Default)]
pub struct Quiet {
    since: Option<Instant>,
    is_patient: bool,
}

impl Quiet {
    /// Something did.
    #[inline]
    pub fn end(&mut self) {
        self.since = None;
    }

    /// Nothing did, again; whether that lasts too long.
    fn is_long(&mut self) -> bool {
        let patience = if self.is_patient { PATIENCE_IN_A_CROWD } else { PATIENCE };
        self.since.get_or_insert_with(Instant::now).elapsed() > patience
    }
}

/// A chunk that this side sends.
#[derive(Debug)]
pub struct Out {
    order: Order,
    /// Which claim.
    pub place: usize,
    /// And for which chunk it is.
    pub round: Round,
    key: Key,
    offset: u64,
    /// The bytes.
    pub from: Segments,
    /// The pieces of `from`, where the peer reads them.
    _list: board::List,
    target: Option<Remote>,
    /// Whether parts of it may still go through the area.
    pub streams: bool,
    /// Bytes that went there.
    pub streamed: u64,
    /// The way that it went all along, and since when.
    way: Option<(Way, Instant)>,
}

impl Out {
    /// Place and round as cells tell them.
    pub fn value(&self) -> u32 {
        self.place as u32 | (self.round.number() as u32) << 3
    }

    /// Nothing more of it goes through the area.
    fn cut(&mut self, b: &Shared) {
        self.streams = false;
        board::streamed(&b.segment, b.end, self.place).store(self.streamed | CUT, Ordering::Release);
    }

    /// Whether some of it is left for whoever takes it.
    pub fn has_rest(&self, b: &Shared) -> bool {
        !claim::is_claimed(b.segment.word(b.end.claim(self.place)), self.round)
    }
}

/// Chunks that this side sends and the peer has not got yet, in order.
#[derive(Debug, Default)]
pub struct Pushing {
    /// The chunks.
    pub chunks: VecDeque<Out>,
    next: usize,
    /// The last cell about each claim; it serves another chunk when the peer has taken that.
    pub last: [u64; CHUNKS],
    /// The peer takes nothing from the area.
    pub quiet: Quiet,
    pace: Pace,
}

impl Pushing {
    /// There are fewer cores than processes.
    pub fn crowd(&mut self) {
        self.pace.crowd();
    }

    /// Whether to wait longer for the peer.
    pub fn be_patient(&mut self, is_patient: bool) {
        self.quiet.is_patient = is_patient;
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether another one may begin, if the peer has taken so many cells.
    pub fn has_room(&self, taken: u64) -> bool {
        let place = self.next % CHUNKS;
        self.chunks.iter().all(|out| out.place != place) && (self.next < CHUNKS || taken > self.last[place])
    }

    /// Takes a chunk, whose cell gets this number; what it shall say: the value and the content.
    /// `theirs` is the way of what the peer sends just now.
    pub fn add(&mut self, b: &Shared, order: Order, cell: u64, theirs: Option<Way>) -> Option<(u32, Chunk)> {
        let Order::Chunk { number, ack, landing, key, offset, ref from, .. } = order else { return None };
        let (from, place, round) = (from.clone(), self.next % CHUNKS, Round::of((self.next / CHUNKS) as u64));
        self.next += 1;
        self.last[place] = cell;
        let (address, pieces, list) = board::describe(&from);
        board::put_list(&b.segment, b.end.pieces(place), &list);
        let chunk = Chunk { number, ack, landing, key, offset, len: from.len(), address, pieces };
        let reaches = |r: &Remote| offset.checked_add(from.len()).is_some_and(|end| end <= r.len());
        let target = b.pid.and_then(|pid| board::find(&b.segment, b.end.other(), pid, key)).filter(reaches);
        let across = target.is_some() || b.peer_can();
        let way = if across { self.pace.choose(from.len(), theirs) } else { Way::Area };
        board::aimed_at(&b.segment, b.end, place).store(key.0, Ordering::Relaxed);
        let cut = if way == Way::Across { CUT } else { 0 };
        board::streamed(&b.segment, b.end, place).store(cut, Ordering::Relaxed);
        claim::begin(b.segment.word(b.end.claim(place)), round, from.len());
        let streams = way == Way::Area;
        let way = self.chunks.is_empty().then(|| (way, Instant::now()));
        let _list = list;
        let out = Out { order, place, round, key, offset, from, _list, target, streams, streamed: 0, way };
        let value = out.value();
        self.chunks.push_back(out);
        Some((value, chunk))
    }

    /// Makes way for a packet behind the chunks: nothing more of them goes through the area. False: it does
    /// or has to, so the packet waits. It would not be read before they are complete.
    pub fn make_way(&mut self, b: &Shared) -> bool {
        for out in self.chunks.iter_mut().filter(|out| out.streams && out.has_rest(b)) {
            if !self.quiet.is_long() || (out.target.is_none() && !b.peer_can()) {
                return false;
            }
            out.way = None;
            out.cut(b);
        }
        true
    }

    /// Copies one piece into the peer's memory, if one is left for that. Returns the bytes.
    ///
    /// # Errors
    /// What the system said.
    pub fn step(&mut self, b: &Shared) -> std::io::Result<u64> {
        let Some(pid) = b.pid else { return Ok(0) };
        for out in &mut self.chunks {
            let Some(target) = &out.target else { continue };
            let word = b.segment.word(b.end.claim(out.place));
            if claim::is_claimed(word, out.round) || (out.streams && !self.quiet.is_long()) {
                continue;
            }
            let Some((from, to)) = claim::claim(word, out.round, Side::Push) else { continue };
            if out.streams {
                out.way = None;
            }
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

    /// Takes away those whose memory nobody needs any more.
    pub fn collect(&mut self, b: &Shared, sent: &mut Vec<Order>) -> bool {
        let before = sent.len();
        while let Some(out) = self.chunks.front() {
            if !claim::is_complete(b.segment.word(b.end.claim(out.place)), out.round) {
                break;
            }
            let Some(out) = self.chunks.pop_front() else { break };
            if let Some((way, begun)) = out.way {
                self.pace.learn(way, out.from.len(), begun);
            }
            sent.push(out.order);
        }
        sent.len() != before
    }

    /// Whether something is left that this side could do.
    pub fn has_work(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| {
            let word = b.segment.word(b.end.claim(out.place));
            claim::is_complete(word, out.round) || (out.target.is_some() && out.has_rest(b))
        })
    }

    /// Whether some bytes are left for whoever takes them.
    pub fn has_rest(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| out.has_rest(b))
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
    value: u32,
    place: usize,
    round: Round,
    /// Where its bytes are, once it was asked.
    source: Option<Remote>,
    /// Bytes that came through the area.
    streamed: u64,
}

impl In {
    /// Whether all of it is here: copied, and what went through the area taken from there. When its claim
    /// serves another chunk, the sender knows that.
    fn is_complete(&self, b: &Shared) -> bool {
        let (other, place) = (b.end.other(), self.place);
        let word = b.segment.word(other.claim(place));
        claim::is_complete(word, self.round)
            && (claim::is_over(word, self.round)
                || board::streamed(&b.segment, other, place).load(Ordering::Acquire) & !CUT == self.streamed)
    }
}

/// Chunks that this side receives, in order.
#[derive(Debug, Default)]
pub struct Pulling {
    chunks: VecDeque<In>,
    /// The peer leaves nothing in the area.
    quiet: Quiet,
}

impl Pulling {
    /// Whether to wait longer for the peer.
    pub fn be_patient(&mut self, is_patient: bool) {
        self.quiet.is_patient = is_patient;
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The way of the chunk that is coming just now.
    pub fn way(&self, b: &Shared) -> Option<Way> {
        let incoming = self.chunks.front()?;
        let streamed = board::streamed(&b.segment, b.end.other(), incoming.place).load(Ordering::Relaxed);
        Some(if streamed & CUT == 0 { Way::Area } else { Way::Across })
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
        self.quiet.end();
        self.chunks.push_back(In { chunk, value, place, round, source: None, streamed: 0 });
        Ok(())
    }

    /// Takes bytes of a chunk from the area.
    ///
    /// # Errors
    /// The peer broke the rules.
    pub fn take(
        &mut self,
        part: &Part,
        bytes: &[u8],
        from: PeerId,
        landings: &Landings,
    ) -> Result<(), String> {
        let of = self.chunks.iter_mut().find(|incoming| incoming.value == part.chunk);
        let len = bytes.len() as u64;
        let fits = |incoming: &&mut In| {
            part.at.checked_add(len).is_some_and(|end| end <= incoming.chunk.len)
                && incoming.streamed + len <= incoming.chunk.len
        };
        let incoming = of.filter(fits).ok_or("broke the protocol: part of no chunk")?;
        let Chunk { landing, key, offset, .. } = incoming.chunk;
        let found = landings.find(from, landing, key, offset + part.at, len);
        if let Some(into) = found.map_err(|_| PAST_END)? {
            into.write(0, bytes);
        }
        incoming.streamed += len;
        self.quiet.end();
        Ok(())
    }

    /// Copies one piece, if one is left for that. Returns the bytes.
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
            let streamed = board::streamed(&b.segment, b.end.other(), incoming.place);
            if streamed.load(Ordering::Relaxed) & CUT == 0 && !self.quiet.is_long() {
                return Ok(0);
            }
            if incoming.source.is_none() {
                let Chunk { address, pieces, len, .. } = incoming.chunk;
                let listed = (&b.segment, b.end.other().pieces(incoming.place));
                match board::fetch(listed, pid, (address, pieces), len) {
                    Ok(source) => incoming.source = Some(source),
                    // The sender has claimed the rest meanwhile, and its list may be gone.
                    Err(_) if claim::is_claimed(word, incoming.round) => continue,
                    Err(e) => return Err(failed(&e)),
                }
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
        while let Some(incoming) = self.chunks.front().filter(|incoming| incoming.is_complete(b)) {
            let kept = find(from, &incoming.chunk, landings)?.is_some();
            let Chunk { number, ack, landing, offset, len, .. } = incoming.chunk;
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
            incoming.is_complete(b) || (b.pid.is_some() && !claim::is_claimed(word, incoming.round))
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

const PAST_END: &str = "broke the protocol: chunk past the end of its landing";

fn find(from: PeerId, chunk: &Chunk, landings: &Landings) -> Result<Option<Segments>, String> {
    let found = landings.find(from, chunk.landing, chunk.key, chunk.offset, chunk.len);
    found.map_err(|_| PAST_END.into())
}

fn failed(e: &std::io::Error) -> String {
    format!("cannot be read from: {e} (has it died?)")
}
