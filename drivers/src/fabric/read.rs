//! Receiving: packets and chunks in the order in which they were sent. Each is reported when it is complete
//! and everything before it was reported.
//!
//! The receiver reads the bytes of a chunk from the sender's memory. So no peer ever writes into the
//! application's memory, and a receive region can be closed safely: this side knows which reads are under
//! way, waits for them, and posts no more. A write by the sender could still be under way when the memory
//! is freed.

use super::adapter::{Adapter, Place, Purpose};
use super::cache::Cache;
use super::message::{Kind, RemoteRange, decode_places};
use super::operations::{Operation, Operations, Owner};
use super::pinned::Pinned;
use super::write::{Outbox, PART, pays};
use crate::regions::Regions;
use nmad_engine::memory::{Segment, Segments};
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::access::Act;
use nmad_engine::transfer::driver::Event;
use nmad_wire::{ChunkHeader, Header, Malformed};
use std::collections::VecDeque;

/// Reads of one chunk at once.
const READS: u32 = 4;
/// Bytes of a read: long enough for the network's bandwidth, short enough to add little delay at the end of
/// a chunk.
const READ: u64 = 1 << 20;
/// Parts granted at first; as many again are granted when half of them have arrived.
const PARTS: u32 = 16;

/// Arrivals from a peer that are not reported yet.
pub(crate) struct Inbox<R> {
    waiting: VecDeque<Incoming<R>>,
}

enum Incoming<R> {
    Packet(Vec<u8>),
    Chunk(Box<Arriving<R>>),
}

/// A chunk that has begun to arrive.
struct Arriving<R> {
    header: ChunkHeader,
    source: Source,
    stage: Stage,
    /// Its target, while it arrives.
    into: Segments,
    /// Bytes requested so far, and bytes that have arrived.
    asked: u64,
    landed: u64,
    /// Reads under way.
    in_flight: u32,
    /// The registered target.
    pinned: Pinned<R>,
}

/// How the bytes of a chunk arrive.
enum Source {
    Memory(Vec<RemoteRange>),
    Here(Vec<u8>),
    Parts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It was pushed, and has no receive region yet; whether that was reported.
    Held(bool),
    /// Its bytes arrive.
    Coming,
    /// It is complete; whether the bytes were kept.
    Over(bool),
}

/// The parts of the rail that arrivals need.
pub(crate) struct ReadContext<'a, A: Adapter> {
    pub(crate) adapter: &'a mut A,
    pub(crate) cache: &'a mut Cache<A::Region>,
    pub(crate) endpoint: &'a mut A::Endpoint,
    pub(crate) name: u32,
    pub(crate) peer: PeerId,
    pub(crate) regions: &'a Regions,
    pub(crate) operations: &'a mut Operations,
    pub(crate) out: &'a mut Outbox<A::Region>,
}

impl<R> Default for Inbox<R> {
    fn default() -> Self {
        Inbox { waiting: VecDeque::new() }
    }
}

impl<R> Inbox<R> {
    /// Returns whether everything that has arrived was reported.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Queues a packet behind earlier arrivals.
    pub(crate) fn keep(&mut self, packet: &[u8]) {
        self.waiting.push_back(Incoming::Packet(packet.to_vec()));
    }

    /// Handles the header of a chunk.
    ///
    /// # Errors
    /// It is malformed, or reaches past its receive region.
    pub(crate) fn chunk<A: Adapter<Region = R>>(
        &mut self,
        kind: Kind,
        bytes: &[u8],
        context: &mut ReadContext<'_, A>,
    ) -> Result<(), String> {
        let mut arriving = Box::new(decode(kind, bytes).map_err(|e| format!("broke the protocol: {e}"))?);
        if arriving.header.key != Key::PUSH.0 {
            let (region, key) = (RegionId(arriving.header.region), Key(arriving.header.key));
            arriving.begin(region, key, context)?;
        }
        self.waiting.push_back(Incoming::Chunk(arriving));
        Ok(())
    }

    /// Assigns a receive region to the held chunk.
    ///
    /// # Errors
    /// The chunk reaches past its receive region.
    pub(crate) fn accept<A: Adapter<Region = R>>(
        &mut self,
        region: RegionId,
        context: &mut ReadContext<'_, A>,
    ) -> Result<(), String> {
        let Some(Incoming::Chunk(arriving)) = self.waiting.front_mut() else { return Ok(()) };
        if !matches!(arriving.stage, Stage::Held(_)) {
            return Ok(());
        }
        // No receive region has key 0: the bytes are discarded.
        let key = context.regions.key(context.peer, region).unwrap_or(Key(0));
        arriving.header.region = region.0;
        arriving.begin(region, key, context)
    }

    /// Handles the next bytes of a chunk.
    ///
    /// # Errors
    /// They were not granted.
    pub(crate) fn part<A: Adapter<Region = R>>(
        &mut self,
        number: u32,
        bytes: &[u8],
        context: &mut ReadContext<'_, A>,
    ) -> Result<(), String> {
        // If the receive region was closed, the chunk was taken for complete, but parts granted before
        // still arrive.
        let Some(arriving) = self.arriving(number) else { return Ok(()) };
        arriving.part(bytes, context)
    }

    /// Handles a completed read of a chunk.
    pub(crate) fn read<A: Adapter<Region = R>>(
        &mut self,
        (chunk, len): (u32, u64),
        context: &mut ReadContext<'_, A>,
    ) {
        let Some(arriving) = self.arriving(chunk) else { return };
        arriving.in_flight -= 1;
        arriving.landed += len;
        arriving.consider(context);
    }

    /// Handles a failed read of a chunk, which no longer accesses its memory.
    pub(crate) fn failed(&mut self, chunk: u32) {
        if let Some(arriving) = self.arriving(chunk) {
            arriving.in_flight -= 1;
        }
    }

    /// Requests more bytes of the arriving chunks; returns whether some requests did not fit.
    ///
    /// # Errors
    /// The endpoint has failed.
    pub(crate) fn pull<A: Adapter<Region = R>>(
        &mut self,
        context: &mut ReadContext<'_, A>,
    ) -> Result<bool, String> {
        for incoming in &mut self.waiting {
            let Incoming::Chunk(arriving) = incoming else { continue };
            if arriving.pull(context)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether reads into this receive region, or any if none is given, are under way.
    pub(crate) fn is_reading(&self, region: Option<RegionId>) -> bool {
        self.waiting.iter().any(|incoming| match incoming {
            Incoming::Chunk(a) => a.in_flight > 0 && region.is_none_or(|l| l.0 == a.header.region),
            Incoming::Packet(_) => false,
        })
    }

    /// Discards arrivals for a receive region from now on. The caller must wait for reads of it that are
    /// under way.
    pub(crate) fn discard(&mut self, region: RegionId, out: &mut Outbox<R>) {
        for incoming in &mut self.waiting {
            match incoming {
                Incoming::Chunk(a) if a.header.region == region.0 => match a.stage {
                    Stage::Coming => a.end(false, out),
                    Stage::Over(_) => a.stage = Stage::Over(false),
                    Stage::Held(_) => {}
                },
                _ => {}
            }
        }
    }

    /// Returns whether there is anything to report.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.waiting.front().is_some_and(|front| match front {
            Incoming::Packet(_) => true,
            Incoming::Chunk(arriving) => matches!(arriving.stage, Stage::Held(false) | Stage::Over(_)),
        })
    }

    /// Reports complete arrivals, up to the first incomplete one.
    #[inline]
    pub(crate) fn report(&mut self, from: PeerId, out: &mut Outbox<R>, report: &mut dyn FnMut(Event<'_>)) {
        while let Some(front) = self.waiting.front_mut() {
            match front {
                Incoming::Packet(packet) => report(Event::Arrived { from, packet }),
                Incoming::Chunk(arriving) => {
                    if !arriving.report(from, report) {
                        return;
                    }
                }
            }
            out.earn_credit();
            self.waiting.pop_front();
        }
    }

    fn arriving(&mut self, number: u32) -> Option<&mut Arriving<R>> {
        self.waiting.iter_mut().find_map(|incoming| match incoming {
            Incoming::Chunk(arriving) if arriving.header.number == number => Some(&mut **arriving),
            _ => None,
        })
    }
}

impl<R> Arriving<R> {
    /// Starts the transfer of a chunk whose receive region is known.
    fn begin<A: Adapter<Region = R>>(
        &mut self,
        region: RegionId,
        key: Key,
        context: &mut ReadContext<'_, A>,
    ) -> Result<(), String> {
        let ChunkHeader { offset, len, .. } = self.header;
        let found = context.regions.find(context.peer, region, key, offset, u64::from(len));
        let Some(into) = found.map_err(|_| "broke the protocol: a chunk past the end of its region")? else {
            self.end(false, context.out);
            return Ok(());
        };
        self.stage = Stage::Coming;
        self.into = into;
        if let Source::Here(bytes) = &self.source {
            self.into.write(0, bytes);
            self.landed = u64::from(len);
            self.consider(context);
        } else if matches!(self.source, Source::Parts) || !self.register(context) {
            self.source = Source::Parts;
            self.asked = u64::from(PARTS) * PART as u64;
            context.out.answer_grant(self.header.number, PARTS);
        }
        Ok(())
    }

    /// Registers the target; false: this side has to copy the bytes itself.
    fn register<A: Adapter<Region = R>>(&mut self, context: &mut ReadContext<'_, A>) -> bool {
        if !pays(&self.into) {
            return false;
        }
        let pinned = Pinned::new(&self.into, Purpose::Target, (&mut *context.adapter, &mut *context.cache));
        let pinned = pinned.inspect_err(|why| {
            log::debug!("cannot register a receive region, which is filled by copies: {why}")
        });
        pinned.map(|pinned| self.pinned = pinned).is_ok()
    }

    fn part<A: Adapter<Region = R>>(
        &mut self,
        bytes: &[u8],
        context: &mut ReadContext<'_, A>,
    ) -> Result<(), String> {
        let len = u64::from(self.header.len);
        match (self.stage, &self.source) {
            (Stage::Coming, Source::Parts) if self.landed + bytes.len() as u64 <= len => {}
            (Stage::Over(false), _) => return Ok(()),
            _ => return Err("broke the protocol: bytes of a chunk that were not asked for".into()),
        }
        self.into.write(self.landed, bytes);
        self.landed += bytes.len() as u64;
        let granted = self.asked.saturating_sub(self.landed);
        if self.asked < len && granted <= u64::from(PARTS / 2) * PART as u64 {
            self.asked += u64::from(PARTS) * PART as u64;
            context.out.answer_grant(self.header.number, PARTS);
        }
        self.consider(context);
        Ok(())
    }

    /// Requests the remaining bytes; returns whether there was no room.
    fn pull<A: Adapter<Region = R>>(&mut self, context: &mut ReadContext<'_, A>) -> Result<bool, String> {
        let Source::Memory(ranges) = &self.source else { return Ok(false) };
        let len = u64::from(self.header.len);
        while self.stage == Stage::Coming && self.in_flight < READS && self.asked < len {
            let longest = READ.min(context.adapter.abilities().operation as u64);
            let Some((piece, region)) = self.pinned.run(&self.into, self.asked, longest) else { break };
            let Some((from, left)) = place(ranges, self.asked) else { break };
            let piece = Segment { len: piece.len.min(left as usize), ..piece };
            let (owner, len) = (Owner::Chunk(self.header.number), piece.len as u64);
            let read = Operation { endpoint: context.name, owner, len };
            let to = (&mut *context.adapter, &mut *context.endpoint);
            if !context.operations.post(read, to, Act::Get, (piece, region), from)? {
                return Ok(true);
            }
            self.in_flight += 1;
            self.asked += len;
        }
        Ok(false)
    }

    /// Completes the chunk if all bytes have arrived.
    fn consider<A: Adapter<Region = R>>(&mut self, context: &mut ReadContext<'_, A>) {
        if self.stage == Stage::Coming && self.landed >= u64::from(self.header.len) {
            self.end(true, context.out);
        }
    }

    /// Completes the chunk. Notifies the sender, unless it sent the bytes with the header and so keeps no
    /// memory.
    fn end(&mut self, kept: bool, out: &mut Outbox<R>) {
        let knows = matches!(&self.source, Source::Here(_)) || kept && matches!(&self.source, Source::Parts);
        if !knows {
            out.answer_done(self.header.number);
        }
        self.stage = Stage::Over(kept);
        self.pinned = Pinned::default();
        self.into = Segments::empty();
    }

    /// Reports the arrival if possible; returns whether it is finished.
    fn report(&mut self, from: PeerId, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let ChunkHeader { number, ack, region, offset, len, .. } = self.header;
        let len = u64::from(len);
        match self.stage {
            Stage::Held(false) => {
                self.stage = Stage::Held(true);
                report(Event::Pushed { from, request: region, len });
                false
            }
            Stage::Held(true) | Stage::Coming => false,
            Stage::Over(kept) => {
                let region = RegionId(region);
                report(Event::Landed { from, number, ack, region, offset, len, kept });
                true
            }
        }
    }
}

/// Decodes a chunk's header, and the addresses of its bytes.
fn decode<R>(kind: Kind, bytes: &[u8]) -> Result<Arriving<R>, Malformed> {
    let header = ChunkHeader::decode(Header::decode(bytes)?, bytes)?;
    let (len, rest) = (u64::from(header.len), &bytes[ChunkHeader::LEN..]);
    let source = match kind {
        Kind::Chunk => Source::Memory(decode_places(rest, len)?),
        Kind::Parted => Source::Parts,
        _ if rest.len() as u64 == len => Source::Here(rest.to_vec()),
        _ => return Err(Malformed("length of a chunk")),
    };
    let (stage, into, pinned) = (Stage::Held(false), Segments::empty(), Pinned::default());
    Ok(Arriving { header, source, stage, into, asked: 0, landed: 0, in_flight: 0, pinned })
}

/// Address of the byte at `at` of a chunk, and number of contiguous bytes from there.
fn place(ranges: &[RemoteRange], mut at: u64) -> Option<(Place, u64)> {
    for RemoteRange { at: begin, len } in ranges {
        if at < *len {
            return Some((Place { address: begin.address.wrapping_add(at), key: begin.key }, len - at));
        }
        at -= len;
    }
    None
}
