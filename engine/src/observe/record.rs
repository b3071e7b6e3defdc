//! Recording of receipts when messages are sent, and access to them.

use crate::clock::Instant;
use crate::collect::request::Envelope;
use crate::engine::peer::Peer;
use crate::engine::{Engine, Setup};
use crate::observe::receipt::{Candidate, Receipt, candidate};
use crate::packet::{PeerId, RailId, RequestId};
use crate::protocol::leaving::{Submitted, To};
use crate::protocol::parallel::Parallel;
use crate::protocol::{Plan, Protocol, Request};
use crate::schedule::strategy::RailView;
use crate::transfer::rail::Rail;
use alloc::vec::Vec;

impl Engine {
    /// Returns the next receipt of a completed message.
    pub fn next_receipt(&mut self) -> Option<Receipt> {
        self.observers.receipts.as_mut()?.done.pop_front()
    }

    /// Records messages that are sent in a packet.
    #[cold]
    pub(crate) fn note_packet(
        &mut self,
        now: Instant,
        rail: RailId,
        id: PeerId,
        (requests, protocol): (&[RequestId], Protocol),
    ) {
        let Some(peer) = self.peers.get(id) else { return };
        let Some(receipts) = &mut self.observers.receipts else { return };
        receipts.now = now;
        for &request in requests {
            let is_in_parts = |receipt: &mut Receipt| {
                matches!(receipt.protocol, Protocol::EagerParts | Protocol::EagerParallel)
            };
            if receipts.of(request).is_some_and(is_in_parts) {
                continue;
            }
            let (envelope, protocol, carried, blocks) = match self.requests.get(request.0) {
                Some(Request::Eager(eager)) => {
                    (eager.envelope, protocol, Vec::from([(rail, eager.envelope.len)]), (0, 0))
                }
                // A pushed chunk follows its request to send; a message that is read has no chunk.
                Some(Request::Large(send)) if send.ahead() > 0 || send.is_read_beside_blocks() => {
                    (send.envelope, send.protocol, Vec::new(), send.blocks())
                }
                _ => continue,
            };
            if envelope.len < receipts.from_len {
                continue;
            }
            let candidates = candidates(peer, &self.rails, now, envelope.len, protocol);
            let predicted = candidates.iter().find(|candidate| candidate.rail == rail);
            receipts.open(Receipt {
                request: Some(request),
                envelope,
                protocol,
                eager_max: peer.way.eager_max as u64,
                predicted_ns: predicted.map_or(0, |candidate| candidate.alone_ns),
                candidates,
                began: now,
                carried,
                blocks: blocks.0,
                blocks_bytes: blocks.1,
                actual_ns: 0,
            });
        }
    }

    /// Records an eager message that is split over rails that several cores post to.
    pub(crate) fn note_parallel(
        &mut self,
        now: Instant,
        (request, envelope): (RequestId, Envelope),
        parallel: &Parallel,
    ) {
        let Some(peer) = self.peers.get(envelope.peer) else { return };
        let Some(receipts) = &mut self.observers.receipts else { return };
        receipts.now = now;
        if envelope.len < receipts.from_len {
            return;
        }
        receipts.open(Receipt {
            request: Some(request),
            envelope,
            protocol: Protocol::EagerParallel,
            eager_max: peer.way.eager_max as u64,
            predicted_ns: parallel.predicted_ns,
            candidates: candidates(peer, &self.rails, now, envelope.len, Protocol::Eager),
            began: now,
            carried: Vec::new(),
            blocks: 0,
            blocks_bytes: 0,
            actual_ns: 0,
        });
    }

    /// Records a message that was sent in the call that submitted it, which took from `began` to `until`.
    #[cold]
    pub(crate) fn note_departure(
        &mut self,
        plan: Plan,
        submitted: Submitted,
        (to, context, tag): To,
        (len, seq): (u64, u32),
        (began, until): (Instant, Instant),
    ) {
        let Some(peer) = self.peers.get(to) else { return };
        let (Some(receipts), Some(rail)) = (&mut self.observers.receipts, plan.rail) else { return };
        if len < receipts.from_len {
            return;
        }
        let candidates = candidates(peer, &self.rails, began, len, plan.protocol);
        let predicted = candidates.iter().find(|candidate| candidate.rail == rail);
        let receipt = Receipt {
            request: None,
            envelope: Envelope { peer: to, context, tag, len, seq },
            protocol: plan.protocol,
            eager_max: peer.way.eager_max as u64,
            predicted_ns: predicted.map_or(0, |candidate| candidate.alone_ns),
            candidates,
            began,
            carried: Vec::from([(rail, len)]),
            blocks: 0,
            blocks_bytes: 0,
            actual_ns: until.since(began).as_ns(),
        };
        match submitted {
            Submitted::Ended(_) => receipts.keep(receipt),
            Submitted::Request(request) => {
                receipts.now = began;
                receipts.open(Receipt { request: Some(request), ..receipt });
            }
        }
    }
}

impl Setup<'_> {
    /// Begins recording receipts of messages of at least this many bytes, or changes that length; without
    /// one, ends recording, and receipts not fetched are dropped. Of more than some thousands the oldest are
    /// dropped.
    pub fn record_receipts(&mut self, from_len: Option<u64>) {
        let receipts = &mut self.0.observers.receipts;
        match from_len {
            Some(from_len) => receipts.get_or_insert_default().from_len = from_len,
            None => *receipts = None,
        }
    }
}

/// Returns the predicted time of a message on each open rail alone.
fn candidates(peer: &Peer, rails: &[Rail], now: Instant, len: u64, protocol: Protocol) -> Vec<Candidate> {
    let open = peer.links.iter().filter(|link| link.is_up());
    let views = open.map(|link| crate::engine::peer::view(now, link, rails, &peer.way));
    let alone = |view: RailView| {
        let ns = if protocol.is_eager() { view.eager_ends_ns(now, len) } else { view.body_ends_ns(now, len) };
        candidate(&view, now, ns)
    };
    views.map(alone).collect()
}
