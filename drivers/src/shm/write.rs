//! Orders into the ring.

use super::board;
use super::cell::{self, Chunk};
use super::layout::AREA;
use super::link::Link;
use super::ring::{CONTENT, Cells, Head};
use nmad_engine::packet::Packet;
use nmad_engine::transfer::driver::Order;
use std::sync::atomic::Ordering;

/// Bytes of one piece of a chunk that goes through the area: small enough that several are under way, so that
/// both sides copy at once.
const PIECE: u64 = 32 << 10;

/// The peer told an impossible number.
#[derive(Debug)]
pub struct Impossible;

impl Link {
    /// Takes an order, and gives it to the ring if nothing waits before it.
    #[inline]
    pub fn post(&mut self, order: Order, sent: &mut Vec<Order>) -> Result<(), Impossible> {
        if self.queue.is_empty()
            && let Order::Packet { packet, .. } = &order
            && self.put_packet(packet)?
        {
            sent.push(order);
            return Ok(());
        }
        self.queue.push_back(order);
        self.write(sent)
    }

    /// Gives the ring what it takes of what is queued.
    pub fn write(&mut self, sent: &mut Vec<Order>) -> Result<(), Impossible> {
        while let Some(order) = self.queue.pop_front() {
            let left = match &order {
                Order::Packet { packet, .. } => self.put_packet(packet)?,
                Order::Chunk { .. } if self.streamed == 0 && self.is_direct(&order) => {
                    if !self.put_direct(&order)? {
                        self.queue.push_front(order);
                        return Ok(());
                    }
                    continue;
                }
                _ => self.put_stream(&order)?,
            };
            if !left {
                self.queue.push_front(order);
                return Ok(());
            }
            sent.push(order);
        }
        Ok(())
    }

    /// Whether what is queued could go on.
    pub fn may_write(&self) -> bool {
        // What waits has found no room when it last looked.
        self.shared.ours().taken().load(Ordering::Acquire) > self.producer.taken()
    }

    /// A packet, whole; false: there is no room.
    #[inline]
    fn put_packet(&mut self, packet: &Packet) -> Result<bool, Impossible> {
        let len = packet.len();
        if !self.has_room()? {
            return Ok(false);
        }
        if len <= CONTENT && packet.in_place.is_empty() {
            self.push(cell::PACKET, len as u32, &packet.bytes);
            return Ok(true);
        }
        let Some(start) = self.range(len as u32)? else { return Ok(false) };
        let mut at = self.shared.end.area(start);
        let segment = &self.shared.segment;
        packet.parts(|part| {
            segment.put(at, part);
            at += part.len();
        });
        self.push(cell::FAR_PACKET, len as u32, &start.to_le_bytes());
        Ok(true)
    }

    /// Whether the two sides can copy a chunk from process to process.
    fn is_direct(&self, order: &Order) -> bool {
        let Order::Chunk { key, offset, from, .. } = order else { return false };
        let b = &self.shared;
        if b.segment.word(b.end.other().can()).load(Ordering::Acquire) == 1 {
            return true;
        }
        let Some(pid) = b.pid else { return false };
        board::find(&b.segment, b.end.other(), pid, *key)
            .is_some_and(|target| offset.checked_add(from.len()).is_some_and(|end| end <= target.len()))
    }

    /// A chunk that both sides copy; false: there is no room.
    fn put_direct(&mut self, order: &Order) -> Result<bool, Impossible> {
        if !self.pushing.has_room() || !self.has_room()? {
            return Ok(false);
        }
        let mut pushing = std::mem::take(&mut self.pushing);
        let told = pushing.add(&self.shared, clone(order));
        self.pushing = pushing;
        if let Some((value, chunk)) = told {
            self.push(cell::CHUNK, value, &chunk.encode());
        }
        Ok(true)
    }

    /// A chunk through the area; false: not all of it has left.
    fn put_stream(&mut self, order: &Order) -> Result<bool, Impossible> {
        let Order::Chunk { number, ack, landing, key, offset, from, .. } = order else { return Ok(true) };
        if !self.has_room()? {
            return Ok(false);
        }
        let len = from.len();
        if self.streamed == 0 {
            let (number, ack) = (*number, *ack);
            let (landing, key, offset) = (*landing, *key, *offset);
            let chunk = Chunk { number, ack, landing, key, offset, len, address: 0, pieces: 0 };
            self.push(cell::STREAM, 0, &chunk.encode());
            // From here on the chunk has begun, also if it is empty or there is no room for its first piece.
            self.streamed = 1;
        }
        loop {
            let done = self.streamed - 1;
            let piece = PIECE.min(len - done);
            if piece == 0 {
                self.streamed = 0;
                return Ok(true);
            }
            if !self.has_room()? {
                return Ok(false);
            }
            let Some(start) = self.range(piece as u32)? else { return Ok(false) };
            let mut at = self.shared.end.area(start);
            for part in from.slice(done, piece).slices() {
                self.shared.segment.put(at, part);
                at += part.len();
            }
            self.push(cell::PIECE, piece as u32, &start.to_le_bytes());
            self.streamed += piece;
            // The peer may begin while we go on.
            self.wake();
        }
    }

    #[inline]
    fn push(&mut self, kind: u8, value: u32, content: &[u8]) {
        let head = Head { kind, value, taken: self.consumer.taken() };
        self.producer.push(&self.shared.ours(), head, content);
        self.consumer.told();
        self.untold_bytes = 0;
        self.left = true;
    }

    /// Whether a cell may be written.
    #[inline]
    fn has_room(&mut self) -> Result<bool, Impossible> {
        if self.producer.room(&self.shared.ours()) > 0 {
            return Ok(true);
        }
        self.ask()?;
        Ok(self.producer.room(&self.shared.ours()) > 0)
    }

    /// A range of the area for the next cell.
    #[inline]
    fn range(&mut self, len: u32) -> Result<Option<u32>, Impossible> {
        debug_assert!(len <= AREA / 4);
        self.area.free(self.producer.taken());
        if let Some(start) = self.area.take(self.producer.next(), len) {
            return Ok(Some(start));
        }
        self.ask()?;
        Ok(self.area.take(self.producer.next(), len))
    }

    fn ask(&mut self) -> Result<(), Impossible> {
        if !self.producer.ask(&self.shared.ours()) {
            return Err(Impossible);
        }
        self.area.free(self.producer.taken());
        Ok(())
    }
}

/// The same chunk once more: its memory stays the application's.
fn clone(order: &Order) -> Order {
    match order {
        Order::Chunk { to, number, ack, landing, key, offset, from } => Order::Chunk {
            to: *to,
            number: *number,
            ack: *ack,
            landing: *landing,
            key: *key,
            offset: *offset,
            from: from.clone(),
        },
        Order::Packet { to, .. } | Order::Connect { to } | Order::Close { to } => Order::Close { to: *to },
    }
}
