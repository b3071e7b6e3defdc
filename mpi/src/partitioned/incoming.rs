//! The receiver of a partitioned message.

use super::{Arguments, HEADER, Parts, Side, divided, header_tag, part_tag};
use crate::comm::Named;
use crate::constant::ANY_SOURCE;
use crate::error::{Class, Error, Result};
use crate::handle::Comm;
use crate::memory;
use crate::orphans::Orphans;
use crate::request::{Ended, Persistent, State, sent};
use crate::status::Status;
use crate::task::{self, Served, Work};
use crate::world::{World, world};
use newmadeleine::engine::{self, Engine, PeerId, Source, TagMatch};
use newmadeleine::{RequestId, Segments};
use std::sync::{Arc, Mutex, MutexGuard};

/// A message that is received in parts, again and again.
pub(crate) struct Incoming {
    on: Named,
    /// None: no process.
    peer: Option<PeerId>,
    /// Of a message that has arrived.
    status: Status,
    into: Segments,
    parts: Parts,
    round: Mutex<Round>,
}

/// The state of the sender's header and of the message under way.
struct Round {
    header: Header,
    is_active: bool,
    /// The receives are posted.
    is_posted: bool,
    /// The sender's parts that have not arrived, and their receives.
    flying: Vec<(u32, RequestId)>,
    arrived: Vec<bool>,
    /// How the first part failed that did.
    failed: Option<engine::Error>,
}

enum Header {
    /// Nobody sends.
    None,
    /// It comes here.
    Awaited(RequestId, Box<[u8; HEADER]>),
    /// The sender's channel, and how it divides the message.
    Known(u32, Parts),
    /// It asks for more than there is.
    Wrong(Error),
    /// It does not come.
    Lost(engine::Error),
}

impl Incoming {
    /// A request for it.
    ///
    /// # Errors
    /// An argument is wrong.
    pub(crate) fn request(arguments: Arguments, comm: Comm) -> Result<State> {
        let (world, on) = (world()?, Named::of(comm)?);
        let (into, parts) = divided(arguments)?;
        let (.., source, tag) = arguments;
        if source == ANY_SOURCE {
            return Err(Class::RANK.error("the source of a partitioned message must not be MPI_ANY_SOURCE"));
        }
        // As the target of a send: a tag that is named.
        let peer = on.comm.target(source, tag)?.map(|(peer, ..)| peer);
        let header = peer.map_or(Header::None, |peer| {
            let mut bytes = Box::new([0; HEADER]);
            let place = memory::contiguous(bytes.as_mut_ptr().cast(), HEADER);
            let (from, context) = (Source::Peer(peer), on.comm.collective());
            let names = TagMatch::Exact(header_tag(tag));
            Header::Awaited(world.node().submit(|engine| engine.recv(from, context, names, place)), bytes)
        });
        let (flying, arrived) = (Vec::new(), Vec::new());
        let round = Round { header, is_active: false, is_posted: false, flying, arrived, failed: None };
        let status = Status { source, tag, ..Status::SENT };
        let own = Arc::new(Incoming { on, peer, status, into, parts, round: Mutex::new(round) });
        let side = Side::In(own.clone());
        Ok(State::Persistent(Persistent::partitioned(side, move || own.start())))
    }

    pub(super) fn on(&self) -> &Named {
        &self.on
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn start(self: &Arc<Incoming>) -> Result<State> {
        {
            let mut round = self.round();
            (round.is_active, round.is_posted) = (true, false);
            round.arrived.clear();
        }
        Ok(State::Task(task::start(world()?, Box::new(Receiving(self.clone()))), self.on.clone()))
    }

    /// Whether a part has arrived, as the receiver divides the message; all have if it is not started.
    ///
    /// # Errors
    /// There is no such part.
    pub(crate) fn has_arrived(&self, part: i32) -> Result<bool> {
        let index = self.parts.index(part)? as u64;
        let round = self.round();
        if !round.is_active {
            return Ok(true);
        }
        Ok(match &round.header {
            Header::Known(_, theirs) if round.is_posted => {
                let range = covering(self.parts, index, *theirs);
                round.arrived[range].iter().all(|&arrived| arrived)
            }
            _ => false,
        })
    }

    /// Goes on as far as it can; true: the message is over.
    fn go_on(&self, engine: &mut Engine, round: &mut Round) -> bool {
        let Some(peer) = self.peer else { return true };
        if !round.is_posted {
            round.header.look(engine, self.into.len());
            match &round.header {
                Header::None | Header::Awaited(..) => return false,
                Header::Wrong(_) | Header::Lost(_) => return true,
                &Header::Known(channel, theirs) => self.post(engine, round, (peer, channel, theirs)),
            }
        }
        let Round { flying, arrived, failed, .. } = round;
        flying.retain(|&(part, id)| {
            let Some(outcome) = engine.take(id) else { return true };
            if let Err(error) = outcome {
                failed.get_or_insert(error);
            }
            arrived[part as usize] = true;
            false
        });
        flying.is_empty()
    }

    /// Posts receives of the sender's parts.
    fn post(&self, engine: &mut Engine, round: &mut Round, (peer, channel, theirs): (PeerId, u32, Parts)) {
        let (context, len) = (self.on.comm.collective(), theirs.len);
        let mut receive = |part: u32| {
            let into = self.into.slice(u64::from(part) * len, len);
            engine.recv(Source::Peer(peer), context, TagMatch::Exact(part_tag(channel, part)), into)
        };
        round.flying = (0..theirs.count).map(|part| (part, receive(part))).collect();
        round.arrived.resize(theirs.count as usize, false);
        round.is_posted = true;
    }

    /// How a message that is over has ended; none: badly, which takes a look at the node to explain.
    fn ended_well(&self, round: &Round) -> Option<Ended> {
        match &round.header {
            _ if self.peer.is_none() => Some(Ended::well(Status::NO_PROC)),
            Header::Known(_, theirs) if round.failed.is_none() => {
                Some(Ended::well(Status { count_bytes: theirs.total() as i64, ..self.status }))
            }
            _ => None,
        }
    }

    fn ended_badly(&self, world: &World, round: &mut Round) -> Ended {
        match (&round.header, round.failed.take()) {
            (Header::Wrong(error), _) => Ended::badly(self.status, error.clone()),
            (Header::Lost(error), _) => sent(world, Err(*error)),
            (_, Some(error)) => sent(world, Err(error)),
            (_, None) => Ended::well(self.status),
        }
    }
}

impl Header {
    /// Reads it if it has come. `room`: bytes of the receive buffer.
    fn look(&mut self, engine: &mut Engine, room: u64) {
        let Header::Awaited(id, bytes) = self else { return };
        let Some(outcome) = engine.take(*id) else { return };
        let number = |index: usize| bytes.as_chunks::<8>().0.get(index).map_or(0, |b| u64::from_le_bytes(*b));
        let parts = Parts { count: number(1) as u32, len: number(2) };
        *self = match outcome {
            Err(error) => Header::Lost(error),
            Ok(_) if parts.total() > room => Header::Wrong(Class::TRUNCATE.error(format!(
                "the sender's {} partitions have {} B in all, and there is room for {room} B",
                parts.count,
                parts.total()
            ))),
            Ok(_) => Header::Known(number(0) as u32, parts),
        };
    }
}

/// The sender's parts that one of ours consists of. Parts without data are ready nevertheless, one after the
/// other: those that are as far from the begin belong together.
fn covering(ours: Parts, index: u64, theirs: Parts) -> std::ops::Range<usize> {
    let (begin, end, unit) = match (ours.len, theirs.len) {
        (0, _) | (_, 0) => {
            let count = u64::from(theirs.count);
            (index * count, (index + 1) * count, u64::from(ours.count))
        }
        (len, unit) => (len * index, len * (index + 1), unit),
    };
    let end = end.div_ceil(unit).min(u64::from(theirs.count)) as usize;
    ((begin / unit) as usize).min(end)..end
}

/// A header that comes for a request which was freed before: it is still the one of its turn, so that the
/// next request gets the next header.
struct Left {
    id: RequestId,
    /// Where the engine writes it.
    _bytes: Box<[u8; HEADER]>,
    /// Its context is not given to another communicator before.
    _on: Named,
}

static LEFT: Orphans<Left> = Orphans::new();

impl Drop for Incoming {
    fn drop(&mut self) {
        let round = self.round.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Header::Awaited(id, bytes) = std::mem::replace(&mut round.header, Header::None) else { return };
        let left = Left { id, _bytes: bytes, _on: self.on.clone() };
        match world() {
            Ok(world) => drop(LEFT.add(left, 0, |left| world.node().take(left.id).is_some())),
            // The engine may still write it.
            Err(_) => std::mem::forget(left),
        }
    }
}

/// A round under way.
struct Receiving(Arc<Incoming>);

impl Work for Receiving {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        let mut round = self.0.round();
        if !world.node().submit(|engine| self.0.go_on(engine, &mut round)) {
            return None;
        }
        round.is_active = false;
        Some(self.0.ended_well(&round).unwrap_or_else(|| self.0.ended_badly(world, &mut round)))
    }

    fn serve(&mut self, engine: &mut Engine) -> Served {
        // A thread of the program that has it waits for the engine.
        let Ok(mut round) = self.0.round.try_lock() else { return Served::Busy };
        let before = (round.is_posted, round.flying.len());
        let is_over = self.0.go_on(engine, &mut round);
        if is_over && let Some(ended) = self.0.ended_well(&round) {
            round.is_active = false;
            return Served::Ended(ended);
        }
        if before == (round.is_posted, round.flying.len()) { Served::Nothing } else { Served::Moved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_belong_to_the_parts_that_cover_them() {
        let theirs = Parts { count: 4, len: 6 };
        let of = |count, len, index| covering(Parts { count, len }, index, theirs);
        assert_eq!((of(4, 6, 0), of(2, 12, 1), of(3, 8, 1)), (0..1, 2..4, 1..3));
        // We have room for more than is sent.
        assert_eq!((of(2, 20, 1), of(9, 6, 5)), (3..4, 4..4));
        let empty = Parts { count: 4, len: 0 };
        assert_eq!((covering(Parts { count: 4, len: 0 }, 3, empty), of(2, 0, 0)), (3..4, 0..2));
        assert_eq!(covering(Parts { count: 2, len: 9 }, 1, empty), 2..4);
    }
}
