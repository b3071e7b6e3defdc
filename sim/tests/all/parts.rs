//! A message whose parts become ready one after the other, as partitioned communication of MPI sends it: each
//! part is a message with a tag of its own, whose receive is posted. Beside it the whole message behind the
//! last part. Over rails of 4 and 1 Gbit/s.

use nmad_engine::packet::PeerId;
use nmad_engine::{Config, Hints};
use nmad_sim::Deaths;
use nmad_sim::faults::Faults;
use nmad_sim::golden::card::Card;
use nmad_sim::golden::machines::TODAY;
use nmad_sim::golden::networks::{TCP_1G, TCP_4G};
use nmad_sim::golden::sampling::Bench;
use nmad_sim::model::Model;
use nmad_sim::scenario::Scenario;
use nmad_sim::workload::{Ask, Op, Plan, Step, What};
use nmad_sim::world::World;
use std::sync::Arc;

const CARDS: [&Card; 2] = [&TCP_4G, &TCP_1G];
const PARTS: usize = 8;
/// Tag of the answer that ends a round.
const ANSWER: u64 = PARTS as u64;

/// Asks for a message of one host to the other: the send and the receive.
pub fn message(plan: &mut Plan, from: usize, tag: u64, len: usize) -> (Op, Op) {
    let (to, context, hints) = (1 - from, 0, Hints::default());
    let send = What::Send { to, context, tag, hints };
    let recv = What::Recv { from: Some(from), context, tag: Some(tag) };
    for (host, what) in [(from, send), (to, recv)] {
        plan.asks.push(Ask { host, what, pieces: vec![len], part: None });
    }
    (plan.asks.len() - 2, plan.asks.len() - 1)
}

/// Rounds in which the first host computes for `compute_ns` before each part of `len` bytes is ready, and
/// sends a message of each `every` parts.
fn plan(rounds: usize, len: usize, compute_ns: u64, every: usize) -> Plan {
    let mut plan = Plan { scripts: vec![Vec::new(); 2], ..Plan::default() };
    for _ in 0..rounds {
        let parts = PARTS / every;
        let messages: Vec<(Op, Op)> =
            (0..parts).map(|part| message(&mut plan, 0, part as u64, len * every)).collect();
        let (answer, answered) = message(&mut plan, 1, ANSWER, 0);
        let (sends, receives): (Vec<Op>, Vec<Op>) = messages.into_iter().unzip();
        let sender = &mut plan.scripts[0];
        for &send in &sends {
            sender.extend([Step::Compute(compute_ns * every as u64), Step::Post(send)]);
        }
        sender.extend([Step::Wait(sends), Step::Post(answered), Step::Wait(vec![answered])]);
        let receiver = &mut plan.scripts[1];
        receiver.extend(receives.iter().map(|&receive| Step::Post(receive)));
        receiver.extend([Step::Wait(receives), Step::Post(answer), Step::Wait(vec![answer])]);
    }
    plan
}

/// Two hosts with both rails.
pub fn scenario() -> Scenario {
    let config = |me| Config { me: PeerId(me), ..Config::default() };
    let profile =
        |card: &&'static Card| Some(Bench { machine: TODAY, card, hand_off_ns: 0 }.profile(4 << 20));
    let model = |card: &&'static Card| (Arc::new((*card).clone()) as Arc<dyn Model>, Faults::default());
    Scenario {
        seed: 0,
        fabrics: CARDS.iter().map(model).collect(),
        machine: TODAY,
        holds_back: false,
        looks: false,
        hurries: false,
        profiles: CARDS.iter().map(profile).collect(),
        rails: vec![vec![0, 1]; 2],
        configs: vec![config(0), config(1)],
        strikes: Vec::new(),
        outages: Vec::new(),
        deaths: Deaths::None,
        dying: Vec::new(),
        no_faults: true,
        has_files: false,
        takes_turns: false,
        canary: None,
        wires: Vec::new(),
        cores: Vec::new(),
        threads: 1,
    }
}

/// Nanoseconds of a round, once links are open and habits known.
fn round_ns(len: usize, compute_ns: u64, every: usize) -> u64 {
    let end = |rounds| {
        let mut world = World::new(scenario(), plan(rounds, len, compute_ns, every), false);
        world.run().unwrap_or_else(|objection| panic!("{every} parts of {len} B: {objection}"));
        world.now()
    };
    (end(14) - end(6)) / 8
}

#[test]
fn parts_over_two_rails_arrive_earlier_than_a_whole_message_behind_the_last_one() {
    for (len, compute_ns, at_most) in [
        // 1 MiB whose computing takes 1 ns for each byte: a good half of the time on the wires is hidden.
        (128 << 10, 131_000, 0.8),
        // It takes 200 of 1,900 us, so more than a tenth cannot be hidden.
        (128 << 10, 25_000, 1.0),
        // Parts that gather.
        (8 << 10, 25_000, 1.0),
        // The smallest ones cost a message each, which a fiftieth of the time makes up for.
        (1 << 10, 5_000, 1.02),
    ] {
        let (parts, whole) = (round_ns(len, compute_ns, 1), round_ns(len, compute_ns, PARTS));
        println!("{len} B after {compute_ns} ns: parts {parts} ns, whole {whole} ns");
        assert!(
            parts as f64 <= at_most * whole as f64,
            "{len} B after {compute_ns} ns: parts {parts} ns, whole {whole} ns"
        );
    }
}
