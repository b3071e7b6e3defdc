//! Blocking sends that end before their receivers have them, as in the library (`progress/src/send.rs`).

use super::Host;
use crate::network::lock;
use crate::workload::Op;
use nmad_engine::{EarlyEnd, Instant, RequestId};

/// A blocking send that may end early.
#[derive(Debug)]
pub(super) struct Patient {
    pub(super) request: RequestId,
    /// When it ends; none: perhaps once it has left.
    pub(super) until: Option<u64>,
    /// Whether it had left already when that was decided.
    had_left: bool,
}

impl Host {
    /// A thread begins to wait for these: a blocking call, if one is left and it is a send.
    pub(super) fn be_patient(&mut self, ops: &[Op]) {
        let mut left = ops.iter().filter(|&&op| !self.has_ended(op));
        let (Some(op), None) = (left.next(), left.next()) else { return };
        let Some(&request) = self.requests.get(op) else { return };
        self.ask_patience(request);
    }

    /// Asks when a blocking send may end.
    fn ask_patience(&mut self, request: RequestId) {
        let now = lock(&self.network).local_ns(self.id);
        let until = match self.engine.early_end(request, Instant::from_ns(now)) {
            EarlyEnd::Never => return,
            EarlyEnd::After(patience) => Some(now + patience.as_ns()),
            EarlyEnd::OnceItLeft => None,
        };
        let had_left = self.engine.inspect().has_left(request);
        self.patient.push(Patient { request, until, had_left });
    }

    /// Ends the sends that have waited for long enough; whether there were any.
    pub(super) fn end_early(&mut self) -> bool {
        let now = lock(&self.network).local_ns(self.id);
        let mut any = false;
        for patient in core::mem::take(&mut self.patient) {
            let Patient { request, until, had_left } = patient;
            let is_time = until.is_some_and(|until| until <= now);
            if !is_time && (had_left || !self.engine.inspect().has_left(request)) {
                self.patient.push(patient);
                continue;
            }
            let before = self.engine.inspect().early_bytes();
            if is_time && self.engine.end_early(request) {
                any = true;
                // It is about to end, and its call was patient until then.
                self.patient.push(Patient { request, until: Some(u64::MAX), had_left: true });
                let mut network = lock(&self.network);
                let copy_ns = network.machine.copy_ns(self.engine.inspect().early_bytes() - before);
                network.work(self.id, copy_ns);
            } else {
                self.ask_patience(request);
            }
        }
        any
    }
}
