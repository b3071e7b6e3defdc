//! Schedules in the packet-level simulator: hosts with one engine that ships each, in rounds.

use nmad_engine::packet::PeerId;
use nmad_engine::profile::measured::Profile;
use nmad_engine::{Config, Hints};
use nmad_mpi_base::algorithm::cost::Cost;
use nmad_mpi_base::algorithm::place::{Buffer, Place, Spot};
use nmad_mpi_base::algorithm::schedule::{Action, Builder, Schedule};
use nmad_sim::faults::Faults;
use nmad_sim::golden::card::Card;
use nmad_sim::golden::machines::TODAY;
use nmad_sim::golden::sampling::{Bench, LARGE_MAX};
use nmad_sim::model::Model;
use nmad_sim::oracle::ledger::{Entry, Ledger, What as Booked};
use nmad_sim::scenario::Scenario;
use nmad_sim::workload::{Ask, Op, Plan, Step, What};
use nmad_sim::world::World;
use std::collections::VecDeque;
use std::sync::Arc;

/// Rounds of a meeting and the collective: links open, and receivers invite, in the first ones.
const ROUNDS: usize = 3;

/// The profile of a rail, as the library samples it.
pub fn profile(card: &'static Card) -> Arc<Profile> {
    Bench { machine: TODAY, card, hand_off_ns: 0 }.profile(LARGE_MAX)
}

/// Hosts of a fan, and those of them that the root has messages with.
const FAN: usize = 17;
const FEW: usize = 4;

/// Nanoseconds that each further message adds when one host sends to many others, or receives from them.
pub fn further_ns(cards: &[&'static Card], len: u64, is_out: bool) -> f64 {
    let place = || Place::bytes(Spot::start(Buffer::Recv), len);
    let time = |others: usize| {
        let schedule = |host: usize| {
            let mut builder = Builder::default();
            let peers = if host == 0 { 1..others as u32 + 1 } else { 0..u32::from(host <= others) };
            for peer in peers {
                match is_out == (host == 0) {
                    true => builder.send(peer, 0, place(), &[]),
                    false => builder.recv(peer, 0, place(), &[]),
                };
            }
            builder.finish()
        };
        let schedules: Vec<Schedule> = (0..FAN).map(schedule).collect();
        let order = schedules.iter().map(|schedule| (0..schedule.len()).collect()).collect::<Vec<_>>();
        round_ns(cards, &schedules, &order)
    };
    (time(FAN - 1).saturating_sub(time(FEW))).max(1) as f64 / (FAN - 1 - FEW) as f64
}

/// The time of the last of several rounds of schedules and a meeting.
pub fn round_ns(cards: &[&'static Card], schedules: &[Schedule], order: &[Vec<usize>]) -> u64 {
    let hosts = schedules.len();
    let mut author = Author { plan: Plan::default() };
    author.plan.scripts = vec![Vec::new(); hosts];
    for round in 0..ROUNDS as u32 {
        author.meet(hosts, 2 * round);
        for (host, schedule) in schedules.iter().enumerate() {
            author.script((host, 2 * round + 1), schedule, &order[host]);
        }
    }
    author.meet(hosts, 2 * ROUNDS as u32);
    let fabric = |card: &&'static Card| (Arc::new((*card).clone()) as Arc<dyn Model>, Faults::default());
    let scenario = Scenario {
        seed: 0,
        fabrics: cards.iter().map(fabric).collect(),
        machine: TODAY,
        cores: Vec::new(),
        threads: 1,
        holds_back: false,
        looks: true,
        hurries: true,
        profiles: cards.iter().map(|card| Some(profile(card))).collect(),
        rails: vec![(0..cards.len()).collect(); hosts],
        configs: (0..hosts as u32).map(|me| Config { me: PeerId(me), ..Config::default() }).collect(),
        strikes: Vec::new(),
        outages: Vec::new(),
        deaths: nmad_sim::Deaths::None,
        dying: Vec::new(),
        no_faults: true,
        has_files: false,
        takes_turns: false,
        canary: None,
        wires: Vec::new(),
    };
    let mut world = World::time_only(scenario, author.plan, false);
    world.run().unwrap_or_else(|objection| panic!("{hosts} hosts: {objection}"));
    let met = |round: usize| end_of(world.ledger(), 2 * round as u32);
    met(ROUNDS) - met(ROUNDS - 1)
}

/// When the last request of a context ends.
fn end_of(ledger: &Ledger, context: u32) -> u64 {
    let is_of_it = |entry: &&Entry| match entry.what {
        Booked::Send { context: own, .. } | Booked::Recv { context: own, .. } => own == context,
    };
    let own = ledger.entries.iter().filter(is_of_it);
    own.filter_map(|entry| entry.ended.as_ref()).map(|(at, _)| *at).max().unwrap_or(0)
}

/// Writes the scripts of hosts.
struct Author {
    plan: Plan,
}

impl Author {
    fn ask(&mut self, host: usize, what: What, len: usize) -> Op {
        self.plan.asks.push(Ask { host, what, pieces: vec![len], part: None });
        let op = self.plan.asks.len() - 1;
        self.plan.scripts[host].push(Step::Post(op));
        op
    }

    /// A dissemination barrier, so that all begin at about the same time.
    fn meet(&mut self, hosts: usize, context: u32) {
        for round in 0..hosts.next_power_of_two().ilog2() {
            for host in 0..hosts {
                let (to, from) = ((host + (1 << round)) % hosts, (host + hosts - (1 << round)) % hosts);
                let tag = u64::from(round);
                let recv = self.ask(host, What::Recv { from: Some(from), context, tag: Some(tag) }, 8);
                let send = self.ask(host, What::Send { to, context, tag, hints: Hints::default() }, 8);
                self.plan.scripts[host].push(Step::Wait(vec![recv, send]));
            }
        }
    }

    /// The steps of a schedule as they become ready; the host waits for its messages in the given order.
    fn script(&mut self, (host, context): (usize, u32), schedule: &Schedule, order: &[usize]) {
        let steps: Vec<_> = schedule.steps().collect();
        let mut waits: Vec<u32> = steps.iter().map(|step| step.1).collect();
        let mut ready: VecDeque<usize> = (0..steps.len()).filter(|&step| waits[step] == 0).collect();
        let mut requests: Vec<Option<Op>> = vec![None; steps.len()];
        let mut awaited = order.iter();
        loop {
            let ended = match ready.pop_front() {
                Some(step) => {
                    requests[step] = self.step((host, context), steps[step].0, schedule);
                    if requests[step].is_some() {
                        continue;
                    }
                    step
                }
                None => {
                    let Some(&step) = awaited.next() else { break };
                    self.plan.scripts[host].push(Step::Wait(requests[step].into_iter().collect()));
                    step
                }
            };
            for &follower in steps[ended].2 {
                waits[follower as usize] -= 1;
                if waits[follower as usize] == 0 {
                    ready.push_back(follower as usize);
                }
            }
        }
    }

    /// Begins a step; returns the request of a message.
    fn step(&mut self, (host, context): (usize, u32), action: &Action, schedule: &Schedule) -> Option<Op> {
        let cost = Cost::default();
        let element = schedule.operator().map_or(1, |operator| operator.len(1));
        let computed = match action {
            Action::Send { to, slot, data } => {
                let (to, tag) = (*to as usize, u64::from(*slot));
                let what = What::Send { to, context, tag, hints: Hints::default() };
                return Some(self.ask(host, what, data.len() as usize));
            }
            Action::Recv { from, slot, into } => {
                let what = What::Recv { from: Some(*from as usize), context, tag: Some(u64::from(*slot)) };
                return Some(self.ask(host, what, into.len() as usize));
            }
            Action::Copy { from, .. } => cost.copy_alone(from.len()),
            Action::Reduce { count, .. } => cost.reduce_alone(*count as u64 * element),
            Action::Write { .. } | Action::Compare { .. } | Action::Join => 0.0,
        };
        if computed >= 1.0 {
            self.plan.scripts[host].push(Step::Compute(computed as u64));
        }
        None
    }
}
