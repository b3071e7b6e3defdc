//! Messages that stay in their sender's memory until a receive has matched them: this side copies them, in
//! one call of the system.
//!
//! The sender's engine keeps the memory as it is until it hears that the message was read, or has given up
//! the link. In the latter case it may use the memory again at once. It marks the link as closed before, and
//! the reader looks for that mark after its copy: a copy of other bytes than the message's finds it.

use crate::node::across;
use crate::shm::link::Link;
use crate::shm::shared::Obstacle;
use nmad_engine::memory::Segments;
use nmad_engine::transfer::access::Came;
use std::sync::atomic::{Ordering, fence};

impl Link {
    /// Copies from this address of the peer's process.
    pub fn read_message(&mut self, at: u64, here: &Segments) -> Came {
        let Some(process) = &self.shared.process else { return Came::Undone };
        if let Err(why) = across::read(process, here, [(at, here.len())]) {
            if let Obstacle::Denied(why) = Obstacle::of("read from", why) {
                self.lose_access(&why);
                self.wake();
            }
            return Came::Undone;
        }
        fence(Ordering::Acquire);
        let closed = self.shared.segment.word(self.shared.end.other().closed()).load(Ordering::Relaxed);
        if closed == 0 { Came::Done } else { Came::Undone }
    }

    /// Says that this side keeps no memory for the peer to read any more.
    pub(in crate::shm) fn close_reads(&self) {
        self.shared.segment.word(self.shared.end.closed()).store(1, Ordering::Relaxed);
        fence(Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::memory::Memory;
    use crate::shm::tests::connected;
    use nmad_engine::packet::PeerId;

    #[test]
    fn what_is_read_is_the_message_unless_its_sender_has_closed_the_link_or_has_no_such_memory() {
        let mut rails = connected();
        let (source, target) = (Memory::pattern(100_000, 3), Memory::zeroed(100_000));
        let at = source.segments().address().expect("one piece");
        let reader = rails[1].peers.link_mut(PeerId(0)).expect("it is open");
        let into = target.pieces(&[0..30_000, 40_000..100_000]);
        assert_eq!(reader.read_message(at, &into), Came::Done);
        assert!(target.bytes()[..30_000] == source.bytes()[..30_000]);
        assert!(target.bytes()[40_000..] == source.bytes()[30_000..90_000]);
        assert_eq!(reader.read_message(4096, &into), Came::Undone, "nothing lies there");
        rails[0].peers.link_mut(PeerId(1)).expect("it is open").close_reads();
        let reader = rails[1].peers.link_mut(PeerId(0)).expect("it is open");
        assert_eq!(reader.read_message(at, &into), Came::Undone, "the memory may have changed meanwhile");
    }
}
