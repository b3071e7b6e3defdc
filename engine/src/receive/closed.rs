//! Closed contexts: a receive in a closed context ends with an error instead of waiting for a message.
//! Messages that arrive in a closed context are discarded, so that their sends complete. The layer above
//! closes a context when one of its processes has failed or when the program has revoked its
//! communicator.

use crate::collect::request::{Context, Error, Source, TagMatch};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::RequestId;
use crate::protocol::{Recv, Request};
use alloc::vec::Vec;

/// Closed contexts with their errors, and the receives that discard messages in them.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    contexts: Vec<(Context, Error)>,
    discards: Vec<RequestId>,
}

impl Closed {
    /// Returns whether no context is closed.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.contexts.is_empty()
    }

    /// Returns the error of receives in a context; `None` if the context is open.
    pub(crate) fn error(&self, context: Context) -> Option<Error> {
        self.contexts.iter().find(|(closed, _)| *closed == context).map(|(_, error)| *error)
    }
}

impl Engine {
    /// Closes a context: posted receives that have not matched, and all later receives, end with `error`.
    /// A receive that has matched continues, since its message is being written to its memory. Closing a
    /// context again changes the error of later receives.
    pub fn close_context(&mut self, context: Context, error: Error) {
        let contexts = &mut self.receives.closed.contexts;
        contexts.retain(|(closed, _)| *closed != context);
        contexts.push((context, error));
        let waits = |request: &Request| match request {
            Request::Recv(recv) => recv.context == context && recv.posted.is_some(),
            _ => false,
        };
        for request in self.requests_that(waits) {
            self.withdraw_recv(request, error);
        }
        self.discard_closed();
    }

    /// Opens a closed context again, so that its number can be reused.
    pub fn reopen_context(&mut self, context: Context) {
        self.receives.closed.contexts.retain(|(closed, _)| *closed != context);
    }

    /// Discards the messages that have arrived in closed contexts. Call it after events while a context
    /// is closed.
    pub fn discard_closed(&mut self) {
        if self.receives.closed.is_empty() {
            return;
        }
        let mut discards = core::mem::take(&mut self.receives.closed.discards);
        for place in 0..self.receives.closed.contexts.len() {
            let (context, _) = self.receives.closed.contexts[place];
            while let Some(claim) = self.claim(Source::Any, context, TagMatch::Any) {
                discards.push(self.recv_claimed(claim, Segments::empty()));
            }
        }
        discards.retain(|request| self.take(*request).is_none());
        self.receives.closed.discards = discards;
    }

    /// Ends a posted receive that has not matched with `error`; returns whether it was such a receive. If
    /// the peer has an Rtr for it, the receive ends only when the peer has returned or used the Rtr.
    pub(crate) fn withdraw_recv(&mut self, request: RequestId, error: Error) -> bool {
        let Some(Request::Recv(Recv { posted, region, from, withdrawn, .. })) =
            self.requests.get_mut(request.0)
        else {
            return false;
        };
        let (place, region, from) = (*posted, *region, *from);
        *withdrawn = true;
        match (place, region, from) {
            (Some(_), Some(region), Source::Peer(peer)) => self.withdraw(peer, region),
            (Some(place), _, _) => {
                self.receives.matching.retract(place);
                self.fail_request(request, error);
            }
            (None, _, _) => return false,
        }
        true
    }
}
