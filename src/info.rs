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

/// Values on context 0.
impl crate::Session {
    /// Sends values, see [`Channel::send_slice`](crate::Channel::send_slice).
    ///
    /// # Errors
    /// See there.
    pub fn send_slice<T: bytemuck::NoUninit>(
        &self,
        to: u32,
        tag: u64,
        data: &[T],
    ) -> Result<(), crate::SessionError> {
        self.default_channel().send_slice(to, tag, data)
    }

    /// Receives values, see [`Channel::recv_slice`](crate::Channel::recv_slice).
    ///
    /// # Errors
    /// See there.
    pub fn recv_slice<T: bytemuck::Pod>(
        &self,
        from: impl Into<crate::Source>,
        tag: impl Into<crate::TagMatch>,
        buffer: &mut [T],
    ) -> Result<Message, crate::SessionError> {
        self.default_channel().recv_slice(from, tag, buffer)
    }
}

impl crate::Session {
    /// The node of each rank, as the launcher says it: equal numbers share memory.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// What the rails were measured to do: an entry for each rail and each distance at which it has peers.
    pub fn profiles(&self) -> &[crate::ProfileInfo] {
        &self.profiles
    }
}
