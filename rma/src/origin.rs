//! The origin's side: operations on the memory of other ranks, and those still under way.
//!
//! Small puts and accumulates have no answer before a flush, so their frames gather until the flush, or
//! another request that has an answer, leaves in the same message, or the message is long. Messages lie in an
//! arena until the engine has taken them; it is used again when nothing is under way. An operation is
//! complete at the origin when its messages have ended, and at the target when a flush, which follows it in
//! order, is answered.
//!
//! A request for a lock has no answer either: it leaves with the first access, and the target keeps all that
//! follows it until the lock is given. So the answer to a flush, or to the end of the lock, says as well that
//! the lock was had.

use crate::base::{lent, lent_mut};
use crate::frame::{Frame, Kind, answer_tag, data_tag};
use crate::lanes::Lanes;
use crate::locks;
use crate::place::Place;
use crate::reaching::Reaching;
use crate::target::{ACKNOWLEDGEMENT, Fault};
use crate::{Outcome, Port};
use nmad_engine::{Act, Context, Error, PeerId, RequestId, Segments, Source, Tag, TagMatch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Data of up to this many bytes travel in the frame.
const INLINE: u64 = 4096;
/// Bytes of an accumulate in one frame, and under one lock. The frames of one origin are in order, so
/// elements are combined in order, too. With a quarter, accumulates of 1 MiB between two hosts of a testbed
/// take 1.5 times as long (two cores of a Xeon).
pub const STEP: u64 = 64 << 10;
/// Frames that have no answer leave when there are as many bytes of them. With half or twice as many, the
/// engine gathers the messages as well.
const GATHERED: usize = 4096;
/// Bytes of a part of the arena; longer frames have one of their own.
const PART: usize = 64 << 10;
/// Things under way to one rank after which those that have left are looked for.
const MANY: usize = 4096;
/// The same as long as it is not known that its lock is had: its target keeps their data until then.
const FEW: usize = 16;

/// Messages and answers under way, of all ranks.
pub struct Origin {
    lanes: Lanes<Lane>,
    /// Answers that say as well that the lock of a rank is had.
    awaited: BTreeMap<usize, Flying>,
    arena: Vec<Vec<u8>>,
    next: u32,
    /// Things under way, to all ranks.
    flying: usize,
}

/// Messages and answers under way, of one rank.
#[derive(Default)]
struct Lane {
    flying: Vec<Flying>,
    /// What the network does meanwhile.
    reaching: Vec<Reaching>,
    /// Frames that have not left.
    gathered: Vec<u8>,
    /// Something was asked of which only an answer to a flush says that it is done.
    owes: bool,
    /// Its lock was asked for, and may not be had yet.
    is_locking: bool,
}

/// One thing that is under way.
pub enum Flying {
    /// A message that the engine reads.
    Send(RequestId),
    /// Data that were asked for, and their length.
    Answer(RequestId, u64),
    /// The answer to a flush.
    Acknowledgement(RequestId, Box<[u8; ACKNOWLEDGEMENT]>),
    /// An operation that has a request.
    Requested(Arc<Operation>),
}

/// Why an operation has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A message, or an answer, is lost.
    Lost(Error),
    /// The target has refused an access whose answer would be data.
    Refused,
    /// What the target has found wrong.
    Fault(Fault),
}

/// An operation that has a request.
#[derive(Default)]
pub struct Operation {
    flying: Mutex<Vec<Flying>>,
    failed: Mutex<Option<Failure>>,
}

/// What combines elements at the target: numbers that it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// The operator.
    pub op: u8,
    /// The type of the elements.
    pub basic: u8,
    /// Bytes of an element.
    pub size: u64,
}

/// A rank of which something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct To {
    /// Its number.
    pub rank: usize,
    /// Its process.
    pub peer: PeerId,
    /// The context of all messages about its memory but those with frames.
    pub context: Context,
    /// The context and the tag of those.
    pub frames: (Context, Tag),
}

impl Origin {
    /// Nothing is under way, to this number of ranks.
    pub fn new(ranks: usize) -> Origin {
        Origin { lanes: Lanes::new(ranks), awaited: BTreeMap::new(), arena: Vec::new(), next: 0, flying: 0 }
    }

    /// To ask something of a rank; `operation`: as part of an operation that has a request.
    pub fn asking<'a, P: Port>(
        &'a mut self,
        port: &'a mut P,
        to: To,
        operation: Option<&'a Arc<Operation>>,
    ) -> Asking<'a, P> {
        Asking { origin: self, port, to, operation }
    }

    /// Whether something was asked of a rank of which only an answer to a flush says that it is done.
    pub fn owes(&self, rank: usize) -> bool {
        self.lanes.get(rank).is_some_and(|lane| lane.owes)
    }

    /// Whether it pays to look which of the messages to a rank have left.
    pub fn has_many(&self, rank: usize) -> bool {
        self.lanes.get(rank).is_some_and(|lane| {
            let many = if lane.is_locking { FEW } else { MANY };
            lane.flying.len() + lane.reaching.len() >= many
        })
    }

    /// Whether the lock of a rank was asked for, and may not be had yet. An answer to a flush will say that
    /// it is.
    pub fn is_locking(&self, rank: usize) -> bool {
        self.lanes.get(rank).is_some_and(|lane| lane.is_locking)
    }

    /// Looks for the answer that says that a lock is had, which was asked for with a flush; none: it has not
    /// come.
    pub fn look_for_lock(&mut self, rank: usize, port: &mut impl Port) -> Option<Result<(), Failure>> {
        let Some(answer) = self.awaited.get(&rank) else { return Some(Ok(())) };
        let outcome = answer.request().and_then(|request| port.take(request))?;
        self.take_locking(rank).map(|answer| answer.ended(outcome))
    }

    /// Takes out the answer that says that a lock is had, if one is awaited. Its end is the caller's to find.
    pub fn take_locking(&mut self, rank: usize) -> Option<Flying> {
        let answer = self.awaited.remove(&rank)?;
        self.lanes.get_mut(rank).is_locking = false;
        Some(answer)
    }

    /// Takes out what is under way to a rank. Its end is the caller's to find, who then says that it has
    /// [`Origin::landed`].
    #[must_use]
    pub fn take_flying(&mut self, rank: usize) -> Vec<Flying> {
        self.lanes.existing_mut(rank).map(|lane| std::mem::take(&mut lane.flying)).unwrap_or_default()
    }

    /// This number of things that were taken out have ended.
    pub fn landed(&mut self, count: usize) {
        self.flying -= count;
        if self.flying == 0 {
            self.arena.truncate(1);
            self.arena.iter_mut().for_each(Vec::clear);
        }
    }

    /// The network does something at a rank.
    pub fn reaches(&mut self, rank: usize, reaching: Reaching) {
        self.lanes.get_mut(rank).reaching.push(reaching);
    }

    /// Takes out what the network does at a rank. Its end is the caller's to find.
    #[must_use]
    pub fn take_reaching(&mut self, rank: usize) -> Vec<Reaching> {
        self.lanes.existing_mut(rank).map(|lane| std::mem::take(&mut lane.reaching)).unwrap_or_default()
    }

    /// A name for an answer or for data.
    fn name(&mut self) -> u32 {
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
}

/// A rank of which something is asked.
pub struct Asking<'a, P> {
    origin: &'a mut Origin,
    port: &'a mut P,
    to: To,
    operation: Option<&'a Arc<Operation>>,
}

impl<P: Port> Asking<'_, P> {
    /// Writes data to a place of the same length.
    pub fn put(mut self, place: Place, data: &Segments) {
        if data.len() <= INLINE {
            self.ask_without_answer(&Frame { place, ..Frame::plain(Kind::Put, 0) }, data);
        } else {
            let id = self.origin.name();
            self.lane().owes = true;
            self.ask(&Frame { place, ..Frame::plain(Kind::PutFar, id) }, &Segments::empty());
            let to = (self.to.peer, self.to.context, data_tag(id));
            if let Some(request) = self.port.send(&to, data) {
                self.add(Flying::Send(request));
            }
        }
        self.keep();
    }

    /// Reads a place into memory of the same length.
    pub fn get(mut self, place: Place, into: &Segments) {
        let id = self.origin.name();
        self.expect(id, into.clone());
        self.ask(&Frame { place, ..Frame::plain(Kind::Get, id) }, &Segments::empty());
        self.keep();
    }

    /// Combines data (none: the operator reads none) with a place of the same length, in steps; `into` gets
    /// the elements that were there.
    pub fn combine(
        mut self,
        element: Element,
        place: &Place,
        data: Option<&Segments>,
        into: Option<&Segments>,
    ) {
        let size = element.size.max(1);
        let (step, mut from) = (STEP / size * size, 0);
        while from < place.len() {
            let len = step.min(place.len() - from);
            let part = if place.len() <= step { place.clone() } else { place.part(from, len) };
            let data = data.map_or_else(Segments::empty, |data| data.slice(from, len));
            let id = self.origin.name();
            if let Some(into) = into {
                self.expect(id, into.slice(from, len));
            }
            let kind = if into.is_some() { Kind::Fetch } else { Kind::Accumulate };
            let frame = Frame { kind, op: element.op, basic: element.basic, id, place: part };
            match into {
                Some(_) => self.ask(&frame, &data),
                None => self.ask_without_answer(&frame, &data),
            }
            from += len;
        }
        self.keep();
    }

    /// Writes the second of two elements if the first one is there; `into` gets what was there.
    pub fn swap(mut self, element: Element, place: Place, both: &[u8], into: &Segments) {
        let id = self.origin.name();
        self.expect(id, into.clone());
        let frame = Frame { kind: Kind::Swap, op: element.op, basic: element.basic, id, place };
        self.ask(&frame, &lent(both));
        self.keep();
    }

    /// Asks for a put or a get that the network has not done. An atomic is not asked for again.
    pub fn instead(self, Reaching { act, place, data, .. }: Reaching) {
        match act {
            Act::Put => self.put(place, &data),
            Act::Get => self.get(place, &data),
            Act::Add(_) | Act::Swap(..) => {}
        }
    }

    /// Asks when all that was asked before is done, if no answer says so anyway.
    pub fn flush(mut self) {
        if self.lane().owes {
            self.ask_for_all(Kind::Flush, 0);
        }
    }

    /// Asks when all that was asked before is done, and gives back a lock.
    pub fn unlock(mut self, alone: bool) {
        self.ask_for_all(Kind::Unlock, alone.into());
    }

    /// Asks for a lock, together with what is asked next. All of that is done when the lock is had.
    pub fn lock(mut self, kind: locks::Kind) {
        let frame = Frame { op: kind as u8, ..Frame::plain(Kind::Lock, 0) };
        self.ask_without_answer(&frame, &Segments::empty());
        self.lane().is_locking = true;
        // Nobody waits for an answer from before any more, since a rank was lost. It may come.
        self.origin.awaited.remove(&self.to.rank).into_iter().for_each(std::mem::forget);
    }

    /// Announces something that has no answer.
    pub fn announce(mut self, kind: Kind) {
        self.ask(&Frame::plain(kind, 0), &Segments::empty());
    }

    fn lane(&mut self) -> &mut Lane {
        self.origin.lanes.get_mut(self.to.rank)
    }

    fn add(&mut self, flying: Flying) {
        match self.operation {
            None => {
                self.origin.flying += 1;
                self.lane().flying.push(flying);
            }
            Some(operation) => lock(&operation.flying).push(flying),
        }
    }

    /// Sends a frame and data behind it.
    fn ask(&mut self, frame: &Frame, data: &Segments) {
        frame.encode(data, &mut self.lane().gathered);
        self.leave();
    }

    /// The same if only a flush tells that it is done.
    fn ask_without_answer(&mut self, frame: &Frame, data: &Segments) {
        let lane = self.lane();
        lane.owes = true;
        frame.encode(data, &mut lane.gathered);
        if lane.gathered.len() >= GATHERED {
            self.leave();
        }
    }

    /// Sends the frames that have gathered.
    fn leave(&mut self) {
        let mut gathered = std::mem::take(&mut self.lane().gathered);
        let room = self.origin.room(gathered.len());
        let start = room.len();
        room.append(&mut gathered);
        let message = lent(&room[start..]);
        self.lane().gathered = gathered;
        let (context, tag) = self.to.frames;
        // The arena has to stay as long as the message is under way.
        if let Some(request) = self.port.send(&(self.to.peer, context, tag), &message) {
            self.origin.flying += 1;
            self.lane().flying.push(Flying::Send(request));
        }
    }

    /// Gets ready for an answer.
    fn expect(&mut self, id: u32, into: Segments) {
        let len = into.len();
        let request = self.receive(id, into);
        self.add(Flying::Answer(request, len));
    }

    fn receive(&mut self, id: u32, into: Segments) -> RequestId {
        let from = (Source::Peer(self.to.peer), self.to.context, TagMatch::Exact(answer_tag(id)));
        self.port.receive(from, into)
    }

    /// Asks for an answer to everything before, and puts it to what is under way.
    fn ask_for_all(&mut self, kind: Kind, op: u8) {
        let id = self.origin.name();
        let mut answer = Box::new([0; ACKNOWLEDGEMENT]);
        let request = self.receive(id, lent_mut(&mut answer[..]));
        self.ask(&Frame { op, ..Frame::plain(kind, id) }, &Segments::empty());
        let answer = Flying::Acknowledgement(request, answer);
        let lane = self.lane();
        lane.owes = false;
        if lane.is_locking && !self.origin.awaited.contains_key(&self.to.rank) {
            self.origin.awaited.insert(self.to.rank, answer);
            return;
        }
        self.lane().flying.push(answer);
        self.origin.flying += 1;
    }

    /// The operation, which has a request, waits with everything else to its rank.
    fn keep(&mut self) {
        if let Some(operation) = self.operation {
            self.origin.flying += 1;
            self.lane().flying.push(Flying::Requested(operation.clone()));
        }
    }
}

impl Flying {
    /// The request whose end is its end; none: it is several.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            Flying::Send(id) | Flying::Answer(id, _) | Flying::Acknowledgement(id, _) => Some(*id),
            Flying::Requested(_) => None,
        }
    }

    /// What the end of its request means.
    ///
    /// # Errors
    /// It has failed.
    pub fn ended(&self, outcome: Outcome) -> Result<(), Failure> {
        let envelope = outcome.map_err(Failure::Lost)?;
        match self {
            Flying::Answer(_, len) if *len != envelope.len => Err(Failure::Refused),
            Flying::Acknowledgement(_, answer) => {
                let answer = &answer[..ACKNOWLEDGEMENT.min(envelope.len as usize)];
                let Some((class, text)) = answer.split_first_chunk() else { return Ok(()) };
                let text = String::from_utf8_lossy(text).into_owned();
                Err(Failure::Fault(Fault { class: i32::from_le_bytes(*class), text }))
            }
            _ => Ok(()),
        }
    }
}

impl Operation {
    /// Whether nothing of it is under way.
    pub fn is_over(&self) -> bool {
        lock(&self.flying).is_empty()
    }

    /// Looks how far it is; true: it has ended.
    pub fn advance(&self, port: &mut impl Port) -> bool {
        self.look(&mut lock(&self.flying), port)
    }

    /// The same on a thread that waits for nobody; none: another thread is at it.
    pub fn try_advance(&self, port: &mut impl Port) -> Option<bool> {
        let mut flying = self.flying.try_lock().ok()?;
        Some(self.look(&mut flying, port))
    }

    fn look(&self, flying: &mut Vec<Flying>, port: &mut impl Port) -> bool {
        flying.retain(|each| {
            let Some(outcome) = each.request().and_then(|request| port.take(request)) else { return true };
            if let Err(failure) = each.ended(outcome) {
                lock(&self.failed).get_or_insert(failure);
            }
            false
        });
        flying.is_empty()
    }

    /// Whether it has failed.
    pub fn has_failed(&self) -> bool {
        lock(&self.failed).is_some()
    }

    /// Why it has failed, if it has; told once.
    pub fn take_failure(&self) -> Option<Failure> {
        lock(&self.failed).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
