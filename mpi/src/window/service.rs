//! The target's side: does what frames ask, in any thread that looks at the rails: one that waits for
//! something else, or the helper while the program computes. It runs with the node's lock held, so it
//! submits to the engine and never waits.

use super::combine::Combination;
use super::frame::{Frame, Kind};
use super::outgoing::{ACKNOWLEDGEMENT, FRAMES, answer_tag, data_tag};
use super::place::Place;
use super::serving::{Asked, Incoming, Queue, Serving};
use super::{Flavor, Window, lock};
use crate::error::{Class, Result};
use crate::memory;
use crate::point::send::STANDARD;
use crate::world::World;
use newmadeleine::Segments;
use newmadeleine::engine::{Context, Engine, PeerId, Source, TagMatch};
use newmadeleine::progress::{Served, Service};
use std::sync::{Arc, Mutex};

/// Windows that may be accessed.
static SERVED: Mutex<Vec<Arc<Window>>> = Mutex::new(Vec::new());

/// Answers of up to this many bytes are copied, so that the window may change at once.
const COPIED: u64 = 4096;

/// Serves a window from now on.
pub(super) fn begin(world: &World, window: &Arc<Window>) {
    let is_first = {
        let mut served = lock(&SERVED);
        served.push(window.clone());
        served.len() == 1
    };
    if is_first {
        world.node().set_service(Some(Box::new(All { is_busy: true })));
    }
}

/// Serves it no more.
pub(super) fn end(world: &World, window: &Window) {
    let is_last = {
        let mut served = lock(&SERVED);
        served.retain(|other| !std::ptr::eq(&**other, window));
        served.is_empty()
    };
    if is_last {
        world.node().set_service(None);
    }
}

/// All windows.
struct All {
    /// Something is not done.
    is_busy: bool,
}

impl Service for All {
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let mut served = Served::default();
        if !self.is_busy && engine.unexpected() == 0 {
            return served;
        }
        self.is_busy = false;
        for window in lock(&SERVED).iter() {
            let mut serving = lock(&window.serving);
            let mut turn = Turn { window, engine, serving: &mut serving, worked: false };
            turn.serve();
            served.worked |= turn.worked;
            served.waits |= !serving.tickets.is_empty();
            self.is_busy |= serving.is_busy();
        }
        served
    }
}

/// One look at a window.
struct Turn<'a> {
    window: &'a Window,
    engine: &'a mut Engine,
    serving: &'a mut Serving,
    worked: bool,
}

/// What becomes of a frame.
enum Step {
    Done,
    /// Something before it is not done.
    Later,
}

impl Turn<'_> {
    fn context(&self) -> Context {
        self.window.on.comm.context()
    }

    fn peer(&self, rank: i32) -> PeerId {
        PeerId(self.window.peer(rank).process)
    }

    fn serve(&mut self) {
        self.serving.forget_answers(self.engine);
        let queues: Vec<i32> = self.serving.queues.keys().copied().collect();
        queues.into_iter().for_each(|rank| self.serve_queue(rank));
        while let Some(claim) = self.engine.claim(Source::Any, self.context(), TagMatch::Exact(FRAMES)) {
            self.worked = true;
            let rank = self.window.on.comm.local().rank_of(claim.envelope.peer.0);
            let mut incoming = Incoming::receive(self.engine, claim);
            // Nobody else knows the context.
            let Some(rank) = rank else { continue };
            let waits = self.serving.queues.get(&rank).is_some_and(|queue| !queue.incoming.is_empty());
            if waits || !incoming.is_here(self.engine) || matches!(self.step(rank, &incoming), Step::Later) {
                self.serving.queues.entry(rank).or_default().incoming.push_back(incoming);
            }
        }
        self.give_locks();
    }

    /// Goes on with what one origin has asked.
    fn serve_queue(&mut self, rank: i32) {
        // Taken out meanwhile: a step may add to what moves.
        let Some(mut queue) = self.serving.queues.remove(&rank) else { return };
        self.worked |= queue.look(self.engine);
        let moving = std::mem::take(&mut queue.moving);
        self.serving.queues.insert(rank, Queue { moving, ..Queue::default() });
        while let Some(first) = queue.incoming.front_mut() {
            let is_here = first.is_here(self.engine);
            if !is_here || matches!(self.step(rank, &queue.incoming[0]), Step::Later) {
                break;
            }
            self.worked = true;
            queue.incoming.pop_front();
        }
        let kept = self.serving.queues.entry(rank).or_default();
        kept.incoming = queue.incoming;
        if kept.is_empty() {
            self.serving.queues.remove(&rank);
        }
    }

    /// Does what a frame asks.
    fn step(&mut self, rank: i32, incoming: &Incoming) -> Step {
        let Some((frame, data)) = incoming.frame() else { return Step::Done };
        let moves = || self.serving.queues.get(&rank).is_some_and(|queue| !queue.moving.is_empty());
        if frame.kind.follows_all() && moves() {
            return Step::Later;
        }
        match frame.kind {
            Kind::Put => self.put(rank, &frame, data),
            Kind::PutFar => self.put_far(rank, &frame),
            Kind::Get => self.get(rank, &frame),
            Kind::Accumulate | Kind::Fetch | Kind::Swap => self.combine(rank, &frame, data),
            Kind::Flush => self.acknowledge(rank, frame.id),
            Kind::Lock => {
                let ticket = self.window.own_locks().ask(frame.op != 0);
                self.serving.tickets.push_back(Asked { rank, id: frame.id, ticket });
            }
            Kind::Unlock => {
                self.window.own_locks().release(frame.op != 0);
                self.acknowledge(rank, frame.id);
            }
            Kind::Post => self.serving.posts[rank as usize] += 1,
            Kind::Complete => self.serving.completes[rank as usize] += 1,
        }
        Step::Done
    }

    fn put(&mut self, rank: i32, frame: &Frame, data: &[u8]) {
        if self.permits(rank, &frame.place) && frame.place.len() == data.len() as u64 {
            let mut done = 0;
            for (offset, len) in frame.place.runs() {
                self.window.base.write(offset, &data[done..done + len as usize]);
                done += len as usize;
            }
        }
    }

    /// Receives data straight into the window, or into nothing.
    fn put_far(&mut self, rank: i32, frame: &Frame) {
        let is_permitted = self.permits(rank, &frame.place);
        let mut nothing = vec![0; if is_permitted { 0 } else { frame.place.len() as usize }];
        let into = match is_permitted {
            true => frame.place.segments(self.window.base),
            false => memory::contiguous(nothing.as_mut_ptr().cast(), nothing.len()),
        };
        let (from, tag) = (Source::Peer(self.peer(rank)), TagMatch::Exact(data_tag(frame.id)));
        let request = self.engine.recv(from, self.context(), tag, into);
        self.serving.queues.entry(rank).or_default().moving.push((request, nothing));
    }

    fn get(&mut self, rank: i32, frame: &Frame) {
        let is_permitted = self.permits(rank, &frame.place);
        let data = if is_permitted { frame.place.segments(self.window.base) } else { Segments::empty() };
        if data.len() <= COPIED {
            let mut copy = Vec::new();
            data.append_to(&mut copy);
            return self.answer(rank, frame.id, copy);
        }
        let (to, context, tag) = (self.peer(rank), self.context(), answer_tag(frame.id));
        let request = self.engine.send(to, context, tag, data, STANDARD);
        self.serving.queues.entry(rank).or_default().moving.push((request, Vec::new()));
    }

    fn combine(&mut self, rank: i32, frame: &Frame, data: &[u8]) {
        let old = if self.permits(rank, &frame.place) {
            self.combined(frame, data).unwrap_or_else(|error| {
                self.fault(rank, error.class(), error.text().to_string());
                Vec::new()
            })
        } else {
            Vec::new()
        };
        if frame.kind != Kind::Accumulate {
            self.answer(rank, frame.id, old);
        }
    }

    /// Combines data with the window's; returns the old elements if the frame asks for them.
    fn combined(&self, frame: &Frame, data: &[u8]) -> Result<Vec<u8>> {
        let (base, place) = (self.window.base, &frame.place);
        let wrong = || Class::INTERN.error("an accumulate has come that no rank of this job sends");
        let combination = Combination::decode(frame.op, frame.basic).ok_or_else(wrong)?;
        let len = place.len() as usize;
        let expected = match frame.kind {
            Kind::Swap => 2 * len,
            _ if !combination.reads() => 0,
            _ => len,
        };
        if data.len() != expected {
            return Err(wrong());
        }
        self.window.own_locks().atomically(|| {
            let mut old = Vec::new();
            if frame.kind != Kind::Accumulate {
                place.runs().for_each(|(offset, len)| base.append_to(offset, len, &mut old));
            }
            if frame.kind == Kind::Swap {
                if old == data[..len] {
                    combination.apply(&data[len..], base, place)?;
                }
            } else {
                combination.apply(data, base, place)?;
            }
            Ok(old)
        })
    }

    /// Whether an origin may access this memory; takes note of it if not.
    fn permits(&mut self, rank: i32, place: &Place) -> bool {
        if self.window.flavor != Flavor::Dynamic {
            // Origins have checked it before they asked.
            return place.beyond(self.window.size).is_none();
        }
        let missing = lock(&self.window.attached).missing(place);
        if let Some((start, len)) = missing {
            let text = format!("the {len} B at address {start:#x} are not attached to the window");
            self.fault(rank, Class::RMA_RANGE, text);
        }
        missing.is_none()
    }

    fn fault(&mut self, rank: i32, class: Class, text: String) {
        self.serving.faults.entry(rank).or_insert((class, text));
    }

    /// Everything is done that an origin has asked before.
    fn acknowledge(&mut self, rank: i32, id: u32) {
        let mut answer = Vec::new();
        if let Some((class, text)) = self.serving.faults.remove(&rank) {
            answer.extend(class.0.to_le_bytes());
            answer.extend(text.bytes().take(ACKNOWLEDGEMENT - answer.len()));
        }
        self.answer(rank, id, answer);
    }

    fn answer(&mut self, rank: i32, id: u32, data: Vec<u8>) {
        let segments = memory::contiguous(data.as_ptr().cast(), data.len());
        let (to, context) = (self.peer(rank), self.context());
        let request = self.engine.send(to, context, answer_tag(id), segments, STANDARD);
        self.serving.answers.push((request, data));
    }

    /// Gives locks to those whose turn it is.
    fn give_locks(&mut self) {
        while let Some(first) = self.serving.tickets.front() {
            if !self.window.own_locks().has_turn(first.ticket) {
                return;
            }
            let (rank, id) = (first.rank, first.id);
            self.serving.tickets.pop_front();
            self.worked = true;
            self.answer(rank, id, Vec::new());
        }
    }
}
