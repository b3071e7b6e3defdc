//! What a session tells about messages and rails.

use nmad_engine::{Envelope, Limits, RailCounters};

/// A message that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub from: u32,
    /// Its tag.
    pub tag: u64,
    /// Its length in bytes.
    pub len: usize,
}

impl Message {
    /// How many whole values of `T` it has: the part of a typed buffer that was filled.
    pub fn count<T>(&self) -> usize {
        self.len / size_of::<T>().max(1)
    }
}

impl From<Envelope> for Message {
    fn from(envelope: Envelope) -> Self {
        Message { from: envelope.peer.0, tag: envelope.tag.0, len: envelope.len as usize }
    }
}

/// A rail of this process: its key, its limits, its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailInfo {
    /// Kind of network and interface, for example `tcp/eth1`.
    pub name: String,
    /// Where peers reach it, as its driver says it; empty for the rail to oneself.
    pub address: String,
    /// The limits of its driver.
    pub limits: Limits,
    /// Ranks that can be reached over it.
    pub peers: u32,
    /// Its counters so far.
    pub counters: RailCounters,
    /// Datagrams or frames that came and were not taken: from strangers, with a wrong tag, twice, cut short.
    /// Streams and memory have none.
    pub dropped: u64,
}
