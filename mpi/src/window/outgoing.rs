//! What an origin has asked of other ranks and what of it is still under way.
//!
//! Frames lie in an arena until the engine has taken them; it is used again when nothing of the window is
//! under way. An operation is complete at the origin when its messages have ended, and at the target when a
//! flush, which follows it in order, is answered.

use super::frame::{Frame, Kind};
use super::wait::end_of;
use super::{Window, lock};
use crate::comm::Communicator;
use crate::error::{Class, Error, Result};
use crate::memory;
use crate::point::send::STANDARD;
use crate::request::Ended;
use crate::status::Status;
use crate::task::Work;
use crate::world::{World, from_session};
use newmadeleine::engine::{PeerId, Source, Tag, TagMatch};
use newmadeleine::progress::Outcome;
use newmadeleine::{RequestId, Segments};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// The tag of frames.
pub(super) const FRAMES: Tag = Tag(0);
/// Of data that a put sends in a message of their own.
const DATA: u64 = 1 << 32;
/// Of answers.
const ANSWER: u64 = 2 << 32;

/// Bytes of an answer to a flush: a class, and words.
pub(super) const ACKNOWLEDGEMENT: usize = 512;

/// Bytes of a part of the arena; longer frames have one of their own.
const PART: usize = 64 << 10;
/// Frames to one rank after which those that have left are looked for.
const MANY: usize = 4096;

pub(super) fn data_tag(id: u32) -> Tag {
    Tag(DATA | u64::from(id))
}

pub(super) fn answer_tag(id: u32) -> Tag {
    Tag(ANSWER | u64::from(id))
}

/// Messages and answers under way, of all ranks.
pub(super) struct Outgoing {
    lanes: Box<[Lane]>,
    arena: Vec<Vec<u8>>,
    next: u32,
    /// Things under way, to all ranks.
    flying: usize,
}

/// Messages and answers under way, of one rank.
#[derive(Default)]
struct Lane {
    flying: Vec<Flying>,
    /// Something was asked of which only an answer to a flush says that it is done.
    owes: bool,
}

/// One thing that is under way.
pub(super) enum Flying {
    /// A message that the engine reads.
    Send(RequestId),
    /// Data that were asked for, and their length.
    Answer(RequestId, u64),
    /// The answer to a flush.
    Acknowledgement(RequestId, Box<[u8; ACKNOWLEDGEMENT]>),
    /// An operation that has a request.
    Requested(Arc<Operation>),
}

/// An operation that has a request.
pub(super) struct Operation {
    rank: i32,
    flying: Mutex<Vec<Flying>>,
    failed: Mutex<Option<Error>>,
}

impl Outgoing {
    pub(super) fn new(ranks: usize) -> Outgoing {
        let lanes = (0..ranks).map(|_| Lane::default()).collect();
        Outgoing { lanes, arena: Vec::new(), next: 0, flying: 0 }
    }

    /// A name for an answer or for data.
    pub(super) fn name(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// Memory for a message, which stays at its place.
    fn room(&mut self, len: usize) -> &mut Vec<u8> {
        let has_room = self.arena.last().is_some_and(|part| part.capacity() - part.len() >= len);
        if !has_room {
            if self.flying == 0 {
                self.arena.clear();
            }
            self.arena.push(Vec::with_capacity(len.max(PART)));
        }
        self.arena.last_mut().expect("just made")
    }

    /// Things have ended.
    fn landed(&mut self, count: usize) {
        self.flying -= count;
        if self.flying == 0 {
            self.arena.truncate(1);
            self.arena.iter_mut().for_each(Vec::clear);
        }
    }
}

/// A rank of a window, to ask something of it.
pub(super) struct Asking<'a> {
    pub(super) window: &'a Window,
    pub(super) world: &'a World,
    pub(super) rank: i32,
    /// The operation has a request.
    pub(super) operation: Option<&'a Arc<Operation>>,
}

impl Asking<'_> {
    fn comm(&self) -> &Communicator {
        &self.window.on.comm
    }

    fn peer(&self) -> PeerId {
        PeerId(self.window.peer(self.rank).process)
    }

    fn add(&self, outgoing: &mut Outgoing, flying: Flying) {
        let lane = &mut outgoing.lanes[self.rank as usize];
        match self.operation {
            None => {
                outgoing.flying += 1;
                lane.flying.push(flying);
            }
            Some(operation) => lock(&operation.flying).push(flying),
        }
    }

    /// Sends a frame and data behind it. `owes`: only a flush tells that it is done.
    pub(super) fn ask(&self, outgoing: &mut Outgoing, frame: &Frame, data: &Segments, owes: bool) {
        let len = frame.len() + data.len() as usize;
        let room = outgoing.room(len);
        let start = room.len();
        frame.encode(room);
        data.append_to(room);
        let message = memory::contiguous(room[start..].as_ptr().cast(), len);
        let to = (self.peer(), self.comm().context(), FRAMES);
        // The arena has to stay as long as the message is under way.
        if let Some(id) = self.world.node().begin_send(&to, &message, STANDARD) {
            outgoing.flying += 1;
            outgoing.lanes[self.rank as usize].flying.push(Flying::Send(id));
        }
        outgoing.lanes[self.rank as usize].owes |= owes;
        self.mark();
    }

    /// Sends data where they lie.
    pub(super) fn send(&self, outgoing: &mut Outgoing, id: u32, data: &Segments) {
        let to = (self.peer(), self.comm().context(), data_tag(id));
        if let Some(id) = self.world.node().begin_send(&to, data, STANDARD) {
            self.add(outgoing, Flying::Send(id));
        }
    }

    /// Gets ready for an answer.
    pub(super) fn expect(&self, outgoing: &mut Outgoing, id: u32, into: Segments) {
        let len = into.len();
        let request = self.receive(id, into);
        self.add(outgoing, Flying::Answer(request, len));
        self.mark();
    }

    pub(super) fn receive(&self, id: u32, into: Segments) -> RequestId {
        let from = Source::Peer(self.peer());
        self.world.node().submit_recv((from, self.comm().context(), TagMatch::Exact(answer_tag(id))), into)
    }

    /// Asks for an answer to everything before, and puts it to what is under way.
    pub(super) fn ask_for_all(&self, outgoing: &mut Outgoing, kind: Kind, op: u8) {
        let id = outgoing.name();
        let mut answer = Box::new([0; ACKNOWLEDGEMENT]);
        let into = memory::contiguous(answer.as_mut_ptr().cast(), ACKNOWLEDGEMENT);
        let request = self.receive(id, into);
        self.ask(outgoing, &Frame { op, ..Frame::plain(kind, id) }, &Segments::empty(), false);
        let lane = &mut outgoing.lanes[self.rank as usize];
        lane.owes = false;
        lane.flying.push(Flying::Acknowledgement(request, answer));
        outgoing.flying += 1;
    }

    fn mark(&self) {
        self.window.peer(self.rank).is_asked.store(true, Ordering::Relaxed);
    }

    /// The operation, which has a request, waits with everything else to its rank.
    pub(super) fn keep(&self, outgoing: &mut Outgoing) {
        if let Some(operation) = self.operation {
            outgoing.flying += 1;
            outgoing.lanes[self.rank as usize].flying.push(Flying::Requested(operation.clone()));
            self.mark();
        }
    }
}

impl Window {
    /// Waits until everything that was asked of some ranks is complete, here or at the target.
    ///
    /// # Errors
    /// An operation has failed, or a rank is gone.
    pub(super) fn flush(&self, world: &World, ranks: std::ops::Range<i32>, at_target: bool) -> Result<()> {
        let is_asked = |rank: &i32| self.peer(*rank).is_asked.load(Ordering::Relaxed);
        if !ranks.clone().any(|rank| is_asked(&rank)) {
            return Ok(());
        }
        let _one_at_a_time = lock(&self.flushing);
        let asked: Vec<i32> = ranks.filter(is_asked).collect();
        if at_target {
            let mut outgoing = lock(&self.outgoing);
            for &rank in &asked {
                if outgoing.lanes[rank as usize].owes {
                    self.asking(world, rank).ask_for_all(&mut outgoing, Kind::Flush, 0);
                }
            }
        }
        let mut ended = Ok(());
        for rank in asked {
            ended = ended.and(self.land(world, rank));
        }
        ended
    }

    pub(super) fn asking<'a>(&'a self, world: &'a World, rank: i32) -> Asking<'a> {
        Asking { window: self, world, rank, operation: None }
    }

    /// Waits for everything that is under way to and from a rank.
    pub(super) fn land(&self, world: &World, rank: i32) -> Result<()> {
        let flying = {
            let mut outgoing = lock(&self.outgoing);
            let lane = &mut outgoing.lanes[rank as usize];
            self.peer(rank).is_asked.store(lane.owes, Ordering::Relaxed);
            std::mem::take(&mut lane.flying)
        };
        let count = flying.len();
        let mut failed = Ok(());
        for each in flying {
            failed = failed.and(self.await_one(world, rank, each));
        }
        lock(&self.outgoing).landed(count);
        failed
    }

    fn await_one(&self, world: &World, rank: i32, flying: Flying) -> Result<()> {
        match flying {
            Flying::Send(id) => self.outcome(world, rank, end_of(world, id), None),
            Flying::Answer(id, len) => self.outcome(world, rank, end_of(world, id), Some(len)),
            Flying::Acknowledgement(id, answer) => {
                let outcome = end_of(world, id);
                let len = outcome.as_ref().map_or(0, |envelope| envelope.len as usize);
                self.outcome(world, rank, outcome, None)?;
                self.read(rank, &answer[..len.min(ACKNOWLEDGEMENT)])
            }
            Flying::Requested(operation) => {
                self.until(world, "waiting for an operation", || {
                    Ok(operation.advance(self, world).then_some(()))
                })?;
                // The request tells of it.
                Ok(())
            }
        }
    }

    /// What an answer to a flush says.
    fn read(&self, rank: i32, answer: &[u8]) -> Result<()> {
        let Some((class, text)) = answer.split_first_chunk() else { return Ok(()) };
        let text = String::from_utf8_lossy(text);
        Err(self.error(Class(i32::from_le_bytes(*class)), format_args!("rank {rank} as the target: {text}")))
    }

    /// How a message ended; `len`: its expected length.
    pub(super) fn outcome(&self, world: &World, rank: i32, outcome: Outcome, len: Option<u64>) -> Result<()> {
        match world.session().outcome(outcome) {
            Ok(message) if len.is_none_or(|len| len == message.len as u64) => Ok(()),
            Ok(_) => Err(self.error(
                Class::RMA_RANGE,
                format_args!("rank {rank} as the target has refused an access: the memory is not attached"),
            )),
            Err(why) => {
                let error = from_session(why);
                Err(self.error(error.class(), format_args!("rank {rank} as the target: {}", error.text())))
            }
        }
    }

    /// Looks for what has left, if there is much: its memory can be used again.
    pub(super) fn tidy(&self, world: &World, rank: i32) -> Result<()> {
        let is_much = lock(&self.outgoing).lanes[rank as usize].flying.len() >= MANY;
        if is_much {
            let _one_at_a_time = lock(&self.flushing);
            self.land(world, rank)?;
        }
        Ok(())
    }
}

impl Operation {
    pub(super) fn new(rank: i32) -> Arc<Operation> {
        Arc::new(Operation { rank, flying: Mutex::default(), failed: Mutex::default() })
    }

    /// Whether nothing of it is under way.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.flying).is_empty()
    }

    /// Looks how far it is; true: it has ended.
    fn advance(&self, window: &Window, world: &World) -> bool {
        let mut flying = lock(&self.flying);
        flying.retain(|each| {
            let (id, len) = match each {
                Flying::Send(id) => (*id, None),
                Flying::Answer(id, len) => (*id, Some(*len)),
                Flying::Acknowledgement(..) | Flying::Requested(_) => return false,
            };
            let Some(outcome) = world.node().take(id) else { return true };
            if let Err(error) = window.outcome(world, self.rank, outcome, len) {
                lock(&self.failed).get_or_insert(error);
            }
            false
        });
        flying.is_empty()
    }
}

/// The request of an operation.
pub(super) struct Requested {
    pub(super) window: Arc<Window>,
    pub(super) operation: Arc<Operation>,
}

impl Work for Requested {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        self.operation.advance(&self.window, world).then(|| match lock(&self.operation.failed).take() {
            None => Ended::well(Status::EMPTY),
            Some(error) => Ended::badly(Status::EMPTY, error),
        })
    }
}
