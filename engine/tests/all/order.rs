//! Messages of a flow match in the order of submission, whatever overtakes on the way.

use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Hints, Limits, Prefer, RailId, Source, StrategyId, TagMatch};
use proptest::collection::vec;
use proptest::prelude::*;

const LENS: [usize; 7] = [0, 1, 100, 4_000, 16_000, 40_000, 120_000];

/// A network of three rails that overtake each other.
fn unruly(strategy: &str, lossy: bool, seed: u64) -> Net {
    let rails = [limits(), Limits { lossy, ..limits() }, Limits { depth: 1, chunk: 10_000, ..limits() }];
    let mut net = Net::new(3, &rails, &Config { strategy: strategy.into(), ..Config::default() }, seed);
    net.set_faults(Faults { delay_ns: 100_000, drop: 20, repeat: 20 });
    net
}

fn hints() -> impl Strategy<Value = Hints> {
    let rail = prop::option::of((0..3u8).prop_map(RailId));
    let strategy = prop::option::weighted(0.3, (0..10usize).prop_map(|place| StrategyId::at(place).unwrap()));
    let flags = (any::<bool>(), prop::bool::weighted(0.3), prop::sample::select(&Prefer::ALL[..]));
    (rail, -2..3i8, strategy, flags).prop_map(|(rail, priority, strategy, flags)| {
        let (synchronous, depends, prefer) = flags;
        Hints { priority, rail, synchronous, depends, prefer, strategy, ..Hints::default() }
    })
}

/// Length, tag, and hints.
fn message() -> impl Strategy<Value = (usize, u64, Hints)> {
    (prop::sample::select(&LENS[..]), 0..3u64, hints())
}

fn strategy() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &["fifo", "aggregate", "greedy", "aggregate_fastest", "iso_split", "ratio_split"][..],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn receives_of_any_tag_get_messages_in_their_order(
        name in strategy(),
        list in vec(message(), 1..12),
        early in 0..12usize,
        lossy: bool,
        seed: u64,
    ) {
        let mut net = unruly(name, lossy, seed);
        let post = |net: &mut Net| net.recv(1, from(0), 0, TagMatch::Any, 120_000);
        let mut receives: Vec<_> = (0..early.min(list.len())).map(|_| post(&mut net)).collect();
        for (i, &(len, tag, hints)) in list.iter().enumerate() {
            net.send_with(0, 1, 0, tag, &pattern(len, i as u64), hints);
            net.turn(i % 3, i % 2 == 0);
            net.now += 700;
        }
        receives.extend((receives.len()..list.len()).map(|_| post(&mut net)));
        net.settle();
        for (i, (recv, &(len, tag, _))) in receives.into_iter().zip(&list).enumerate() {
            prop_assert!(net.got(1, recv, &pattern(len, i as u64)), "message {}", i);
            let envelope = net.result(1, recv.0).unwrap().unwrap();
            prop_assert_eq!((envelope.tag.0, envelope.seq as usize), (tag, i));
        }
    }

    #[test]
    fn receives_of_one_tag_get_its_messages_in_their_order(
        name in strategy(),
        list in vec(message(), 1..12),
        seed: u64,
    ) {
        let mut net = unruly(name, true, seed);
        for (i, &(len, tag, hints)) in list.iter().enumerate() {
            net.send_with(0, 1, 0, tag, &pattern(len, i as u64), hints);
        }
        // Another sender, whose messages must not match.
        net.send(2, 1, 0, 0, &[9; 50]);
        for tag in 0..3 {
            let of_tag = |(_, m): &(usize, &(usize, u64, Hints))| m.1 == tag;
            for (i, &(len, ..)) in list.iter().enumerate().filter(of_tag) {
                let recv = net.recv(1, from(0), 0, exact(tag), len);
                net.settle();
                prop_assert!(net.got(1, recv, &pattern(len, i as u64)), "message {}", i);
            }
        }
    }
}

#[test]
fn messages_of_different_peers_and_contexts_do_not_wait_for_each_other() {
    let mut net = unruly("greedy", false, 1);
    net.stall(0, 2, true);
    net.stall(1, 2, true);
    net.stall(2, 2, true);
    net.send(2, 1, 0, 1, &[2; 10]);
    let recv = net.recv(1, Source::Any, 0, exact(1), 10);
    net.send(0, 1, 0, 1, &[1; 10]);
    let other = net.recv(1, Source::Any, 5, exact(1), 10);
    net.send(0, 1, 5, 1, &[5; 10]);
    for turn in 0..1_000 {
        net.turn(turn % 3, true);
        net.now += 1_000;
    }
    assert!(net.got(1, recv, &[1; 10]) && net.got(1, other, &[5; 10]));
}

#[test]
fn an_unordered_message_may_overtake_and_loses_nothing() {
    for seed in 0..20 {
        let mut net = unruly("greedy", true, seed);
        let hints = Hints { unordered: true, ..Hints::default() };
        let mut expected: Vec<Vec<u8>> = (0..20).map(|i| pattern(100 + i, seed)).collect();
        for data in &expected {
            net.send_with(0, 1, 0, 1, data, hints);
        }
        let receives: Vec<_> = (0..20).map(|_| net.recv(1, from(0), 0, exact(1), 120)).collect();
        net.settle();
        for recv in receives {
            let got = expected.iter().position(|data| net.got(1, recv, data)).expect("one of the messages");
            expected.remove(got);
        }
    }
}
