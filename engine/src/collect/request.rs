//! Requests: what the application asked, its state, and its result.

use crate::clock::Instant;
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RegionId, RequestId, StrategyId};
use crate::profile::sample::Method;
use alloc::boxed::Box;
use core::fmt;

/// Communication context: messages of different contexts never match. The upper half of the numbers is
/// the engine's own (pieces of incremental messages).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context(pub u32);

impl Context {
    /// Contexts below this are the application's.
    pub const LIMIT: u32 = 1 << 31;
}

/// What a receive names to tell messages apart; all 64 bits are the application's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// From whom a receive takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From this peer only.
    Peer(PeerId),
    /// From anybody.
    Any,
}

/// Which tags a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagMatch {
    /// This tag only.
    Exact(Tag),
    /// Any tag of the context.
    Any,
}

/// What matters about a message (P1 section 2). Where nothing is said, both count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefer {
    /// Nothing was said.
    #[default]
    Either,
    /// That it arrives soon: it does not wait for a rail's clock, and so not for company in its packet.
    Latency,
    /// That much is carried in all: `auto` puts it on the rail with the most bandwidth, and leaves the one
    /// with the least latency to others.
    Bandwidth,
}

impl Prefer {
    /// All of them.
    pub const ALL: [Prefer; 3] = [Prefer::Either, Prefer::Latency, Prefer::Bandwidth];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Prefer::Either => "either",
            Prefer::Latency => "latency",
            Prefer::Bandwidth => "bandwidth",
        }
    }
}

/// What the application knows about a message and the scheduler may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Higher goes first; zero is usual.
    pub priority: i8,
    /// Dedicates the message to one rail.
    pub rail: Option<RailId>,
    /// Complete only when the receiver has matched it (MPI's synchronous mode).
    pub synchronous: bool,
    /// May overtake and be overtaken by other messages of its flow.
    pub unordered: bool,
    /// Depends on the message that was submitted before it to the same peer (P1 section 2: the arguments of a
    /// service on its number): no rail gets it, whatever its priority, before that one, or the request to
    /// send it, is on a rail.
    pub depends: bool,
    /// What matters about it.
    pub prefer: Prefer,
    /// The strategy that decides about it; none: that of its peer.
    pub strategy: Option<StrategyId>,
    /// Carried in this way whatever the thresholds say, for measurements: see [`crate::Sampler`]. A message
    /// that fits into no packet is announced first nevertheless.
    pub probe: Option<Method>,
}

impl Hints {
    /// Whether the message wants nothing but to arrive; a priority does not matter to what is alone.
    #[inline]
    pub(crate) fn are_plain(&self) -> bool {
        !self.synchronous
            && !self.unordered
            && self.rail.is_none()
            && self.probe.is_none()
            && self.strategy.is_none()
            && self.prefer != Prefer::Bandwidth
    }
}

/// The names and the length of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// Who sent it (for a send request: who gets it).
    pub peer: PeerId,
    /// Context.
    pub context: Context,
    /// Tag.
    pub tag: Tag,
    /// Bytes of the message as sent.
    pub len: u64,
    /// Place in its flow; zero for unordered messages.
    pub seq: u32,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The message was longer than the receive buffer; the first `capacity` bytes are there, nothing else
    /// is lost.
    Truncated {
        /// The message.
        envelope: Envelope,
        /// Bytes of the receive buffer.
        capacity: u64,
    },
    /// The peer is gone; [`crate::Engine::failure`] says why.
    PeerLost(PeerId),
    /// The receive was cancelled before it matched.
    Cancelled,
    /// The link that an access went over is lost, or could not be used: the access may have been done, and
    /// nothing of it happens any more.
    AccessLost(PeerId),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Truncated { envelope, capacity } => write!(
                f,
                "message of {} B from peer {} (tag {:#x}) is longer than the receive buffer of {capacity} B",
                envelope.len, envelope.peer.0, envelope.tag.0
            ),
            Error::PeerLost(peer) => write!(f, "peer {} is gone", peer.0),
            Error::Cancelled => write!(f, "cancelled"),
            Error::AccessLost(peer) => write!(f, "the link to peer {} was lost in an access", peer.0),
        }
    }
}

impl core::error::Error for Error {}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Which request; its name is free for reuse.
    pub request: RequestId,
    /// How it ended.
    pub result: Result<Envelope, Error>,
}

/// A request that runs, or whose end was not reported yet.
#[derive(Debug)]
pub(crate) enum Request {
    /// A small message that is in the window, or on a rail in place.
    Eager(EagerSend),
    /// A large message: its envelope, memory, and how far it is.
    Large(Box<Outgoing>),
    /// A receive.
    Recv(Recv),
    /// An access to memory of a peer.
    OneSided(OneSided),
    /// A message that is read from its sender's memory.
    Reading(Reading),
    /// It has ended, and that was not reported yet.
    Ended(Result<Envelope, Error>),
}

impl Request {
    /// Whether it may be of this context: of what has failed with its peer that is not known, and what was
    /// cancelled is of none any more.
    pub(crate) fn may_be_of(&self, context: Context) -> bool {
        match self {
            Request::Eager(EagerSend { envelope, .. })
            | Request::Ended(Ok(envelope) | Err(Error::Truncated { envelope, .. })) => {
                envelope.context == context
            }
            Request::Large(outgoing) => outgoing.envelope.context == context,
            Request::Recv(recv) => recv.context == context,
            Request::Reading(reading) => reading.envelope.context == context,
            Request::Ended(Err(Error::PeerLost(_))) => true,
            Request::OneSided(_) | Request::Ended(Err(Error::Cancelled | Error::AccessLost(_))) => false,
        }
    }
}

/// State of a small send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EagerSend {
    pub(crate) envelope: Envelope,
    /// Synchronous: ends only when the receiver has matched it.
    pub(crate) wants_fin: bool,
    pub(crate) has_fin: bool,
    /// Entries of the window, or of packets, that refer to its memory: one, or one for each part.
    pub(crate) waiting: u32,
}

impl EagerSend {
    pub(crate) fn new(envelope: Envelope, wants_fin: bool) -> Self {
        EagerSend { envelope, wants_fin, has_fin: false, waiting: 1 }
    }
}

/// State of a large send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) envelope: Envelope,
    pub(crate) data: Segments,
    pub(crate) hints: Hints,
    /// Set by the Cts or by an Rtr.
    pub(crate) grant: Option<Grant>,
    /// The receiver will say when it has everything; until then chunks may have to be sent again.
    pub(crate) wants_fin: bool,
    /// The receiver says so for a measurement, which the send does not wait for.
    pub(crate) is_timed: bool,
    pub(crate) has_fin: bool,
    /// Chunks that a rail holds; user memory is in use.
    pub(crate) at_rails: u32,
    /// Bytes that rails reported as sent.
    pub(crate) sent: u64,
    /// Bytes that go ahead of any answer, zero for none.
    pub(crate) pushed: u64,
    /// Where it lies, for a receiver that reads it; zero: it is not read.
    pub(crate) address: u64,
    /// The receiver has invited it.
    pub(crate) invited: bool,
    /// When its request to send left, where that is known.
    pub(crate) asked_at: Option<Instant>,
    /// How long it waited for the answer, beyond a handshake; none: it was not asked, or that says nothing.
    pub(crate) answer_ns: Option<u64>,
    /// When it was predicted to have arrived; zero before it is shared out, or where nobody says that it has.
    pub(crate) due: Instant,
    /// When the strategy has shared it out, how many bytes, and among how many rails.
    pub(crate) shared: Option<(Instant, u64, usize)>,
}

impl Outgoing {
    /// Nothing of it has gone.
    pub(crate) fn new(envelope: Envelope, data: Segments, hints: Hints) -> Self {
        Outgoing {
            envelope,
            data,
            hints,
            grant: None,
            wants_fin: false,
            is_timed: false,
            has_fin: false,
            at_rails: 0,
            sent: 0,
            pushed: 0,
            address: 0,
            invited: false,
            asked_at: None,
            answer_ns: None,
            due: Instant::default(),
            shared: None,
        }
    }
}

/// The receiver's permission to send the body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) region: RegionId,
    pub(crate) len: u64,
    pub(crate) keys: nmad_wire::Keys,
}

/// State of an access to memory of a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneSided {
    pub(crate) envelope: Envelope,
    /// The rail that does it.
    pub(crate) rail: RailId,
    /// The rail has lost the link, and does not know what came of it.
    pub(crate) is_unknown: bool,
}

/// State of a message that a receive has matched and that is read from its sender's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) envelope: Envelope,
    /// The receive.
    pub(crate) recv: RequestId,
    /// The sender's request.
    pub(crate) theirs: u64,
}

/// State of a receive.
#[derive(Debug)]
pub(crate) struct Recv {
    pub(crate) into: Segments,
    pub(crate) from: Source,
    pub(crate) context: Context,
    pub(crate) tag: TagMatch,
    /// Place in the table of posted receives while unmatched.
    pub(crate) posted: Option<u32>,
    /// Where a large message lands, or is invited to.
    pub(crate) region: Option<RegionId>,
    /// The peer was asked to give the Rtr back.
    pub(crate) withdrawn: bool,
    /// The incremental message of which this is the first piece.
    pub(crate) message: Option<u64>,
}

impl Recv {
    #[inline(always)]
    pub(crate) fn new(into: Segments, (from, context, tag): (Source, Context, TagMatch)) -> Self {
        Recv { into, from, context, tag, posted: None, region: None, withdrawn: false, message: None }
    }
}
