//! Writes orders into the ring.

use super::cell;
use super::{CONTENT, Cells, Content, Head};
use crate::shm::layout::CELLS;
use crate::shm::link::Link;
use crate::shm::selector::Selector;
use crate::shm::shape::Shape;
use crate::shm::shared::IMPOSSIBLE;
use nmad_engine::memory::{Segments, copy_slice};
use nmad_engine::packet::{Key, Packet};
use nmad_engine::transfer::driver::{Order, Sent};
use nmad_wire::AloneHead;
use std::sync::atomic::Ordering;

/// Bytes of data that fit into a cell beside the header of a packet with a single message.
const BESIDE: usize = CONTENT - size_of::<AloneHead>();

/// A packet in two parts: the words of its header, and its data.
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

    fn shape(&self) -> Shape {
        Shape::of(self.data)
    }

    fn head_and_data(&self) -> Option<(&[u64], &Segments)> {
        Some((self.head, self.data))
    }
}

impl Link {
    /// Takes an order, and writes it into the ring if the queue is empty.
    #[inline]
    pub fn post(
        &mut self,
        order: Order,
        sent: &mut Vec<Order>,
        selector: &mut Selector,
    ) -> Result<(), &'static str> {
        if self.queue.is_empty()
            && self.outgoing.is_empty()
            && let Order::Packet { packet, .. } = &order
            && self.put(packet.len(), packet, selector)?
        {
            sent.push(order);
            return Ok(());
        }
        self.queue.push_back(order);
        self.write(sent, selector)
    }

    /// Injects a packet; false: the queue is not empty, or there is no room.
    #[inline]
    pub fn inject(
        &mut self,
        head: &[u64],
        data: &Segments,
        selector: &mut Selector,
    ) -> Result<bool, &'static str> {
        if !self.queue.is_empty() || !self.outgoing.is_empty() {
            return Ok(false);
        }
        if let (Ok(words), Some(bytes)) = (<&AloneHead>::try_from(head), data.contiguous()) {
            if bytes.len() <= BESIDE {
                return self.inject_short(words, bytes);
            }
            if bytes.len() <= BESIDE + (cell::ROW - 1) * CONTENT && self.inject_row(words, bytes) {
                return Ok(true);
            }
        }
        self.inject_any(head, data, selector)
    }

    /// Writes a single message into one cell, which most packets fit into.
    #[inline]
    fn inject_short(&mut self, head: &AloneHead, data: &[u8]) -> Result<bool, &'static str> {
        if !self.has_room()? {
            return Ok(false);
        }
        let (cells, len) = (self.shared.ours(), size_of_val(head) + data.len());
        let word = self.head(cell::PACKET, len as u32);
        self.producer.push_row(&cells, word, 1, |cell, _| cells.put_words(cell, head, data));
        self.pushed();
        self.wake_sleeper();
        Ok(true)
    }

    /// Writes a single message into a row of cells; false: half of the ring is full.
    #[inline(never)]
    fn inject_row(&mut self, head: &AloneHead, data: &[u8]) -> bool {
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
                // A copy of constant length, which is inlined.
                match rest.first_chunk::<CONTENT>() {
                    Some(whole) => cells.put(cell, 0, whole),
                    None => cells.put(cell, 0, rest),
                }
            }
        });
        self.pushed();
        self.wake_sleeper();
        true
    }

    #[inline(never)]
    fn inject_any(
        &mut self,
        head: &[u64],
        data: &Segments,
        selector: &mut Selector,
    ) -> Result<bool, &'static str> {
        let len = size_of_val(head) + data.len() as usize;
        let is_put = self.put(len, &Parts { head, data }, selector)?;
        if is_put {
            self.wake();
        }
        Ok(is_put)
    }

    /// Writes orders of the queue into the ring, as far as there is room.
    pub fn write(&mut self, sent: &mut Vec<Order>, selector: &mut Selector) -> Result<(), &'static str> {
        while let Some(order) = self.queue.pop_front() {
            let left = match &order {
                Order::Packet { packet, .. } => {
                    self.outgoing.stop_bouncing(&self.shared) && self.put(packet.len(), packet, selector)?
                }
                // Cells behind a held chunk are not read, so parts of earlier chunks must come before it.
                Order::Chunk { key: Key::PUSH, .. } if self.outgoing.has_part(&self.shared) => false,
                _ => self.may_begin()?,
            };
            if !left {
                self.queue.push_front(order);
                break;
            }
            match order {
                Order::Packet { .. } => sent.push(order),
                _ => self.begin(order, selector),
            }
        }
        if !self.outgoing.is_empty() {
            self.stream()?;
        }
        Ok(())
    }

    /// Returns whether a retry of the queue makes sense: at the last attempt there was no room.
    pub fn may_write(&self) -> bool {
        self.shared.ours().taken().load(Ordering::Acquire) > self.producer.taken()
    }

    /// Writes a packet of `len` bytes: short ones into a row of cells, others into a bounce buffer. False:
    /// there is no room.
    #[inline]
    fn put(
        &mut self,
        len: usize,
        content: &impl Content,
        selector: &mut Selector,
    ) -> Result<bool, &'static str> {
        if !self.has_room()? {
            return Ok(false);
        }
        let count = len.div_ceil(CONTENT).max(1);
        if count <= cell::ROW && self.producer.room(&self.shared.ours()) >= count as u64 {
            self.put_row(len, content);
            return Ok(true);
        }
        self.put_bounced(len, content, selector)
    }

    /// Writes a short packet as a row of cells, for which there is room. The parts are gathered first: on
    /// Zen 4, a row whose cells are written piece by piece takes 1.6 times as long between far cores.
    #[inline]
    fn put_row(&mut self, len: usize, content: &impl Content) {
        let (mut row, mut at) = ([0; cell::ROW * CONTENT], 0);
        content.each(|part| {
            copy_slice(part, &mut row[at..at + part.len()]);
            at += part.len();
        });
        let (cells, head) = (self.shared.ours(), self.head(cell::PACKET, len as u32));
        let count = len.div_ceil(CONTENT).max(1) as u64;
        self.producer.push_row(&cells, head, count, |cell, place| {
            let rest = &row[place * CONTENT..len];
            cells.put(cell, 0, &rest[..rest.len().min(CONTENT)]);
        });
        self.pushed();
        self.has_written = true;
    }

    /// Sends a packet and right behind it a chunk, if the queue is empty and the ring has room for both.
    /// Orders that are complete on return are not reported as sent.
    pub fn push_now(
        &mut self,
        (packet, chunk): (&[u8], Order),
        sent: &mut Vec<Order>,
        selector: &mut Selector,
    ) -> Result<Sent, &'static str> {
        let Order::Chunk { to, number, .. } = chunk else { return Ok(Sent::Retry) };
        let free = self.queue.is_empty() && self.outgoing.is_empty() && self.may_begin()?;
        let has_room = self.producer.room(&self.shared.ours()) >= CELLS / 2;
        if !free || !has_room || !self.put(packet.len(), &packet, selector)? {
            return Ok(Sent::Retry);
        }
        self.begin(chunk, selector);
        self.stream()?;
        self.wake();
        if self.outgoing.collect(&self.shared, sent, &mut self.probe) {
            sent.pop();
            return Ok(Sent::Done);
        }
        let packet = Packet { bytes: Vec::new(), in_place: Vec::new() };
        sent.push(Order::Packet { to, number: number.wrapping_sub(1), packet });
        Ok(Sent::Posted)
    }

    /// Returns whether another chunk may begin.
    fn may_begin(&mut self) -> Result<bool, &'static str> {
        if !self.outgoing.has_room(self.producer.taken()) {
            self.ask()?;
        }
        Ok(self.outgoing.has_room(self.producer.taken()) && self.has_room()?)
    }

    /// Begins a chunk.
    fn begin(&mut self, order: Order, selector: &mut Selector) {
        let theirs = self.incoming.method();
        let (cell, probe) = (self.producer.next(), &mut self.probe);
        let told = self.outgoing.add(&self.shared, (order, cell), theirs, (probe, selector));
        if let Some((about, chunk)) = told {
            self.push(cell::CHUNK, about.encode(), &chunk.encode());
        }
    }

    /// Writes a cell.
    #[inline]
    pub fn push(&mut self, kind: u8, value: u32, content: &[u8]) {
        let head = self.head(kind, value);
        self.producer.push(&self.shared.ours(), head, content);
        self.pushed();
        self.has_written = true;
    }

    /// Builds a cell's word, which also carries the number of cells that this side has consumed.
    #[inline]
    pub fn head(&self, kind: u8, value: u32) -> Head {
        Head { kind, value, taken: self.consumer.taken() }
    }

    #[inline]
    fn pushed(&mut self) {
        self.taken_was_reported();
        self.rhythm.answered();
    }

    /// Records that a cell was written, which has published the number of consumed cells.
    #[inline]
    pub fn taken_was_reported(&mut self) {
        self.consumer.taken_was_reported();
        self.unreported_bytes = 0;
        self.prefetch_len = 0;
    }

    /// Returns whether a cell may be written.
    #[inline]
    pub fn has_room(&mut self) -> Result<bool, &'static str> {
        if self.producer.room(&self.shared.ours()) > 0 {
            return Ok(true);
        }
        self.ask()?;
        Ok(self.producer.room(&self.shared.ours()) > 0)
    }

    /// Reads how many cells the peer has consumed.
    ///
    /// # Errors
    /// The number is impossible.
    #[cold]
    #[inline(never)]
    pub fn ask(&mut self) -> Result<(), &'static str> {
        if !self.producer.ask(&self.shared.ours()) {
            return Err(IMPOSSIBLE);
        }
        self.ranges.free(self.producer.taken());
        Ok(())
    }
}
