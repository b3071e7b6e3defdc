//! A job in virtual time.
//!
//! A core does one step at a time, in the order in which steps become ready. A message within a host costs
//! its sender a post and its receiver a copy; one to another host costs both what the library takes, and its
//! bytes pass the links of each rail that carries a part ([`super::links`]). The rest of the time that the
//! packet-level simulator measures between two idle hosts ([`super::fabric::Measured`]) is added at the
//! end, so that a single message takes the measured time. For a long message (rendezvous) the receiver's
//! core handles the request and the sender's core the answer, each after all steps that were ready before,
//! as in MAD-MPI. All times are in picoseconds.

use super::fabric::{
    ACROSS_NS, CACHED, COPY_MB, Fabric, MEMORY_MB, Measured, NEAR_NS, NEAR_POST_PERCENT, ps,
};
use super::job::{Job, What};
use super::links::{Links, Way};
use super::stage::{Outcome, Stage, Watch};
use nmad_mpi_base::algorithm::cost::Cost;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A core goes on.
    Core(u32),
    /// A part of a message comes to a link of its way.
    Hop(u32),
    /// The last byte of a message has come.
    Arrive(u32),
    /// A receive is posted.
    Post(u32),
    /// A core hears of a long message: the receiver's of the request, the sender's of the answer.
    Hear(Errand),
}

/// What a core has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Errand {
    /// To take a message that has come.
    Take(u32),
    /// To answer the request to send a message, whose receive is posted.
    Answer(u32),
    /// To send a message for which the answer has come.
    Grant(u32),
}

/// A part of a message on its way over one rail.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    message: u32,
    way: Way,
    place: usize,
    len: u64,
    /// When its last byte has come so far.
    tail: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// A short message has left, or the request to send a long one has come.
    is_announced: bool,
    is_posted: bool,
    has_arrived: bool,
    /// Parts under way.
    parts: u8,
}

#[derive(Debug, Default)]
struct Core {
    /// Steps that are ready: a run begins all of them before it looks for messages again.
    ready: VecDeque<u32>,
    /// Arrived messages, and requests and answers of long ones.
    news: VecDeque<Errand>,
    free_at: u64,
    is_awake: bool,
}

/// The run of a job.
pub struct World<'a, W> {
    job: &'a Job,
    nodes: Vec<u32>,
    /// The cache of each rank's core within its host.
    caches: Vec<u32>,
    cost: Cost,
    measured: Arc<Measured>,
    /// What a message without data takes between two hosts.
    notice_ps: u64,
    fabric: &'static Fabric,
    links: Links,
    is_cached: bool,
    /// When the memory of each host is free.
    memories: Vec<u64>,
    cores: Vec<Core>,
    waits: Vec<u32>,
    progress: Vec<Progress>,
    parts: Vec<Part>,
    free_parts: Vec<u32>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    entered: u64,
    left: usize,
    end: u64,
    far_bytes: u64,
    watch: &'a mut W,
}

impl<'a, W: Watch> World<'a, W> {
    /// A run before its first event. `data`: bytes that each rank works on.
    pub fn new(stage: &Stage, (job, data): (&'a Job, u64), watch: &'a mut W) -> World<'a, W> {
        let nodes = stage.nodes();
        World {
            job,
            caches: stage.caches(),
            nodes,
            cost: stage.fabric.cost(),
            notice_ps: (stage.fabric.measured().far.ns(0) * 1e3) as u64,
            measured: stage.fabric.measured(),
            fabric: stage.fabric,
            links: Links::new(stage.fabric, stage.hosts()),
            is_cached: data <= CACHED,
            memories: vec![0; stage.hosts()],
            cores: (0..stage.ranks).map(|_| Core::default()).collect(),
            waits: job.steps.iter().map(|step| step.waits).collect(),
            progress: vec![Progress::default(); job.messages.len()],
            parts: Vec::new(),
            free_parts: Vec::new(),
            events: BinaryHeap::new(),
            entered: 0,
            left: job.steps.len(),
            end: 0,
            far_bytes: 0,
            watch,
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// Steps are left that nothing will ever begin.
    pub fn run(mut self) -> Result<Outcome, String> {
        for step in 0..self.job.steps.len() as u32 {
            if self.waits[step as usize] == 0 {
                self.release(step, 0);
            }
        }
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            match event {
                Event::Core(rank) => self.work(rank, now),
                Event::Hop(part) => self.hop(part, now),
                Event::Arrive(message) => self.arrived(message, now),
                Event::Post(step) => self.posted(step, now),
                Event::Hear(errand) => self.hear(errand, now),
            }
        }
        match self.left {
            0 => Ok(Outcome {
                ps: self.end,
                messages: self.job.messages.len() as u64,
                far_bytes: self.far_bytes,
            }),
            left => Err(format!("{left} of {} steps never end", self.job.steps.len())),
        }
    }

    fn enter(&mut self, at: u64, event: Event) {
        self.entered += 1;
        self.events.push(Reverse((at, self.entered, event)));
    }

    /// Makes a step ready at time `at`: all steps that it waits for have ended by then.
    fn release(&mut self, step: u32, at: u64) {
        match self.job.steps[step as usize].what {
            What::Recv(_) => self.enter(at, Event::Post(step)),
            _ => {
                let rank = self.job.steps[step as usize].rank;
                self.cores[rank as usize].ready.push_back(step);
                self.rouse(rank, at);
            }
        }
    }

    fn posted(&mut self, step: u32, now: u64) {
        let What::Recv(message) = self.job.steps[step as usize].what else { return };
        let progress = &mut self.progress[message as usize];
        progress.is_posted = true;
        if progress.has_arrived {
            self.queue(Errand::Take(step), now);
        } else if progress.is_announced && self.asks(message) {
            self.queue(Errand::Answer(message), now);
        }
    }

    fn hear(&mut self, errand: Errand, now: u64) {
        if let Errand::Answer(message) = errand {
            let progress = &mut self.progress[message as usize];
            progress.is_announced = true;
            if !progress.is_posted {
                return;
            }
        }
        self.queue(errand, now);
    }

    /// Gives something to the core that it is for.
    fn queue(&mut self, errand: Errand, now: u64) {
        let rank = match errand {
            Errand::Take(step) => self.job.steps[step as usize].rank,
            Errand::Answer(message) => self.ends(message).1 as u32,
            Errand::Grant(message) => self.ends(message).0 as u32,
        };
        self.cores[rank as usize].news.push_back(errand);
        self.rouse(rank, now);
    }

    /// A core has something to do.
    fn rouse(&mut self, rank: u32, now: u64) {
        let core = &mut self.cores[rank as usize];
        if !core.is_awake {
            core.is_awake = true;
            let at = core.free_at.max(now);
            self.enter(at, Event::Core(rank));
        }
    }

    fn work(&mut self, rank: u32, now: u64) {
        let core = &mut self.cores[rank as usize];
        let end = if let Some(step) = core.ready.pop_front() {
            self.perform(step, now)
        } else {
            match core.news.pop_front() {
                Some(Errand::Take(step)) => self.perform(step, now),
                Some(Errand::Answer(message)) => {
                    self.enter(now + self.notice_ps, Event::Hear(Errand::Grant(message)));
                    now
                }
                Some(Errand::Grant(message)) => {
                    self.depart(message, now);
                    now
                }
                None => {
                    core.is_awake = false;
                    return;
                }
            }
        };
        self.cores[rank as usize].free_at = end;
        self.enter(end, Event::Core(rank));
    }

    /// Does a step; returns when the core is free again.
    fn perform(&mut self, step: u32, now: u64) -> u64 {
        let (rank, place) = self.job.place(step);
        match self.job.steps[step as usize].what {
            What::Send(message) => {
                let end = now + self.send_ps(message);
                if self.asks(message) {
                    self.enter(end + self.notice_ps, Event::Hear(Errand::Answer(message)));
                    return end;
                }
                self.depart(message, end);
                self.watch.leave(message, rank, place);
                self.ended(step, end);
                end
            }
            What::Recv(message) => {
                let end = self.through_memory(rank, now, self.recv_ps(message), self.copied(message));
                self.watch.arrive(message, rank, place);
                self.ended(step, end);
                end
            }
            What::Copy(len) => {
                let cost = self.cost.copy_alone(len) * 1e3;
                let end = self.through_memory(rank, now, cost as u64, 2 * len);
                self.watch.local(rank, place);
                self.ended(step, end);
                end
            }
            What::Reduce(len) => {
                let cost = self.cost.reduce_alone(len) * 1e3;
                // One of the operands has just come.
                let end = self.through_memory(rank, now, cost as u64, 2 * len);
                self.watch.local(rank, place);
                self.ended(step, end);
                end
            }
            What::Join => {
                self.watch.local(rank, place);
                self.ended(step, now);
                now
            }
        }
    }

    /// Work of a core on memory, which the cores of a host share unless all data of a rank is in its cache.
    fn through_memory(&mut self, rank: usize, now: u64, cost: u64, moved: u64) -> u64 {
        if self.is_cached || moved == 0 {
            return now + cost;
        }
        let memory = &mut self.memories[self.nodes[rank] as usize];
        *memory = now.max(*memory) + ps(moved, MEMORY_MB);
        (now + cost).max(*memory)
    }

    fn ends(&self, message: u32) -> (usize, usize) {
        let message = &self.job.messages[message as usize];
        let rank = |step: u32| self.job.steps[step as usize].rank as usize;
        (rank(message.send), rank(message.recv))
    }

    fn is_near(&self, message: u32) -> bool {
        let (from, to) = self.ends(message);
        self.nodes[from] == self.nodes[to]
    }

    /// Whether it waits for an answer of its receiver.
    fn asks(&self, message: u32) -> bool {
        self.job.messages[message as usize].len > self.measured.eager_max && !self.is_near(message)
    }

    /// Time of the sender's core.
    fn send_ps(&self, message: u32) -> u64 {
        if self.is_near(message) {
            return NEAR_NS * NEAR_POST_PERCENT * 10;
        }
        self.measured.send_ps(self.job.messages[message as usize].len)
    }

    /// Time of the receiver's core.
    fn recv_ps(&self, message: u32) -> u64 {
        let len = self.job.messages[message as usize].len;
        if self.is_near(message) {
            return NEAR_NS * NEAR_POST_PERCENT * 10 + ps(len, COPY_MB);
        }
        self.measured.recv_ps(len)
    }

    /// Bytes that the receiver moves through memory.
    fn copied(&self, message: u32) -> u64 {
        if self.is_near(message) { 2 * self.job.messages[message as usize].len } else { 0 }
    }

    /// A message leaves its sender.
    fn depart(&mut self, message: u32, now: u64) {
        let (from, to) = self.ends(message);
        if self.nodes[from] == self.nodes[to] {
            let whole = if self.caches[from] == self.caches[to] { NEAR_NS } else { ACROSS_NS };
            let at = now + (whole - 2 * NEAR_NS * NEAR_POST_PERCENT / 100) * 1000;
            return self.enter(at, Event::Arrive(message));
        }
        let len = self.job.messages[message as usize].len;
        self.far_bytes += len;
        let hosts = (self.nodes[from] as usize, self.nodes[to] as usize);
        let measured = self.measured.clone();
        for (rail, len) in measured.parts(len) {
            let way = self.links.way(rail, hosts, message, now);
            let part = Part { message, way, place: 0, len, tail: now };
            let number = match self.free_parts.pop() {
                Some(free) => {
                    self.parts[free as usize] = part;
                    free
                }
                None => {
                    self.parts.push(part);
                    self.parts.len() as u32 - 1
                }
            };
            self.progress[message as usize].parts += 1;
            self.enter(now, Event::Hop(number));
        }
    }

    fn hop(&mut self, number: u32, now: u64) {
        let Part { message, way, place, len, tail } = self.parts[number as usize];
        if let Some(link) = way.link(place) {
            let (head, last) = self.links.carry(link, now, len);
            let part = &mut self.parts[number as usize];
            (part.place, part.tail) = (place + 1, tail.max(last));
            return self.enter(head, Event::Hop(number));
        }
        self.free_parts.push(number);
        let progress = &mut self.progress[message as usize];
        progress.parts -= 1;
        if progress.parts == 0 {
            let at = tail.max(now) + self.rest_ps(message) + way.switches_ps;
            self.enter(at, Event::Arrive(message));
        }
    }

    /// Time of a message between two idle hosts without that of cores, wires and control messages.
    fn rest_ps(&self, message: u32) -> u64 {
        let len = self.job.messages[message as usize].len;
        let whole = (self.measured.far.ns(len) * 1e3) as u64;
        let wires = self
            .measured
            .parts(len)
            .map(|(rail, part)| ps(part, self.fabric.rails[rail].card.bandwidth / 1_000_000));
        let asked = if self.asks(message) { 2 * self.notice_ps } else { 0 };
        whole.saturating_sub(self.send_ps(message) + self.recv_ps(message) + asked + wires.max().unwrap_or(0))
    }

    fn arrived(&mut self, message: u32, now: u64) {
        let step = self.job.messages[message as usize].recv;
        let progress = &mut self.progress[message as usize];
        progress.has_arrived = true;
        let is_posted = progress.is_posted;
        if self.asks(message) {
            let send = self.job.messages[message as usize].send;
            let (rank, place) = self.job.place(send);
            self.watch.leave(message, rank, place);
            self.ended(send, now);
        }
        if is_posted {
            self.queue(Errand::Take(step), now);
        }
    }

    /// A step has ended: what waited for it goes on.
    fn ended(&mut self, step: u32, at: u64) {
        self.left -= 1;
        self.end = self.end.max(at);
        let job = self.job;
        for follower in job.followers(step) {
            self.waits[follower as usize] -= 1;
            if self.waits[follower as usize] == 0 {
                self.release(follower, at);
            }
        }
    }
}
