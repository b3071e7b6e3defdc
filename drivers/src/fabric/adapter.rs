//! Interface between the fabric rail and an adapter: the library of a kind of fabric, opened on one
//! interface.
//!
//! An adapter knows endpoints, registered memory and operations on them, never links, packets or chunks.
//! None of its methods blocks.

use nmad_engine::memory::Segment;
use nmad_engine::transfer::access::{Act, RemoteAccess};
use rustix::fd::BorrowedFd;

/// Constant properties of an adapter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abilities {
    /// Longest message in bytes that is copied when it is posted, so that its buffer is free at once.
    pub(crate) inline: usize,
    /// Longest single operation on a peer's memory, in bytes.
    pub(crate) operation: usize,
    /// The adapter can read a peer's memory; otherwise all data travels in messages.
    pub(crate) can_read: bool,
    /// Accesses that peers may make to memory that this side has exposed.
    pub(crate) remote: RemoteAccess,
    /// Dropping an endpoint ends its operations: none of them accesses memory any more, nor is reported.
    /// Otherwise only [`Adapter::end`] does so.
    pub(crate) ends_operations: bool,
    /// Messages are sent without a system call.
    pub(crate) is_direct: bool,
    /// A registration pins its pages even after the mapping has ended, and operations on them are harmless.
    pub(crate) pins_pages: bool,
    /// Nominal bandwidth in bytes per second, zero if unknown.
    pub(crate) bandwidth: u64,
}

/// Intended use of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Own buffers for sending and receiving messages.
    Messages,
    /// Target of reads from a peer. If registrations are cached, a peer may read it too.
    Target,
    /// Source of a peer's reads.
    Source,
    /// Memory exposed to peers, with the accesses of the abilities.
    Exposed,
}

impl Purpose {
    /// Returns whether a cached registration for `self` also serves `other`.
    pub(crate) fn serves(self, other: Purpose) -> bool {
        self == other || (self, other) == (Purpose::Target, Purpose::Source)
    }
}

/// Remote address of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Address of the first byte, as used in operations.
    pub(crate) address: u64,
    /// The key of the registration.
    pub(crate) key: u64,
}

/// Result of posting an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posted {
    /// Its buffer is free already, and no completion follows.
    Done,
    /// A [`Completion`] follows.
    Taken,
    /// It was not taken, because the queue is full. Completions make room.
    Full,
}

/// An event of an adapter.
#[derive(Debug)]
pub(crate) enum Completion {
    /// A message of `len` bytes is in this receive buffer.
    Received {
        /// The receive buffer.
        slot: u32,
        /// Length in bytes.
        len: usize,
    },
    /// A receive has failed; its buffer is free, and no endpoint is at fault.
    Wasted {
        /// The receive buffer.
        slot: u32,
    },
    /// A send buffer is free again, whether the message was sent or not.
    Sent {
        /// The send buffer.
        slot: u32,
    },
    /// An operation on a peer's memory is complete, and no longer accesses local memory.
    Operated {
        /// The token with which it was posted.
        token: u32,
        /// Whether it succeeded.
        is_good: bool,
    },
    /// An operation of this endpoint has failed, so the endpoint cannot be used any more.
    Broken {
        /// The name of the endpoint; none: all endpoints.
        endpoint: Option<u32>,
        /// Cause and remedy, printed behind the name of the peer.
        why: String,
    },
}

/// A library of a fabric, opened on one interface.
pub(crate) trait Adapter: Send + 'static {
    /// An endpoint, which is connected to one peer.
    type Endpoint: Send;
    /// Registered memory.
    type Region: Send + Sync;

    /// Its abilities.
    fn abilities(&self) -> Abilities;

    /// Creates an endpoint with this name; returns also the data with which the other side joins it.
    ///
    /// # Errors
    /// The fabric has no more endpoints; the text has cause and remedy.
    fn endpoint(&mut self, name: u32) -> Result<(Self::Endpoint, Vec<u8>), String>;

    /// Connects an endpoint with that of the other side.
    ///
    /// # Errors
    /// The two are incompatible, or the fabric refuses.
    fn join(&mut self, endpoint: &mut Self::Endpoint, theirs: &[u8]) -> Result<(), String>;

    /// Registers memory. The region must be dropped before the memory is freed, unless registrations pin
    /// pages.
    ///
    /// # Errors
    /// The system refuses, mostly because of a limit.
    fn register(&mut self, memory: Segment, purpose: Purpose) -> Result<Self::Region, String>;

    /// The remote address of a [`Purpose::Source`] or [`Purpose::Exposed`].
    fn place(&self, region: &Self::Region) -> Place;

    /// Posts a buffer for the next message of any peer.
    ///
    /// # Errors
    /// The fabric takes no more buffers.
    fn receive(&mut self, buffer: Segment, region: &Self::Region, slot: u32) -> Result<(), String>;

    /// Posts a message, which may be delayed until [`Adapter::flush`].
    ///
    /// # Errors
    /// The endpoint has failed.
    fn send(
        &mut self,
        endpoint: &mut Self::Endpoint,
        message: Segment,
        region: &Self::Region,
        slot: u32,
    ) -> Result<Posted, String>;

    /// Posts an operation between a peer's memory and local memory, which may be delayed until
    /// [`Adapter::flush`].
    ///
    /// # Errors
    /// The endpoint has failed.
    fn operate(
        &mut self,
        endpoint: &mut Self::Endpoint,
        act: Act,
        here: (Segment, &Self::Region),
        there: Place,
        token: u32,
    ) -> Result<Posted, String>;

    /// Sends everything that was posted on this endpoint.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn flush(&mut self, endpoint: &mut Self::Endpoint) -> Result<(), String>;

    /// Announces the last message of this endpoint, whose completion is to confirm that the peer has
    /// received everything. False: unnecessary, since every completion confirms that.
    fn conclude(&mut self, endpoint: &mut Self::Endpoint) -> bool {
        let _ = endpoint;
        false
    }

    /// Polls once for events.
    fn poll(&mut self, found: &mut Vec<Completion>);

    /// Ends every operation of every endpoint, and every receive, before it returns. No endpoint can be
    /// used any more, and no other is created.
    fn end(&mut self);

    /// Becomes readable when there is an event, once [`Adapter::arm`] has succeeded. None: the fabric has
    /// no such descriptor.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Prepares the descriptor. False: there may be an event already.
    fn arm(&mut self) -> bool;
}
