//! What the common rail asks of an adapter: the library of a kind of fabric, opened on one interface.
//!
//! An adapter knows endpoints, registered memory and operations on them, never links, packets or chunks. None
//! of its verbs waits.

use nmad_engine::memory::Segment;
use nmad_engine::transfer::access::{Act, RemoteAccess};
use rustix::fd::BorrowedFd;

/// What an adapter can do; constant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abilities {
    /// Bytes in all of one message that is copied when it is posted, so that its buffer is free at once.
    pub(crate) inline: usize,
    /// Longest single operation on a peer's memory, in bytes.
    pub(crate) operation: usize,
    /// Reading a peer's memory is possible; otherwise all data travels in messages.
    pub(crate) reads: bool,
    /// What peers may do to memory that this side has exposed.
    pub(crate) remote: RemoteAccess,
    /// Dropping an endpoint ends its operations: none of them touches memory any more, nor is reported.
    /// Otherwise only [`Adapter::end`] does so.
    pub(crate) ends: bool,
    /// A message leaves without a system call.
    pub(crate) is_direct: bool,
    /// A registration keeps its pages whatever becomes of the mapping, and operations on them harm nobody.
    pub(crate) keeps: bool,
    /// Nominal bandwidth in bytes per second, zero if unknown.
    pub(crate) bandwidth: u64,
}

/// For what memory is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Own buffers: messages are sent from it and received into it.
    Messages,
    /// What a peer reads is written into it. Where registrations are kept, a peer may read it too.
    Target,
    /// A peer reads it.
    Source,
    /// Peers access it as the abilities say.
    Exposed,
}

impl Purpose {
    /// Whether a registration that is kept for this also serves the other.
    pub(crate) fn serves(self, other: Purpose) -> bool {
        self == other || (self, other) == (Purpose::Target, Purpose::Source)
    }
}

/// Where a peer finds registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Address of the first byte, as operations name it.
    pub(crate) address: u64,
    /// The key of the registration.
    pub(crate) key: u64,
}

/// What became of an operation that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posted {
    /// Its buffer is free already, and nothing is reported.
    Done,
    /// [`Completion`] will tell.
    Taken,
    /// It was not taken, since as much is under way as fits. Completions make room.
    Full,
}

/// What an adapter reports.
#[derive(Debug)]
pub(crate) enum Completion {
    /// A message of `len` bytes lies in this receive buffer.
    Received {
        /// The buffer.
        slot: u32,
        /// Bytes.
        len: usize,
    },
    /// A receive has failed; its buffer is free, and nobody is to blame.
    Wasted {
        /// The buffer.
        slot: u32,
    },
    /// A send buffer is free again, whether or not the message has left.
    Sent {
        /// The buffer.
        slot: u32,
    },
    /// An operation on a peer's memory is complete, and the memory here is not touched any more.
    Operated {
        /// The name that it was posted with.
        token: u32,
        /// Whether it was done.
        is_good: bool,
    },
    /// An operation of this endpoint has failed. Nothing more will pass through it.
    Broken {
        /// The name that the endpoint was made with; none: of every endpoint.
        endpoint: Option<u32>,
        /// Cause and remedy, as what follows the name of the peer.
        why: String,
    },
}

/// A library of a fabric, opened on one interface.
pub(crate) trait Adapter: Send + 'static {
    /// One peer's end of it.
    type Endpoint: Send;
    /// Registered memory.
    type Region: Send + Sync;

    /// Its abilities.
    fn abilities(&self) -> Abilities;

    /// An endpoint of this name, and what the other side needs to know to join it.
    ///
    /// # Errors
    /// The fabric has no more of them; the text has cause and remedy.
    fn endpoint(&mut self, name: u32) -> Result<(Self::Endpoint, Vec<u8>), String>;

    /// Joins an endpoint with that of the other side.
    ///
    /// # Errors
    /// The two do not fit, or the fabric refuses.
    fn join(&mut self, endpoint: &mut Self::Endpoint, theirs: &[u8]) -> Result<(), String>;

    /// Registers memory. The region is dropped before the memory ends, unless registrations keep their pages.
    ///
    /// # Errors
    /// The system refuses, mostly because of a limit.
    fn register(&mut self, memory: Segment, purpose: Purpose) -> Result<Self::Region, String>;

    /// Where a peer finds the first byte of a [`Purpose::Source`] or [`Purpose::Exposed`].
    fn place(&self, region: &Self::Region) -> Place;

    /// Gives a buffer for the next message of any peer.
    ///
    /// # Errors
    /// The fabric takes no more buffers.
    fn receive(&mut self, buffer: Segment, region: &Self::Region, slot: u32) -> Result<(), String>;

    /// Posts a message. It may wait for [`Adapter::flush`].
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

    /// Posts an operation on a peer's memory, between it and memory here. It may wait for
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

    /// Lets everything leave that was posted on this endpoint.
    ///
    /// # Errors
    /// The endpoint has failed.
    fn flush(&mut self, endpoint: &mut Self::Endpoint) -> Result<(), String>;

    /// The next message of this endpoint is the last, and is reported when the peer has everything. False:
    /// none is needed, since each message is reported when the peer has it.
    fn conclude(&mut self, endpoint: &mut Self::Endpoint) -> bool {
        let _ = endpoint;
        false
    }

    /// Looks once what has happened.
    fn poll(&mut self, found: &mut Vec<Completion>);

    /// Ends every operation of every endpoint, and every receive, before it returns. None of the endpoints
    /// can be used any more, and no other is made.
    fn end(&mut self);

    /// Becomes readable when there is something to poll, once [`Adapter::arm`] has succeeded. None: the
    /// fabric has no such descriptor.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Prepares the descriptor. False: there may be something to poll already.
    fn arm(&mut self) -> bool;
}
