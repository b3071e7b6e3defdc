//! Listeners for receipts of messages, which are made when requests end.

use nmad_engine::{RailId, Receipt};

/// Receives each receipt, in whichever thread finds that the message has ended, and a function that returns
/// the cipher of the link of this message over a rail: `None` if the link is not encrypted, or another thread
/// works with the rail.
pub type OnReceipt = Box<dyn FnMut(&Receipt, &dyn Fn(RailId) -> Option<&'static str>) + Send>;

/// Purpose of a listener; each purpose has one listener at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Lines for the user (`NMAD_EXPLAIN`), or events of the tools interface.
    Told,
    /// A trace of messages of at least this number of bytes. Receipts of shorter messages are made only if
    /// another listener wants them.
    Traced(u64),
}

/// A listener and its purpose.
pub(crate) type Listener = (Purpose, OnReceipt);
