//! Messages that stay in the sender's memory until a receive has matched them; the receiver then copies
//! them with one system call.
//!
//! The sender's engine does not change the memory until it is notified that the message was read, or until
//! it closes the link. After closing it may reuse the memory at once, so it first marks the link as closed,
//! and the reader checks that mark after its copy: a copy that may contain other bytes is thus detected.

use crate::node::across;
use crate::shm::link::Link;
use crate::shm::shared::Obstacle;
use nmad_engine::memory::Segments;
use nmad_engine::transfer::access::Came;
use std::sync::atomic::{Ordering, fence};

impl Link {
    /// Copies a message from address `at` of the peer's process.
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

    /// Marks the link as closed: the memory that the peer might read is no longer preserved.
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
    fn a_message_is_read_unless_its_sender_has_closed_the_link_or_has_no_such_memory() {
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
