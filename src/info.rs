//! Information about messages and rails.

use nmad_engine::{Envelope, Limits, RailCounters};

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The sender's rank.
    pub from: u32,
    /// Its tag.
    pub tag: u64,
    /// Its length in bytes.
    pub len: usize,
}

impl Message {
    /// Returns the number of complete values of `T`: the part of a typed buffer that was filled.
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
    /// Address for peers, in the driver's form; empty for the loopback rail.
    pub address: String,
    /// The limits of its driver.
    pub limits: Limits,
    /// Number of ranks that it reaches.
    pub peers: u32,
    /// Its counters so far.
    pub counters: RailCounters,
    /// Received datagrams or frames that were dropped: from unknown peers, with a wrong authentication tag,
    /// duplicate, or truncated. Always zero for streams and memory.
    pub dropped: u64,
    /// The cipher of its latest encrypted link; `None` if it has had no such link.
    pub cipher: Option<&'static str>,
}
