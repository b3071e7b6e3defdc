//! Chunks that this side sends. It pushes them into the peer's memory or copies them into bounce buffers
//! ([`crate::shm::bounce::parts`]), unless the peer pulls them.

use super::{Exchange, Silence};
use crate::node::across::Remote;
use crate::node::claim::{self, Round, Side};
use crate::shm::cma::regions::{self, Place};
use crate::shm::layout::{CHUNKS, CUT, PACKET};
use crate::shm::probe::Probe;
use crate::shm::ring::cell::{About, Chunk};
use crate::shm::selector::{self, Method, Selector};
use crate::shm::shape::{LONG, Shape};
use crate::shm::shared::{Obstacle, Shared};
use nmad_engine::memory::Segments;
use nmad_engine::packet::Key;
use nmad_engine::transfer::driver::Order;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A chunk that this side sends.
#[derive(Debug)]
pub struct Out {
    order: Order,
    /// Index of its claim word.
    pub place: usize,
    /// The round in which the claim word describes this chunk.
    pub round: Round,
    key: Key,
    offset: u64,
    pub from: Segments,
    /// The list of the pieces of `from`, which the peer reads.
    _list: regions::List,
    target: Option<Arc<Remote>>,
    /// The peer can read the addresses of its memory.
    is_described: bool,
    /// Further parts may go through bounce buffers.
    pub is_bounced: bool,
    /// Bytes that went through bounce buffers.
    bounced: u64,
    /// The chosen method; another one is used if the peer does not do its part.
    pub method: Method,
    /// Start of its measurement, if its duration is a valid sample of the method.
    begun: Option<Instant>,
    /// A chunk of the peer is under way at the same time.
    crosses: bool,
    /// An exchange was expected when this chunk began.
    expects_crossing: bool,
}

impl Out {
    /// Index and round, as encoded in cells.
    pub fn name(&self) -> u32 {
        self.place as u32 | (self.round.number() as u32) << 3
    }

    /// Starts the claim protocol, so that both sides can copy. A receiver that closes its region finds the
    /// key from now on, and this side keeps the target only if the region is still open.
    fn begin(&mut self, b: &Shared) {
        let key = if self.key == Key::PUSH { 0 } else { self.key.0 };
        b.segment.word(b.end.goes_to(self.place)).store(key, Ordering::Relaxed);
        claim::begin(self.word(b), self.round, self.from.len(), !self.is_bounced && !b.end.has_front());
        if self.target.is_some() && !regions::is_open(&b.segment, b.end.other(), self.key) {
            self.target = None;
        }
    }

    /// Switches bounce buffers on or off for the rest of the chunk. Its duration is then no valid sample.
    fn bounce(&mut self, b: &Shared, is_bounced: bool) {
        (self.is_bounced, self.begun) = (is_bounced, None);
        self.publish_bounced(b);
    }

    /// Records that `len` more bytes went through bounce buffers.
    pub fn add_bounced(&mut self, b: &Shared, len: u64) {
        self.bounced += len;
        self.publish_bounced(b);
    }

    fn publish_bounced(&self, b: &Shared) {
        let cut = if self.is_bounced { 0 } else { CUT };
        b.segment.word(b.end.bounced(self.place)).store(self.bounced | cut, Ordering::Release);
    }

    /// Returns whether the chunk was to be copied once, and neither side can do so any more.
    fn is_stuck(&self, b: &Shared) -> bool {
        !self.is_bounced && !self.has_single_copy(b)
    }

    /// Returns whether at least one side can copy it directly.
    fn has_single_copy(&self, b: &Shared) -> bool {
        self.target.is_some() || (self.is_described && b.peer_can())
    }

    /// Reads the key of the receive region, if the peer has published it since.
    fn look(&mut self, b: &Shared, known: &mut Known) {
        if self.target.is_none() && self.key == Key::PUSH && !self.is_bounced {
            let told = b.segment.word(b.end.goes_to(self.place)).load(Ordering::Acquire);
            if told != 0 {
                self.key = Key(told);
                self.target = known.place(b, self.key, (self.offset, self.from.len())).memory();
            }
        }
    }

    /// Returns whether the receiver is to copy the whole chunk. In an exchange on an oversubscribed node
    /// each core has enough to do, and memory that only the receiver's core writes stays in its cache.
    fn is_left(&self, b: &Shared) -> bool {
        let is_pulled = self.is_described && b.peer_can() && !self.is_bounced;
        b.is_oversubscribed && (self.crosses || self.expects_crossing) && is_pulled
    }

    /// The claim word: which side copies which part.
    pub fn word<'a>(&self, b: &'a Shared) -> &'a AtomicU64 {
        b.segment.word(b.end.claim(self.place))
    }

    /// Returns whether some of it is unclaimed.
    pub fn has_rest(&self, b: &Shared) -> bool {
        !claim::is_claimed(self.word(b), self.round)
    }
}

/// Cache of the last receive region that expects further chunks, so that its description, which may have a
/// million pieces, is read once only.
#[derive(Debug, Default)]
struct Known {
    last: Option<(Key, Place)>,
}

impl Known {
    /// Returns the peer's memory for `len` bytes at `offset` of the region with this key.
    fn place(&mut self, b: &Shared, key: Key, (offset, len): (u64, u64)) -> Place {
        let Some(process) = b.process.as_ref().filter(|_| key != Key::PUSH) else { return Place::Unknown };
        let known = self.last.take().filter(|(of, _)| *of == key).map(|(_, place)| place);
        let place = known.unwrap_or_else(|| regions::find(&b.segment, b.end.other(), process, key));
        let end = offset.saturating_add(len);
        match &place {
            Place::At(region) if end > region.len() => return Place::Unknown,
            Place::At(region) if end < region.len() => self.last = Some((key, place.clone())),
            _ => {}
        }
        place
    }
}

/// Chunks that this side sends and that are not complete yet, in order.
#[derive(Debug, Default)]
pub struct Outgoing {
    pub chunks: VecDeque<Out>,
    next: usize,
    /// Number of the last cell about each index; the index is reused once the peer has consumed that cell.
    pub last: [u64; CHUNKS],
    /// Time since the peer last emptied a bounce buffer.
    pub silence: Silence,
    known: Known,
    /// Detects whether the peer sends chunks at the same time.
    pub exchange: Exchange,
}

impl Outgoing {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns whether all chunks of this class of length that are under way use this method.
    fn goes_by(&self, class: usize, method: Method) -> bool {
        self.of(class).all(|out| out.method == method)
    }

    /// Returns whether the chunks of this class use several methods.
    fn is_mixed(&self, class: usize) -> bool {
        self.of(class).next().is_some_and(|first| !self.goes_by(class, first.method))
    }

    fn of(&self, class: usize) -> impl Iterator<Item = &Out> {
        self.chunks.iter().filter(move |out| selector::class(out.from.len()) == class)
    }

    /// Returns whether another chunk may begin, given the number of cells that the peer has consumed.
    pub fn has_room(&self, taken: u64) -> bool {
        let place = self.next % CHUNKS;
        self.chunks.iter().all(|out| out.place != place) && (self.next < CHUNKS || taken > self.last[place])
    }

    /// Adds a chunk, announced by the cell of this number; returns the content of the cell. `theirs` is the
    /// method of the chunk that the peer is sending.
    pub fn add(
        &mut self,
        b: &Shared,
        (order, cell): (Order, u64),
        theirs: Option<Method>,
        (probe, selector): (&mut Probe, &mut Selector),
    ) -> Option<(About, Chunk)> {
        let Order::Chunk { number, ack, region, key, offset, ref from, .. } = order else { return None };
        let (from, place, round) = (from.clone(), self.next % CHUNKS, Round::of((self.next / CHUNKS) as u64));
        let len = from.len();
        self.next += 1;
        self.last[place] = cell;
        let (address, pieces, list) = regions::describe(&from, selector.piece_min);
        let chunk = Chunk { number, ack, region, key, offset, len, address, pieces };
        let (place_of, is_described) = (self.known.place(b, key, (offset, len)), pieces > 0);
        let is_scattered = !is_described || matches!(place_of, Place::Scattered);
        let target = place_of.memory();
        let can_cma = target.is_some() || (is_described && b.peer_can());
        let expects_crossing = can_cma && !is_scattered && (theirs.is_some() || self.exchange.is_likely());
        let mut out = Out {
            order,
            place,
            round,
            key,
            offset,
            from,
            _list: list,
            target,
            is_described,
            is_bounced: false,
            bounced: 0,
            method: Method::Cma,
            begun: None,
            crosses: theirs.is_some(),
            expects_crossing,
        };
        let mut is_measured = false;
        let shape =
            if is_scattered && !out.from.is_finer_than(LONG) { Shape::Blocks } else { Shape::of(&out.from) };
        // A single copy of short pieces takes longer than two copies.
        let can_cma = can_cma && !is_scattered;
        if len <= PACKET as u64 || (!can_cma && b.is_oversubscribed) {
            // The whole chunk stays in the caches.
            out.method = Method::Bounce;
        } else if expects_crossing || b.is_oversubscribed {
            // A single copy is the least work for the receiver.
            out.method = Method::Cma;
        } else {
            probe.learn(b, selector);
            let class = selector::class(len);
            let among = if can_cma { Method::ALL } else { Method::BOUNCED };
            let choice = probe.choose(selector, (len, shape), among, self.is_mixed(class));
            out.method = choice.method;
            is_measured = self.goes_by(class, choice.method) && probe.ask(choice, out.name());
            out.begun = is_measured.then(Instant::now);
        }
        if expects_crossing {
            // The receiver gets its full time from now on.
            self.silence.end();
        }
        out.is_bounced = out.method != Method::Cma;
        out.publish_bounced(b);
        out.begin(b);
        let about =
            About { name: out.name(), method: out.method, is_measured, crossed: self.exchange.last() };
        self.chunks.push_back(out);
        Some((about, chunk))
    }

    /// Records an incoming chunk: it crosses all our chunks that are not fully claimed. The peer sent two
    /// things with it: whether its last chunk crossed one, and the number of cells that it had consumed by
    /// then. If the cell of our last chunk was not among them, that chunk was crossed too, even if it is
    /// complete by now.
    pub fn note_incoming(&mut self, b: &Shared, crossed: bool, taken: u64) {
        let last = self.next.checked_sub(1).map(|last| self.last[last % CHUNKS]);
        self.exchange.note_peer(crossed || last.is_some_and(|cell| cell >= taken));
        for out in self.chunks.iter_mut().filter(|out| out.has_rest(b)) {
            out.crosses = true;
        }
    }

    /// Stops the use of bounce buffers, so that a packet can be sent behind the chunks. False: a chunk is
    /// still using them or has no other method, so the packet waits; the peer would not read it earlier
    /// anyway.
    pub fn stop_bouncing(&mut self, b: &Shared) -> bool {
        for out in self.chunks.iter_mut().filter(|out| out.is_bounced && out.has_rest(b)) {
            if !self.silence.is_long(b) || !out.has_single_copy(b) {
                return false;
            }
            out.bounce(b, false);
        }
        true
    }

    /// Returns whether a part of any chunk is still to go through bounce buffers.
    pub fn has_part(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| out.is_bounced && out.has_rest(b))
    }

    /// Pushes one piece, if an unclaimed one is left. Returns the number of bytes.
    ///
    /// # Errors
    /// The copy failed: then nothing was copied, and the piece can be claimed again.
    pub fn step(&mut self, b: &Shared) -> Result<u64, Obstacle> {
        let Some(process) = &b.process else { return Ok(0) };
        for out in &mut self.chunks {
            out.look(b, &mut self.known);
            let Some(target) = &out.target else { continue };
            let word = out.word(b);
            if claim::is_claimed(word, out.round) {
                continue;
            }
            // In an expected exchange, the peer pulls our chunk while this side is about to pull the
            // peer's.
            let waits = out.is_bounced || (out.expects_crossing && !out.crosses);
            if (waits || out.is_left(b)) && !self.silence.is_long(b) {
                continue;
            }
            let (len, alone) = (out.from.len(), b.is_oversubscribed);
            let Some(range) = claim::claim(word, out.round, Side::Push, len, alone) else { continue };
            if out.is_bounced {
                out.begun = None;
            }
            let part = out.from.slice(range.0, range.1 - range.0);
            let copied = target.write(process, out.offset + range.0, &part);
            claim::end(word, out.round, Side::Push, range, copied.is_ok());
            return copied.map(|()| part.len()).map_err(|e| Obstacle::of("written to", e));
        }
        Ok(0)
    }

    /// Forgets all target addresses, because this side cannot access the peer's memory any more.
    pub fn forget_targets(&mut self) {
        self.known = Known::default();
        self.chunks.iter_mut().for_each(|out| out.target = None);
    }

    /// Switches chunks to bounce buffers whose single copy has become impossible.
    pub fn fall_back(&mut self, b: &Shared) {
        let stuck = self.chunks.iter_mut().filter(|out| out.is_stuck(b) && out.has_rest(b));
        stuck.for_each(|out| out.bounce(b, true));
    }

    /// Removes complete chunks and reports their orders as sent. Returns whether there were any.
    pub fn collect(&mut self, b: &Shared, sent: &mut Vec<Order>, probe: &mut Probe) -> bool {
        let before = sent.len();
        while let Some(out) = self.chunks.front() {
            if !claim::is_complete(out.word(b), out.round) {
                break;
            }
            let Some(out) = self.chunks.pop_front() else { break };
            if b.is_oversubscribed {
                self.silence.end();
            }
            self.exchange.note(out.crosses);
            probe.sent(out.name(), out.begun.map(|begun| begun.elapsed()));
            // The measurement of the next chunk starts now.
            if let Some(Out { begun: Some(begun), .. }) = self.chunks.front_mut() {
                *begun = Instant::now();
            }
            sent.push(out.order);
        }
        sent.len() != before
    }

    /// Returns whether this side has work to do.
    pub fn has_work(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| {
            let can = out.target.is_some() || out.is_stuck(b);
            claim::is_complete(out.word(b), out.round) || (can && out.has_rest(b))
        })
    }

    /// Returns whether any bytes are unclaimed.
    pub fn has_rest(&self, b: &Shared) -> bool {
        self.chunks.iter().any(|out| out.has_rest(b))
    }

    /// Cancels all chunks: after this the peer, if it is alive, does not read their memory any more.
    /// Returns the orders.
    pub fn give_up(&mut self, b: &Shared, lives: impl Fn() -> bool) -> Vec<Order> {
        for out in &self.chunks {
            let word = out.word(b);
            claim::revoke(word, out.round, Side::Push);
            claim::wait(&lives, || !claim::is_copying(word, out.round, Side::Pull));
        }
        self.chunks.drain(..).map(|out| out.order).collect()
    }
}
