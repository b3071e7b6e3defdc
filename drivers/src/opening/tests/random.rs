//! Random schedules: after a period of faults, each pair has exactly one link, and both sides have the same
//! one.

use super::world::{Dice, FaultRates, LENGTHS, World};
use crate::opening::Medium;
use nmad_engine::packet::PeerId;

const SEEDS: u64 = 400;
/// Duration of the faults, and time that a pair may take afterwards: one time limit of the machine for
/// attempts that began before, and another one.
const FAULTS_MS: u64 = 4_000;
const CALM_MS: u64 = 15_000;

fn random_rates(dice: &mut Dice) -> FaultRates {
    FaultRates {
        loss: dice.below(60),
        repeat: dice.below(30),
        refused: dice.below(30),
        cut: dice.below(8),
        replay: dice.below(20),
        given_up: dice.below(3),
        delay_ms: dice.below(120),
        width: [600, 1_400, 9_000][dice.below(3) as usize],
    }
}

/// Both sides or one of them, and possibly the other one later, request a link, while a process without the
/// secret does so, too.
fn run(seed: u64, medium: Medium) {
    let mut world = World::new(seed, 2, medium);
    world.rates = random_rates(&mut Dice(seed));
    let wanting = world.dice.below(3) as usize;
    let later_ms = world.dice.below(FAULTS_MS);
    world.sides[2].wants = vec![PeerId(1)];
    while world.now_ms < FAULTS_MS {
        if wanting != 1 {
            world.sides[0].wants = vec![PeerId(1)];
        }
        if wanting != 0 && world.now_ms > later_ms {
            world.sides[1].wants = vec![PeerId(0)];
        }
        world.pass();
    }
    world.rates = FaultRates { width: world.rates.width, delay_ms: 2, ..FaultRates::default() };
    world.sides[2].wants.clear();
    world.sides[2].machine.forget(PeerId(1));
    let mut agreed_ms = 0;
    while world.now_ms < FAULTS_MS + CALM_MS && agreed_ms < 1_000 {
        let before_ms = world.now_ms;
        world.pass();
        let (here, there) = (world.link(0, 1), world.link(1, 0));
        let agree = here.is_some() && here == there && world.sides.iter().all(|side| side.machine.is_idle());
        agreed_ms = if agree { agreed_ms + world.now_ms - before_ms } else { 0 };
    }
    let failures: Vec<_> = world.sides.iter().map(|side| side.failures.clone()).collect();
    assert!(
        agreed_ms >= 1_000,
        "seed {seed}: {:?} and {:?} after {} ms; {:?}; {failures:?}",
        world.link(0, 1).map(|link| link.0[0]),
        world.link(1, 0).map(|link| link.0[0]),
        world.now_ms,
        world.sides[..2].iter().map(|side| &side.machine).collect::<Vec<_>>(),
    );
}

#[test]
fn over_connections_a_pair_has_one_link_in_the_end() {
    (0..SEEDS).for_each(|seed| run(seed, Medium::Connections));
}

#[test]
fn over_datagrams_a_pair_has_one_link_in_the_end() {
    (0..SEEDS).for_each(|seed| run(seed, Medium::Datagrams(LENGTHS)));
}

#[test]
fn many_ranks_that_connect_to_each_other_at_once_all_get_their_links() {
    for (seed, medium) in [(1, Medium::Connections), (2, Medium::Datagrams(LENGTHS))] {
        let count = 12;
        let mut world = World::new(seed, count, medium);
        world.rates = FaultRates { delay_ms: 5, loss: 10, width: 9_000, ..FaultRates::default() };
        for side in 0..count {
            world.sides[side].wants =
                (0..count).filter(|to| *to != side).map(|to| PeerId(to as u32)).collect();
        }
        let agree = |world: &World, a: usize, b: usize| {
            let here = world.link(a, b);
            here.is_some() && here == world.link(b, a)
        };
        let all = |world: &World| (0..count).all(|a| (0..count).all(|b| a == b || agree(world, a, b)));
        while !all(&world) {
            world.pass();
            assert!(world.now_ms < 10_000, "not all links open over {medium:?}");
        }
        assert!(world.sides.iter().all(|side| side.failures.is_empty()));
    }
}

/// Without faults: a link takes one round trip, and no message is repeated.
#[test]
fn without_trouble_a_link_opens_within_a_few_turns() {
    for medium in [Medium::Connections, Medium::Datagrams(LENGTHS)] {
        for seed in 0..50 {
            let mut world = World::new(seed, 2, medium);
            world.rates = FaultRates { delay_ms: 1, width: 9_000, ..FaultRates::default() };
            world.sides[0].wants = vec![PeerId(1)];
            world.sides[1].wants = vec![PeerId(0)];
            while world.link(0, 1).is_none() || world.link(0, 1) != world.link(1, 0) {
                world.pass();
                assert!(world.now_ms < 200, "seed {seed} over {medium:?}");
            }
        }
    }
}
