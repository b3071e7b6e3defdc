//! Listeners for receipts of messages, which are made when requests end.

use nmad_engine::Receipt;

/// Receives each receipt, in whichever thread finds that the message has ended.
pub type OnReceipt = Box<dyn FnMut(&Receipt) + Send>;

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
