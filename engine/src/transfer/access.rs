//! One-sided accesses (RDMA): a network adapter reads or writes memory that a peer has exposed, without
//! code running on the peer.
//!
//! An access has no sequence number on the link, and the peer's engine does not acknowledge it: the adapter
//! reports that it is complete. If its link is lost, the engine has to find out whether it was done.

use crate::memory::Segments;
use crate::packet::{Key, PeerId, RequestId};
use nmad_wire::Keys;

/// How a rail accesses the memory of a peer without code running on the peer. One-sided communication
/// chooses by it how a put or a get travels; an operation that no rail supports becomes a message to the
/// peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteAccess {
    /// No access.
    None,
    /// The calling thread copies to and from any memory of the peer, by its addresses, before the call
    /// returns. No network takes part.
    Copies,
    /// The network accesses memory that the peer has exposed ([`super::driver::Driver::expose`]) by puts,
    /// gets, and the atomics in [`Atomics`].
    Network(Atomics),
}

/// Atomic operations of a network on 8-byte words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomics {
    /// No atomic operations.
    None,
    /// Atomic with respect to operations of the same adapter only (`IBV_ATOMIC_HCA`).
    Adapter,
    /// Atomic with respect to the processor, too (`IBV_ATOMIC_GLOB`).
    Processor,
}

/// Kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Copies local memory to the peer.
    Put,
    /// Copies the peer's memory here.
    Get,
    /// Adds this operand to a word of the peer and returns the old value in local memory.
    Add(u64),
    /// Compare and swap: if a word of the peer equals the first operand, it becomes the second. The old
    /// value is returned in local memory.
    Swap(u64, u64),
}

impl Act {
    /// Whether the operation reads and changes a word in one step.
    pub fn is_atomic(self) -> bool {
        matches!(self, Act::Add(_) | Act::Swap(..))
    }
}

/// A one-sided access.
#[derive(Debug)]
pub struct Access {
    /// The peer whose memory is accessed.
    pub to: PeerId,
    /// Identifier; [`super::driver::Event::Accessed`] reports the result under it.
    pub request: RequestId,
    /// The operation.
    pub act: Act,
    /// Address in the peer's process; for an atomic operation a multiple of eight.
    pub at: u64,
    /// The key under which the peer has exposed the memory on its side of the rail.
    pub key: Key,
    /// Local memory of the same length; for an atomic operation eight bytes.
    pub here: Segments,
}

/// The keys of memory that a process has exposed on its rails, for the peers that access it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exposure {
    /// The keys, by rail number of the exposing process.
    pub keys: Keys,
    /// Keys of the rails whose atomic operations are atomic with respect to the processor
    /// ([`Atomics::Processor`]).
    pub atomic: Keys,
}

impl Exposure {
    /// Whether no rail has exposed the memory.
    pub fn is_empty(&self) -> bool {
        self.keys.iter().next().is_none()
    }

    /// Returns the keys to use for this operation.
    pub fn keys_for(&self, act: Act) -> &Keys {
        if act.is_atomic() { &self.atomic } else { &self.keys }
    }
}

/// Result of an access. Its local memory is no longer used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// The access is complete, here and at the peer.
    Done,
    /// Nothing was done: the link is not open, or the system does not let the network use the local memory.
    Undone,
    /// The link was lost. The access may have been done completely, partly or not at all; its writes may
    /// still arrive until the peer has also closed its side of the link.
    Unknown,
}
