//! Orders into the ring.

use super::cell;
use super::{CONTENT, Cells, Content, Head};
use crate::shm::layout::CELLS;
use crate::shm::link::Link;
use crate::shm::selector::Selector;
use crate::shm::shared::IMPOSSIBLE;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, Packet};
use nmad_engine::transfer::driver::{Order, Sent};
use nmad_wire::AloneHead;
use std::sync::atomic::Ordering;

/// Bytes of data that fit into a cell beside the head of a message that is alone.
const BESIDE: usize = CONTENT - size_of::<AloneHead>();

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

    /// Injects a packet, if nothing waits before it; false: it does not go there now.
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

    /// One message in one cell, as most packets are.
    #[inline]
    fn inject_short(&mut self, head: &AloneHead, data: &[u8]) -> Result<bool, &'static str> {
        if !self.has_room()? {
            return Ok(false);
        }
        let (cells, len) = (self.shared.ours(), size_of_val(head) + data.len());
        let word = self.head(cell::PACKET, len as u32);
        self.producer.push_row(&cells, word, 1, |cell, _| cells.put_words(cell, head, data));
        self.pushed();
        self.rouse();
        Ok(true)
    }

    /// One message in a row of cells, as many others are; false: too many are waiting for the peer.
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

    /// Gives the ring what it takes of the queue.
    pub fn write(&mut self, sent: &mut Vec<Order>, selector: &mut Selector) -> Result<(), &'static str> {
        while let Some(order) = self.queue.pop_front() {
            let left = match &order {
                Order::Packet { packet, .. } => {
                    self.outgoing.make_way(&self.shared) && self.put(packet.len(), packet, selector)?
                }
                // Cells behind a chunk that is held are not read: no part of an earlier one may be there.
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

    /// Whether the queue could go on: it found no room at its last look.
    pub fn may_write(&self) -> bool {
        self.shared.ours().taken().load(Ordering::Acquire) > self.producer.taken()
    }

    /// `len` bytes in parts as a packet: short ones in a row of cells, others in a bounce buffer. False:
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

    /// A short packet as a row of cells, for which there is room. It is gathered first: on Zen 4 a row whose
    /// cells are written piece by piece takes 1.6 times as long between far cores.
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
    /// of it. Orders that have left are not reported as sent.
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

    /// Whether another chunk may begin.
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
        self.left = true;
    }

    /// A cell's word: its kind, and the number of cells that this side has taken.
    #[inline]
    pub fn head(&self, kind: u8, value: u32) -> Head {
        Head { kind, value, taken: self.consumer.taken() }
    }

    #[inline]
    fn pushed(&mut self) {
        self.told();
        self.rhythm.answered();
    }

    /// A cell has left, which tells what was taken.
    #[inline]
    pub fn told(&mut self) {
        self.consumer.told();
        self.untold_bytes = 0;
        self.ready = 0;
    }

    /// Whether a cell may be written.
    #[inline]
    pub fn has_room(&mut self) -> Result<bool, &'static str> {
        if self.producer.room(&self.shared.ours()) > 0 {
            return Ok(true);
        }
        self.ask()?;
        Ok(self.producer.room(&self.shared.ours()) > 0)
    }

    /// Looks how many cells the peer has taken.
    ///
    /// # Errors
    /// It tells an impossible number.
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
