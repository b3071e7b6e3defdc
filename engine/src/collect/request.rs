//! Requests of the application: their parameters, hints, results and errors.

use crate::packet::{PeerId, RailId, RequestId, StrategyId};
use crate::profile::sample::Method;
use core::fmt;

/// Communication context: messages of different contexts never match. The engine uses the upper half of the
/// numbers itself (pieces of incremental messages).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context(pub u32);

impl Context {
    /// The application may use contexts below this number.
    pub const LIMIT: u32 = 1 << 31;
}

/// Tag that a receive selects messages by; the application may use all 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// Sender that a receive accepts messages from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From this peer only.
    Peer(PeerId),
    /// From any peer.
    Any,
}

/// Tags that a receive accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagMatch {
    /// This tag only.
    Exact(Tag),
    /// Any tag of the context.
    Any,
}

/// Preference of a message (P1 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefer {
    /// No preference: latency and bandwidth both count.
    #[default]
    Either,
    /// Latency: the message does not wait until the rail is predicted to be idle, and so not for others to
    /// share its packet.
    Latency,
    /// Throughput: `auto` puts the message on the rail with the highest bandwidth and leaves the one with
    /// the lowest latency to others.
    Bandwidth,
}

impl Prefer {
    /// All preferences.
    pub const ALL: [Prefer; 3] = [Prefer::Either, Prefer::Latency, Prefer::Bandwidth];

    /// Returns the name for the user.
    pub const fn name(self) -> &'static str {
        match self {
            Prefer::Either => "either",
            Prefer::Latency => "latency",
            Prefer::Bandwidth => "bandwidth",
        }
    }
}

/// Hints of the application about a message, for the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Priority; higher is sent first, zero is the default.
    pub priority: i8,
    /// Dedicates the message to one rail.
    pub rail: Option<RailId>,
    /// The send completes only when the receiver has matched the message (MPI's synchronous mode).
    pub synchronous: bool,
    /// The message may overtake and be overtaken by others of its flow.
    pub unordered: bool,
    /// The message depends on the one submitted before it to the same peer, as the arguments of a service
    /// depend on its number (P1 section 2): whatever its priority, it is given to a rail only after that
    /// message, or the request to send it, is on a rail.
    pub depends: bool,
    /// Preference for latency or bandwidth.
    pub prefer: Prefer,
    /// The strategy that schedules the message; `None`: that of its peer.
    pub strategy: Option<StrategyId>,
    /// For measurements: the method used regardless of thresholds, see [`crate::Sampler`]. A message that
    /// fits into no packet still uses rendezvous.
    pub probe: Option<Method>,
}

impl Hints {
    /// Whether no hint restricts how the message is sent. Priority does not matter for a message that is
    /// alone.
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

/// Envelope of a message: peer, context, tag, length and sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// Sender of the message; in a send request the receiver.
    pub peer: PeerId,
    /// Context.
    pub context: Context,
    /// Tag.
    pub tag: Tag,
    /// Bytes of the message as sent.
    pub len: u64,
    /// Sequence number in its flow; zero for unordered messages.
    pub seq: u32,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The message was longer than the receive buffer. The first `capacity` bytes were received; no other
    /// message is affected.
    Truncated {
        /// The message.
        envelope: Envelope,
        /// Bytes of the receive buffer.
        capacity: u64,
    },
    /// The peer is gone; [`crate::Inspect::failure`] says why.
    PeerLost(PeerId),
    /// The receive was cancelled before it matched.
    Cancelled,
    /// The link of a one-sided access was lost or could not be used. The access may have been done; it has
    /// no effect from now on.
    AccessLost(PeerId),
    /// The context was revoked ([`crate::Engine::close_context`]).
    Revoked,
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
            Error::Revoked => write!(f, "the context was revoked"),
        }
    }
}

impl core::error::Error for Error {}

/// Completion of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The request; its identifier may be reused.
    pub request: RequestId,
    /// Its result.
    pub result: Result<Envelope, Error>,
}
