//! Looks on the link of the peer that a host waits for, as in the library (`progress/src/receive.rs`).

use super::{Host, Mode};
use crate::network::lock;
use nmad_engine::{Instant, pump};

/// Looks on one link alone from one turn of the pump to the next, at most.
pub(super) const LOOKS: u32 = 32;

impl Host {
    /// Takes packets of a peer whose message is awaited; whether there were any.
    pub(super) fn look(&mut self) -> bool {
        let Mode::Waiting(ops, _) = self.mode() else { return false };
        let request = ops.iter().find(|&&op| !self.has_ended(op)).and_then(|op| self.requests.get(op));
        let from = request.and_then(|request| self.engine.inspect().awaited_from(*request));
        let Some(from) = from.filter(|_| self.looks) else { return false };
        let (now, mut moved) = (self.told_time(), false);
        while pump::look_for(&mut pump::Exclusive(&mut self.engine, &mut self.rails), now, from) == Some(true)
        {
            moved = true;
        }
        moved
    }

    /// Whether it looks on one link only for the time being, since nothing else has come and nothing is to be
    /// posted. Like the library it turns the pump after some looks at the latest.
    pub(super) fn looks_on(&mut self) -> bool {
        let Mode::Waiting(ops, _) = self.mode() else { return false };
        let request = ops.iter().find(|&&op| !self.has_ended(op)).and_then(|op| self.requests.get(op));
        let from = request.and_then(|request| self.engine.inspect().awaited_from(*request));
        let is_known =
            from.filter(|_| self.looks).and_then(|from| self.engine.inspect().looks_on(from)).is_some();
        let has_come = || {
            let mut network = lock(&self.network);
            self.fabrics.iter().any(|&fabric| network.inbound(fabric, self.id) > 0)
        };
        self.looked += 1;
        let goes_on = is_known && self.looked < LOOKS && !has_come();
        let now = Instant::from_ns(self.told_ns);
        if goes_on && !self.engine.has_orders(now) {
            return true;
        }
        self.looked = 0;
        false
    }
}
