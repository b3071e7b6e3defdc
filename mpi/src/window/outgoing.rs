//! The origin's side of windows: operations on the memory of other ranks leave through the node, and calls
//! wait for their end.

use super::epoch::{Single, Whole};
use super::plan::Far;
use super::wait::{WAITING, end_of};
use super::word::WORD;
use super::{Window, lock, service};
use crate::error::{Class, Error, Result};
use crate::lost::Checks;
use crate::memory;
use crate::point::send::STANDARD;
use crate::request::Ended;
use crate::status::Status;
use crate::task::{Served, Work};
use crate::world::{World, from_session};
use newmadeleine::engine::{Act, Context, Engine, Envelope, Error as Lost, PeerId, Source, TagMatch, To};
use newmadeleine::{RequestId, Segments};
use nmad_rma::locks::Kind;
use nmad_rma::{self as rma, Asking, Failure, Flying, Operation, Outcome, Place, Port, Reaching};
use std::ops::Range;
use std::sync::Arc;

/// The node, for messages about windows.
pub(super) struct Ports<'a>(pub(super) &'a World);

impl Port for Ports<'_> {
    fn send(&mut self, to: &To, data: &Segments) -> Option<RequestId> {
        self.0.node().begin_send(to, data, STANDARD)
    }

    fn receive(&mut self, from: (Source, Context, TagMatch), into: Segments) -> RequestId {
        self.0.node().submit_recv(from, into)
    }

    fn take(&mut self, request: RequestId) -> Option<Outcome> {
        self.0.node().take(request)
    }
}

impl Window {
    /// Asks something of a rank; `operation`: as part of one that has a request.
    pub(super) fn ask<R>(
        &self,
        world: &World,
        rank: i32,
        operation: Option<&Arc<Operation>>,
        ask: impl FnOnce(Asking<'_, Ports<'_>>) -> R,
    ) -> R {
        let mut origin = lock(&self.origin);
        let answer = ask(origin.asking(&mut Ports(world), self.to(rank), operation));
        self.asked.set(rank, true);
        answer
    }

    fn to(&self, rank: i32) -> rma::To {
        let (context, frames) = (self.on.comm.context(), service::frames(self));
        rma::To { rank: rank as usize, peer: PeerId(self.process(rank)), context, frames }
    }

    /// Waits until everything that was asked of some ranks is complete, here or at the target.
    ///
    /// # Errors
    /// An operation has failed, or a rank is gone.
    #[inline(never)]
    pub(super) fn flush(&self, world: &World, ranks: Range<i32>, at_target: bool) -> Result<()> {
        if self.asked.of(ranks.clone()).next().is_none() {
            return Ok(());
        }
        if self.epoch.whole() == Whole::LockAll {
            let begun = |rank: &i32| self.epoch.of(*rank) == Single::Begun;
            self.await_locks(world, self.asked.of(ranks.clone()).filter(begun))?;
        }
        let _one_at_a_time = lock(&self.flushing);
        let asked: Vec<i32> = self.asked.of(ranks).collect();
        let mut ended = self.land_all_reaching(world, asked.iter().copied());
        if at_target {
            asked.iter().for_each(|&rank| self.ask(world, rank, None, |to| to.flush()));
        }
        for rank in asked {
            ended = ended.and(self.land(world, rank));
        }
        ended
    }

    /// Has the network access a place in one run; false: no rail is open that can. Without memory of the
    /// caller's nobody wants what an atomic has found.
    ///
    /// # Errors
    /// Something before it has failed, or the rank is gone.
    pub(super) fn reach(
        &self,
        world: &World,
        far: &Far<'_>,
        act: Act,
        data: Option<&Segments>,
    ) -> Result<bool> {
        let (&Place::One(offset, _), Some(exposure)) = (&far.place, &far.peer.exposure) else {
            return Ok(false);
        };
        self.prepare(world, far)?;
        self.await_locks(world, std::iter::once(far.rank))?;
        let at = far.peer.base.wrapping_add(offset);
        if act.is_atomic() && !at.is_multiple_of(WORD) {
            return Ok(false);
        }
        let mut scratch = data.is_none().then(|| Box::new(0));
        let data = data
            .cloned()
            .or_else(|| scratch.as_deref_mut().map(memory::word))
            .unwrap_or_else(Segments::empty);
        let begun = world.node().access(PeerId(self.process(far.rank)), act, (at, exposure), &data);
        let Some(request) = begun else { return Ok(false) };
        let reaching = Reaching { request, act, place: far.place.clone(), data, scratch };
        lock(&self.origin).reaches(far.rank as usize, reaching);
        self.asked.set(far.rank, true);
        Ok(true)
    }

    /// Waits until the network has done what it was to do at some ranks.
    ///
    /// # Errors
    /// A rank is gone.
    pub(super) fn settle(&self, world: &World, ranks: Range<i32>) -> Result<()> {
        let _one_at_a_time = lock(&self.flushing);
        self.land_all_reaching(world, self.asked.of(ranks))
    }

    fn land_all_reaching(&self, world: &World, ranks: impl Iterator<Item = i32>) -> Result<()> {
        let mut ended = Ok(());
        for rank in ranks {
            ended = ended.and(self.land_reaching(world, rank));
        }
        ended
    }

    /// Waits until the network has done what it was to do at a rank, and asks for what it has not done.
    fn land_reaching(&self, world: &World, rank: i32) -> Result<()> {
        let reaching = lock(&self.origin).take_reaching(rank as usize);
        let mut failed = Ok(());
        for each in reaching {
            match end_of(world, each.request) {
                Ok(_) => {}
                Err(Lost::AccessLost(_)) if !each.act.is_atomic() => {
                    self.ask(world, rank, None, |to| to.instead(each));
                }
                Err(error) => failed = failed.and(self.meaning(world, rank, Err(Failure::Lost(error)))),
            }
        }
        failed
    }

    /// Waits for everything that is under way to and from a rank.
    fn land(&self, world: &World, rank: i32) -> Result<()> {
        let flying = {
            let mut origin = lock(&self.origin);
            self.asked.set(rank, origin.owes(rank as usize));
            origin.take_flying(rank as usize)
        };
        let mut failed = Ok(());
        for each in &flying {
            failed = failed.and(self.await_one(world, rank, each));
        }
        lock(&self.origin).landed(flying.len());
        failed
    }

    fn await_one(&self, world: &World, rank: i32, flying: &Flying) -> Result<()> {
        if let Flying::Requested(operation) = flying {
            // The request tells how it has ended.
            return self.until(world, "waiting for an operation", || {
                Ok(operation.advance(&mut Ports(world)).then_some(()))
            });
        }
        let Some(request) = flying.request() else { return Ok(()) };
        self.meaning(world, rank, flying.ended(end_of(world, request)))
    }

    /// What the end of something under way means.
    ///
    /// # Errors
    /// It has failed.
    pub(super) fn meaning(
        &self,
        world: &World,
        rank: i32,
        ended: std::result::Result<(), Failure>,
    ) -> Result<()> {
        ended.map_err(|failure| self.failure(world, rank, failure))
    }

    #[cold]
    fn failure(&self, world: &World, rank: i32, failure: Failure) -> Error {
        let (class, text) = match failure {
            Failure::Fault(fault) => (Class(fault.class), fault.text),
            Failure::Refused => {
                (Class::RMA_RANGE, "has refused an access: the memory is not attached".to_string())
            }
            Failure::Lost(error) => match world.session().outcome(Err::<Envelope, _>(error)) {
                Ok(_) => (Class::INTERN, "a message was lost".to_string()),
                Err(why) => {
                    let error = from_session(why);
                    (error.class(), error.text().to_string())
                }
            },
        };
        self.error(class, format_args!("rank {rank} as the target: {text}"))
    }

    /// Waits until it is known that the locks of these ranks of other nodes are had. Other threads go on
    /// meanwhile: who has a lock may wait for what they do.
    pub(super) fn await_locks(&self, world: &World, ranks: impl Iterator<Item = i32>) -> Result<()> {
        let is_locking = |rank: &i32| lock(&self.origin).is_locking(*rank as usize);
        let ranks: Vec<i32> = ranks.filter(is_locking).collect();
        ranks.iter().for_each(|&rank| self.ask(world, rank, None, |to| to.flush()));
        for rank in ranks {
            let had = self.until(world, WAITING, || {
                Ok(lock(&self.origin).look_for_lock(rank as usize, &mut Ports(world)))
            })?;
            self.meaning(world, rank, had)?;
        }
        Ok(())
    }

    /// Prepares an access: asks for the rank's lock if that was left to its first access, and looks for what
    /// has left, if there is much, so that its memory can be used again.
    pub(super) fn prepare(&self, world: &World, far: &Far<'_>) -> Result<()> {
        let rank = far.rank;
        let has_many = {
            let mut origin = lock(&self.origin);
            // Other threads see that it was asked for when the request is there, which theirs then follow.
            if far.peer.locks.is_none() && self.epoch.begins(rank) {
                origin.asking(&mut Ports(world), self.to(rank), None).lock(Kind::Early);
                self.asked.set(rank, true);
            }
            origin.has_many(rank as usize)
        };
        if has_many {
            self.await_locks(world, std::iter::once(rank))?;
            let _one_at_a_time = lock(&self.flushing);
            self.land_reaching(world, rank)?;
            self.land(world, rank)?;
        }
        Ok(())
    }
}

/// The request of an operation.
pub(super) struct Requested {
    pub(super) window: Arc<Window>,
    pub(super) rank: i32,
    pub(super) operation: Arc<Operation>,
    pub(super) checks: Checks,
}

impl Work for Requested {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        let Requested { window, rank, operation, checks } = self;
        if !operation.advance(&mut Ports(world)) {
            if !checks.is_due() || !lock(&window.origin).is_locking(*rank as usize) {
                return None;
            }
            let lost = window.look_for_the_lost(world, WAITING).err()?;
            return Some(Ended::badly(Status::EMPTY, lost));
        }
        Some(match operation.take_failure() {
            None => Ended::well(Status::EMPTY),
            Some(failure) => Ended::badly(Status::EMPTY, window.failure(world, *rank, failure)),
        })
    }

    fn serve(&mut self, engine: &mut Engine) -> Served {
        match self.operation.try_advance(engine) {
            None => Served::Busy,
            // A call explains what has failed.
            Some(true) if !self.operation.has_failed() => Served::Ended(Ended::well(Status::EMPTY)),
            Some(_) => Served::Nothing,
        }
    }
}
