//! Messages that their receivers read from the sender's memory, as processes of one node do: nothing but the
//! request to send and its end go over the wire.

use super::Network;
use super::link::Standing;
use crate::buffer;
use crate::key::Key;
use nmad_engine::memory::Segments;
use nmad_engine::transfer::access::Came;

impl Network {
    /// Reads memory of the peer from this address on. A peer that has closed its side of the link may use the
    /// memory for something else, so nothing is read then.
    pub fn read(&mut self, key: Key, address: u64, into: &Segments) -> Came {
        let theirs = Key { me: key.peer, peer: key.me, ..key };
        if self.doing[key.peer].dead || self.side(theirs).standing != Standing::Up {
            return Came::Undone;
        }
        let taking = self.model(key.fabric).take(into.len(), false);
        self.take(key.me, taking);
        buffer::read(address, into);
        let (now, len) = (self.local_ns(key.me), into.len());
        self.trace.note(now, key.me, &[15, key.fabric as u64, key.peer as u64, len], || {
            format!("net{} <- h{}  {len} B are read", key.fabric, key.peer)
        });
        Came::Done
    }
}
