//! What the ring brings.

use super::PACKET;
use super::cell::{self, About, Chunk, Part, Place};
use super::layout::{AREA, CELLS};
use super::link::Link;
use super::rail::IMPOSSIBLE;
use super::ring::{CONTENT, Head};
use super::shared::{Obstacle, Shared, Topic};
use crate::landings::Landings;
use nmad_engine::packet::{Key, PeerId};
use nmad_engine::transfer::driver::Event;
use std::time::Instant;

/// Cells read at once, so that one busy link does not starve the others.
const AT_ONCE: u32 = 128;
/// Bytes of a packet that are fetched at once; the processor sees the way of longer ones by itself.
const FETCH: usize = 512;
/// Bytes of the area that may be taken before the producer is told.
const TELL_BYTES: u64 = AREA as u64 / 4;

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// There was nothing.
    Nothing,
    /// More of what is known of.
    Parts,
    /// A packet or a chunk, which may want an answer before anything long is copied.
    News,
}

impl Link {
    /// Whether something is to be read.
    #[inline]
    pub fn has_cells(&self) -> bool {
        self.consumer.peek(&self.shared.theirs()).is_some()
    }

    /// Reads what is there and reports it.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn read(
        &mut self,
        from: PeerId,
        landings: &Landings,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<Found, String> {
        let (mut count, mut found) = (0, Found::Nothing);
        let most = if self.lag.is_turn() { 1 } else { AT_ONCE };
        while count < most {
            let Some(head) = self.consumer.peek(&self.shared.theirs()) else { break };
            // Packets stay behind the chunks that were posted before them, and everything behind one of which
            // nobody knows yet where it goes.
            if !self.pulling.is_empty() && (self.pulling.is_held() || head.kind < cell::CHUNK) {
                break;
            }
            if !self.producer.learn(head.taken) {
                return Err(IMPOSSIBLE.into());
            }
            if self.ready > 0 && count == 0 {
                self.ready_area();
            }
            if count > 0 {
                // In a row the next one is there; its line is on the way while this one is looked at.
                let ring = self.shared.theirs();
                ring.fetch(self.consumer.cell(&ring, 1));
            }
            // Most are such, and nothing else has to be found out about them.
            if let Some(packet) = self.short(head) {
                report(Event::Arrived { from, packet });
                self.taken(1);
                found = Found::News;
                count += 1;
                self.tell_of_much();
                continue;
            }
            if head.kind == cell::LENT_PACKET {
                // Only who waits for it takes it; its sender will not wait long.
                if !self.pass_over()? {
                    break;
                }
                continue;
            }
            found = found.max(if head.kind == cell::PART { Found::Parts } else { Found::News });
            self.take_other(head, from, landings, report)?;
            count += 1;
            self.tell_of_much();
        }
        self.lag.read(count);
        Ok(found)
    }

    /// Looks for one packet in the ring, and leaves everything else to [`Link::read`] and [`Link::copy`]:
    /// false, then. Only where one is expected to come alone: who looks that often while the peer writes one
    /// after the other takes the lines away from it.
    #[inline]
    pub fn look_for(&mut self, from: PeerId, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if !(self.lag.is_turn() || self.is_offered) || !self.is_calm() {
            return false;
        }
        self.look_ahead();
        let Some(head) = self.consumer.peek(&self.shared.theirs()) else { return true };
        if !self.producer.learn(head.taken) {
            return false;
        }
        if self.ready > 0 {
            self.ready_area();
        }
        if let Some(packet) = self.short(head) {
            report(Event::Arrived { from, packet });
            self.taken(1);
        } else if head.kind == cell::LENT_PACKET {
            return self.borrow(from, report);
        } else if self.take_longer(head, from, report) != Ok(true) {
            return false;
        }
        self.tell_of_much();
        self.wake();
        self.lag.read(1);
        true
    }

    /// Tells the producer now, if much was taken of which it does not know.
    #[inline]
    pub(super) fn tell_of_much(&mut self) {
        if self.consumer.untold() >= CELLS / 4 || self.untold_bytes >= TELL_BYTES {
            self.consumer.tell(&self.shared.theirs());
            self.untold_bytes = 0;
            self.left = true;
        }
    }

    /// A packet that lies in one cell, as most do.
    #[inline(always)]
    fn short(&self, head: Head) -> Option<&[u8]> {
        let (len, ring) = (head.value as usize, self.shared.theirs());
        let is_short = head.kind == cell::PACKET && len <= CONTENT;
        is_short.then(|| ring.bytes(self.consumer.cell(&ring, 0), len))
    }

    /// So many cells are the producer's again.
    #[inline]
    pub(super) fn taken(&mut self, cells: u64) {
        self.consumer.take(cells);
        self.row = cells;
    }

    /// A longer packet; false: it is no packet.
    #[inline]
    fn take_longer(
        &mut self,
        head: Head,
        from: PeerId,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, String> {
        match (head.kind, head.value as usize) {
            (cell::PACKET, len) if len <= cell::ROW * CONTENT => self.take_row(len, from, report)?,
            (cell::FAR_PACKET, len) if len <= PACKET => self.take_far(len, from, report)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A packet in the peer's area.
    #[inline(never)]
    fn take_far(
        &mut self,
        len: usize,
        from: PeerId,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), String> {
        let mut content = [0; CONTENT];
        self.consumer.content(&self.shared.theirs(), 0, &mut content);
        let Place { start, question } = Place::decode(&content);
        let packet = range_of(&self.shared, start, len)?;
        let begun = (question != 0).then(Instant::now);
        // One line after the other would take a trip to the other core each.
        self.shared.segment.fetch(self.shared.end.other().area(start), len.min(FETCH));
        report(Event::Arrived { from, packet });
        if let Some(begun) = begun {
            self.shared.answer(Topic::Packet, question, begun.elapsed());
        }
        self.untold_bytes += len as u64;
        self.taken(1);
        Ok(())
    }

    /// Takes what is no packet in a cell.
    #[inline(never)]
    fn take_other(
        &mut self,
        head: Head,
        from: PeerId,
        landings: &Landings,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), String> {
        let len = head.value as usize;
        if self.take_longer(head, from, report)? {
            return Ok(());
        }
        self.row = 1;
        let mut content = [0; CONTENT];
        self.consumer.content(&self.shared.theirs(), 0, &mut content);
        match head.kind {
            cell::CHUNK => {
                let chunk = Chunk::decode(&content).ok_or("broke the protocol: impossible chunk")?;
                let about = About::decode(head.value).ok_or("broke the protocol: impossible chunk")?;
                self.pulling.add(&self.shared, about, chunk)?;
                self.pushing.meet(&self.shared, about.met, self.producer.taken());
                if chunk.key == Key::PUSH {
                    report(Event::Pushed { from, request: chunk.landing.0, len: chunk.len });
                }
            }
            cell::PART => {
                let part = Part::decode(&content);
                // Not by a method: the bytes are borrowed while the chunk takes them.
                let bytes = range_of(&self.shared, part.start, len)?;
                self.pulling.take(&part, bytes, from, landings)?;
                self.untold_bytes += len as u64;
            }
            kind => return Err(format!("broke the protocol: cell of kind {kind} with {len} out of place")),
        }
        self.consumer.take(1);
        Ok(())
    }

    /// A packet of several cells, which are all there.
    #[inline(never)]
    fn take_row(
        &mut self,
        len: usize,
        from: PeerId,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), String> {
        let (ring, count) = (self.shared.theirs(), len.div_ceil(CONTENT) as u64);
        ring.fetch(self.consumer.cell(&ring, count));
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

    /// Fetches the cells of a row that the peer is expected to answer with, as the last one was. The first of
    /// them is looked at anyway, so all of them come at once.
    #[inline]
    pub(super) fn ready_row(&self) {
        let ring = self.shared.theirs();
        for place in 1..self.row {
            ring.fetch(self.consumer.cell(&ring, place));
        }
    }

    /// Copies pieces of chunks in both directions, one each; reports what is complete. Returns whether
    /// anything moved.
    ///
    /// # Errors
    /// The peer broke the protocol, or its memory cannot be accessed any more.
    #[cold]
    #[inline(never)]
    pub fn copy(
        &mut self,
        from: PeerId,
        landings: &Landings,
        sent: &mut Vec<nmad_engine::transfer::driver::Order>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, String> {
        self.pushing.turn_back(&self.shared);
        let streamed = self.stream().map_err(|_| IMPOSSIBLE)?;
        let b = &self.shared;
        let pulled = self.pulling.step(b, from, landings, !self.pushing.is_empty());
        let pulled = self.copied(pulled)?;
        let b = &self.shared;
        let landed = self.pulling.collect(b, from, landings, report)?;
        // In an exchange the peer does the same (see [`super::exchange`]).
        let pushed = if pulled == 0 { self.pushing.step(b) } else { Ok(0) };
        let pushed = self.copied(pushed)?;
        let left = self.pushing.collect(&self.shared, sent);
        if landed {
            // So that the sender may use the claim again.
            self.consumer.tell(&self.shared.theirs());
            self.untold_bytes = 0;
        }
        self.left |= pulled > 0 || pushed > 0 || landed;
        Ok(streamed > 0 || pulled > 0 || pushed > 0 || landed || left)
    }

    /// What was copied across. If that is not permitted any more, long messages go another way from now on.
    ///
    /// # Errors
    /// The link is of no use any more.
    fn copied(&mut self, outcome: Result<u64, Obstacle>) -> Result<u64, String> {
        match outcome {
            Ok(len) => Ok(len),
            Err(Obstacle::Denied(why)) => {
                self.lose_access(&why);
                Ok(0)
            }
            Err(Obstacle::Fatal(why)) => Err(why),
        }
    }
}

/// A range of the peer's area, as a cell names it.
fn range_of(shared: &Shared, start: u32, len: usize) -> Result<&[u8], String> {
    if start > AREA || len > (AREA - start) as usize {
        return Err("broke the protocol: range outside of its area".into());
    }
    Ok(shared.segment.bytes(shared.end.other().area(start), len))
}
