//! What the ring brings.

use super::cell::{self, Chunk};
use super::layout::{AREA, CELLS};
use super::link::Link;
use super::ring::{CONTENT, Head};
use crate::landings::Landings;
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::Event;

/// Cells read at once, so that one busy link does not starve the others.
const AT_ONCE: u32 = 128;
/// Bytes of the area that may be taken before the producer is told.
const TELL_BYTES: u64 = AREA as u64 / 4;

/// A chunk whose bytes come through the area.
#[derive(Debug)]
pub struct Stream {
    chunk: Chunk,
    done: u64,
}

impl Link {
    /// Whether something is to be read.
    pub fn has_cells(&self) -> bool {
        self.consumer.peek(&self.shared.theirs()).is_some()
    }

    /// Reads what is there and reports it; whether anything was.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[inline]
    pub fn read(
        &mut self,
        from: PeerId,
        longest: usize,
        landings: &Landings,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, String> {
        let mut count = 0;
        while count < AT_ONCE {
            let Some(head) = self.consumer.peek(&self.shared.theirs()) else { break };
            // Packets stay behind the chunks that were posted before them.
            if !self.pulling.is_empty() && head.kind != cell::CHUNK {
                break;
            }
            if !self.producer.learn(head.taken) {
                return Err("broke the protocol: took cells that were not there".into());
            }
            self.take(head, from, longest, landings, report)?;
            count += 1;
        }
        if self.consumer.untold() >= CELLS / 4 || self.untold_bytes >= TELL_BYTES {
            self.consumer.tell(&self.shared.theirs());
            self.untold_bytes = 0;
            self.left = true;
        }
        Ok(count > 0)
    }

    #[inline]
    fn take(
        &mut self,
        head: Head,
        from: PeerId,
        longest: usize,
        landings: &Landings,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), String> {
        let mut content = [0; CONTENT];
        self.consumer.content(&self.shared.theirs(), &mut content);
        let len = head.value as usize;
        match head.kind {
            cell::PACKET if len <= CONTENT && self.stream.is_none() => {
                report(Event::Arrived { from, packet: &content[..len] });
            }
            cell::FAR_PACKET if len <= longest && self.stream.is_none() => {
                let packet = self.range_of(&content, len)?;
                report(Event::Arrived { from, packet });
                self.untold_bytes += len as u64;
            }
            cell::CHUNK if self.stream.is_none() => {
                let chunk = Chunk::decode(&content).ok_or("broke the protocol: impossible chunk")?;
                self.pulling.add(head.value, chunk)?;
            }
            cell::STREAM if self.stream.is_none() => {
                let chunk = Chunk::decode(&content).ok_or("broke the protocol: impossible chunk")?;
                self.stream = Some(Stream { chunk, done: 0 });
                self.end_stream(from, landings, report)?;
            }
            cell::PIECE if self.stream.is_some() => {
                self.piece(&content, len, from, landings)?;
                self.untold_bytes += len as u64;
                self.end_stream(from, landings, report)?;
            }
            kind => return Err(format!("broke the protocol: cell of kind {kind} with {len} out of place")),
        }
        self.consumer.take();
        Ok(())
    }

    /// The range of the peer's area that a cell names.
    fn range_of(&self, content: &[u8; CONTENT], len: usize) -> Result<&[u8], String> {
        let start = cell::start_of(content);
        if start > AREA || len > (AREA - start) as usize {
            return Err("broke the protocol: range outside of its area".into());
        }
        let b = &self.shared;
        Ok(b.segment.bytes(b.end.other().area(start), len))
    }

    fn piece(
        &mut self,
        content: &[u8; CONTENT],
        len: usize,
        from: PeerId,
        landings: &Landings,
    ) -> Result<(), String> {
        let bytes = self.range_of(content, len)?;
        let Some(Stream { chunk, done }) = &self.stream else { return Ok(()) };
        if len == 0 || len as u64 > chunk.len - done {
            return Err("broke the protocol: more bytes than the chunk has".into());
        }
        let found = landings.find(from, chunk.landing, chunk.key, chunk.offset + done, len as u64);
        let into = found.map_err(|_| "broke the protocol: chunk past the end of its landing")?;
        if let Some(into) = into {
            into.write(0, bytes);
        }
        if let Some(stream) = &mut self.stream {
            stream.done += len as u64;
        }
        Ok(())
    }

    fn end_stream(
        &mut self,
        from: PeerId,
        landings: &Landings,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), String> {
        let Some(Stream { chunk, .. }) = self.stream.take_if(|s| s.done == s.chunk.len) else {
            return Ok(());
        };
        let Chunk { number, ack, landing, key, offset, len, .. } = chunk;
        let found = landings.find(from, landing, key, offset, len);
        let kept = found.map_err(|_| "broke the protocol: chunk past the end of its landing")?.is_some();
        report(Event::Landed { from, number, ack, landing, offset, len, kept });
        Ok(())
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
        let b = &self.shared;
        let pulled = self.pulling.step(b, from, landings)?;
        let landed = self.pulling.collect(b, from, landings, report)?;
        let pushed = self.pushing.step(b).map_err(|e| format!("cannot be written to: {e} (has it died?)"))?;
        let left = self.pushing.collect(b, sent);
        self.left |= pulled > 0 || pushed > 0 || landed;
        Ok(pulled > 0 || pushed > 0 || landed || left)
    }
}
