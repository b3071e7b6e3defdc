//! The same schedules in the packet-level simulator, with one engine that ships for each rank: what tells how
//! far the model of this crate is off. For few ranks, each on a host of its own behind one switch.

use super::case::Case;
use super::fabric::FLAT;
use super::world::{Placement, Stage};
use nmad_engine::packet::PeerId;
use nmad_engine::{Config, Hints};
use nmad_mpi::algorithm::choice::Family;
use nmad_mpi::algorithm::cost::Cost;
use nmad_mpi::algorithm::schedule::{Action, Schedule};
use nmad_sim::faults::Faults;
use nmad_sim::golden::machines::TODAY;
use nmad_sim::golden::sampling::{Bench, LARGE_MAX};
use nmad_sim::model::Model;
use nmad_sim::oracle::ledger::{Entry, Ledger, What as Booked};
use nmad_sim::scenario::Scenario;
use nmad_sim::workload::{Ask, Op, Plan, Step, What};
use nmad_sim::world::World;
use std::sync::Arc;

/// Runs of the collective: links open, and receivers invite, in the first ones.
const RUNS: usize = 3;

/// A collective of ranks on hosts of their own.
pub fn case(family: Family, ranks: usize, len: u64) -> Case {
    let stage = Stage { fabric: &FLAT, ranks, cores: 1, placement: Placement::Block };
    Case { stage, family, len }
}

/// Nanoseconds that a case takes by an algorithm in the packet-level simulator.
///
/// # Panics
/// The run does not end: then the engine is broken.
pub fn run_ns(case: &Case, name: &str) -> u64 {
    let mut schedules = Vec::new();
    case.schedules(name, |schedule| {
        schedules.push(schedule);
        true
    });
    let mut author = Author { plan: Plan::default() };
    author.plan.scripts = vec![Vec::new(); schedules.len()];
    for run in 0..RUNS {
        author.meet(schedules.len(), (2 * run) as u32);
        for (host, schedule) in schedules.iter().enumerate() {
            author.script(host, (2 * run + 1) as u32, schedule);
        }
    }
    let hosts = schedules.len();
    let card = FLAT.rails[0].card;
    let profile = Bench { machine: TODAY, card, hand_off_ns: 0 }.profile(LARGE_MAX);
    let scenario = Scenario {
        seed: 0,
        fabrics: vec![(Arc::new(card.clone()) as Arc<dyn Model>, Faults::default())],
        machine: TODAY,
        cores: Vec::new(),
        threads: 1,
        holds_back: false,
        looks: true,
        hurries: true,
        profiles: vec![Some(profile)],
        rails: vec![vec![0]; hosts],
        configs: (0..hosts as u32).map(|me| Config { me: PeerId(me), ..Config::default() }).collect(),
        strikes: Vec::new(),
        outages: Vec::new(),
        takes_turns: false,
        canary: None,
        wires: Vec::new(),
    };
    let mut world = World::time_only(scenario, author.plan, false);
    world.run().unwrap_or_else(|objection| panic!("{name} of {case:?}: {objection}"));
    time_of(world.ledger(), 2 * RUNS as u32 - 1)
}

/// From the first request of a context on to the end of the last.
fn time_of(ledger: &Ledger, context: u32) -> u64 {
    let is_of_it = |entry: &&Entry| match entry.what {
        Booked::Send { context: own, .. } | Booked::Recv { context: own, .. } => own == context,
    };
    let own = || ledger.entries.iter().filter(is_of_it);
    let begun = own().map(|entry| entry.submitted).min().unwrap_or(0);
    let ended = own().filter_map(|entry| entry.ended.as_ref()).map(|(at, _)| *at).max().unwrap_or(0);
    ended - begun
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

    /// The steps of a schedule in their order; each waits for the messages that it depends on.
    fn script(&mut self, host: usize, context: u32, schedule: &Schedule) {
        let cost = Cost::default();
        let element = schedule.operator().map_or(1, |operator| operator.len(1));
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); schedule.len()];
        for (step, (_, _, followers)) in schedule.steps().enumerate() {
            followers.iter().for_each(|&follower| before[follower as usize].push(step));
        }
        let mut open: Vec<Option<Op>> = vec![None; schedule.len()];
        for (step, (action, ..)) in schedule.steps().enumerate() {
            let awaited: Vec<Op> = before[step].iter().filter_map(|&earlier| open[earlier].take()).collect();
            if !awaited.is_empty() {
                self.plan.scripts[host].push(Step::Wait(awaited));
            }
            let computed = match action {
                Action::Send { to, slot, data } => {
                    let (to, tag) = (*to as usize, u64::from(*slot));
                    let what = What::Send { to, context, tag, hints: Hints::default() };
                    open[step] = Some(self.ask(host, what, data.len() as usize));
                    continue;
                }
                Action::Recv { from, slot, into } => {
                    let what =
                        What::Recv { from: Some(*from as usize), context, tag: Some(u64::from(*slot)) };
                    open[step] = Some(self.ask(host, what, into.len() as usize));
                    continue;
                }
                Action::Copy { from, .. } => cost.copy_alone(from.len()),
                Action::Reduce { count, .. } => cost.reduce_alone(*count as u64 * element),
                Action::Write { .. } | Action::Compare { .. } | Action::Join => 0.0,
            };
            if computed >= 1.0 {
                self.plan.scripts[host].push(Step::Compute(computed as u64));
            }
        }
        self.plan.scripts[host].push(Step::Wait(open.into_iter().flatten().collect()));
    }
}
