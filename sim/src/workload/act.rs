//! The author of plans: acts follow each other, each with a pattern of its own.

use super::exposures::Exposures;
use super::{Ask, Op, Plan, Step, What};
use crate::rng::Rng;
use crate::scenario::{LEN_MAX, STEADY_MAX, Scenario};
use nmad_engine::Hints;
use nmad_engine::packet::RailId;

/// Bytes that all messages of a run together may have, so that two hundred runs take seconds.
const BYTES_MAX: u64 = 16 << 20;
/// Contexts of ordinary flows; acts with wildcards take fresh ones beyond.
const FLOWS: u64 = 3;
/// Each thread has contexts of its own from this multiple of its number on.
const CONTEXTS: u32 = 1_000;
/// The context in which all threads send, each with tags of its own.
const SHARED: u32 = CONTEXTS - 1;
/// Longest messages of a run; one of them is drawn.
const LENS: [u64; 5] = [200, 4 << 10, 64 << 10, 512 << 10, LEN_MAX];
/// Tags of ordinary flows.
const TAGS: u64 = 3;

pub(super) struct Author {
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) hosts: usize,
    pub(super) may_sever: bool,
    /// Deaths are reported, and hosts then close contexts.
    pub(super) has_reports: bool,
    /// The run is short.
    is_short: bool,
    pub(super) seed: u64,
    /// The number of the thread, and how many there are.
    pub(super) thread: usize,
    threads: usize,
    /// None: no host exposes memory.
    pub(super) exposures: Option<Exposures>,
    is_steady: bool,
    rails: Vec<usize>,
    len_max: u64,
    bytes: u64,
    next_context: u32,
    next_tag: u64,
    messages: usize,
    /// What each host still has to wait for at the end of the act.
    open: Vec<Vec<Op>>,
}

/// A message of the act: sender, receiver, match and hints.
#[derive(Debug, Clone, Copy)]
pub(super) struct Letter {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) context: u32,
    pub(super) tag: u64,
    pub(super) len: u64,
    pub(super) hints: Hints,
}

impl Letter {
    /// Whether a receive that takes any tag takes messages of its thread only.
    pub(super) fn allows_any_tag(&self) -> bool {
        self.context != SHARED
    }
}

impl Author {
    /// The author of the steps of a thread, with what was written for those before it.
    pub(super) fn new(scenario: &Scenario, (thread, mut plan): (usize, Plan)) -> Author {
        let hosts = scenario.hosts();
        plan.scripts = vec![Vec::new(); hosts];
        let lens: &[u64] = if scenario.deaths.is_single() { &LENS[1..4] } else { &LENS };
        let mut rng = Rng::of(scenario.seed, if thread == 0 { 2 } else { 100 + thread as u64 });
        Author {
            plan,
            hosts,
            may_sever: scenario.may_sever(),
            has_reports: scenario.deaths.is_some(),
            is_short: scenario.deaths.is_single(),
            seed: scenario.seed,
            thread,
            threads: scenario.threads,
            exposures: if thread == 0 { Exposures::draw(scenario.seed, hosts) } else { None },
            is_steady: scenario.stall_ns().is_some(),
            rails: scenario.rails.iter().map(Vec::len).collect(),
            len_max: *rng.pick(lens),
            rng,
            bytes: if thread == 0 { 0 } else { BYTES_MAX / 4 * 3 },
            next_context: CONTEXTS * thread as u32 + FLOWS as u32,
            next_tag: (1 << 40) + ((thread as u64) << 44),
            messages: thread << 20,
            open: vec![Vec::new(); hosts],
        }
    }

    pub(super) fn write(mut self) -> Plan {
        if self.has_reports {
            self.plan.closed.insert(self.closing_flow());
        }
        if let Some(script) = &self.plan.files {
            if self.has_reports {
                self.plan.closed.extend((0..script.full.len()).map(super::contexts::meetings));
            }
            self.write_files(Author::some_messages);
            return self.plan;
        }
        if self.is_steady {
            return self.write_steady();
        }
        if self.may_sever {
            self.meet();
            self.end_act();
        }
        for _ in 0..if self.is_short { 1 } else { self.rng.range(2, 9) } {
            self.act();
            self.one_sided(if self.is_short { 5 } else { 40 });
            self.end_act();
        }
        self.plan
    }

    /// Messages beside accesses to files.
    fn some_messages(&mut self) {
        if self.is_steady {
            let (from, to) = self.two_hosts();
            let mut letter = self.letter(from, to);
            (letter.len, letter.hints) = (letter.len.min(STEADY_MAX / 16), Hints::default());
            let (send, recv) = (self.send(&letter), self.recv_of(&letter, Some(letter.tag)));
            self.post(recv);
            self.post(send);
        } else {
            self.act();
            self.one_sided(10);
        }
        self.end_act();
    }

    /// Traffic all the time, in which nobody waits for anything but messages: what stands still does so for
    /// the network's sake.
    fn write_steady(mut self) -> Plan {
        self.meet();
        self.end_act();
        let size = self.rng.len(1 << 18).max(8);
        for _ in 0..self.rng.range(50, 400) {
            let (from, to) = self.two_hosts();
            let window = self.rng.range(1, (STEADY_MAX / 4 / size).clamp(1, 16));
            for _ in 0..window {
                let mut letter = self.letter(from, to);
                letter.len = self.rng.below(size + 1);
                letter.hints = Hints::default();
                let (send, recv) = (self.send(&letter), self.recv_of(&letter, Some(letter.tag)));
                self.post(recv);
                self.post(send);
            }
            self.one_sided(6);
            self.end_act();
            // So that it lasts for as long as rails fail.
            let pause = self.rng.len(20_000_000);
            (0..self.hosts).for_each(|host| self.step(host, Step::Compute(pause)));
        }
        self.plan
    }

    fn act(&mut self) {
        match self.rng.below(11) {
            0 | 1 => self.mix(),
            2 => self.ping_pong(),
            3 => self.stream(),
            4 => self.shuffled(),
            5 => self.burst(),
            6 => self.probing(),
            7 => self.cancelling(),
            // A receive from any source never ends if a link fault separates two hosts. After a reported
            // death it ends, since its host closes the context.
            8 if !self.may_sever => self.many_to_one(),
            9 if !self.may_sever => self.named_from_anybody(),
            10 => self.packed(),
            _ => self.unordered(),
        }
    }

    /// Everybody waits for what is still open.
    fn end_act(&mut self) {
        for host in 0..self.hosts {
            let mut ops = std::mem::take(&mut self.open[host]);
            self.rng.shuffle(&mut ops);
            // In parts, so that some requests end long before they are waited for.
            let part = self.rng.range(1, ops.len().max(1) as u64) as usize;
            for some in ops.chunks(part) {
                self.plan.scripts[host].push(Step::Wait(some.to_vec()));
            }
        }
    }

    pub(super) fn step(&mut self, host: usize, step: Step) {
        self.plan.scripts[host].push(step);
    }

    /// A context that nobody has used.
    pub(super) fn fresh_context(&mut self) -> u32 {
        self.next_context += 1;
        self.next_context
    }

    /// A context that nobody has used, for receives from anybody. It is closed when a death is reported.
    pub(super) fn closing_context(&mut self) -> u32 {
        let context = self.fresh_context();
        self.plan.closed.insert(context);
        context
    }

    /// The ordinary flow of the thread that is closed when a death is reported.
    fn closing_flow(&self) -> u32 {
        self.first_context() + FLOWS as u32 - 1
    }

    /// The number of an incremental message.
    pub(super) fn fresh_message(&mut self) -> usize {
        self.messages += 1;
        self.messages
    }

    /// A tag that nobody has used.
    pub(super) fn fresh_tag(&mut self) -> u64 {
        self.next_tag += 1 + self.rng.below(3);
        self.next_tag ^ (self.rng.below(2) << 63)
    }

    pub(super) fn two_hosts(&mut self) -> (usize, usize) {
        let a = self.rng.index(self.hosts);
        (a, (a + 1 + self.rng.index(self.hosts - 1)) % self.hosts)
    }

    /// A message of drawn length and hints between two hosts, on an ordinary flow with one of few tags.
    pub(super) fn letter(&mut self, from: usize, to: usize) -> Letter {
        let mut context = self.first_context() + self.rng.below(FLOWS) as u32;
        let mut tag = self.rng.below(TAGS);
        if self.threads > 1 && self.rng.percent(30) {
            (context, tag) = (SHARED, TAGS * self.thread as u64 + tag);
        }
        let len = self.len();
        let hints = self.hints(from);
        Letter { from, to, context, tag, len, hints }
    }

    /// The first of the thread's own contexts.
    pub(super) fn first_context(&self) -> u32 {
        CONTEXTS * self.thread as u32
    }

    pub(super) fn len(&mut self) -> u64 {
        let left = BYTES_MAX.saturating_sub(self.bytes);
        let len = self.rng.len(self.len_max).min(left);
        self.bytes += len;
        len
    }

    fn hints(&mut self, from: usize) -> Hints {
        let mut hints = Hints::default();
        if self.rng.percent(10) {
            hints.priority = self.rng.range(0, 8) as i8 - 4;
        }
        if self.rng.percent(10) {
            hints.rail = Some(RailId(self.rng.index(self.rails[from]) as u8));
        }
        hints.synchronous = self.rng.percent(8);
        hints
    }

    /// The send of a letter.
    pub(super) fn send(&mut self, letter: &Letter) -> Op {
        let Letter { to, context, tag, hints, .. } = *letter;
        self.ask(letter.from, What::Send { to, context, tag, hints }, letter.len)
    }

    /// A receive with room for `room` bytes.
    pub(super) fn recv(
        &mut self,
        host: usize,
        from: Option<usize>,
        context: u32,
        tag: Option<u64>,
        room: u64,
    ) -> Op {
        self.ask(host, What::Recv { from, context, tag }, room)
    }

    /// The receive of a letter: usually with room enough, sometimes more, seldom less than it needs.
    pub(super) fn recv_of(&mut self, letter: &Letter, tag: Option<u64>) -> Op {
        let room = match self.rng.below(20) {
            0 => self.rng.below(letter.len + 1),
            1..=4 => letter.len + self.rng.below(5_000),
            _ => letter.len,
        };
        self.recv(letter.to, Some(letter.from), letter.context, tag, room)
    }

    fn ask(&mut self, host: usize, what: What, len: u64) -> Op {
        let pieces = match self.rng.below(10) {
            0 => self.pieces(len),
            1 => self.blocks(len),
            _ => vec![len as usize],
        };
        self.plan.asks.push(Ask { host, what, pieces, part: None });
        self.plan.asks.len() - 1
    }

    /// Pieces of random lengths.
    fn pieces(&mut self, len: u64) -> Vec<usize> {
        let mut pieces = Vec::new();
        let mut left = len;
        for _ in 0..self.rng.range(1, 12) {
            let piece = self.rng.below(left + 1);
            pieces.push(piece as usize);
            left -= piece;
        }
        pieces.push(left as usize);
        pieces
    }

    /// Blocks of a derived datatype: a few short ones and a longer one in turns.
    fn blocks(&mut self, len: u64) -> Vec<usize> {
        let count = self.rng.range(1, 4);
        let mut turn: Vec<u64> = (0..count).map(|_| 1 + self.rng.below(300)).collect();
        turn.push(1_000 + self.rng.len(50_000));
        let mut blocks = Vec::new();
        let mut left = len;
        for block in turn.into_iter().cycle().take(100) {
            let block = block.min(left);
            blocks.push(block as usize);
            left -= block;
        }
        blocks.push(left as usize);
        blocks
    }

    /// Posts a request; it is waited for at the end of the act.
    pub(super) fn post(&mut self, op: Op) {
        let host = self.plan.asks[op].host;
        self.step(host, Step::Post(op));
        self.open[host].push(op);
    }

    /// Waits for a request now instead of at the end of the act.
    pub(super) fn wait(&mut self, op: Op) {
        let host = self.plan.asks[op].host;
        self.open[host].retain(|&other| other != op);
        self.step(host, Step::Wait(vec![op]));
    }

    /// The host computes for a while, seldom for long.
    pub(super) fn compute(&mut self, host: usize) {
        let ns = self.rng.len(2_000_000);
        self.step(host, Step::Compute(ns));
    }
}
