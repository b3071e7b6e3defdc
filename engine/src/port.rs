//! What carries the messages of a protocol above the engine: the engine itself, or what turns one.

use crate::{Claim, Context, Engine, Envelope, Error, Hints, RequestId, Segments, Source, TagMatch, To};

/// How a request ended.
pub type Outcome = Result<Envelope, Error>;

/// Sends and receives messages.
pub trait Port {
    /// Sends a message whose memory stays as it is until the request ends; none: it has ended well already.
    fn send(&mut self, to: &To, data: &Segments) -> Option<RequestId>;

    /// Receives a message.
    fn receive(&mut self, from: (Source, Context, TagMatch), into: Segments) -> RequestId;

    /// How a request ended, if it has; told once.
    fn take(&mut self, request: RequestId) -> Option<Outcome>;
}

/// A port that also finds messages for which no receive was posted.
pub trait Claims: Port {
    /// As [`Engine::claim`].
    fn claim(&mut self, from: (Source, Context, TagMatch)) -> Option<Claim>;

    /// As [`Engine::recv_claimed`].
    fn receive_claimed(&mut self, claim: Claim, into: Segments) -> RequestId;
}

impl Port for Engine {
    fn send(&mut self, &(to, context, tag): &To, data: &Segments) -> Option<RequestId> {
        Some(Engine::send(self, to, context, tag, data.clone(), Hints::default()))
    }

    fn receive(&mut self, (from, context, tag): (Source, Context, TagMatch), into: Segments) -> RequestId {
        self.recv(from, context, tag, into)
    }

    fn take(&mut self, request: RequestId) -> Option<Outcome> {
        Engine::take(self, request)
    }
}

impl Claims for Engine {
    fn claim(&mut self, (from, context, tag): (Source, Context, TagMatch)) -> Option<Claim> {
        Engine::claim(self, from, context, tag)
    }

    fn receive_claimed(&mut self, claim: Claim, into: Segments) -> RequestId {
        self.recv_claimed(claim, into)
    }
}
