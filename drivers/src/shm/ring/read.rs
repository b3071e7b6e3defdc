//! Reads the ring: packets, announcements of chunks, and parts in bounce buffers.

use super::cell::{self, About, Chunk, Range};
use super::{CONTENT, Found, Head};
use crate::shm::layout::{BOUNCE, CELLS, PACKET};
use crate::shm::link::Link;
use crate::shm::shared::IMPOSSIBLE;
use crate::shm::turn::{Report, Turn};
use nmad_engine::packet::{Key, PeerId};
use nmad_engine::transfer::driver::Event;

/// Cells read at once, so that one busy link does not starve the others. Zen 4: half and twice are within
/// the spread.
pub const AT_ONCE: u32 = 128;
/// Consumed cells after which the number is published in the separate word, if no packet goes back. Zen 4:
/// half and twice are within the spread.
const TELL: u64 = CELLS / 4;
/// Bytes taken out of bounce buffers after which the sender is notified: a quarter of the buffer, so
/// that there is room for the longest range, however many consumed bytes are not reported. Half notifies
/// twice as often; twice is within the spread (EPYC, 2 virtual cores).
const TELL_BYTES: u64 = BOUNCE as u64 / 4;

impl Link {
    #[inline]
    pub fn has_cells(&self) -> bool {
        self.consumer.peek(&self.shared.theirs()).is_some()
    }

    /// Reads the available cells and reports them.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn read(&mut self, turn: &mut Turn<'_>) -> Result<Found, String> {
        let (mut count, mut found) = (0, Found::Nothing);
        let most = if self.rhythm.is_turn() { 1 } else { AT_ONCE };
        while count < most {
            let Some(head) = self.consumer.peek(&self.shared.theirs()) else { break };
            // Packets stay behind the chunks that were posted before them, and all cells behind a chunk
            // without a receive region.
            if !self.incoming.is_empty() && self.waits(head) {
                if count == 0 && self.read_ahead(turn)? {
                    found = Found::Parts;
                }
                break;
            }
            if !self.producer.learn(head.taken) {
                return Err(IMPOSSIBLE.into());
            }
            if self.prefetch_len > 0 && count == 0 {
                self.prefetch_range();
            }
            // Fast path: most packets lie in one cell.
            if let Some(packet) = self.short(head) {
                (turn.report)(Event::Arrived { from: turn.peer, packet });
                self.taken(1);
                found = Found::News;
                count += 1;
                self.report_taken_if_many();
                continue;
            }
            found = found.max(if head.kind == cell::PART { Found::Parts } else { Found::News });
            self.take_other(head, turn)?;
            count += 1;
            self.report_taken_if_many();
        }
        self.rhythm.read(count);
        Ok(found)
    }

    /// Returns whether this cell has to wait for the chunks that are being received.
    fn waits(&self, head: Head) -> bool {
        self.incoming.is_held() || head.kind < cell::CHUNK || !self.aside.is_empty()
    }

    /// Polls the ring for one packet, and returns false if anything else has to be done by [`Link::read`]
    /// or [`Link::copy`]. Used only if a single packet is expected: such frequent polls take the cache
    /// lines away from a peer that writes one packet after the other.
    #[inline]
    pub fn poll_packet(&mut self, from: PeerId, report: Report<'_>) -> bool {
        if !self.rhythm.is_turn() || !self.is_calm() {
            return false;
        }
        self.prefetch_row();
        let Some(head) = self.consumer.peek(&self.shared.theirs()) else { return true };
        if !self.producer.learn(head.taken) {
            return false;
        }
        if self.prefetch_len > 0 {
            self.prefetch_range();
        }
        if let Some(packet) = self.short(head) {
            report(Event::Arrived { from, packet });
            self.taken(1);
        } else if self.take_longer(head, from, report) != Ok(true) {
            return false;
        }
        self.report_taken_if_many();
        self.wake();
        self.rhythm.read(1);
        true
    }

    /// Notifies the producer if many consumed cells or bytes are unreported.
    #[inline]
    pub fn report_taken_if_many(&mut self) {
        if self.consumer.unreported() >= TELL || self.unreported_bytes >= TELL_BYTES {
            self.report_taken();
            self.has_written = true;
        }
    }

    /// Notifies the producer of all consumed cells.
    #[inline]
    pub fn report_taken(&mut self) {
        self.consumer.report_taken(&self.shared.theirs());
        self.unreported_bytes = 0;
    }

    /// The packet in the next cell, if it fits into one cell, as most do.
    #[inline(always)]
    fn short(&self, head: Head) -> Option<&[u8]> {
        let (len, ring) = (head.value as usize, self.shared.theirs());
        let is_short = head.kind == cell::PACKET && len <= CONTENT;
        is_short.then(|| ring.bytes(self.consumer.cell(&ring, 0), len))
    }

    /// Consumes the cells of a packet.
    #[inline]
    pub fn taken(&mut self, cells: u64) {
        self.consumer.take(cells);
        self.row = cells;
    }

    /// Reads a packet of several cells or in a bounce buffer; false: the cell is no such packet.
    #[inline]
    fn take_longer(&mut self, head: Head, from: PeerId, report: Report<'_>) -> Result<bool, String> {
        match (head.kind, head.value as usize) {
            (cell::PACKET, len) if len <= cell::ROW * CONTENT => self.take_row(len, from, report)?,
            (cell::BOUNCED_PACKET, len) if len <= PACKET => self.take_bounced(len, from, report)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads a packet of any length.
    ///
    /// # Errors
    /// The cell is no packet.
    pub fn take_packet(&mut self, head: Head, from: PeerId, report: Report<'_>) -> Result<(), String> {
        if let Some(packet) = self.short(head) {
            report(Event::Arrived { from, packet });
            self.taken(1);
            return Ok(());
        }
        let is_taken = self.take_longer(head, from, report)?;
        if is_taken { Ok(()) } else { Err(out_of_place(head)) }
    }

    /// Reads a packet that lies in a row of cells.
    #[inline(never)]
    fn take_row(&mut self, len: usize, from: PeerId, report: Report<'_>) -> Result<(), String> {
        let (ring, count) = (self.shared.theirs(), len.div_ceil(CONTENT) as u64);
        if !self.consumer.has_row(&ring, count) {
            return Err("broke the protocol: a packet without its end".into());
        }
        for (place, content) in (0..count).zip(&mut self.gathered) {
            self.consumer.content(&ring, place, content);
        }
        report(Event::Arrived { from, packet: &self.gathered.as_flattened()[..len] });
        self.taken(count);
        Ok(())
    }

    /// Reads a cell that is not a packet in one cell.
    #[inline(never)]
    fn take_other(&mut self, head: Head, turn: &mut Turn<'_>) -> Result<(), String> {
        let len = head.value as usize;
        if self.take_longer(head, turn.peer, turn.report)? {
            return Ok(());
        }
        let content = self.content();
        match head.kind {
            cell::CHUNK => {
                let (about, chunk) = cell::decode_chunk(head.value, &content)?;
                self.announce(about, chunk, turn)?;
            }
            _ => {
                let part = self.part(head, &content)?;
                let bytes = self.shared.bounced(part.start, len)?;
                self.incoming.take(&part, bytes, turn)?;
                self.unreported_bytes += len as u64;
            }
        }
        self.taken(1);
        Ok(())
    }

    /// The content of the next cell.
    pub fn content(&self) -> [u8; CONTENT] {
        let mut content = [0; CONTENT];
        self.consumer.content(&self.shared.theirs(), 0, &mut content);
        content
    }

    /// The range of a part of a chunk, from its cell.
    ///
    /// # Errors
    /// The cell holds something else.
    pub fn part(&self, head: Head, content: &[u8; CONTENT]) -> Result<Range, String> {
        if head.kind != cell::PART {
            return Err(out_of_place(head));
        }
        Ok(Range::decode(content))
    }

    /// Begins to receive a chunk.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn announce(&mut self, about: About, chunk: Chunk, turn: &mut Turn<'_>) -> Result<(), String> {
        self.incoming.add(about, chunk)?;
        self.outgoing.note_incoming(&self.shared, about.crossed, self.producer.taken());
        if chunk.key == Key::PUSH {
            (turn.report)(Event::Pushed { from: turn.peer, request: chunk.region.0, len: chunk.len });
        }
        Ok(())
    }

    /// Prefetches the cells of the row that the peer is expected to answer with, assuming that it is as
    /// long as the last one. The caller polls the first cell anyway, so that all lines are transferred at
    /// once.
    #[inline]
    pub fn prefetch_row(&self) {
        if self.row > 1 && self.rhythm.is_turn() {
            let ring = self.shared.theirs();
            (1..self.row).for_each(|place| ring.fetch(self.consumer.cell(&ring, place)));
        }
    }
}

fn out_of_place(Head { kind, value, .. }: Head) -> String {
    format!("broke the protocol: cell of kind {kind} with {value} out of place")
}
