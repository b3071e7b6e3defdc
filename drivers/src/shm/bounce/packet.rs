//! Packets that are too long for a row of cells: they lie in a range of the sender's bounce buffer, which a
//! cell names.

use crate::node::{Segment, put_gathered};
use crate::shm::layout::{BOUNCE, PACKET};
use crate::shm::link::Link;
use crate::shm::ring::cell::{self, Range};
use crate::shm::ring::{CONTENT, Content};
use crate::shm::selector::{Method, Selector};
use crate::shm::shape::Shape;
use crate::shm::shared::Shared;
use crate::shm::turn::Report;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::Event;
use nmad_wire::AloneHead;
use std::time::Instant;

/// Bytes at the start of the next packet's range that are prefetched before it is written; for longer
/// ranges the hardware prefetcher detects the pattern. Zen 4: with none at all 1 KiB takes 1.09 times as
/// long between near cores, 1.06 between far ones, 4 KiB 1.06. EPYC (2 virtual cores): half and twice are
/// within the spread.
const READY: usize = 512;
impl Link {
    /// Writes `len` bytes as a packet; false: there is no room.
    pub fn put_bounced(
        &mut self,
        len: usize,
        content: &impl Content,
        selector: &mut Selector,
    ) -> Result<bool, &'static str> {
        let Some(start) = self.range(len as u32)? else { return Ok(false) };
        let Shared { segment, end, .. } = &self.shared;
        let data = len.saturating_sub(size_of::<AloneHead>()) as u64;
        let shape = content.shape();
        let writing = self.probe.begin(&self.shared, selector, (data, shape));
        let is_non_temporal = writing.is_some_and(|(choice, _)| choice.method == Method::NonTemporal);
        let mut at = end.bounce(start);
        let put = if is_non_temporal { Segment::put_non_temporal } else { Segment::put };
        let mut put = |part: &[u8]| {
            put(segment, at, part);
            at += part.len();
        };
        match content.head_and_data().filter(|_| shape == Shape::ShortBlocks) {
            Some((head, blocks)) => {
                head.iter().for_each(|word| put(&word.to_ne_bytes()));
                put_gathered(segment, at, blocks, &mut self.blocks);
            }
            None => content.each(put),
        }
        if is_non_temporal {
            Segment::order();
        }
        let question = self.probe.end(writing);
        self.push(cell::BOUNCED_PACKET, len as u32, &Range { start, of: question, at: 0 }.encode());
        self.prefetch_len = if is_non_temporal { 0 } else { len.min(READY) };
        Ok(true)
    }

    /// Reports a packet in the peer's bounce buffer.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline(never)]
    pub fn take_bounced(&mut self, len: usize, from: PeerId, report: Report<'_>) -> Result<(), String> {
        let mut content = [0; CONTENT];
        self.consumer.content(&self.shared.theirs(), 0, &mut content);
        let Range { start, of: question, .. } = Range::decode(&content);
        let packet = self.shared.bounced(start, len)?;
        let begun = (question != 0).then(Instant::now);
        report(Event::Arrived { from, packet });
        if let Some(begun) = begun {
            self.shared.answer(question, begun.elapsed());
        }
        self.unreported_bytes += len as u64;
        self.taken(1);
        Ok(())
    }

    /// Prefetches the lines of the next packet's range, assuming that it is like the last one. The peer has
    /// just read those lines, and a store to a missing line delays all later stores until the line has come
    /// back. The lines arrive while this side handles incoming packets.
    #[inline(never)]
    pub fn prefetch_range(&mut self) {
        self.ranges.free(self.producer.taken());
        let start = self.ranges.next();
        for line in (0..self.prefetch_len as u32).step_by(64).filter(|line| start + line < BOUNCE) {
            self.shared.segment.expect(self.shared.end.bounce(start + line));
        }
    }

    /// Allocates a range of the bounce buffer for the next cell.
    #[inline]
    pub fn range(&mut self, len: u32) -> Result<Option<u32>, &'static str> {
        debug_assert!(len as usize <= PACKET.max(BOUNCE as usize / 4));
        self.ranges.free(self.producer.taken());
        if let Some(start) = self.ranges.take(self.producer.next(), len) {
            return Ok(Some(start));
        }
        self.ask()?;
        Ok(self.ranges.take(self.producer.next(), len))
    }
}
