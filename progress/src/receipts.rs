//! Receipts of messages to those that want them, when requests end.

use nmad_engine::Receipt;

/// Is told each receipt, by whichever thread finds that the message has ended.
pub type OnReceipt = Box<dyn FnMut(&Receipt) + Send>;

/// For what somebody wants receipts; each purpose has one listener at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Lines for people (`NMAD_EXPLAIN`), or events of the tools interface.
    Told,
    /// A trace: of messages of at least this number of bytes. Receipts of shorter ones are made only if
    /// another listener wants all.
    Traced(u64),
}

/// A listener and its purpose.
pub(crate) type Listener = (Purpose, OnReceipt);
