//! Orders into the ring.

use super::cell::{self, Place};
use super::layout::{AREA, CELLS};
use super::link::Link;
use super::ring::{CONTENT, Cells, Head};
use super::segment::Segment;
use super::shared::Shared;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, Packet};
use nmad_engine::transfer::driver::{Order, Sent};
use nmad_wire::AloneHead;
use std::sync::atomic::Ordering;

/// Bytes of the area that are fetched before they are written: the processor sees the way of longer packets
/// by itself.
const READY: usize = 512;

/// Bytes of data that fit into a cell beside the head of a message that is alone.
const BESIDE: usize = CONTENT - size_of::<AloneHead>();

/// The peer told an impossible number.
#[derive(Debug)]
pub struct Impossible;

/// What a packet consists of.
trait Content {
    /// Calls `put` with each part in turn.
    fn each(&self, put: impl FnMut(&[u8]));
}

impl Content for Packet {
    #[inline]
    fn each(&self, put: impl FnMut(&[u8])) {
        self.parts(put);
    }
}

impl Content for &[u8] {
    #[inline]
    fn each(&self, mut put: impl FnMut(&[u8])) {
        put(self);
    }
}

/// A packet that was not built: words of its head, and its data.
struct Parts<'a> {
    head: &'a [u64],
    data: &'a Segments,
}

impl Content for Parts<'_> {
    #[inline]
    fn each(&self, mut put: impl FnMut(&[u8])) {
        self.head.iter().for_each(|word| put(&word.to_ne_bytes()));
        self.data.slices().for_each(put);
    }
}

impl Link {
    /// Takes an order, and gives it to the ring if nothing waits before it.
    #[inline]
    pub fn post(&mut self, order: Order, sent: &mut Vec<Order>) -> Result<(), Impossible> {
        if self.queue.is_empty()
            && self.pushing.is_empty()
            && let Order::Packet { packet, .. } = &order
            && self.put_packet(packet)?
        {
            sent.push(order);
            return Ok(());
        }
        self.queue.push_back(order);
        self.write(sent)
    }

    /// Takes a packet straight into the ring, if nothing waits before it; false: it does not go there now.
    #[inline]
    pub fn pass(&mut self, head: &[u64], data: &Segments) -> Result<bool, Impossible> {
        if !self.queue.is_empty() || !self.pushing.is_empty() {
            return Ok(false);
        }
        if let (Ok(words), Some(bytes)) = (<&AloneHead>::try_from(head), data.contiguous()) {
            if bytes.len() <= BESIDE {
                return self.pass_short(words, bytes);
            }
            if bytes.len() <= BESIDE + (cell::ROW - 1) * CONTENT && self.pass_row(words, bytes) {
                return Ok(true);
            }
        }
        self.pass_any(head, data)
    }

    /// What most packets are: one message, in one cell.
    #[inline]
    fn pass_short(&mut self, head: &AloneHead, data: &[u8]) -> Result<bool, Impossible> {
        if !self.has_room()? {
            return Ok(false);
        }
        let (cells, len) = (self.shared.ours(), size_of_val(head) + data.len());
        let word = self.head(cell::PACKET, len as u32);
        self.producer.push_parts(&cells, word, |cell| cells.put_words(cell, head, data));
        self.pushed();
        self.rouse();
        Ok(true)
    }

    /// What many others are: one message, in a row of cells; false: too many are waiting for the peer.
    #[inline(never)]
    fn pass_row(&mut self, head: &AloneHead, data: &[u8]) -> bool {
        let (cells, len) = (self.shared.ours(), size_of_val(head) + data.len());
        if self.producer.room(&cells) < CELLS / 2 {
            return false;
        }
        let word = self.head(cell::PACKET, len as u32);
        let (beside, behind) = data.split_at(BESIDE);
        self.producer.push_row(&cells, word, len.div_ceil(CONTENT) as u64, |cell, place| match place {
            0 => cells.put_words(cell, head, beside),
            _ => {
                let rest = &behind[(place - 1) * CONTENT..];
                // Of a length that is known, so that it takes no call.
                match rest.first_chunk::<CONTENT>() {
                    Some(whole) => cells.put(cell, 0, whole),
                    None => cells.put(cell, 0, rest),
                }
            }
        });
        self.pushed();
        self.rouse();
        true
    }

    #[inline(never)]
    fn pass_any(&mut self, head: &[u64], data: &Segments) -> Result<bool, Impossible> {
        let passed = self.put(size_of_val(head) + data.len() as usize, &Parts { head, data })?;
        if passed {
            self.wake();
        }
        Ok(passed)
    }

    /// Gives the ring what it takes of what is queued.
    pub fn write(&mut self, sent: &mut Vec<Order>) -> Result<(), Impossible> {
        while let Some(order) = self.queue.pop_front() {
            let left = match &order {
                Order::Packet { packet, .. } => {
                    self.pushing.make_way(&self.shared) && self.put_packet(packet)?
                }
                // What comes behind one that is held is not read: no part of an earlier one may.
                Order::Chunk { key: Key::PUSH, .. } if self.pushing.has_part(&self.shared) => false,
                _ => self.may_begin()?,
            };
            if !left {
                self.queue.push_front(order);
                break;
            }
            match order {
                Order::Packet { .. } => sent.push(order),
                _ => self.begin(order),
            }
        }
        if !self.pushing.is_empty() {
            self.stream()?;
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
        self.put(packet.len(), packet)
    }

    /// `len` bytes in parts as a packet: a short one in a cell, others in a range of the area that the cell
    /// names.
    #[inline]
    fn put(&mut self, len: usize, content: &impl Content) -> Result<bool, Impossible> {
        if !self.has_room()? {
            return Ok(false);
        }
        let count = len.div_ceil(CONTENT).max(1);
        if count <= cell::ROW && self.producer.room(&self.shared.ours()) >= count as u64 {
            self.put_row(len, content);
            return Ok(true);
        }
        let Some(start) = self.range(len as u32)? else { return Ok(false) };
        let Shared { segment, end, .. } = &self.shared;
        let manner = self.far.begin(&self.shared, len);
        let put = if manner.is_uncached() { Segment::put_uncached } else { Segment::put };
        let mut at = end.area(start);
        content.each(|part| {
            put(segment, at, part);
            at += part.len();
        });
        let question = self.far.end(manner, len);
        self.push(cell::FAR_PACKET, len as u32, &Place { start, question }.encode());
        self.ready = if manner.is_uncached() { 0 } else { len.min(READY) };
        Ok(true)
    }

    /// A short packet as a row of cells, for which there is room.
    #[inline]
    fn put_row(&mut self, len: usize, content: &impl Content) {
        let (mut row, mut at) = ([0; cell::ROW * CONTENT], 0);
        content.each(|part| {
            row[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        });
        let (cells, head) = (self.shared.ours(), self.head(cell::PACKET, len as u32));
        let count = len.div_ceil(CONTENT).max(1) as u64;
        self.producer.push_row(&cells, head, count, |cell, place| {
            let rest = &row[place * CONTENT..len];
            cells.put(cell, 0, &rest[..rest.len().min(CONTENT)]);
        });
        self.pushed();
        self.left = true;
    }

    /// Sends a packet and right behind it a chunk, if nothing waits before them and the ring has room for all
    /// of it. What has left is not reported as sent.
    pub fn push_now(
        &mut self,
        packet: &[u8],
        chunk: Order,
        sent: &mut Vec<Order>,
    ) -> Result<Sent, Impossible> {
        let Order::Chunk { to, number, .. } = chunk else { return Ok(Sent::Retry) };
        let free = self.queue.is_empty() && self.pushing.is_empty() && self.may_begin()?;
        if !free || self.producer.room(&self.shared.ours()) < CELLS / 2 || !self.put(packet.len(), &packet)? {
            return Ok(Sent::Retry);
        }
        self.begin(chunk);
        self.stream()?;
        self.wake();
        if self.pushing.collect(&self.shared, sent) {
            sent.pop();
            return Ok(Sent::Done);
        }
        let packet = Packet { bytes: Vec::new(), in_place: Vec::new() };
        sent.push(Order::Packet { to, number: number.wrapping_sub(1), packet });
        Ok(Sent::Posted)
    }

    /// Whether another chunk may begin.
    fn may_begin(&mut self) -> Result<bool, Impossible> {
        if !self.pushing.has_room(self.producer.taken()) {
            self.ask()?;
        }
        Ok(self.pushing.has_room(self.producer.taken()) && self.has_room()?)
    }

    /// Begins a chunk.
    fn begin(&mut self, order: Order) {
        let theirs = self.pulling.way();
        if let Some((about, chunk)) = self.pushing.add(&self.shared, order, self.producer.next(), theirs) {
            self.push(cell::CHUNK, about.encode(), &chunk.encode());
        }
    }

    #[inline]
    pub(super) fn push(&mut self, kind: u8, value: u32, content: &[u8]) {
        let head = self.head(kind, value);
        self.producer.push(&self.shared.ours(), head, content);
        self.pushed();
        self.left = true;
    }

    /// A cell's word: what it is, and what this side has taken.
    #[inline]
    pub(super) fn head(&self, kind: u8, value: u32) -> Head {
        Head { kind, value, taken: self.consumer.taken() }
    }

    #[inline]
    fn pushed(&mut self) {
        self.told();
        self.lag.answered();
    }

    /// A cell has left, which tells what was taken.
    #[inline]
    pub(super) fn told(&mut self) {
        self.consumer.told();
        self.untold_bytes = 0;
        self.ready = 0;
    }

    /// Whether a cell may be written.
    #[inline]
    pub(super) fn has_room(&mut self) -> Result<bool, Impossible> {
        if self.producer.room(&self.shared.ours()) > 0 {
            return Ok(true);
        }
        self.ask()?;
        Ok(self.producer.room(&self.shared.ours()) > 0)
    }

    /// Fetches the lines of the area that the next packet would be written to, if it is like the last one.
    /// The peer has just read them, and what is stored after a line that is not there is not seen before that
    /// line has come back. It comes while this side looks at what has arrived.
    #[inline(never)]
    pub(super) fn ready_area(&mut self) {
        self.area.free(self.producer.taken());
        let start = self.area.next();
        for line in (0..self.ready as u32).step_by(64).filter(|line| start + line < AREA) {
            self.shared.segment.expect(self.shared.end.area(start + line));
        }
    }

    /// A range of the area for the next cell.
    #[inline]
    pub(super) fn range(&mut self, len: u32) -> Result<Option<u32>, Impossible> {
        debug_assert!(len <= AREA / 4);
        self.area.free(self.producer.taken());
        if let Some(start) = self.area.take(self.producer.next(), len) {
            return Ok(Some(start));
        }
        self.ask()?;
        Ok(self.area.take(self.producer.next(), len))
    }

    #[cold]
    #[inline(never)]
    fn ask(&mut self) -> Result<(), Impossible> {
        if !self.producer.ask(&self.shared.ours()) {
            return Err(Impossible);
        }
        self.area.free(self.producer.taken());
        Ok(())
    }
}
