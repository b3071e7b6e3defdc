//! Messages of a collective as requests of the engine.

use crate::algorithm::transport::Transport;
use crate::comm::Communicator;
use crate::health::{class_of_loss, revoked};
use crate::world::{World, from_session};
use newmadeleine::engine::{Context, Engine, Error, PeerId, Source, Tag, TagMatch};
use newmadeleine::progress::Step;
use newmadeleine::{Hints, RequestId, Segments, SessionError};

/// Where the message of a party goes, or comes from. Parties are numbered as [`Transport`] says.
#[inline]
fn address(comm: &Communicator, party: u32) -> (PeerId, Context) {
    let local = comm.local();
    let behind = i64::from(party) - i64::from(local.len());
    let process = match comm.remote() {
        Some(remote) if behind >= 0 => remote.world(behind as i32),
        _ => local.world(party as i32),
    };
    // Schedules name members only; nobody has the last number.
    (PeerId(process.unwrap_or(u32::MAX)), comm.collective())
}

/// The engine, in the hands of whoever holds its lock.
pub(super) struct Within<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) comm: &'a Communicator,
}

impl Transport for Within<'_> {
    #[inline]
    fn send(&mut self, to: u32, tag: u64, data: Segments) -> Option<RequestId> {
        let (peer, context) = address(self.comm, to);
        Some(self.engine.send(peer, context, Tag(tag), data, self.comm.hints(Hints::default())))
    }

    #[inline]
    fn recv(&mut self, from: u32, tag: u64, into: Segments) -> RequestId {
        let (peer, context) = address(self.comm, from);
        self.engine.recv(Source::Peer(peer), context, TagMatch::Exact(Tag(tag)), into)
    }

    #[inline]
    fn take(&mut self, request: RequestId) -> Option<Result<u64, Error>> {
        self.engine.take(request).map(|outcome| outcome.map(|envelope| envelope.len))
    }

    #[cold]
    fn explain(&mut self, error: Error) -> crate::error::Error {
        let peer = match error {
            Error::PeerLost(peer) => peer,
            Error::Revoked => return revoked(),
            _ => return class_of_loss().error(error.to_string()),
        };
        let why = self.engine.inspect().failure(peer).map_or_else(String::new, |why| why.to_string());
        from_session(SessionError::PeerLost { rank: peer.0, why })
    }
}

/// The engine, within one step of a thread of the program.
pub(super) struct Held<'a, 's, 'g> {
    pub(super) step: &'a mut Step<'s, 'g>,
    pub(super) comm: &'a Communicator,
    /// Whether sends may go past the window, because somebody waits for them.
    pub(super) is_urgent: bool,
}

impl Held<'_, '_, '_> {
    #[inline]
    fn within(&mut self) -> Within<'_> {
        Within { engine: self.step.engine(), comm: self.comm }
    }
}

impl Transport for Held<'_, '_, '_> {
    #[inline]
    fn send(&mut self, to: u32, tag: u64, data: Segments) -> Option<RequestId> {
        if self.is_urgent {
            let (peer, context) = address(self.comm, to);
            return self.step.send((peer, context, Tag(tag)), &data, self.comm.hints(Hints::default()));
        }
        self.within().send(to, tag, data)
    }

    #[inline]
    fn recv(&mut self, from: u32, tag: u64, into: Segments) -> RequestId {
        self.within().recv(from, tag, into)
    }

    #[inline]
    fn take(&mut self, request: RequestId) -> Option<Result<u64, Error>> {
        self.step.take(request).map(|outcome| outcome.map(|envelope| envelope.len))
    }

    fn explain(&mut self, error: Error) -> crate::error::Error {
        self.within().explain(error)
    }
}

/// The node, whose lock is taken for each message only: functions of the program may run in between, and may
/// wait for another thread that is in a call.
pub(super) struct Free<'a> {
    pub(super) world: &'a World,
    pub(super) comm: &'a Communicator,
}

impl Transport for Free<'_> {
    fn send(&mut self, to: u32, tag: u64, data: Segments) -> Option<RequestId> {
        let (peer, context) = address(self.comm, to);
        let hints = self.comm.hints(Hints::default());
        let submit = |step: &mut Step<'_, '_>| step.engine().send(peer, context, Tag(tag), data, hints);
        Some(self.world.node().step(submit))
    }

    fn recv(&mut self, from: u32, tag: u64, into: Segments) -> RequestId {
        let (peer, context) = address(self.comm, from);
        let tag = TagMatch::Exact(Tag(tag));
        self.world.node().step(|step| step.engine().recv(Source::Peer(peer), context, tag, into))
    }

    fn take(&mut self, request: RequestId) -> Option<Result<u64, Error>> {
        self.world.node().take(request).map(|outcome| outcome.map(|envelope| envelope.len))
    }

    fn explain(&mut self, error: Error) -> crate::error::Error {
        self.world.node().step(|step| Within { engine: step.engine(), comm: self.comm }.explain(error))
    }
}
