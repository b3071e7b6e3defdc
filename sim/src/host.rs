//! One simulated host: an engine, its rails, and an application that goes through its script. It turns the
//! same pump as a real host, and they spend the time of its core, or of another one that posts for it.

mod accesses;
mod deaths;
mod early;
mod ends;
mod filing;
mod lean;
mod look;
mod threads;

use crate::buffer::Buffer;
use crate::cores::{Cores, Meanwhile, Node};
use crate::exposed::{Landing, Windows};
use crate::files::Files;
use crate::network::{Shared, lock};
use crate::oracle::Objection;
use crate::oracle::delivery::DeliveryOracle;
use crate::oracle::ledger::{self, Entry};
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::workload::{Ask, Op, Plan, Step, What};
use early::Patient;
pub(crate) use lean::Lean;
use nmad_engine::packet::{PeerId, RequestId};
use nmad_engine::transfer::driver::Driver;
use nmad_engine::{
    Caller, Completion, Context, Engine, Envelope, Instant, Packing, Segments, Source, Submitted, Tag,
    TagMatch, Unpacking, pump,
};
use std::collections::BTreeMap;
use threads::{Intruder, Thread};

/// The progress manager looks after an engine at least this often.
const TICK_NS: u64 = 1_000_000;
/// Turns in a row after which other hosts get their chance.
const TURNS_MAX: usize = 200;

/// What a thread of the application is doing.
#[derive(Debug, Default)]
enum Mode {
    /// Between two steps.
    #[default]
    Ready,
    /// Until no more of these are under way than the number says.
    Waiting(Vec<Op>, usize),
    Probing(Op),
    Computing(u64),
    /// Until everything that was asked of a host is complete.
    Landing(Landing),
    /// Until its task is done.
    Filing,
    /// Until all threads of the application are there.
    Meeting(usize),
    Done,
}

/// How a request ended, as far as the script depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Cancelled,
    Otherwise,
}

/// An engine, its rails and its application.
pub struct Host {
    /// Its rank.
    pub id: usize,
    /// The engine under test.
    pub engine: Engine,
    rails: Vec<Box<dyn Driver>>,
    network: Shared,
    /// Of its application; and the one whose turn it is.
    threads: Vec<Thread>,
    at: usize,
    turns: Rng,
    /// What another thread does while a rail works.
    meanwhile: Meanwhile,
    intruder: Option<Intruder>,
    requests: BTreeMap<Op, RequestId>,
    ops: BTreeMap<RequestId, Op>,
    /// By operation, up to the last that has ended.
    ends: Vec<Option<End>>,
    packings: BTreeMap<usize, Packing>,
    unpackings: BTreeMap<usize, Unpacking>,
    /// None: no host exposes memory.
    windows: Option<Windows>,
    /// None: no host has files.
    files: Option<Files>,
    /// How many threads have come to a step at which they meet.
    met: BTreeMap<usize, usize>,
    spin_ns: u64,
    /// The networks that its rails are on.
    fabrics: Vec<usize>,
    /// Looks on one link since the pump was turned.
    looked: u32,
    /// The time that the pump received last.
    told_ns: u64,
    /// See [`crate::Scenario::cores`].
    cores: Cores,
    /// See [`crate::Scenario::holds_back`].
    holds_back: bool,
    /// See [`crate::Scenario::looks`].
    looks: bool,
    /// See [`crate::Scenario::hurries`].
    hurries: bool,
    /// Blocking sends that end at this time if their receivers do not have them, or once they have left.
    patient: Vec<Patient>,
    /// Sent in the call that submitted them, and not told of yet.
    untold: Vec<RequestId>,
    /// See [`crate::world::World::share_memory`].
    lean: Option<Lean>,
    scratch: Vec<u8>,
}

impl Host {
    /// A host whose application has not begun.
    pub fn new(
        id: usize,
        engine: Engine,
        rails: Vec<Box<dyn Driver>>,
        network: Shared,
        scenario: &Scenario,
    ) -> Host {
        Host {
            id,
            engine,
            rails,
            network,
            threads: (0..scenario.threads).map(|_| Thread::default()).collect(),
            at: 0,
            turns: Rng::of(scenario.seed, 200 + id as u64),
            meanwhile: Meanwhile::Nobody,
            intruder: None,
            requests: BTreeMap::new(),
            ops: BTreeMap::new(),
            ends: Vec::new(),
            packings: BTreeMap::new(),
            unpackings: BTreeMap::new(),
            windows: None,
            files: None,
            met: BTreeMap::new(),
            spin_ns: 1_000,
            fabrics: scenario.rails[id].clone(),
            looked: 0,
            told_ns: 0,
            cores: Cores::new(&scenario.cores),
            holds_back: scenario.holds_back,
            looks: scenario.looks,
            hurries: scenario.hurries,
            patient: Vec::new(),
            untold: Vec::new(),
            lean: None,
            scratch: Vec::new(),
        }
    }

    /// The host has its core at time `now`: it goes on until it can do nothing more at once.
    ///
    /// # Errors
    /// What the oracle objects to.
    pub fn run(&mut self, now: u64, plan: &Plan, oracle: &mut DeliveryOracle) -> Result<(), Objection> {
        {
            let mut network = lock(&self.network);
            let doing = &mut network.doing[self.id];
            doing.local_ns = doing.local_ns.max(now);
        }
        self.end_computing(now);
        if self.is_asleep() {
            self.rest(false, false);
            return Ok(());
        }
        let mut active = false;
        let mut again = true;
        for _ in 0..TURNS_MAX {
            let acted = self.act(plan, oracle)? | self.end_early();
            let urgent = self.waits();
            self.expect_intruder(plan);
            let moved = self.look() || (!self.looks_on() && self.turn(urgent));
            self.engine.setup().waits(urgent);
            self.book_intruder(plan, oracle)?;
            let moved = self.serve() | self.serve_files() | moved;
            again = self.collect(oracle)? | acted | moved;
            active |= again;
            if !again || self.computes() {
                break;
            }
        }
        self.rest(active, again);
        Ok(())
    }

    fn turn(&mut self, urgent: bool) -> bool {
        let (now, mut clock) = (self.told_time(), self.clock());
        pump::turn(&mut self.node(), now, &mut clock, urgent)
    }

    fn node(&mut self) -> Node<'_> {
        self.parts().0
    }

    /// The node, and the memory that the host exposes.
    fn parts(&mut self) -> (Node<'_>, &mut Option<Windows>) {
        let Host { engine, rails, cores, network, id, windows, threads, meanwhile, .. } = self;
        let (own, is_shared) = (pump::Exclusive(engine, rails), threads.len() > 1);
        cores.return_by(lock(network).local_ns(*id));
        (Node { own, cores, network, host: *id, is_shared, meanwhile, away: None }, windows)
    }

    fn clock(&self) -> impl FnMut() -> Instant + use<> {
        let (network, id) = (self.network.clone(), self.id);
        move || Instant::from_ns(lock(&network).local_ns(id))
    }

    /// The time that the pump receives: on every other host a little old, as a real caller's may be.
    fn told_time(&mut self) -> Instant {
        let (local, stale_ns) = {
            let network = lock(&self.network);
            (network.local_ns(self.id), network.machine.stale_ns)
        };
        let old = if self.id % 2 == 1 { stale_ns } else { 0 };
        self.told_ns = self.told_ns.max(local.saturating_sub(old));
        Instant::from_ns(self.told_ns)
    }

    /// Enters when the host will wake again.
    fn rest(&mut self, active: bool, again: bool) {
        let mut network = lock(&self.network);
        let local = network.local_ns(self.id);
        let offset = self.id as u64 * 137_000 % TICK_NS;
        let mut at = (local + TICK_NS - offset) / TICK_NS * TICK_NS + offset;
        if at <= local {
            at += TICK_NS;
        }
        let deadline =
            self.engine.inspect().next_deadline().map(Instant::as_ns).filter(|&deadline| deadline > local);
        self.spin_ns = if active { 1_000 } else { (self.spin_ns * 2).min(TICK_NS) };
        let at =
            self.patient.iter().filter_map(|patient| Some(patient.until?.max(local + 1))).fold(at, u64::min);
        let next = |thread: &Thread| match thread.mode {
            Mode::Computing(until) if self.is_asleep() => until.max(local + 1),
            Mode::Computing(until) => at.min(until),
            Mode::Done if !again => at.min(deadline.unwrap_or(at)),
            // A waiting application spins, that is, looks all the time; here the pauses between looks grow.
            _ if !again => at.min(deadline.unwrap_or(at)).min(local + self.spin_ns),
            _ => local + 1,
        };
        let at = self.threads.iter().map(next).min().expect("an application has a thread");
        // What is left for a rail waits for the core that posts on it.
        let at = self.cores.posts_until(local).map_or(at, |posted| at.min(posted));
        network.doing[self.id].attentive = !self.computes();
        network.wake(self.id, at);
    }

    /// The thread whose turn it is goes through its script as far as possible, or for so many steps; whether
    /// anything was done.
    fn act_for(&mut self, steps: usize, plan: &Plan, oracle: &mut DeliveryOracle) -> Result<bool, Objection> {
        let mut acted = false;
        for _ in 0..steps {
            self.forget_ended();
            let goes_on = match self.mode() {
                Mode::Ready => true,
                Mode::Waiting(ops, most) => {
                    ops.iter().filter(|&&op| !self.has_ended(op)).nth(*most).is_none()
                }
                &Mode::Probing(op) => self.probe(plan, op)?,
                Mode::Landing(_) => self.land(plan, oracle)?,
                Mode::Filing => self.filed(plan, oracle)?,
                &Mode::Meeting(number) => self.has_met(number),
                Mode::Computing(_) | Mode::Done => false,
            };
            if !goes_on {
                return Ok(acted);
            }
            acted = true;
            let next = self.threads[self.at].next_step;
            let mode = match plan.script(self.id, self.at).get(next) {
                None => Mode::Done,
                Some(step) => self.step(step, plan, oracle)?,
            };
            self.threads[self.at] = Thread { mode, next_step: next + 1 };
        }
        Ok(acted)
    }

    /// Drops ended operations from the front of the list that the thread waits for. Otherwise a thread that
    /// waits for hundreds of requests would search the whole list each time its host runs.
    fn forget_ended(&mut self) {
        let Mode::Waiting(ops, _) = self.mode() else { return };
        let ended = ops.iter().take_while(|&&op| self.has_ended(op)).count();
        if let Mode::Waiting(ops, _) = &mut self.threads[self.at].mode {
            ops.drain(..ended);
        }
    }

    fn end_of(&self, op: Op) -> Option<End> {
        self.ends.get(op).copied().flatten()
    }

    fn has_ended(&self, op: Op) -> bool {
        self.end_of(op).is_some()
    }

    fn keep_end(&mut self, op: Op, end: End) {
        if self.ends.len() <= op {
            self.ends.resize(op + 1, None);
        }
        self.ends[op] = Some(end);
    }

    fn step(&mut self, step: &Step, plan: &Plan, oracle: &mut DeliveryOracle) -> Result<Mode, Objection> {
        match step {
            Step::Post(op) => self.post(*op, plan, oracle)?,
            Step::Wait(ops) => {
                self.release();
                self.be_patient(ops);
                return Ok(Mode::Waiting(ops.clone(), 0));
            }
            Step::Drain(ops, most) => {
                if *most == 0 {
                    self.be_patient(ops);
                }
                return Ok(Mode::Waiting(ops.clone(), *most));
            }
            Step::Compute(ns) => {
                let local = lock(&self.network).local_ns(self.id);
                return Ok(Mode::Computing(local + ns));
            }
            Step::Probe(op) => return Ok(Mode::Probing(*op)),
            Step::Cancel(op) => {
                if let Some(&request) = self.requests.get(op) {
                    oracle.cancelled(self.id, request);
                    let taken = self.engine.cancel(request);
                    self.note(&[20, *op as u64, u64::from(taken)], || {
                        format!("cancels op {op}: {}", if taken { "taken back" } else { "too late" })
                    });
                }
            }
            Step::Again(first, second) => match self.end_of(*first) {
                Some(End::Cancelled) => self.post(*second, plan, oracle)?,
                _ => self.keep_end(*second, End::Otherwise),
            },
            Step::File(_) | Step::Meet(_) => {
                return Ok(self.file_step(step, plan, oracle).unwrap_or(Mode::Ready));
            }
            step => return Ok(self.access_step(step, plan, oracle).unwrap_or(Mode::Ready)),
        }
        Ok(Mode::Ready)
    }

    /// Submits a request and pushes, as the library does, unless it expects a waiting call at once.
    fn post(&mut self, op: Op, plan: &Plan, oracle: &mut DeliveryOracle) -> Result<(), Objection> {
        let ask = &plan.asks[op];
        let buffer = self.memory(op, plan);
        self.expect_intruder(plan);
        let hurried = self.hurry(ask, &buffer.segments());
        let request = match hurried {
            Some(request) => request,
            None => self.submit(ask, buffer.segments()),
        };
        let call_ns = lock(&self.network).machine.call_ns;
        lock(&self.network).work(self.id, call_ns);
        let at = lock(&self.network).local_ns(self.id);
        self.book((op, request, at), buffer, plan, oracle)?;
        if hurried.is_some() {
            if let Some(result) = self.engine.take(request) {
                self.end(&Completion { request, result }, oracle)?;
                return self.book_intruder(plan, oracle);
            }
            // No end is reported while a link is being closed, and nothing else will report this one.
            self.untold.push(request);
        }
        self.push();
        self.book_intruder(plan, oracle)
    }

    /// Enters a request that was submitted at this time into the books.
    fn book(
        &mut self,
        (op, request, submitted): (Op, RequestId, u64),
        buffer: Buffer,
        plan: &Plan,
        oracle: &mut DeliveryOracle,
    ) -> Result<(), Objection> {
        let (ask, len) = (&plan.asks[op], plan.len(op));
        let what = self.booked(op, ask, oracle);
        self.requests.insert(op, request);
        self.ops.insert(request, op);
        let entry = Entry { host: self.id, what, buffer, len, submitted, ended: None, partner: None };
        self.note(&[21, op as u64, len], || format!("op {op}: {entry}"));
        oracle.ledger.enter(request, entry)
    }

    /// Sends a message, which leaves at once, if it can; none: it is a part of one.
    fn hurry(&mut self, ask: &Ask, memory: &Segments) -> Option<RequestId> {
        let What::Send { to, context, tag, hints } = ask.what else { return None };
        if ask.part.is_some() {
            return None;
        }
        let caller = if self.hurries { Caller::Waits } else { Caller::GoesOn };
        let (peer, context, tag) = (PeerId(to as u32), Context(context), Tag(tag));
        let mut clock = self.clock();
        let (to, len) = ((peer, context, tag), memory.len());
        Some(match pump::send_at_once(&mut self.node(), &to, (memory, hints), caller, &mut clock) {
            Ok(Submitted::Ended(seq)) => self.engine.ended(Envelope { peer, context, tag, len, seq }),
            Ok(Submitted::Request(request)) => request,
            Err(refused) => self.engine.send_as(to, memory.clone(), hints, refused),
        })
    }

    fn submit(&mut self, ask: &Ask, memory: Segments) -> RequestId {
        match ask.what {
            What::Send { to, context, tag, hints } => {
                let (to, context, tag) = (PeerId(to as u32), Context(context), Tag(tag));
                let Some(part) = ask.part else { return self.engine.send(to, context, tag, memory, hints) };
                if part.index == 0 {
                    self.packings.insert(part.message, Packing::new(to, context, tag));
                }
                let packing = self.packings.get_mut(&part.message).expect("begun with its first part");
                packing.pack(&mut self.engine, memory, hints)
            }
            What::Recv { from, context, tag } => {
                let (source, tag) = names(from, tag);
                let context = Context(context);
                let Some(part) = ask.part else { return self.engine.recv(source, context, tag, memory) };
                if part.index == 0 {
                    let unpacking = Unpacking::new(&mut self.engine, source, context, tag);
                    self.unpackings.insert(part.message, unpacking);
                }
                let unpacking = self.unpackings.get_mut(&part.message).expect("begun with its first part");
                let request = unpacking.unpack(&mut self.engine, memory);
                if part.last
                    && let Some(unpacking) = self.unpackings.remove(&part.message)
                {
                    unpacking.end(&mut self.engine);
                }
                request
            }
        }
    }

    /// What the oracle's books say of a request. Further parts of incremental messages travel in a context
    /// of their own, named by the place of the first part in its flow, without an order among them.
    fn booked(&self, op: Op, ask: &Ask, oracle: &mut DeliveryOracle) -> ledger::What {
        let further = ask.part.filter(|part| part.index > 0);
        let name = further.map(|part| u64::from(part.first) << 32 | u64::from(part.index));
        let own = if further.is_some() { Context::LIMIT } else { 0 };
        match ask.what {
            What::Send { to, context, tag, hints } => {
                let ordered = !hints.unordered && further.is_none();
                let seq = ordered.then(|| oracle.ledger.next_seq((self.id, to, context)));
                let (context, tag) = (context | own, name.unwrap_or(tag));
                let synchronous = hints.synchronous;
                ledger::What::Send { to, context, tag, seq, payload: op as u64, synchronous }
            }
            What::Recv { from, context, tag } => {
                ledger::What::Recv { from, context: context | own, tag: name.or(tag), cancelled: false }
            }
        }
    }

    /// Whether the probe for this receive is answered.
    fn probe(&mut self, plan: &Plan, op: Op) -> Result<bool, Objection> {
        let What::Recv { from, context, tag } = plan.asks[op].what else { return Ok(true) };
        let (source, tag_match) = names(from, tag);
        let Some(envelope) = self.engine.probe(source, Context(context), tag_match) else {
            let fails = |from: usize| self.engine.inspect().failure(PeerId(from as u32)).is_some();
            return Ok(from.is_some_and(fails) || self.has_closed(context));
        };
        let right = envelope.context.0 == context
            && from.is_none_or(|from| envelope.peer.0 as usize == from)
            && tag.is_none_or(|tag| envelope.tag.0 == tag);
        if right { Ok(true) } else { Err(format!("h{} probed op {op} and found {envelope:?}", self.id)) }
    }

    fn note(&self, facts: &[u64], text: impl FnOnce() -> String) {
        let mut network = lock(&self.network);
        let at = network.local_ns(self.id);
        network.trace.note(at, self.id, facts, text);
    }
}

fn names(from: Option<usize>, tag: Option<u64>) -> (Source, TagMatch) {
    let source = from.map_or(Source::Any, |from| Source::Peer(PeerId(from as u32)));
    (source, tag.map_or(TagMatch::Any, |tag| TagMatch::Exact(Tag(tag))))
}
