//! Blocking sends that end before their receivers answer, as in the library (`progress/src/send.rs`).

use super::Host;
use crate::network::lock;
use crate::workload::Op;
use nmad_engine::{Duration, Instant};

impl Host {
    /// A thread begins to wait for these: a blocking call, if one is left and it is a send.
    pub(super) fn be_patient(&mut self, ops: &[Op]) {
        let mut left = ops.iter().filter(|op| !self.ends.contains_key(op));
        let (Some(op), None) = (left.next(), left.next()) else { return };
        let Some(&request) = self.requests.get(op) else { return };
        let now = lock(&self.network).local_ns(self.id);
        let patience = self.engine.early_end_after(request, Instant::from_ns(now));
        self.patient.extend(patience.map(|patience: Duration| (request, now + patience.as_ns())));
    }

    /// Ends the sends that have waited for long enough; whether there were any.
    pub(super) fn end_early(&mut self) -> bool {
        let now = lock(&self.network).local_ns(self.id);
        let mut any = false;
        for place in 0..self.patient.len() {
            let (request, until) = self.patient[place];
            if until > now {
                continue;
            }
            let before = self.engine.inspect().early_bytes();
            // Asked once only: what goes on as it is ends by itself.
            self.patient[place].1 = u64::MAX;
            if self.engine.end_early(request) {
                any = true;
                let mut network = lock(&self.network);
                let copy_ns = network.machine.copy_ns(self.engine.inspect().early_bytes() - before);
                network.work(self.id, copy_ns);
            }
        }
        any
    }
}
