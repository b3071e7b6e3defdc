//! Cells that are set aside. A packet may follow a chunk that is copied once, before the chunk is complete.
//! If the system then withdraws single copies, the rest of the chunk comes through bounce buffers, in cells
//! behind the packet. The receiver reports that packet only after the chunk, so it takes what lies between
//! out of the ring, and keeps it until the chunk is complete.
//!
//! The number of kept cells is bounded: the sender writes no packet while a chunk has a rest for bounce
//! buffers, so they are those that the ring held when the sender began to use them.

use super::Head;
use super::cell::{self, Aside};
use super::read::AT_ONCE;
use crate::shm::link::Link;
use crate::shm::shared::IMPOSSIBLE;
use crate::shm::turn::Turn;
use nmad_engine::transfer::driver::Event;

impl Link {
    /// Takes parts of the chunks that are being received, and sets aside the cells before them, as long as
    /// such parts are to come. Returns whether there were cells. The caller must not read the next cell now.
    ///
    /// # Errors
    /// The peer broke the protocol.
    #[cold]
    #[inline(never)]
    pub fn read_ahead(&mut self, turn: &mut Turn<'_>) -> Result<bool, String> {
        let mut count = 0;
        while count < AT_ONCE && self.incoming.lacks_parts(&self.shared) {
            let Some(head) = self.consumer.peek(&self.shared.theirs()) else { break };
            if !self.producer.learn(head.taken) {
                return Err(IMPOSSIBLE.into());
            }
            self.set_aside(head, turn)?;
            count += 1;
            self.report_taken_if_many();
        }
        Ok(count > 0)
    }

    /// Consumes the next cell.
    fn set_aside(&mut self, head: Head, turn: &mut Turn<'_>) -> Result<(), String> {
        if head.kind < cell::CHUNK {
            let mut kept = Vec::new();
            self.take_packet(head, turn.peer, &mut |event| {
                if let Event::Arrived { packet, .. } = event {
                    kept.extend_from_slice(packet);
                }
            })?;
            self.aside.push_back(Aside::Packet(kept));
            return Ok(());
        }
        let content = self.content();
        if head.kind == cell::CHUNK {
            let (about, chunk) = cell::decode_chunk(head.value, &content)?;
            self.aside.push_back(Aside::Chunk(about, chunk));
        } else {
            let (part, len) = (self.part(head, &content)?, head.value as usize);
            let bytes = self.shared.bounced(part.start, len)?;
            if self.incoming.takes(&part) {
                self.incoming.take(&part, bytes, turn)?;
            } else {
                self.aside.push_back(Aside::Part(part, bytes.to_vec()));
            }
            self.unreported_bytes += len as u64;
        }
        self.taken(1);
        Ok(())
    }

    /// Reports the chunks that are complete, with the cells that were set aside behind them. Afterwards no
    /// cell is set aside unless a chunk is still incomplete.
    ///
    /// # Errors
    /// The peer broke the protocol.
    pub fn land(&mut self, turn: &mut Turn<'_>) -> Result<bool, String> {
        let mut any = !self.aside.is_empty() && self.replay(turn)?;
        while self.incoming.collect(&self.shared, turn)? {
            any = true;
            if self.aside.is_empty() {
                break;
            }
            self.replay(turn)?;
        }
        Ok(any)
    }

    /// Handles the cells that were set aside, up to the first that has to wait. Returns whether there were
    /// any.
    #[cold]
    #[inline(never)]
    fn replay(&mut self, turn: &mut Turn<'_>) -> Result<bool, String> {
        let mut any = false;
        loop {
            any |= self.take_parts_aside(turn)?;
            let waits = match self.aside.front() {
                None => true,
                Some(Aside::Packet(_)) => !self.incoming.is_empty(),
                Some(Aside::Chunk(..) | Aside::Part(..)) => self.incoming.is_held(),
            };
            let Some(next) = self.aside.pop_front_if(|_| !waits) else { return Ok(any) };
            any = true;
            match next {
                Aside::Packet(packet) => {
                    (turn.report)(Event::Arrived { from: turn.peer, packet: &packet });
                }
                Aside::Chunk(about, chunk) => self.announce(about, chunk, turn)?,
                // No chunk in progress or set aside before it has this part, so `take` reports a violation.
                Aside::Part(part, bytes) => self.incoming.take(&part, &bytes, turn)?,
            }
        }
    }

    /// Takes all parts that were set aside and whose chunks are under way by now. Their sender may have
    /// reused the claim word of such a chunk, so these parts come before a look at that word.
    fn take_parts_aside(&mut self, turn: &Turn<'_>) -> Result<bool, String> {
        let before = self.aside.len();
        for aside in std::mem::take(&mut self.aside) {
            match aside {
                Aside::Part(part, bytes) if self.incoming.takes(&part) => {
                    self.incoming.take(&part, &bytes, turn)?;
                }
                _ => self.aside.push_back(aside),
            }
        }
        Ok(self.aside.len() < before)
    }
}
