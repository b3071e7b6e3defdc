//! How requests end, and who is told.

use super::{End, Host};
use crate::network::lock;
use crate::oracle::Objection;
use crate::oracle::delivery::DeliveryOracle;
use crate::oracle::ledger;
use nmad_engine::{Completion, Error, Instant};

impl Host {
    /// Takes what has ended and shows it to the oracle; whether there was any.
    pub(super) fn collect(&mut self, oracle: &mut DeliveryOracle) -> Result<bool, Objection> {
        let mut any = false;
        for request in core::mem::take(&mut self.untold) {
            match (self.engine.take(request), self.engine.has_ended(request)) {
                (Some(result), _) => {
                    any = true;
                    self.end(&Completion { request, result }, oracle)?;
                }
                // Still under way, or not to be reported yet; one that was reported has no such name.
                (None, Some(_)) => self.untold.push(request),
                (None, None) => {}
            }
        }
        self.engine.discard_closed();
        while let Some(completion) = self.engine.next_completion() {
            any = true;
            if self.windows.as_mut().is_some_and(|windows| windows.ended(&completion))
                || self.files.as_mut().is_some_and(|files| files.ended(&completion))
            {
                continue;
            }
            self.end(&completion, oracle)?;
        }
        while let Some(notice) = self.engine.next_notice() {
            self.note(&[24, u64::from(notice.peer.0)], || format!("notice: {}", notice.text));
        }
        Ok(any)
    }

    pub(super) fn end(
        &mut self,
        completion: &Completion,
        oracle: &mut DeliveryOracle,
    ) -> Result<(), Objection> {
        let at = lock(&self.network).local_ns(self.id);
        let op = self.ops.remove(&completion.request);
        let text = match completion.result {
            Ok(envelope) => (22, envelope.len),
            Err(_) => (23, 0),
        };
        self.note(&[text.0, op.unwrap_or(0) as u64, text.1], || match (op, completion.result) {
            (Some(op), Ok(e)) => format!("op {op} ends: {} B, peer h{}, seq {}", e.len, e.peer.0, e.seq),
            (Some(op), Err(error)) => format!("op {op} ends: {error}"),
            (None, _) => format!("{completion:?} of an unknown request"),
        });
        let network = lock(&self.network);
        let index = oracle.ended(self.id, at, completion, &*network)?;
        drop(network);
        self.consumed(oracle, index);
        if self.patient.iter().any(|patient| patient.request == completion.request) {
            self.patient.retain(|patient| patient.request != completion.request);
            self.engine.ended_blocking(Instant::from_ns(at));
        }
        if let Some(op) = op {
            self.requests.remove(&op);
            let cancelled = completion.result == Err(Error::Cancelled);
            self.keep_end(op, if cancelled { End::Cancelled } else { End::Otherwise });
        }
        Ok(())
    }

    /// Tells the oracle of the wires that a message is kept no longer.
    fn consumed(&self, oracle: &DeliveryOracle, index: usize) {
        let entry = &oracle.ledger.entries[index];
        let (ledger::What::Recv { .. }, Some(send)) = (entry.what, entry.partner) else { return };
        let message = &oracle.ledger.entries[send];
        if let ledger::What::Send { context, seq: Some(seq), .. } = message.what {
            lock(&self.network).oracle.consumed(message.host, self.id, context, seq);
        }
    }
}
