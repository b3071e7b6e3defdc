//! One-sided accesses: a network adapter reads or writes memory that a peer has exposed, without the peer's
//! help (RDMA).
//!
//! An access has no number on the link, and no acknowledgement of the peer's engine: the adapter reports
//! that it is complete. What becomes of it when its link is lost is the engine's to find out.

use crate::memory::Segments;
use crate::packet::{Key, PeerId, RequestId};
use nmad_wire::Keys;

/// What a rail does to the memory of a peer without the peer's help. One-sided communication chooses by it
/// how a put or a get travels; what no rail does becomes a message to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteAccess {
    /// Nothing.
    None,
    /// The caller itself copies to and from any memory of the peer, by its addresses, and has done so when
    /// its call returns. The rail has no part in it.
    Copies,
    /// The network reaches memory that the peer has exposed ([`super::driver::Driver::expose`]): puts, gets,
    /// and the atomics that [`Atomics`] tells.
    Network(Atomics),
}

/// Atomic operations of a network on words of 8 B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomics {
    /// None.
    None,
    /// Atomic against others of the same adapter only (`IBV_ATOMIC_HCA`).
    Adapter,
    /// Atomic against the processor, too (`IBV_ATOMIC_GLOB`).
    Processor,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Memory here is written there.
    Put,
    /// Memory there is written here.
    Get,
    /// This is added to a word there; what was there is written here.
    Add(u64),
    /// If a word there is the first number it becomes the second one; what was there is written here.
    Swap(u64, u64),
}

impl Act {
    /// Whether a word is read and changed in one step.
    pub fn is_atomic(self) -> bool {
        matches!(self, Act::Add(_) | Act::Swap(..))
    }
}

/// One access.
#[derive(Debug)]
pub struct Access {
    /// Whose memory it is.
    pub to: PeerId,
    /// Names it; [`super::driver::Event::Accessed`] tells what came of it.
    pub request: RequestId,
    /// What is done.
    pub act: Act,
    /// Where the memory begins in the peer's process; of an atomic a multiple of eight.
    pub at: u64,
    /// The key by which the peer has exposed it on its side of the rail.
    pub key: Key,
    /// As many bytes here; of an atomic eight.
    pub here: Segments,
}

/// How memory that a process has exposed is named on its rails, for those who access it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exposure {
    /// The keys, by the numbers of its rails.
    pub keys: Keys,
    /// Those of rails by which words can be changed while its processor changes them
    /// ([`Atomics::Processor`]).
    pub atomic: Keys,
}

impl Exposure {
    /// Whether no rail has exposed it.
    pub fn is_empty(&self) -> bool {
        self.keys.iter().next().is_none()
    }

    /// The keys for what is done.
    pub fn keys_for(&self, act: Act) -> &Keys {
        if act.is_atomic() { &self.atomic } else { &self.keys }
    }
}

/// What came of an access. Its memory here is not used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// It is complete, here and at the peer.
    Done,
    /// Nothing was done: the link is not open, or the system does not let the network use the memory here.
    Undone,
    /// The link was lost. It may have been done, or a part of it; what it writes may still come until the
    /// peer has closed its side of the link, too.
    Unknown,
}
