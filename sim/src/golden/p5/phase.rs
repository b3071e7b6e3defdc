//! Iterations of communication, calculation and synchronization on many hosts in virtual time (P5 figures 2
//! to 5), with the engine that ships.

use super::{E5_2670, Network};
use crate::death::Deaths;
use crate::faults::Faults;
use crate::golden::sampling::{Bench, LARGE_MAX};
use crate::model::Model;
use crate::oracle::ledger::{Entry, Ledger, What as Booked};
use crate::scenario::Scenario;
use crate::workload::{Ask, Op, Plan, Step, What};
use crate::world::World;
use nmad_engine::packet::PeerId;
use nmad_engine::{Config, Hints};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// How messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Policy {
    /// Eager up to this length, and no progress while hosts compute; none: as the library does by itself.
    pub eager_max: Option<usize>,
    /// Threads of a host that send, each with one blocking call after the other (figure 12).
    pub threads: usize,
    /// Longer messages are cut into pieces of this length (section 5.2).
    pub fragment: Option<usize>,
}

impl Policy {
    /// What the library does without a setting.
    pub const OWN: Policy = Policy { eager_max: None, threads: 1, fragment: None };

    /// The paper's library with an eager limit.
    pub const fn limit(eager_max: usize) -> Policy {
        Policy { eager_max: Some(eager_max), threads: 1, fragment: None }
    }

    /// With parallel sends.
    pub(super) const fn parallel(self, threads: usize) -> Policy {
        Policy { threads, ..self }
    }

    /// With pieces that pass the limit.
    pub(super) const fn split(self) -> Policy {
        Policy { fragment: self.eager_max, ..self }
    }
}

/// A message of each iteration: sender, receiver, bytes.
pub type Letter = (usize, usize, usize);

/// What the hosts do in each iteration: all receive, send, compute, wait, compute.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// How many hosts there are.
    pub hosts: usize,
    /// The messages of each iteration.
    pub letters: Vec<Letter>,
    /// Calculation of each host before it waits for its messages, in nanoseconds.
    pub before_ns: u64,
    /// The same after it has waited.
    pub after_ns: u64,
    /// What a host takes for each byte that it collects for its messages before it sends them, in
    /// picoseconds. A thread that sends collects its messages itself.
    pub pack_ps: u64,
}

impl Program {
    /// Its messages with 8 B each and without calculation, which opens links and tells a library nothing.
    fn opening(&self) -> Program {
        let letters = self.letters.iter().map(|&(from, to, _)| (from, to, 8)).collect();
        Program { letters, before_ns: 0, after_ns: 0, pack_ps: 0, ..*self }
    }

    /// Nanoseconds that a host takes to collect its messages with so many threads, each of which takes the
    /// next message when it is done with one (schedule(dynamic) in figure 12).
    fn packing_ns(&self, host: usize, threads: usize) -> u64 {
        let mut free = vec![0; threads];
        for letter in self.letters.iter().filter(|letter| letter.0 == host) {
            if let Some(first) = free.iter_mut().min() {
                *first += letter.2 as u64 * self.pack_ps / 1000;
            }
        }
        free.into_iter().max().unwrap_or(0)
    }

    /// All calculation of a host.
    pub(super) fn calculation_ns(&self) -> u64 {
        self.before_ns + self.after_ns
    }

    /// Percent of an iteration that is spent in communication and synchronization.
    pub(super) fn share(&self, iteration_ns: u64) -> f64 {
        100.0 * (1.0 - self.calculation_ns() as f64 / iteration_ns as f64)
    }
}

/// Iterations that are run, and those of them that are not measured. Where the limit is fixed, all are
/// alike once links are up. The library's own choice is measured from its first message on: what it loses
/// until it has learnt that receivers are late is in the mean, and so are its probes, one of 16 messages
/// and later one of 32 of each flow.
fn iterations(policy: Policy) -> (usize, usize) {
    if policy.eager_max.is_some() { (4, 2) } else { (1 + OWN_ITERATIONS, 1) }
}

/// Iterations of which a time of the library's own choice is the mean.
pub(super) const OWN_ITERATIONS: usize = 40;

/// A card, the memory for unexpected messages, and what is run.
type Key = (&'static str, u64, Policy, Program);

/// Runs that were made: figures share them.
static KNOWN: Mutex<BTreeMap<Key, u64>> = Mutex::new(BTreeMap::new());

/// The mean time of an iteration, in nanoseconds.
///
/// # Panics
/// The run does not end: then the engine is broken.
pub fn iteration_ns(network: &Network, policy: Policy, program: &Program) -> u64 {
    let key = (network.card.name, network.credit, policy, program.clone());
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
    known.unwrap_or_else(|| {
        let ns = run(network, policy, program);
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(key, ns);
        ns
    })
}

fn run(network: &Network, policy: Policy, program: &Program) -> u64 {
    let mut author = Author::new(program.hosts);
    let (all, learning) = iterations(policy);
    if policy.eager_max.is_none() {
        author.iteration(&program.opening(), policy);
    }
    (author.ends.len()..all).for_each(|_| author.iteration(program, policy));
    let Author { plan, ends } = author;
    let world = ran(network, policy, plan);
    let ended = |iteration: usize| end_of(world.ledger(), &ends[iteration]);
    (ended(all - 1) - ended(learning - 1)) / (all - learning) as u64
}

/// Hosts that have gone through their scripts.
///
/// # Panics
/// The run does not end: then the engine is broken.
pub(super) fn ran(network: &Network, policy: Policy, plan: Plan) -> World {
    let hosts = plan.scripts.len();
    let config = |me| Config { me: PeerId(me), ..network.config(policy) };
    let card = network.card;
    // The library has sampled its rails before; the paper's has a fixed limit.
    let bench = Bench { machine: E5_2670, card, hand_off_ns: 0 };
    let profile = policy.eager_max.is_none().then(|| bench.profile(LARGE_MAX));
    let scenario = Scenario {
        seed: 0,
        fabrics: vec![(Arc::new(card.clone()) as Arc<dyn Model>, Faults::default())],
        machine: E5_2670,
        cores: Vec::new(),
        threads: 1,
        holds_back: false,
        looks: true,
        hurries: policy.threads == 1,
        profiles: vec![profile],
        rails: vec![vec![0]; hosts],
        configs: (0..hosts as u32).map(config).collect(),
        strikes: Vec::new(),
        outages: Vec::new(),
        deaths: Deaths::None,
        dying: Vec::new(),
        no_faults: true,
        has_files: false,
        takes_turns: false,
        canary: None,
        wires: Vec::new(),
    };
    let mut world = World::time_only(scenario, plan, policy.eager_max.is_some());
    world.run().unwrap_or_else(|objection| panic!("{policy:?} over {}: {objection}", network.card.name));
    world
}

/// When each host posts its first receive in an iteration after a synchronization, since the first one
/// does, and what it spends in communication from then to the end of its wait; in nanoseconds. Links are
/// open.
///
/// # Panics
/// As [`iteration_ns`].
pub(super) fn phase_ns(network: &Network, policy: Policy, program: &Program) -> Vec<(u64, u64)> {
    let mut author = Author::new(program.hosts);
    author.iteration(&program.opening(), policy);
    let first = author.plan.asks.len();
    author.exchange(program, policy);
    let world = ran(network, policy, author.plan);
    let ledger = world.ledger();
    // When it posted the first thing, when its last send ended, and when its last receive did.
    let mut times = vec![(u64::MAX, 0, 0); program.hosts];
    for send in &ledger.entries {
        let Booked::Send { payload, .. } = send.what else { continue };
        let receive = send.partner.map(|partner| &ledger.entries[partner]);
        let Some(receive) = receive.filter(|_| payload as usize >= first) else { continue };
        let ended = |entry: &Entry| entry.ended.as_ref().map_or(0, |(at, _)| *at);
        let (from, to) = (send.host, receive.host);
        times[from].0 = times[from].0.min(send.submitted);
        times[from].1 = times[from].1.max(ended(send));
        times[to].0 = times[to].0.min(receive.submitted);
        times[to].2 = times[to].2.max(ended(receive));
    }
    let first = times.iter().map(|(began, ..)| *began).min().unwrap_or(0);
    let of = |(began, sent, received): (u64, u64, u64)| {
        let sent = sent.max(began);
        (began - first, sent - began + received.saturating_sub(sent + program.before_ns))
    };
    times.into_iter().map(of).collect()
}

/// When the last of these messages was received.
fn end_of(ledger: &Ledger, sends: &BTreeSet<Op>) -> u64 {
    let received = ledger.entries.iter().filter_map(|entry| {
        let Booked::Send { payload, .. } = entry.what else { return None };
        let partner = sends.contains(&(payload as Op)).then_some(entry.partner?)?;
        ledger.entries[partner].ended.as_ref().map(|(at, _)| *at)
    });
    received.max().unwrap_or(0)
}

/// Writes the scripts of hosts.
pub(super) struct Author {
    pub(super) plan: Plan,
    /// The sends whose arrival ends each iteration.
    ends: Vec<BTreeSet<Op>>,
}

impl Author {
    pub(super) fn new(hosts: usize) -> Author {
        let plan = Plan { scripts: vec![Vec::new(); hosts], ..Plan::default() };
        Author { plan, ends: Vec::new() }
    }

    fn ask(&mut self, host: usize, what: What, len: usize) -> Op {
        self.plan.asks.push(Ask { host, what, pieces: vec![len], part: None });
        self.plan.asks.len() - 1
    }

    fn step(&mut self, host: usize, step: Step) {
        self.plan.scripts[host].push(step);
    }

    /// Every host posts its receives, sends, computes, waits, computes (P5 figures 4 and 5), and all of
    /// them meet.
    fn iteration(&mut self, program: &Program, policy: Policy) {
        self.exchange(program, policy);
        self.synchronize(program.hosts);
    }

    pub(super) fn exchange(&mut self, program: &Program, policy: Policy) {
        // A receive that names no tag invites no sender: the paper's library knows no invitations (Rtr).
        let tag = policy.eager_max.is_none().then_some(0);
        for host in 0..program.hosts {
            let mut receives = Vec::new();
            for &(from, _, len) in program.letters.iter().filter(|letter| letter.1 == host) {
                for len in pieces(len, policy.fragment) {
                    let what = What::Recv { from: Some(from), context: 0, tag };
                    receives.push(self.ask(host, what, len));
                }
            }
            receives.iter().for_each(|&op| self.step(host, Step::Post(op)));
            self.compute(host, program.packing_ns(host, policy.threads));
            self.sends(host, program, policy);
            self.compute(host, program.before_ns);
            self.step(host, Step::Wait(receives));
            self.compute(host, program.after_ns);
        }
    }

    fn compute(&mut self, host: usize, ns: u64) {
        if ns > 0 {
            self.step(host, Step::Compute(ns));
        }
    }

    /// One blocking call after the other on each thread: a call begins when a thread is free.
    fn sends(&mut self, host: usize, program: &Program, policy: Policy) {
        let mut open = Vec::new();
        for &(_, to, len) in program.letters.iter().filter(|letter| letter.0 == host) {
            for len in pieces(len, policy.fragment) {
                self.step(host, Step::Drain(open.clone(), policy.threads - 1));
                let what = What::Send { to, context: 0, tag: 0, hints: Hints::default() };
                let op = self.ask(host, what, len);
                self.step(host, Step::Post(op));
                open.push(op);
            }
        }
        self.step(host, Step::Wait(open));
    }

    /// A dissemination barrier stands for MPI_Allreduce.
    pub(super) fn synchronize(&mut self, hosts: usize) {
        let mut last = BTreeSet::new();
        for round in 0..hosts.next_power_of_two().ilog2() {
            last.clear();
            for host in 0..hosts {
                let (to, from) = ((host + (1 << round)) % hosts, (host + hosts - (1 << round)) % hosts);
                let send = What::Send { to, context: 1, tag: u64::from(round), hints: Hints::default() };
                let recv = What::Recv { from: Some(from), context: 1, tag: Some(u64::from(round)) };
                let (recv, send) = (self.ask(host, recv, 8), self.ask(host, send, 8));
                [recv, send].into_iter().for_each(|op| self.step(host, Step::Post(op)));
                self.step(host, Step::Wait(vec![recv, send]));
                last.insert(send);
            }
        }
        self.ends.push(last);
    }
}

/// A message, or its pieces.
pub fn pieces(len: usize, fragment: Option<usize>) -> Vec<usize> {
    let longest = fragment.unwrap_or(len).max(1);
    (0..len.div_ceil(longest)).map(|index| longest.min(len - index * longest)).collect()
}
