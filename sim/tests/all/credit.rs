//! A receiver that is slow: what it has to keep for its sender stays below what it has granted, however often
//! it has made room.

use crate::parts::{message, scenario};
use nmad_engine::Config;
use nmad_sim::workload::{Op, Plan, Step};
use nmad_sim::world::World;

const MESSAGES: usize = 2_000;
const LEN: usize = 1_000;
/// Times that the sender sends its part of the messages and then computes.
const ROUNDS: usize = 16;
const COMPUTE_NS: u64 = 20_000_000;
/// Messages that the receiver takes in the same time.
const TAKEN: usize = 60;

#[test]
fn a_slow_receiver_keeps_no_more_than_it_has_granted() {
    let mut plan = Plan { scripts: vec![Vec::new(); 2], ..Plan::default() };
    let messages: Vec<(Op, Op)> = (0..MESSAGES).map(|_| message(&mut plan, 0, 1, LEN)).collect();
    let (sends, receives): (Vec<Op>, Vec<Op>) = messages.into_iter().unzip();
    for part in sends.chunks(MESSAGES / ROUNDS) {
        plan.scripts[0].extend(part.iter().map(|&send| Step::Post(send)));
        plan.scripts[0].push(Step::Compute(COMPUTE_NS));
    }
    plan.scripts[0].push(Step::Wait(sends));
    // The rest, when the sender has sent all, in one row.
    let (slow, rest) = receives.split_at(TAKEN * ROUNDS);
    for part in slow.chunks(TAKEN).chain([rest]) {
        plan.scripts[1].push(Step::Compute(COMPUTE_NS));
        plan.scripts[1].extend(part.iter().map(|&receive| Step::Post(receive)));
        plan.scripts[1].push(Step::Wait(part.to_vec()));
    }
    let mut scenario = scenario();
    scenario.configs[1].credit = Config::CREDIT_MIN;
    let mut world = World::new(scenario, plan, false);
    world.run().unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(world.messages(), (MESSAGES as u64, (MESSAGES * LEN) as u64));
}
