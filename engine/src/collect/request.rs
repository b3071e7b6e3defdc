//! Requests: what the application asked, its state, and its result.

use crate::packet::{PeerId, RailId, RequestId, StrategyId};
use crate::profile::sample::Method;
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
