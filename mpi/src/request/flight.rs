//! A message that the engine moves: what most requests are.

use super::{Ended, received, sent, status};
use crate::comm::{Communicator, Named};
use crate::error::Result;
use crate::handle::Comm;
use crate::status::Status;
use crate::task;
use crate::world::World;
use newmadeleine::RequestId;
use newmadeleine::engine::{Engine, Envelope, NotWell};
use std::sync::Arc;

/// The rank that a status names as the sender.
pub(crate) enum Sender {
    /// The receive has named it.
    Rank(i32),
    /// Whoever it is: it is looked up in the communicator.
    Any(Arc<Communicator>),
}

impl Sender {
    /// That of a receive with this source, which is a rank or MPI_ANY_SOURCE: the communicator is asked for
    /// then.
    ///
    /// # Errors
    /// The communicator's.
    #[inline]
    pub(crate) fn of(source: i32, comm: impl FnOnce() -> Result<Arc<Communicator>>) -> Result<Sender> {
        Ok(if source >= 0 { Sender::Rank(source) } else { Sender::Any(comm()?) })
    }

    /// Of this message.
    #[inline]
    pub(crate) fn rank(&self, envelope: &Envelope) -> i32 {
        match self {
            Sender::Rank(rank) => *rank,
            Sender::Any(comm) => comm.sender(envelope),
        }
    }
}

/// A message under way.
pub(crate) struct Flight {
    request: RequestId,
    /// Whose error handler is asked if it fails.
    comm: Comm,
    /// Of a receive.
    from: Option<Sender>,
}

/// What a look at a message has found.
pub(super) enum Look {
    /// It has ended without an error, which was taken note of.
    Well(Status),
    /// It is still under way, under this name.
    Runs(RequestId),
    /// It has failed.
    Badly,
}

impl Flight {
    /// A send.
    #[inline]
    pub(crate) fn send(request: RequestId, comm: Comm) -> Flight {
        Flight { request, comm, from: None }
    }

    /// A receive.
    #[inline]
    pub(crate) fn recv(request: RequestId, comm: Comm, from: Sender) -> Flight {
        Flight { request, comm, from: Some(from) }
    }

    /// Takes everything out of it that has to be dropped, so that it need not be.
    #[inline]
    pub(super) fn take_all(&mut self) -> Flight {
        Flight { request: self.request, comm: self.comm, from: self.from.take() }
    }

    /// Its name in the engine.
    pub(crate) fn request(&self) -> RequestId {
        self.request
    }

    /// Its communicator's handle, which may be freed.
    pub(crate) fn comm(&self) -> Comm {
        self.comm
    }

    /// Returns whether this is a receive from any source.
    pub(crate) fn is_any_source(&self) -> bool {
        self.any_source_comm().is_some()
    }

    /// Returns the communicator of a receive from any source.
    pub(crate) fn any_source_comm(&self) -> Option<&Communicator> {
        match &self.from {
            Some(Sender::Any(comm)) => Some(comm),
            _ => None,
        }
    }

    /// Whether it is a send.
    pub(crate) fn is_send(&self) -> bool {
        self.from.is_none()
    }

    /// Looks at it, with the node's lock held.
    // Inlined wherever it is called: most looks find nothing, and the others write a status to its place.
    #[inline(always)]
    pub(super) fn look(&self, engine: &mut Engine) -> Look {
        let envelope = match engine.take_well(self.request) {
            Some(Ok(envelope)) => envelope,
            None => return Look::Runs(self.request),
            Some(Err(NotWell)) => return Look::Badly,
        };
        Look::Well(match &self.from {
            Some(from) => status(from.rank(&envelope), &envelope),
            None => Status::SENT,
        })
    }

    /// Waits for it, as long as no task wants to go on: its status. None: it may still be under way, or has
    /// failed.
    #[inline]
    pub(super) fn wait_well(&self, world: &World) -> Option<Status> {
        world.node().wait_look(|engine| match self.look(engine) {
            Look::Well(status) => Ok(Some(status)),
            Look::Runs(request) if !task::any() => Err(request),
            Look::Runs(_) | Look::Badly => Ok(None),
        })
    }

    /// How it ended, if it has.
    pub(super) fn take(&self, world: &World) -> Option<Ended> {
        match world.node().with(|engine| self.look(engine)) {
            Look::Well(status) => Some(Ended::well(status)),
            Look::Runs(_) => None,
            Look::Badly => self.take_badly(world),
        }
    }

    #[cold]
    fn take_badly(&self, world: &World) -> Option<Ended> {
        // First, since the communicator exists only until the end of the request is returned.
        let comm = Named::of_message(self.comm);
        let outcome = world.node().take(self.request)?;
        let ended = match &self.from {
            Some(from) => received(world, |envelope| from.rank(envelope), outcome),
            None => sent(world, outcome),
        };
        Some(ended.on(comm))
    }
}
