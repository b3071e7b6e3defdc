//! Sending: packets are copied into slots; chunks stay in user memory, and the peer reads them.
//!
//! | chunk | transfer |
//! |---|---|
//! | fits into a slot | with its header |
//! | few large pieces | registered here; the peer reads it, and sends "done" |
//! | many pieces, memory that cannot be registered or read | in parts, as many as the peer grants |
//! | encrypted link | likewise in parts |

use super::PACKET;
use super::adapter::{Adapter, Place, Posted, Purpose};
use super::cache::{Cache, Registered};
use super::message::{Kind, PLACES, PREFIX, Prefix, RemoteRange, encode_chunk};
use super::sealed;
use super::slots::Slots;
use nmad_engine::memory::Segments;
use nmad_engine::packet::Packet;
use nmad_engine::transfer::driver::Order;
use nmad_seal::Sealer;
use nmad_wire::ChunkHeader;
use std::collections::VecDeque;
use std::sync::Arc;

/// Packets and chunks that one side may send before the other has returned credits.
pub(crate) const WINDOW: u32 = 64;
/// Slots reserved for answers.
pub(super) const RESERVE: usize = 16;
/// Longest chunk in bytes that is sent with its header.
const WHOLE: u64 = (PART - ChunkHeader::LEN) as u64;
/// Bytes of a part. The tag of an encrypted link fits behind it.
pub(crate) const PART: usize = PACKET;
/// Shorter pieces of memory, in bytes, are not worth a registration.
const PIECE_MIN: u64 = 4096;

/// An answer to the peer, which costs no credit.
#[derive(Debug, Clone, Copy)]
struct Answer {
    kind: Kind,
    number: u32,
    count: u32,
}

/// A chunk whose header was sent.
struct Offered<R> {
    order: Order,
    number: u32,
    /// The bytes, and how many of them were sent in parts.
    from: Segments,
    at: u64,
    /// Further parts that the peer has granted.
    granted: u32,
    /// Registrations for the peer's reads.
    regions: Vec<Arc<R>>,
}

/// Queued orders, and those that the peer has not finished with.
pub(crate) struct Outbox<R> {
    queue: VecDeque<Order>,
    answers: VecDeque<Answer>,
    offered: Vec<Offered<R>>,
    /// Packets and chunks that may be sent now.
    credits: u32,
    /// Credits that were not returned to the peer yet.
    due: u32,
    /// The peer's token of the link.
    token: u64,
    /// Encrypts the messages, if the link is encrypted.
    sealer: Option<Box<Sealer>>,
    /// A message that the adapter had no room for: its slot, and its length. It is posted unchanged before
    /// any other, since its encryption depends on its place in the order.
    held_up: Option<(u32, usize)>,
}

/// The parts of the rail that sending needs.
pub(crate) struct Way<'a, A: Adapter> {
    pub(crate) adapter: &'a mut A,
    pub(crate) slots: &'a mut Slots<A::Region>,
    pub(crate) cache: &'a mut Cache<A::Region>,
    pub(crate) endpoint: &'a mut A::Endpoint,
    /// The adapter's name for the endpoint.
    pub(crate) name: u32,
}

impl<R> Outbox<R> {
    /// Creates a queue for a peer whose token of the link is `token`; `sealer` encrypts its messages.
    pub(crate) fn new(token: u64, sealer: Option<Sealer>) -> Self {
        let (queue, answers, offered) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let sealer = sealer.map(Box::new);
        Outbox { queue, answers, offered, credits: WINDOW, due: 0, token, sealer, held_up: None }
    }

    /// Queues an order.
    #[inline]
    pub(crate) fn push(&mut self, order: Order) {
        self.queue.push_back(order);
    }

    /// Adds credits that the peer has returned.
    #[inline]
    pub(crate) fn credit(&mut self, count: u16) {
        self.credits += u32::from(count);
    }

    /// Records that a packet or chunk of the peer was received, which earns it a credit.
    #[inline]
    pub(crate) fn earn_credit(&mut self) {
        self.due += 1;
    }

    /// Handles the end of a chunk, which the peer has received or does not want; returns whether it exists.
    pub(crate) fn done(&mut self, number: u32, sent: &mut Vec<Order>) -> bool {
        let Some(at) = self.offered.iter().position(|offered| offered.number == number) else { return false };
        sent.push(self.offered.remove(at).order);
        true
    }

    /// Handles the grant of further parts of a chunk; returns whether it exists.
    pub(crate) fn grant(&mut self, number: u32, count: u32) -> bool {
        let found = self.offered.iter_mut().find(|offered| offered.number == number);
        let Some(offered) = found else { return false };
        offered.granted = offered.granted.saturating_add(count);
        // From now on the chunk is sent in parts.
        offered.regions.clear();
        true
    }

    /// Queues the answer that a chunk of the peer is complete.
    pub(crate) fn answer_done(&mut self, number: u32) {
        self.answers.push_back(Answer { kind: Kind::Done, number, count: 0 });
    }

    /// Queues the answer that grants parts of a chunk to the peer.
    pub(crate) fn answer_grant(&mut self, number: u32, count: u32) {
        self.answers.push_back(Answer { kind: Kind::Grant, number, count });
    }

    /// Returns whether a message waits for room in the adapter.
    #[inline]
    pub(crate) fn is_held_up(&self) -> bool {
        self.held_up.is_some()
    }

    /// Frees the slot of a message that waits for room, because the endpoint has ended.
    pub(crate) fn release_held_up(&mut self, slots: &mut Slots<R>) {
        if let Some((slot, _)) = self.held_up.take() {
            slots.completed(slot);
        }
    }

    /// Returns whether orders are queued, or answers or credits are due.
    #[inline]
    pub(crate) fn has_something(&self) -> bool {
        !self.queue.is_empty() || !self.answers.is_empty() || self.due >= WINDOW / 2
    }

    /// Removes and returns all orders that were not reported as sent, in the order of posting.
    pub(crate) fn take_unsent(&mut self) -> Vec<Order> {
        let offered = self.offered.drain(..).map(|offered| offered.order);
        offered.chain(self.queue.drain(..)).collect()
    }

    /// Posts as much as there is room for; returns whether something is left. Orders that are complete are
    /// added to `sent`.
    ///
    /// # Errors
    /// The endpoint has failed.
    pub(crate) fn write<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        sent: &mut Vec<Order>,
    ) -> Result<bool, String> {
        let left = !self.post_held_up(way)?
            || self.write_answers(way)?
            || self.write_parts(way, sent)?
            || self.write_orders(way, sent)?;
        if !left && self.due >= WINDOW / 2 {
            self.post(way, Kind::Credit, 0, |_| 0)?;
        }
        way.adapter.flush(way.endpoint)?;
        Ok(left || self.is_held_up())
    }

    /// Posts a packet of one message, if the queue is empty; returns whether it did.
    ///
    /// # Errors
    /// The endpoint has failed.
    #[inline]
    pub(crate) fn send_now<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        head: &[u64],
        data: &Segments,
    ) -> Result<bool, String> {
        let len = size_of_val(head) + data.len() as usize;
        if !self.queue.is_empty() || self.credits == 0 || len > PART || way.slots.count_free() <= RESERVE {
            return Ok(false);
        }
        let posted = self.post(way, Kind::Packet, 0, |out| {
            let mut at = 0;
            for word in head {
                out[at..at + 8].copy_from_slice(&word.to_ne_bytes());
                at += 8;
            }
            copy(data, &mut out[at..]);
            len
        })?;
        self.credits -= u32::from(posted);
        way.adapter.flush(way.endpoint)?;
        Ok(posted)
    }

    /// Posts a last message, whose completion confirms that the peer has received everything.
    pub(crate) fn conclude<A: Adapter<Region = R>>(&mut self, way: &mut Way<'_, A>) -> Result<(), String> {
        if !way.adapter.conclude(way.endpoint) {
            return Ok(());
        }
        self.post(way, Kind::Credit, 0, |_| 0)?;
        way.adapter.flush(way.endpoint)
    }

    fn write_answers<A: Adapter<Region = R>>(&mut self, way: &mut Way<'_, A>) -> Result<bool, String> {
        while let Some(&Answer { kind, number, count }) = self.answers.front() {
            let posted = self.post(way, kind, number, |out| match kind {
                Kind::Grant => {
                    out[..4].copy_from_slice(&count.to_le_bytes());
                    4
                }
                _ => 0,
            })?;
            if !posted {
                return Ok(true);
            }
            self.answers.pop_front();
        }
        Ok(false)
    }

    fn write_parts<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        sent: &mut Vec<Order>,
    ) -> Result<bool, String> {
        for place in (0..self.offered.len()).rev() {
            while self.offered[place].granted > 0 {
                let Offered { number, from, at, .. } = &self.offered[place];
                let (number, part, end) = (*number, from.slice(*at, PART as u64), from.len());
                if way.slots.count_free() <= RESERVE {
                    return Ok(true);
                }
                let posted = self.post(way, Kind::Part, number, |out| copy(&part, out))?;
                if !posted {
                    return Ok(true);
                }
                let offered = &mut self.offered[place];
                offered.granted -= 1;
                offered.at += part.len();
                if offered.at >= end {
                    sent.push(self.offered.remove(place).order);
                    break;
                }
            }
        }
        Ok(false)
    }

    fn write_orders<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        sent: &mut Vec<Order>,
    ) -> Result<bool, String> {
        while let Some(order) = self.queue.pop_front() {
            // Credits arrive with a message, which causes another attempt.
            if self.credits == 0 || way.slots.count_free() <= RESERVE {
                let waits_for_peer = self.credits == 0;
                self.queue.push_front(order);
                return Ok(!waits_for_peer);
            }
            let posted = match &order {
                Order::Packet { packet, .. } => {
                    self.post(way, Kind::Packet, 0, |out| stage(packet, out))?.then_some(None)
                }
                Order::Chunk { .. } => self.offer(way, &order)?,
                Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => Some(None),
            };
            match posted {
                None => {
                    self.queue.push_front(order);
                    return Ok(true);
                }
                Some(None) => sent.push(order),
                Some(Some((number, from, regions))) => {
                    self.offered.push(Offered { order, number, from, at: 0, granted: 0, regions });
                }
            }
            self.credits -= 1;
        }
        Ok(false)
    }

    /// Posts the header of a chunk. None: there was no room. Otherwise the state to keep until the peer has
    /// received the chunk, unless it was sent with the header.
    #[expect(clippy::type_complexity, reason = "read in one place only")]
    fn offer<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        order: &Order,
    ) -> Result<Option<Option<(u32, Segments, Vec<Arc<R>>)>>, String> {
        let Order::Chunk { number, ack, region, key, offset, from, .. } = order else {
            return Ok(Some(None));
        };
        let (number, ack, offset, len) = (*number, *ack, *offset, from.len() as u32);
        let header = ChunkHeader { number, ack, region: region.0, key: key.0, offset, len };
        if from.len() <= WHOLE {
            let posted = self.post(way, Kind::Whole, number, |out| {
                let at = encode_chunk(&header, &[], out);
                at + copy(from, &mut out[at..])
            })?;
            return Ok(posted.then_some(None));
        }
        let (places, regions) = match self.sealer {
            None => register(way.adapter, way.cache, from),
            Some(_) => (Vec::new(), Vec::new()),
        };
        let kind = if places.is_empty() { Kind::Parted } else { Kind::Chunk };
        let posted = self.post(way, kind, number, |out| encode_chunk(&header, &places, out))?;
        Ok(posted.then(|| Some((number, from.clone(), regions))))
    }

    /// Posts one message, whose content behind the prefix is written by `fill`, or keeps it until there is
    /// room; false: another one is kept already, or all slots are in use.
    #[inline]
    fn post<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        kind: Kind,
        number: u32,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<bool, String> {
        if !self.post_held_up(way)? {
            return Ok(false);
        }
        let Some(slot) = way.slots.take() else { return Ok(false) };
        let credits = self.due.min(u32::from(u16::MAX)) as u16;
        let bytes = way.slots.bytes_mut(slot);
        Prefix { kind, credits, number, token: self.token }.encode(bytes);
        let mut len = PREFIX + fill(&mut bytes[PREFIX..]);
        if let Some(sealer) = &mut self.sealer {
            len = sealed::seal(sealer, bytes, len)?;
        }
        self.due -= u32::from(credits);
        self.post_slot(way, slot, len)?;
        Ok(true)
    }

    /// Posts the message that waits for room; false: there is still none.
    #[inline]
    fn post_held_up<A: Adapter<Region = R>>(&mut self, way: &mut Way<'_, A>) -> Result<bool, String> {
        if let Some((slot, len)) = self.held_up.take() {
            self.post_slot(way, slot, len)?;
        }
        Ok(!self.is_held_up())
    }

    /// Posts a message of `len` bytes, or keeps it if there is no room for it now.
    #[inline]
    fn post_slot<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        slot: u32,
        len: usize,
    ) -> Result<(), String> {
        let message = way.slots.segment(slot, len);
        let posted = way.adapter.send(way.endpoint, message, way.slots.region(), slot);
        match posted {
            Ok(Posted::Taken) => way.slots.posted(slot, way.name),
            Ok(Posted::Full) => {
                way.slots.posted(slot, way.name);
                self.held_up = Some((slot, len));
            }
            Ok(Posted::Done) | Err(_) => way.slots.free(slot),
        }
        posted.map(drop)
    }
}

/// Registers memory for reads by the peer; returns the address of each piece. Empty if that is impossible
/// or not worth it.
fn register<A: Adapter>(
    adapter: &mut A,
    cache: &mut Cache<A::Region>,
    from: &Segments,
) -> (Vec<RemoteRange>, Vec<Arc<A::Region>>) {
    let none = (Vec::new(), Vec::new());
    if !adapter.abilities().can_read || !pays(from) {
        return none;
    }
    let (mut places, mut regions) = (Vec::new(), Vec::new());
    for piece in from.iter() {
        match cache.register(piece, Purpose::Source, |memory| adapter.register(memory, Purpose::Source)) {
            Ok(Registered { region, start }) => {
                let Place { address, key } = adapter.place(&region);
                let address = address.wrapping_add((piece.start.addr() - start) as u64);
                places.push(RemoteRange { at: Place { address, key }, len: piece.len as u64 });
                regions.push(region);
            }
            Err(why) => {
                log::debug!("cannot register a chunk, which is sent in parts: {why}");
                return none;
            }
        }
    }
    (places, regions)
}

/// Returns whether memory has few and long pieces, so that registration pays.
pub(crate) fn pays(memory: &Segments) -> bool {
    let count = memory.iter().take(PLACES + 1).count();
    count <= PLACES && memory.len() / (count as u64).max(1) >= PIECE_MIN
}

/// Copies memory to the beginning of `out`; returns the number of bytes.
pub(super) fn copy(from: &Segments, out: &mut [u8]) -> usize {
    let mut at = 0;
    for slice in from.slices() {
        out[at..at + slice.len()].copy_from_slice(slice);
        at += slice.len();
    }
    at
}

/// Copies a packet with its segments from user memory; returns the number of bytes.
fn stage(packet: &Packet, out: &mut [u8]) -> usize {
    let mut at = 0;
    packet.parts(|part| {
        out[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    });
    at
}
