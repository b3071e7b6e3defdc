//! Parallel submission: eager messages whose parts several cores post (P3 section III-B).

use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{
    Caller, Config, Context, Hints, Instant, Limits, Method, Pair, PeerId, Preempt, Profile, Protocol,
    Provenance, RailId, Sample, Sent, Submitted, Tag,
};
use std::sync::Arc;

/// A rail whose packets take 3 us plus a nanosecond per byte, on a host with this hand-off time between
/// cores: two such rails pay from 2 * 3,000 B on if it is 3 us.
fn profile(hand_off_ns: Option<u64>) -> Arc<Profile> {
    let sample = |len, ns| Sample { len, ns, low_ns: ns, high_ns: ns, count: 10 };
    let mut samples = Vec::new();
    for len in (0..17).map(|k| 1u64 << k) {
        samples.push((Method::Copy, sample(len, 3_000 + len)));
        samples.push((Method::Rendezvous, sample(len, 9_000 + len)));
    }
    samples.extend(hand_off_ns.map(|ns| (Method::HandOff(Pair::Unknown), sample(0, ns))));
    Arc::new(Profile::new(Provenance::default(), samples).unwrap())
}

/// Two hosts with open links; `cores` cores are ready at host 0.
fn net(rails: usize, strategy: &str, cores: usize, hand_off_ns: Option<u64>) -> Net {
    let config = Config { strategy: strategy.into(), eager_max: Some(60_000), ..Config::default() };
    let rail = Limits { packet: 64 << 10, bandwidth: 1_000_000_000, ..limits() };
    let mut net = Net::new(2, &vec![rail; rails], &config, 1);
    for rail in 0..rails {
        net.hosts[0].engine.setup().set_profile(RailId(rail as u8), None, profile(hand_off_ns));
    }
    (0..cores).for_each(|_| net.hosts[0].engine.inspect().cores().enter());
    net.send(0, 1, 9, 0, &[]);
    net.settle();
    net.carried();
    net
}

/// Sends a message; returns which rails carried how many bytes of it in parts.
fn parts(net: &mut Net, len: usize) -> Vec<(usize, u64)> {
    // Earlier messages have been carried by then.
    net.now += 1_000_000;
    let recv = net.recv(1, from(0), 0, exact(1), len);
    net.send(0, 1, 0, 1, &pattern(len, 7));
    net.settle();
    assert!(net.got(1, recv, &pattern(len, 7)));
    let said = net.said(0).into_iter().filter(|(_, text)| text.contains("part of"));
    let bytes = |text: &str| {
        let (_, rest) = text.split_once("packet #")?;
        let len = rest.split_once(" of ")?.1.split_once(' ')?.0;
        len.parse().ok()
    };
    said.map(|(rail, text)| (rail, bytes(&text).unwrap_or_else(|| panic!("{text}")))).collect()
}

#[test]
fn a_message_is_split_from_the_length_on_at_which_equation_one_says_that_it_pays() {
    let mut net = net(2, "auto", 1, Some(3_000));
    assert_eq!(parts(&mut net, 5_900), []);
    let shared = parts(&mut net, 6_200);
    assert!(shared.len() == 2 && shared[0].0 != shared[1].0, "{shared:?}");
    assert!(shared[0].1.abs_diff(shared[1].1) < 100, "equal rails have equal parts: {shared:?}");
    assert_eq!(parts(&mut net, 40_000).len(), 2);
}

#[test]
fn a_message_is_split_over_as_many_rails_as_there_are_cores() {
    let count = |rails, cores| parts(&mut net(rails, "auto", cores, Some(3_000)), 50_000).len();
    assert_eq!([count(2, 0), count(2, 1), count(2, 3)], [0, 2, 2]);
    assert_eq!([count(3, 1), count(3, 2), count(1, 1)], [2, 3, 0]);
}

#[test]
fn a_message_is_not_split_if_hand_offs_are_slow_or_unknown_or_the_strategy_does_not() {
    assert_eq!(parts(&mut net(2, "auto", 1, Some(40_000)), 50_000), []);
    assert_eq!(parts(&mut net(2, "auto", 1, None), 50_000), []);
    assert_eq!(parts(&mut net(2, "aggregate", 1, Some(3_000)), 50_000), []);
    assert_eq!(parts(&mut net(2, "split", 1, Some(3_000)), 50_000).len(), 2);
}

#[test]
fn a_rail_that_is_busy_takes_no_part() {
    let mut net = net(2, "auto", 1, Some(3_000));
    let recv = [1, 2].map(|tag| net.recv(1, from(0), 0, exact(tag), 50_000));
    let rail = Hints { rail: Some(RailId(0)), ..Hints::default() };
    net.send_with(0, 1, 0, 1, &pattern(50_000, 1), rail);
    net.turn(0, false);
    net.send(0, 1, 0, 2, &pattern(50_000, 2));
    net.settle();
    for (recv, seed) in recv.into_iter().zip(1..) {
        assert!(net.got(1, recv, &pattern(50_000, seed)));
    }
    assert!(net.said(0).iter().all(|(_, text)| !text.contains("part of")));
}

#[test]
fn the_plan_and_the_receipt_report_the_split() {
    let mut net = net(2, "auto", 1, Some(3_000));
    let now = Instant::from_ns(net.now + 1_000_000);
    let plan = |net: &Net, len, caller| {
        let to = (PeerId(1), Context(0), Tag(1));
        net.hosts[0].engine.inspect().plan(to, len, Hints::default(), caller, now).unwrap().protocol
    };
    for caller in [Caller::Waits, Caller::GoesOn] {
        assert_eq!(plan(&net, 20_000, caller), Protocol::EagerParallel);
        assert_eq!(plan(&net, 8, caller), Protocol::Eager);
    }
    net.hosts[0].engine.setup().record_receipts(Some(0));
    parts(&mut net, 20_000);
    let receipt = net.hosts[0].engine.next_receipt().expect("it was sent");
    assert_eq!(receipt.protocol, Protocol::EagerParallel);
    assert_eq!(receipt.predicted_ns, 3_000 + 3_000 + 10_000);
    assert_eq!(receipt.carried.len(), 2, "{receipt:?}");
    assert_eq!(receipt.carried.iter().map(|(_, len)| len).sum::<u64>(), 20_000, "{receipt:?}");
    net.hosts[0].engine.inspect().cores().leave();
    assert_eq!(plan(&net, 20_000, Caller::Waits), Protocol::Eager, "nobody stands by");
}

/// Equation (1) with the hand-off time of the core that would help.
#[test]
fn a_core_that_is_too_far_away_does_not_help() {
    let sample = |ns| Sample { len: 0, ns, low_ns: ns, high_ns: ns, count: 10 };
    let pairs = [(Pair::Cache, 500), (Pair::Across, 40_000)];
    let samples: Vec<_> = Method::ALL
        .iter()
        .flat_map(|&m| profile(None).samples(m).iter().map(move |s| (m, *s)).collect::<Vec<_>>())
        .collect();
    let samples = samples.into_iter().chain(pairs.map(|(pair, ns)| (Method::HandOff(pair), sample(ns))));
    let profile = Arc::new(Profile::new(Provenance::default(), samples).unwrap());
    let mut net = net(2, "auto", 1, None);
    (0..2).for_each(|rail| net.hosts[0].engine.setup().set_profile(RailId(rail), None, profile.clone()));
    let now = Instant::from_ns(net.now + 1_000_000);
    for (pair, len, expected) in [
        (Pair::Cache, 20_000, Protocol::EagerParallel),
        (Pair::Cache, 900, Protocol::Eager),
        (Pair::Across, 20_000, Protocol::Eager),
        (Pair::Unknown, 20_000, Protocol::Eager),
    ] {
        net.hosts[0].engine.setup().stand_beside([pair].into_iter());
        let to = (PeerId(1), Context(0), Tag(1));
        let plan =
            net.hosts[0].engine.inspect().plan(to, len, Hints::default(), Caller::GoesOn, now).unwrap();
        assert_eq!(plan.protocol, expected, "{pair:?}, {len} B");
    }
}

#[test]
fn only_long_messages_request_cores() {
    let mut net = net(2, "auto", 0, Some(3_000));
    let asked = |net: &Net| net.hosts[0].engine.inspect().cores().asked();
    let before = asked(&net);
    parts(&mut net, 8);
    let leaves = |net: &mut Net, len| {
        net.wires().at_once = [Sent::Done].into();
        net.now += 1_000_000;
        let sent = net.send_at_once(0, (1, 5, 3), &pattern(len, 1), Hints::default(), Caller::Waits);
        assert!(matches!(sent, Ok(Submitted::Ended(_))), "{len} B: {sent:?}");
        net.settle();
    };
    leaves(&mut net, 5_000);
    assert_eq!(asked(&net), before);
    parts(&mut net, 20_000);
    let queued = asked(&net);
    assert_ne!(queued, before, "by one that waits in the window");
    leaves(&mut net, 20_000);
    assert_ne!(asked(&net), queued, "and by one that leaves in its call");
}

#[test]
fn parts_arrive_whatever_the_rails_lose() {
    for seed in 0..16 {
        let config = Config { strategy: "auto".into(), eager_max: Some(60_000), ..Config::default() };
        let rail = |lossy| Limits { packet: 64 << 10, bandwidth: 1_000_000_000, lossy, ..limits() };
        let mut net = Net::new(2, &[rail(false), rail(seed % 2 == 0), rail(false)], &config, seed);
        net.set_faults(Faults { delay_ns: 200_000, drop: 20, repeat: 20 });
        for host in 0..2 {
            (0..3).for_each(|rail| {
                net.hosts[host].engine.setup().set_profile(RailId(rail), None, profile(Some(500)))
            });
            (0..2).for_each(|_| net.hosts[host].engine.inspect().cores().enter());
        }
        let lens = [20_000, 10, 40_000, 8_000, 30_000];
        let (mut received, mut sent) = (Vec::new(), Vec::new());
        for (tag, &len) in lens.iter().enumerate() {
            if tag % 2 == 0 {
                received.push((net.recv(1, from(0), 0, exact(tag as u64), len), tag));
            }
            sent.push(net.send(0, 1, 0, tag as u64, &pattern(len, tag as u64)));
            net.turn(0, tag % 3 == 0);
            if seed % 4 == 3 && tag == 2 {
                net.kill(2, 0, 1);
            }
        }
        net.settle();
        for tag in [1, 3] {
            received.push((net.recv(1, from(0), 0, exact(tag as u64), lens[tag]), tag));
        }
        net.settle();
        for (recv, tag) in received {
            assert!(net.got(1, recv, &pattern(lens[tag], tag as u64)), "seed {seed}: message {tag}");
        }
        assert!(sent.iter().all(|&sent| net.result(0, sent).is_some()), "seed {seed}");
    }
}

/// Two rails whose hosts copy 10 B in a nanosecond, and whose other core computes: preempting it takes 4 us.
fn beside_computing(preempt: Preempt) -> Net {
    let config = Config { strategy: "auto".into(), eager_max: Some(60_000), preempt, ..Config::default() };
    let rail = Limits { packet: 64 << 10, bandwidth: 1_000_000_000, ..limits() };
    let mut net = Net::new(2, &[rail; 2], &config, 1);
    let sample = |len, ns| Sample { len, ns, low_ns: ns, high_ns: ns, count: 10 };
    let usual = profile(Some(500));
    let of = |&method: &Method| usual.samples(method).iter().map(move |&found| (method, found));
    let own = [
        (Method::HandOff(Pair::Busy), sample(0, 4_000)),
        (Method::Memcpy, sample(1, 1)),
        (Method::Memcpy, sample(1 << 16, 6_554)),
    ];
    let all = Method::ALL.iter().flat_map(of).chain(own);
    let profile = Arc::new(Profile::new(Provenance::default(), all).unwrap());
    (0..2).for_each(|rail| net.hosts[0].engine.setup().set_profile(RailId(rail), None, profile.clone()));
    net.hosts[0].engine.inspect().cores().set_on_call(1);
    net.send(0, 1, 9, 0, &[]);
    net.settle();
    net.carried();
    net
}

/// Half of 20,000 B gains 10 us less 4; it costs the other thread 4 us, 1 us for the copy, and what a packet
/// costs.
#[test]
fn a_core_that_computes_posts_a_part_if_the_message_gains_more_than_its_thread_loses() {
    let count = |preempt, len| parts(&mut beside_computing(preempt), len).len();
    assert_eq!([count(Preempt::Off, 50_000), count(Preempt::Always, 50_000)], [0, 2]);
    assert_eq!([count(Preempt::Auto, 50_000), count(Preempt::Auto, 12_000)], [2, 0]);
    assert_eq!([count(Preempt::Always, 12_000), count(Preempt::Always, 7_000)], [2, 0], "from 8,000 B on");
}

#[test]
fn messages_that_are_worth_a_preemption_ask_for_it_and_their_gain_is_booked() {
    let mut net = beside_computing(Preempt::Auto);
    let cores = net.hosts[0].engine.inspect().cores().clone();
    cores.take_gained_ns();
    let asked = cores.asked_to_preempt();
    parts(&mut net, 12_000);
    assert_eq!((cores.asked_to_preempt(), cores.take_gained_ns()), (asked, 0));
    parts(&mut net, 50_000);
    assert_ne!(cores.asked_to_preempt(), asked);
    let gained_ns = cores.take_gained_ns();
    assert!((20_000..=21_000).contains(&gained_ns), "half of the bytes less the hand-off: {gained_ns}");
    cores.set_on_call(0);
    assert_eq!(parts(&mut net, 50_000), [], "no core is on call any more");
}
