//! Receipts of messages to those that want them, when requests end.

use crate::node::{Core, Node};
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

impl Node {
    /// From now on `tell` is given a receipt of each message that was sent, when its request has ended; none
    /// ends it for this purpose. It holds the lock of the node, so it must not call it.
    pub fn on_receipt(&self, purpose: Purpose, tell: Option<OnReceipt>) {
        let mut core = self.shared.lock();
        core.on_receipt
            .retain(|(other, _)| core::mem::discriminant(other) != core::mem::discriminant(&purpose));
        core.on_receipt.extend(tell.map(|tell| (purpose, tell)));
        let from_len = |(purpose, _): &Listener| match purpose {
            Purpose::Told => 0,
            Purpose::Traced(from_len) => *from_len,
        };
        match core.on_receipt.iter().map(from_len).min() {
            Some(from_len) => core.engine.record_receipts_from(from_len),
            None => core.engine.record_receipts(false),
        }
    }

    /// Where the time of receipts begins on the monotonic clock of the system, in nanoseconds.
    pub fn origin_ns(&self) -> u64 {
        self.shared.clock.origin_ns()
    }

    /// Hands out the receipts that wait: those of messages that left at once wait for the next request that
    /// ends otherwise.
    pub fn tell_receipts(&self) {
        self.shared.lock().tell_receipts();
    }
}

impl Core {
    #[cold]
    pub(crate) fn tell_receipts(&mut self) {
        if self.on_receipt.is_empty() {
            return;
        }
        while let Some(receipt) = self.engine.next_receipt() {
            self.on_receipt.iter_mut().for_each(|(_, tell)| tell(&receipt));
        }
    }
}
