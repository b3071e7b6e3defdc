//! Eager messages that are longer than a packet.

use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Caller, Config, Context, Hints, Instant, Limits, PeerId, Protocol, Tag};

/// Slightly more than eight packets.
const LEN: usize = 130_000;

fn config(eager_max: Option<usize>, strategy: &str) -> Config {
    Config { eager_max, strategy: strategy.into(), ..Config::default() }
}

/// Returns the frames with which host 0 sends one message, and the frames of the answers.
fn said(eager_max: Option<usize>, rails: &[Limits]) -> (String, String) {
    let mut net = Net::new(2, rails, &config(eager_max, "aggregate"), 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.carried();
    let recv = net.recv(1, from(0), 0, exact(1), LEN);
    net.send(0, 1, 0, 1, &pattern(LEN, 1));
    net.settle();
    assert!(net.got(1, recv, &pattern(LEN, 1)));
    let carried = net.carried();
    let words = |host: u32| {
        let of_host = carried.iter().filter(|carried| carried.from == host);
        let text = of_host.map(|carried| match carried.is_packet {
            true => nmad_wire::explain(&carried.bytes).to_string(),
            false => "chunk".into(),
        });
        text.collect::<Vec<_>>().join("; ")
    };
    (words(0), words(1))
}

#[test]
fn the_eager_limit_moves_what_is_on_the_wire() {
    let rails = [limits(), limits()];
    let (sent, answer) = said(Some(LEN - 1), &rails);
    assert!(sent.contains("chunk") && !sent.contains("part of") && answer.contains("cts"), "{sent}");
    let (sent, answer) = said(Some(LEN), &rails);
    assert!(!sent.contains("chunk") && sent.contains("in parts") && !answer.contains("cts"), "{sent}");
    assert_eq!(sent.matches("part of").count(), 9, "{sent}");
    assert!(sent.starts_with("packet #1 of") && sent.find("in parts") < sent.find("part of"), "{sent}");
    // Without a limit set by the user or measured, a message of this length uses rendezvous.
    let (sent, _) = said(None, &rails);
    assert!(sent.contains("chunk"), "{sent}");
}

#[test]
fn the_plan_names_the_protocol() {
    let plan = |eager_max, rail: Limits| {
        let mut net = Net::new(2, &[rail, rail], &config(eager_max, "aggregate"), 1);
        net.send(0, 1, 0, 0, &[]);
        net.settle();
        let to = (PeerId(1), Context(0), Tag(1));
        let engine = &net.hosts[0].engine;
        engine
            .inspect()
            .plan(to, LEN as u64, Hints::default(), Caller::GoesOn, Instant::default())
            .unwrap()
            .protocol
    };
    assert_eq!(plan(Some(LEN), limits()), Protocol::EagerParts);
    assert_eq!(plan(Some(LEN - 1), limits()), Protocol::Rendezvous);
    assert_eq!(plan(None, limits()), Protocol::Rendezvous);
}

#[test]
fn parts_arrive_in_any_order_with_and_without_a_receive() {
    for (lossy, seed) in (0..24).map(|seed| (seed % 2 == 0, seed)) {
        let rails = [limits(), Limits { lossy, ..limits() }, Limits { depth: 1, ..limits() }];
        let strategy = ["greedy", "auto", "aggregate"][seed as usize % 3];
        let mut net = Net::new(2, &rails, &config(Some(1 << 20), strategy), seed);
        net.set_faults(Faults { delay_ns: 200_000, drop: 20, repeat: 20 });
        let lens = [LEN, 10, 300_000, 16_000, 17_000, 40_000];
        let mut posted = Vec::new();
        for (tag, len) in lens.iter().enumerate().filter(|(tag, _)| tag % 2 == 0) {
            posted.push((tag, net.recv(1, from(0), 0, exact(tag as u64), *len)));
        }
        for (tag, len) in lens.iter().enumerate() {
            let hints = Hints { synchronous: tag % 3 == 0, unordered: tag == 4, ..Hints::default() };
            net.send_with(0, 1, 0, tag as u64, &pattern(*len, tag as u64), hints);
        }
        net.settle();
        for (tag, len) in lens.iter().enumerate().filter(|(tag, _)| tag % 2 == 1) {
            posted.push((tag, net.recv(1, from(0), 0, exact(tag as u64), *len)));
        }
        net.settle();
        for (tag, recv) in posted {
            assert!(net.got(1, recv, &pattern(lens[tag], tag as u64)), "seed {seed}, message {tag}");
        }
        assert_eq!([0, 1].map(|host| net.hosts[host].engine.inspect().pending()), [0, 0], "seed {seed}");
    }
}

#[test]
fn a_rail_that_dies_in_the_middle_loses_no_part() {
    for seed in 0..20 {
        let mut net = Net::new(2, &[limits(), limits()], &config(Some(1 << 20), "greedy"), seed);
        net.set_faults(Faults { delay_ns: 100_000, ..Faults::default() });
        net.send(0, 1, 0, 0, &[]);
        net.settle();
        let recv = net.recv(1, from(0), 0, exact(1), LEN);
        net.send(0, 1, 0, 1, &pattern(LEN, seed));
        (0..seed).for_each(|_| {
            net.now += 10_000;
            net.turn(0, true);
            net.turn(1, true);
        });
        net.kill((seed % 2) as usize, 0, 1);
        net.settle();
        assert!(net.got(1, recv, &pattern(LEN, seed)), "seed {seed}");
    }
}

#[test]
fn a_message_in_parts_that_is_too_long_is_truncated() {
    let mut net = Net::new(2, &[limits(), limits()], &config(Some(1 << 20), "aggregate"), 1);
    let recv = net.recv(1, from(0), 0, exact(1), 50_000);
    net.send(0, 1, 0, 1, &pattern(LEN, 1));
    net.settle();
    let outcome = net.hosts[1].ended[&recv.0];
    assert!(matches!(outcome, Err(nmad_engine::Error::Truncated { capacity: 50_000, .. })), "{outcome:?}");
    let next = net.recv(1, from(0), 0, exact(2), LEN);
    net.send(0, 1, 0, 2, &pattern(LEN, 2));
    net.settle();
    assert!(net.got(1, next, &pattern(LEN, 2)));
}

#[test]
fn without_credit_rendezvous_is_used() {
    let least = Config { credit: Config::CREDIT_MIN, ..config(Some(1 << 20), "aggregate") };
    let mut net = Net::new(2, &[limits(), limits()], &least, 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.carried();
    for tag in 1..=3 {
        net.send(0, 1, 0, tag, &pattern(LEN, tag));
    }
    net.settle();
    let said: String = net.said(0).into_iter().map(|(_, text)| text).collect();
    assert_eq!((said.matches("| rts").count(), said.matches("in parts").count()), (3, 2), "{said}");
    for tag in 1..=3 {
        let recv = net.recv(1, from(0), 0, exact(tag), LEN);
        net.settle();
        assert!(net.got(1, recv, &pattern(LEN, tag)));
    }
}
