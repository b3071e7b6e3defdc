//! Receipts: how each message went and why, on demand. Nothing is recorded before
//! [`Engine::record_receipts`] is called, and the paths then ask one pointer.

use crate::clock::Instant;
use crate::collect::request::Envelope;
use crate::packet::{RailId, RequestId};
use crate::protocol::Protocol;
use crate::protocol::parts::part_len;
use crate::schedule::strategy::{RailView, Shares};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Receipts that wait to be fetched; the oldest go first.
const KEPT: usize = 4_096;

/// A rail that could have carried a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Which rail.
    pub rail: RailId,
    /// Until it would have been idle, in nanoseconds.
    pub busy_ns: u64,
    /// When it alone would have delivered the message, in nanoseconds.
    pub alone_ns: u64,
}

/// How a message that was sent went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The request of the send; none if it left, and ended, in the call that submitted it.
    pub request: Option<RequestId>,
    /// The message.
    pub envelope: Envelope,
    /// How it went.
    pub protocol: Protocol,
    /// Longest message that is sent to this peer without asking, in bytes, when it was decided.
    pub eager_max: u64,
    /// The rails between which was decided.
    pub candidates: Vec<Candidate>,
    /// When it was decided how it goes.
    pub began: Instant,
    /// Rails and bytes, as they were carried: of a message in a packet its data, of an announced one its
    /// chunks, those that were sent again or shared out anew included.
    pub carried: Vec<(RailId, u64)>,
    /// The same time as the next one, as predicted.
    pub predicted_ns: u64,
    /// From the decision to the end of the request, in nanoseconds. For announced messages over several rails
    /// that is when the receiver said that it has everything; otherwise when the memory was free again.
    pub actual_ns: u64,
}

/// The recorded decisions.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    pub(crate) now: Instant,
    /// Shorter messages get none.
    pub(crate) from_len: u64,
    open: Vec<(Receipt, Instant)>,
    pub(crate) done: VecDeque<Receipt>,
    /// How many of these have ended since rails were last posted to.
    ended: usize,
}

impl Receipts {
    pub(crate) fn open(&mut self, receipt: Receipt) {
        match self
            .open
            .iter_mut()
            .find(|(other, _)| receipt.request.is_some() && other.request == receipt.request)
        {
            // The rest of a message whose beginning was pushed.
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

    /// Shares of a body were decided.
    pub(crate) fn decided(
        &mut self,
        (request, protocol): (RequestId, Protocol),
        envelope: Envelope,
        eager_max: usize,
        views: &[RailView],
        shares: &Shares,
    ) {
        if envelope.len < self.from_len {
            return;
        }
        let now = self.now;
        let finish_ns =
            |view: &RailView, len| view.idle_at.since(now).as_ns().saturating_add(view.forecast.body_ns(len));
        let alone = |view: &RailView| candidate(view, now, finish_ns(view, envelope.len));
        let candidates: Vec<Candidate> = views.iter().map(alone).collect();
        let predicted_ns = match shares {
            Shares::FirstIdle => candidates.iter().map(|c| c.alone_ns).min(),
            Shares::Fixed(shares) => {
                let finish = |share: &(RailId, u64)| {
                    views.iter().find(|view| view.rail == share.0).map(|view| finish_ns(view, share.1))
                };
                shares.iter().filter_map(finish).max()
            }
        };
        // With several rails the end is when the news of the arrival is back.
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
            predicted_ns: predicted_ns.unwrap_or(0).saturating_add(back_ns),
            actual_ns: 0,
        });
    }

    /// A rail has got `len` bytes of a message.
    pub(crate) fn carried(&mut self, request: RequestId, rail: RailId, len: u64) {
        let Some(receipt) = self.of(request) else { return };
        match receipt.carried.iter_mut().find(|(other, _)| *other == rail) {
            Some((_, sum)) => *sum += len,
            None => receipt.carried.push((rail, len)),
        }
    }

    /// A rail has got the next part of a message whose parts have this length.
    pub(crate) fn carried_part(&mut self, request: RequestId, rail: RailId, longest: u64) {
        let Some(receipt) = self.of(request) else { return };
        let before: u64 = receipt.carried.iter().map(|(_, sum)| sum).sum();
        let len = part_len(before, receipt.envelope.len, longest);
        self.carried(request, rail, len);
    }

    /// A request has ended.
    #[cold]
    pub(crate) fn ended(&mut self, request: RequestId) {
        let Some(index) = self.open.iter().position(|(receipt, _)| receipt.request == Some(request)) else {
            return;
        };
        let (mut receipt, since) = self.open.swap_remove(index);
        receipt.actual_ns = self.now.since(since).as_ns();
        self.keep(receipt);
    }

    /// What ended when it was put into a packet has left by `until`.
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
    Candidate { rail: view.rail, busy_ns: view.idle_at.since(now).as_ns(), alone_ns }
}
