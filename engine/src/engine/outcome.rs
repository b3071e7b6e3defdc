//! How requests ended: reported once, to the caller that asks which have, or whether one has.
//!
//! The memory of a request belongs to its owner again when its end is reported. So the engine reports no
//! end while a rail still has to close a receive region in user memory, or a link: until then it may use
//! that memory.

use crate::clock::Instant;
use crate::collect::request::{Completion, Context, Envelope, Error};
use crate::engine::{Engine, Inspect};
use crate::packet::RequestId;
use crate::protocol::Request;
use alloc::collections::BTreeSet;

/// A request that has ended with an error, or that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotWell;

/// Contexts of requests whose end was not taken yet.
#[derive(Debug, Default)]
pub struct Owed {
    contexts: BTreeSet<Context>,
    /// Some request has failed with its peer: of which context it was is not known.
    has_failed: bool,
}

impl Owed {
    /// Whether there may be requests of this context.
    pub fn has(&self, context: Context) -> bool {
        self.has_failed || self.contexts.contains(&context)
    }

    fn add(&mut self, request: &Request) {
        match request.context() {
            Some(context) => drop(self.contexts.insert(context)),
            None => self.has_failed |= matches!(request, Request::Ended(Err(Error::PeerLost(_)))),
        }
    }
}

impl Engine {
    /// A small message, or a part of it, has left its sender's memory, or the request to send a large one
    /// is on its way; no time: it is not known when.
    #[inline]
    pub(crate) fn entry_left(&mut self, now: Option<Instant>, request: RequestId) {
        match self.requests.get(request.0) {
            Some(Request::Eager(_)) => self.eager_left(request),
            Some(Request::Large(_)) => self.request_left(now, request),
            _ => {}
        }
    }

    /// The next request that ended and was not reported yet, in the order in which they ended, and how.
    #[inline]
    pub fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let request = self.next_ended()?;
            if let Some(result) = self.take(request) {
                return Some(Completion { request, result });
            }
        }
    }

    /// The next request that ended, in the order in which they ended. How it ended stays until it is taken.
    #[inline]
    pub(crate) fn next_ended(&mut self) -> Option<RequestId> {
        if self.closing > 0 { None } else { self.ended.pop() }
    }

    /// Whether a request has ended since this was asked; for callers that do not ask which:
    /// [`Engine::next_completion`] reports none of these any more.
    #[inline]
    pub fn any_ended(&mut self) -> bool {
        self.closing == 0 && self.ended.any()
    }

    /// Whether a request has ended, or a notice is there, and nobody has asked yet.
    #[inline]
    pub fn has_news(&self) -> bool {
        (self.closing == 0 && self.ended.has_any()) || !self.notices.is_empty()
    }

    /// How a request ended, if it has; told once, and its name is free for reuse then.
    #[inline]
    pub fn take(&mut self, request: RequestId) -> Option<Result<Envelope, Error>> {
        if self.closing > 0 {
            return None;
        }
        let ended =
            |request: &Request| if let &Request::Ended(result) = request { Ok(result) } else { Err(()) };
        let Ok(result) = self.requests.take_if(request.0, ended)? else { return self.take_kept(request) };
        self.untold -= 1;
        Some(result)
    }

    /// As [`Engine::take`], of a request that has ended without an error; any other is left as it is. None:
    /// it has not ended.
    #[inline(always)]
    pub fn take_well(&mut self, request: RequestId) -> Option<Result<Envelope, NotWell>> {
        if self.closing > 0 {
            return None;
        }
        let found = self.requests.take_if(request.0, |request| match request {
            &Request::Ended(Ok(envelope)) => Ok(envelope),
            Request::Ended(Err(_)) => Err(Some(NotWell)),
            // It has to be left where it is, which the caller does who asks for its end.
            Request::Large(send) if send.kept.is_untold() => Err(Some(NotWell)),
            _ => Err(None),
        });
        match found {
            Some(Ok(envelope)) => {
                self.untold -= 1;
                Some(Ok(envelope))
            }
            Some(Err(state)) => state.map(Err),
            None => Some(Err(NotWell)),
        }
    }

    /// Whether a request has ended and its end was not taken yet; none for a name that was never a request,
    /// or whose end was taken.
    #[inline]
    pub fn has_ended(&self, request: RequestId) -> Option<bool> {
        self.requests.get(request.0).map(|request| self.closing == 0 && request.has_ended())
    }

    /// A request ends; its state is dropped.
    #[inline]
    pub(crate) fn complete(&mut self, request: RequestId, result: Result<Envelope, Error>) {
        if let Some(receipts) = &mut self.observers.receipts {
            receipts.ended(request);
        }
        if let Some(place) = self.requests.get_mut(request.0) {
            if matches!(place, Request::Large(send) if send.kept.is_here()) {
                return self.end_kept(request);
            }
            *place = Request::Ended(result);
            self.untold += 1;
            self.ended.push(request);
        }
    }
}

impl Inspect<'_> {
    /// Whether this request has ended, and no other whose end was not taken yet.
    pub fn only_ended(self, request: RequestId) -> bool {
        self.0.untold == 1 && self.0.has_ended(request) == Some(true)
    }

    /// The contexts of requests whose end was not taken yet. All requests are looked at, of which there may
    /// be [`Inspect::request_places`].
    pub fn owed(self) -> Owed {
        let mut owed = Owed::default();
        self.0.requests.iter().for_each(|(_, request)| owed.add(request));
        owed
    }

    /// How many requests there have been at a time, or more.
    pub fn request_places(self) -> usize {
        self.0.requests.places()
    }
}
