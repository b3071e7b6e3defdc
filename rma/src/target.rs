//! The target's side: exposed memory, and the operations on it that frames ask for. The thread that looks at
//! the rails runs it; it submits messages and never waits.

use crate::Claims;
use crate::base::{Base, lent};
use crate::frame::{Frame, Kind, answer_tag, data_tag};
use crate::lanes::Lanes;
use crate::locks::{self, Locks, Ticket};
use crate::place::Place;
use crate::serving::{Incoming, Queue};
use nmad_engine::{Context, PeerId, RequestId, Segments, Source, Tag, TagMatch};
use std::collections::{BTreeMap, VecDeque};

/// Answers of up to this many bytes are copied, so that the exposed memory may change at once.
const COPIED: u64 = 4096;
/// Bytes of an answer to a flush, at most: a class, and words.
pub(crate) const ACKNOWLEDGEMENT: usize = 512;

/// Why a target did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The error's class: a number of the layer above.
    pub class: i32,
    /// Words for the user.
    pub text: String,
}

/// What combines data with exposed memory: an operator on elements of one type.
pub trait Operator: Copy {
    /// Whether data are needed.
    fn reads(self) -> bool;

    /// Combines packed elements with those of a place, which was checked to be exposed.
    ///
    /// # Errors
    /// The elements are not of the operator's type.
    fn apply(self, data: &[u8], base: Base, place: &Place) -> Result<(), Fault>;

    /// The same where network adapters change the memory, too: in steps which they cannot come between; what
    /// was there before, as it travels. None: no adapter does, or [`Operator::apply`] is such a step.
    fn apply_in_steps(self, data: &[u8], base: Base, place: &Place) -> Option<Vec<u8>> {
        let _ = (data, base, place);
        None
    }

    /// As [`Operator::apply_in_steps`]: the second half of the data replaces what is there if the first is.
    fn swap_in_a_step(self, both: &[u8], base: Base, place: &Place) -> Option<Vec<u8>> {
        let _ = (both, base, place);
        None
    }
}

/// What is at a place, as it travels.
fn packed(base: Base, place: &Place) -> Vec<u8> {
    let mut bytes = Vec::new();
    place.runs().for_each(|(offset, len)| base.append_to(offset, len, &mut bytes));
    bytes
}

/// The memory of this process that others may access, and who they are.
pub trait Exposed {
    /// What combines data with it.
    type Operator: Operator;
    /// The class of an error in a frame that no origin sends.
    const BREACH: i32;

    /// The context of all messages about it but those with frames.
    fn context(&self) -> Context;

    /// The context and the tag of those.
    fn frames(&self) -> (Context, Tag);

    /// The process of an origin.
    fn peer(&self, rank: usize) -> PeerId;

    /// The rank of a process that may access it.
    fn rank_of(&self, peer: PeerId) -> Option<usize>;

    /// Where it begins.
    fn base(&self) -> Base;

    /// Checks that a place is exposed.
    ///
    /// # Errors
    /// It is not, or not all of it.
    fn check(&self, place: &Place) -> Result<(), Fault>;

    /// The operator with these numbers; none: it is no such one.
    fn operator(&self, op: u8, basic: u8) -> Option<Self::Operator>;

    /// The lock of this memory.
    fn locks(&self) -> Locks<'_>;

    /// Does something while nothing else combines data with this memory.
    fn atomically<R>(&self, work: impl FnOnce() -> R) -> R;
}

/// The operations under way at a target, of all origins.
pub struct Target {
    /// Origins of which something is not done.
    queues: BTreeMap<usize, Queue>,
    /// Answers that the engine reads.
    answers: Vec<(RequestId, Vec<u8>)>,
    /// Turns to have the lock, in their order.
    tickets: VecDeque<Asked>,
    /// Ranks that wait for it, and their messages that follow the request for it.
    held: BTreeMap<usize, VecDeque<Incoming>>,
    /// Of these ranks those that need not wait for their turn.
    early: usize,
    /// The first thing that went wrong for an origin since its last flush.
    faults: BTreeMap<usize, Fault>,
    /// By rank: exposures of its memory that it has announced, and that we have not used.
    posts: Lanes<u32>,
    /// By rank: ends of its accesses that it has announced, and that we have not used.
    completes: Lanes<u32>,
}

/// A turn that a rank waits for, or one that it does not need any more.
struct Asked {
    rank: usize,
    ticket: Ticket,
    kind: locks::Kind,
    is_over: bool,
}

impl Target {
    /// Nothing is under way, of this number of ranks.
    pub fn new(ranks: usize) -> Target {
        Target {
            queues: BTreeMap::new(),
            answers: Vec::new(),
            tickets: VecDeque::new(),
            held: BTreeMap::new(),
            early: 0,
            faults: BTreeMap::new(),
            posts: Lanes::new(ranks),
            completes: Lanes::new(ranks),
        }
    }

    /// Whether there is something to be done without another frame.
    pub fn is_busy(&self) -> bool {
        !(self.queues.is_empty() && self.answers.is_empty() && self.tickets.is_empty())
    }

    /// Whether somebody waits for a lock, which another process may give back without a message.
    pub fn waits(&self) -> bool {
        !self.tickets.is_empty()
    }

    /// Notes that a rank has announced that its memory is exposed, or that its accesses have ended.
    pub fn announced(&mut self, rank: usize, kind: Kind) {
        match kind {
            Kind::Post => *self.posts.get_mut(rank) += 1,
            Kind::Complete => *self.completes.get_mut(rank) += 1,
            _ => {}
        }
    }

    /// Uses an exposure that a rank has announced; false: there is none.
    pub fn take_post(&mut self, rank: usize) -> bool {
        let Some(posts) = self.posts.existing_mut(rank).filter(|posts| **posts > 0) else { return false };
        *posts -= 1;
        true
    }

    /// Uses an end of accesses of each of these ranks, if all have announced it.
    pub fn take_completes(&mut self, ranks: impl Iterator<Item = usize> + Clone) -> bool {
        let are_there = ranks.clone().all(|rank| self.completes.get(rank).is_some_and(|count| *count > 0));
        if are_there {
            ranks.for_each(|rank| *self.completes.get_mut(rank) -= 1);
        }
        are_there
    }

    /// Messages of a rank that wait: for its lock, or for what was asked before.
    fn waiting(&mut self, rank: usize) -> &mut VecDeque<Incoming> {
        match self.held.get_mut(&rank) {
            Some(held) => held,
            None => &mut self.queues.entry(rank).or_default().incoming,
        }
    }

    /// Whether a further message of a rank has to wait.
    fn has_waiting(&self, rank: usize) -> bool {
        self.held.contains_key(&rank)
            || self.queues.get(&rank).is_some_and(|queue| !queue.incoming.is_empty())
    }

    /// Does what has been asked, as far as it can be done now; true: something was done.
    pub fn serve<E: Exposed, P: Claims>(&mut self, exposed: &E, port: &mut P) -> bool {
        let mut turn = Turn { exposed, port, target: self, worked: false };
        turn.serve();
        turn.worked
    }
}

/// One look at what has come.
struct Turn<'a, E, P> {
    exposed: &'a E,
    port: &'a mut P,
    target: &'a mut Target,
    worked: bool,
}

/// What becomes of a frame.
enum Step {
    Done,
    /// Something before it is not done.
    Later,
    /// It is done, and nothing behind it before the lock is had.
    Held,
}

impl<E: Exposed, P: Claims> Turn<'_, E, P> {
    fn serve(&mut self) {
        let Turn { target, port, .. } = self;
        target.answers.retain(|(id, _)| port.take(*id).is_none());
        let queues: Vec<usize> = target.queues.keys().copied().collect();
        queues.into_iter().for_each(|rank| self.serve_queue(rank));
        let (context, tag) = self.exposed.frames();
        let from = (Source::Any, context, TagMatch::Exact(tag));
        while let Some(claim) = self.port.claim(from) {
            self.worked = true;
            let rank = self.exposed.rank_of(claim.envelope.peer);
            let mut incoming = Incoming::receive(self.port, claim);
            // Nobody else knows the context.
            let Some(rank) = rank else { continue };
            if self.target.has_waiting(rank) || !self.serve_message(rank, &mut incoming) {
                self.target.waiting(rank).push_back(incoming);
            }
        }
        self.give_locks();
    }

    /// Goes on with what one origin has asked.
    fn serve_queue(&mut self, rank: usize) {
        // Taken out meanwhile: a step may add to what moves.
        let Some(mut queue) = self.target.queues.remove(&rank) else { return };
        self.worked |= queue.look(self.port);
        let moving = std::mem::take(&mut queue.moving);
        self.target.queues.insert(rank, Queue { moving, ..Queue::default() });
        while let Some(first) = queue.incoming.front_mut() {
            if !self.serve_message(rank, first) {
                break;
            }
            self.worked = true;
            queue.incoming.pop_front();
        }
        if !queue.incoming.is_empty() {
            *self.target.waiting(rank) = queue.incoming;
        }
        if self.target.queues.get(&rank).is_some_and(Queue::is_empty) {
            self.target.queues.remove(&rank);
        }
    }

    /// Serves the frames of a message; false: it is not here, or one of them has to wait.
    fn serve_message(&mut self, rank: usize, incoming: &mut Incoming) -> bool {
        if !incoming.is_here(self.port) {
            return false;
        }
        while let Some((frame, data, len)) = incoming.frame() {
            let step = self.step(rank, &frame, data);
            if let Step::Later = step {
                return false;
            }
            incoming.advance(len);
            if let Step::Held = step {
                return false;
            }
        }
        true
    }

    /// Does what a frame asks.
    fn step(&mut self, rank: usize, frame: &Frame, data: &[u8]) -> Step {
        let moves = || self.target.queues.get(&rank).is_some_and(|queue| !queue.moving.is_empty());
        if frame.kind.follows_all() && moves() {
            return Step::Later;
        }
        match frame.kind {
            Kind::Put => self.put(rank, frame, data),
            Kind::PutFar => self.put_far(rank, frame),
            Kind::Get => self.get(rank, frame),
            Kind::Accumulate | Kind::Fetch | Kind::Swap => self.combine(rank, frame, data),
            Kind::Flush => self.acknowledge(rank, frame.id),
            Kind::Lock => {
                let kind = locks::Kind::of(frame.op);
                let ticket = self.exposed.locks().ask(kind == locks::Kind::Alone);
                self.target.tickets.push_back(Asked { rank, ticket, kind, is_over: false });
                self.target.early += usize::from(kind == locks::Kind::Early);
                self.target.held.insert(rank, VecDeque::new());
                return Step::Held;
            }
            Kind::Unlock => {
                self.exposed.locks().release(frame.op != 0);
                self.acknowledge(rank, frame.id);
            }
            Kind::Post | Kind::Complete => self.target.announced(rank, frame.kind),
        }
        Step::Done
    }

    fn put(&mut self, rank: usize, frame: &Frame, data: &[u8]) {
        if self.permits(rank, &frame.place) && frame.place.len() == data.len() as u64 {
            let mut done = 0;
            for (offset, len) in frame.place.runs() {
                self.exposed.base().write(offset, &data[done..done + len as usize]);
                done += len as usize;
            }
        }
    }

    /// Receives data straight to their place, or to nowhere.
    fn put_far(&mut self, rank: usize, frame: &Frame) {
        let is_permitted = self.permits(rank, &frame.place);
        // Of a message for which there is no room its sender keeps the rest.
        let into = match is_permitted {
            true => frame.place.segments(self.exposed.base()),
            false => Segments::empty(),
        };
        let from = Source::Peer(self.exposed.peer(rank));
        let request =
            self.port.receive((from, self.exposed.context(), TagMatch::Exact(data_tag(frame.id))), into);
        self.target.queues.entry(rank).or_default().moving.push(request);
    }

    fn get(&mut self, rank: usize, frame: &Frame) {
        let is_permitted = self.permits(rank, &frame.place);
        let base = self.exposed.base();
        let data = if is_permitted { frame.place.segments(base) } else { Segments::empty() };
        if data.len() <= COPIED {
            let mut copy = Vec::new();
            data.append_to(&mut copy);
            return self.answer(rank, frame.id, copy);
        }
        let to = (self.exposed.peer(rank), self.exposed.context(), answer_tag(frame.id));
        if let Some(request) = self.port.send(&to, &data) {
            self.target.queues.entry(rank).or_default().moving.push(request);
        }
    }

    fn combine(&mut self, rank: usize, frame: &Frame, data: &[u8]) {
        let old = match self.permits(rank, &frame.place) {
            true => self.combined(frame, data).unwrap_or_else(|fault| {
                self.note(rank, fault);
                Vec::new()
            }),
            false => Vec::new(),
        };
        if frame.kind != Kind::Accumulate {
            self.answer(rank, frame.id, old);
        }
    }

    /// Combines data with what is exposed; returns the old elements if the frame asks for them.
    fn combined(&self, frame: &Frame, data: &[u8]) -> Result<Vec<u8>, Fault> {
        let (base, place) = (self.exposed.base(), &frame.place);
        let wrong = || {
            let text = "an accumulate has come that no rank of this job sends";
            Fault { class: E::BREACH, text: text.into() }
        };
        let operator = self.exposed.operator(frame.op, frame.basic).ok_or_else(wrong)?;
        let len = place.len() as usize;
        let expected = match frame.kind {
            Kind::Swap => 2 * len,
            _ if !operator.reads() => 0,
            _ => len,
        };
        if data.len() != expected {
            return Err(wrong());
        }
        self.exposed.atomically(|| {
            let is_swap = frame.kind == Kind::Swap;
            let in_steps = match is_swap {
                true => operator.swap_in_a_step(data, base, place),
                false => operator.apply_in_steps(data, base, place),
            };
            if let Some(old) = in_steps {
                return Ok(if frame.kind == Kind::Accumulate { Vec::new() } else { old });
            }
            let old = if frame.kind == Kind::Accumulate { Vec::new() } else { packed(base, place) };
            let (compare, new) = data.split_at(if is_swap { len } else { 0 });
            if !is_swap || old == compare {
                operator.apply(new, base, place)?;
            }
            Ok(old)
        })
    }

    /// Whether an origin may access this memory; takes note of it if not.
    fn permits(&mut self, rank: usize, place: &Place) -> bool {
        match self.exposed.check(place) {
            Ok(()) => true,
            Err(fault) => {
                self.note(rank, fault);
                false
            }
        }
    }

    fn note(&mut self, rank: usize, fault: Fault) {
        self.target.faults.entry(rank).or_insert(fault);
    }

    /// Everything is done that an origin has asked before.
    fn acknowledge(&mut self, rank: usize, id: u32) {
        let mut answer = Vec::new();
        if let Some(Fault { class, text }) = self.target.faults.remove(&rank) {
            answer.extend(class.to_le_bytes());
            answer.extend(text.bytes().take(ACKNOWLEDGEMENT - answer.len()));
        }
        self.answer(rank, id, answer);
    }

    fn answer(&mut self, rank: usize, id: u32, data: Vec<u8>) {
        let to = (self.exposed.peer(rank), self.exposed.context(), answer_tag(id));
        if let Some(request) = self.port.send(&to, &lent(&data)) {
            self.target.answers.push((request, data));
        }
    }

    /// Gives locks to those whose turn it is, and to those that need not wait for it.
    fn give_locks(&mut self) {
        let exposed = self.exposed;
        let locks = exposed.locks();
        loop {
            while let Some(first) = self.target.tickets.pop_front_if(|first| locks.has_turn(first.ticket)) {
                match first.is_over {
                    true => locks.release(false),
                    false => self.give_lock(first.rank, first.kind),
                }
            }
            if self.target.early == 0 {
                return;
            }
            let is_early = |asked: &&mut Asked| asked.kind == locks::Kind::Early && !asked.is_over;
            let mut early = Vec::new();
            for asked in self.target.tickets.iter_mut().filter(is_early).take_while(|_| locks.join()) {
                asked.is_over = true;
                early.push(asked.rank);
            }
            if early.is_empty() {
                return;
            }
            early.into_iter().for_each(|rank| self.give_lock(rank, locks::Kind::Early));
        }
    }

    /// A rank has the lock: goes on with what it has asked behind.
    fn give_lock(&mut self, rank: usize, kind: locks::Kind) {
        self.worked = true;
        self.target.early -= usize::from(kind == locks::Kind::Early);
        let held = self.target.held.remove(&rank).unwrap_or_default();
        self.target.queues.entry(rank).or_default().incoming = held;
        self.serve_queue(rank);
    }
}

#[cfg(test)]
mod tests;
