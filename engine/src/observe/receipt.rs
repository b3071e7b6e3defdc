//! Receipts: the protocol, rails and times of each message and the reasons, on demand. Nothing is recorded
//! before [`crate::Setup::record_receipts`] is called; until then the paths only test one pointer.

use crate::clock::Instant;
use crate::collect::request::Envelope;
use crate::packet::{RailId, RequestId};
use crate::protocol::Protocol;
use crate::schedule::strategy::{RailView, Shares};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Largest number of receipts kept until fetched; the oldest are dropped first.
const KEPT: usize = 4_096;

/// A rail that could have carried a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The rail.
    pub rail: RailId,
    /// Nanoseconds until it would have been idle.
    pub busy_ns: u64,
    /// Nanoseconds until it would have delivered the message alone.
    pub alone_ns: u64,
}

/// Receipt of a message that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The request of the send; `None` if the message was sent completely in the call that submitted it.
    pub request: Option<RequestId>,
    /// The message.
    pub envelope: Envelope,
    /// The protocol used.
    pub protocol: Protocol,
    /// Longest eager message to this peer in bytes, at the time of the decision.
    pub eager_max: u64,
    /// The rails that could be chosen.
    pub candidates: Vec<Candidate>,
    /// Time of the decision.
    pub began: Instant,
    /// Bytes carried per rail: of an eager message its data; of a rendezvous message its chunks, including
    /// those sent again or split again.
    pub carried: Vec<(RailId, u64)>,
    /// Blocks of the message that traveled with its request to send (P1 section 5.3), and their bytes, which
    /// are not among those per rail.
    pub blocks: u64,
    /// See `blocks`.
    pub blocks_bytes: u64,
    /// Predicted value of `actual_ns`.
    pub predicted_ns: u64,
    /// Nanoseconds from the decision to the completion of the request. For rendezvous over several rails
    /// that is the receiver's report that it has everything; otherwise the time when the memory was free
    /// again.
    pub actual_ns: u64,
}

/// The receipts being recorded.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    pub(crate) now: Instant,
    /// Shorter messages get no receipt.
    pub(crate) from_len: u64,
    open: Vec<(Receipt, Instant)>,
    pub(crate) done: VecDeque<Receipt>,
    /// Number of these that completed since rails were last posted to.
    ended: usize,
}

impl Receipts {
    pub(crate) fn open(&mut self, receipt: Receipt) {
        match self
            .open
            .iter_mut()
            .find(|(other, _)| receipt.request.is_some() && other.request == receipt.request)
        {
            // The rest of a message whose first part was pushed.
            Some((other, _)) => {
                let carried = core::mem::take(&mut other.carried);
                *other = Receipt { carried, protocol: other.protocol, began: other.began, ..receipt };
            }
            None => self.open.push((receipt, self.now)),
        }
    }

    pub(crate) fn of(&mut self, request: RequestId) -> Option<&mut Receipt> {
        self.open.iter_mut().map(|(receipt, _)| receipt).find(|receipt| receipt.request == Some(request))
    }

    /// Records that the split of a body was decided.
    pub(crate) fn decided(
        &mut self,
        (request, protocol): (RequestId, Protocol),
        (envelope, blocks): (Envelope, (u64, u64)),
        eager_max: usize,
        views: &[RailView],
        shares: &Shares,
    ) {
        if envelope.len < self.from_len {
            return;
        }
        let now = self.now;
        let alone = |view: &RailView| candidate(view, now, view.body_ends_ns(now, envelope.len));
        let candidates: Vec<Candidate> = views.iter().map(alone).collect();
        let predicted_ns = match shares {
            Shares::FirstIdle => candidates.iter().map(|c| c.alone_ns).min(),
            Shares::Fixed(shares) => {
                let finish = |share: &(RailId, u64)| {
                    views.iter().find(|view| view.rail == share.0).map(|view| view.body_ends_ns(now, share.1))
                };
                shares.iter().filter_map(finish).max()
            }
        };
        // With several rails the end is when the Fin has arrived.
        let back_ns = views.iter().map(|view| view.forecast.profile().eager().start_ns()).min();
        let back_ns = back_ns.filter(|_| views.len() > 1).unwrap_or(0);
        self.open(Receipt {
            request: Some(request),
            envelope,
            protocol,
            eager_max: eager_max as u64,
            candidates,
            began: now,
            carried: Vec::new(),
            blocks: blocks.0,
            blocks_bytes: blocks.1,
            predicted_ns: predicted_ns.unwrap_or(0).saturating_add(back_ns),
            actual_ns: 0,
        });
    }

    /// Records that `len` bytes of a message were given to a rail.
    pub(crate) fn carried(&mut self, request: RequestId, rail: RailId, len: u64) {
        let Some(receipt) = self.of(request) else { return };
        match receipt.carried.iter_mut().find(|(other, _)| *other == rail) {
            Some((_, sum)) => *sum += len,
            None => receipt.carried.push((rail, len)),
        }
    }

    /// Records that a request has completed.
    #[cold]
    pub(crate) fn ended(&mut self, request: RequestId) {
        let Some(index) = self.open.iter().position(|(receipt, _)| receipt.request == Some(request)) else {
            return;
        };
        let (mut receipt, since) = self.open.swap_remove(index);
        receipt.actual_ns = self.now.since(since).as_ns();
        self.keep(receipt);
    }

    /// Dates messages that completed when they were put into a packet: they were sent by `until`.
    #[cold]
    pub(crate) fn posted(&mut self, until: Instant) {
        let latest = self.done.iter_mut().rev().take(core::mem::take(&mut self.ended));
        let undated = latest.filter(|receipt| receipt.actual_ns == 0);
        undated.for_each(|receipt| receipt.actual_ns = until.since(receipt.began).as_ns());
    }

    pub(crate) fn keep(&mut self, receipt: Receipt) {
        if self.done.len() == KEPT {
            self.done.pop_front();
        }
        self.done.push_back(receipt);
        self.ended += 1;
    }
}

pub(crate) fn candidate(view: &RailView, now: Instant, alone_ns: u64) -> Candidate {
    Candidate { rail: view.rail, busy_ns: view.busy_ns(now), alone_ns }
}
