//! What the engine observes beside the messages: how long they take, whether receivers are late, which
//! links fall silent, and a receipt for each message on demand. Observations choose protocols and
//! thresholds through [`crate::engine`]; what is observed never changes because somebody looks.

pub(crate) mod in_force;
pub(crate) mod late;
pub(crate) mod lateness;
pub(crate) mod learn;
pub(crate) mod receipt;
pub(crate) mod record;
pub(crate) mod traffic;
pub(crate) mod watch;
pub(crate) mod watched;

use crate::clock::Instant;
pub(crate) use lateness::Lateness;

/// What is observed of all peers.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    /// Peers with several links, of which one may be left.
    pub(crate) watched: watched::Watched,
    /// How long the receipts of messages took so far; none: nobody wants receipts.
    pub(crate) receipts: Option<alloc::boxed::Box<receipt::Receipts>>,
}

/// Whether something is to be learnt of the rails to a peer ([`learn`]).
#[derive(Debug, Default)]
pub(crate) struct Curiosity {
    /// Something is: messages carry questions, and go in ways of which too little is known.
    pub(crate) is_curious: bool,
    /// Messages one after the other of which enough was known.
    pub(crate) settled: u32,
    /// Looks at the measured profiles.
    pub(crate) looks: u32,
    /// The new rails are asked how long an answer takes, and nothing else goes before.
    pub(crate) greets_until: Instant,
}
