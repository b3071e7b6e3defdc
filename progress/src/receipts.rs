//! Receipts of messages to those that want them, when requests end.

use crate::node::{Core, Node};
use nmad_engine::Receipt;

/// Is told each receipt, by whichever thread finds that the message has ended.
pub type OnReceipt = Box<dyn FnMut(&Receipt) + Send>;

impl Node {
    /// From now on `tell` is given a receipt of each message that was sent, when its request has ended; none
    /// ends it. It holds the lock of the node, so it must not call it.
    pub fn on_receipt(&self, tell: Option<OnReceipt>) {
        let mut core = self.shared.lock();
        core.engine.record_receipts(tell.is_some());
        core.on_receipt = tell;
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
        let Some(tell) = &mut self.on_receipt else { return };
        while let Some(receipt) = self.engine.next_receipt() {
            tell(&receipt);
        }
    }
}
