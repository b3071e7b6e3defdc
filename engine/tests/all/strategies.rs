//! The rail of each message: each strategy follows its paper.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Limits, PeerId, Protocol, RailId};

const LARGE: usize = 300_000;

/// Two rails: the second has the lower latency and three times the bandwidth.
fn net(strategy: &str, eager_max: Option<usize>) -> Net {
    let rails = [
        Limits { latency_ns: 5_000, bandwidth: 1_000_000_000, ..limits() },
        Limits { latency_ns: 1_000, bandwidth: 3_000_000_000, ..limits() },
    ];
    let config = Config { strategy: strategy.into(), chunk: 10_000, eager_max, ..Config::default() };
    let mut net = Net::new(2, &rails, &config, 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.carried();
    net
}

/// Packets on each rail when eight small messages were waiting.
fn small(strategy: &str) -> [Vec<usize>; 2] {
    let mut net = net(strategy, None);
    (0..8).for_each(|_| {
        net.send(0, 1, 0, 1, &[1; 100]);
    });
    net.turn(0, true);
    net.settle();
    let said = net.said(0);
    [0, 1].map(|rail| {
        let mine = said.iter().filter(|(other, _)| *other == rail);
        mine.map(|(_, text)| text.matches("eager").count()).filter(|&count| count > 0).collect()
    })
}

/// Returns the bytes of a message on each rail, by rendezvous and as eager data in parts.
fn large(strategy: &str) -> [[u64; 2]; 2] {
    [(None, Protocol::Rendezvous), (Some(LARGE), Protocol::EagerParts)].map(|(eager_max, protocol)| {
        let mut net = net(strategy, eager_max);
        net.hosts[0].engine.setup().record_receipts(Some(0));
        // The receive is posted later, so that it sends no Rtr.
        net.send(0, 1, 0, 2, &pattern(LARGE, 1));
        net.settle();
        let recv = net.recv(1, from(0), 0, exact(2), LARGE);
        net.settle();
        assert!(net.got(1, recv, &pattern(LARGE, 1)));
        let receipt = net.hosts[0].engine.next_receipt().expect("it was sent");
        assert_eq!(receipt.protocol, protocol, "{strategy}");
        let on =
            |rail| receipt.carried.iter().filter(|share| share.0 == RailId(rail)).map(|share| share.1).sum();
        [on(0), on(1)]
    })
}

/// Returns whether each message is carried by one rail only.
fn are_whole(carried: [[u64; 2]; 2]) -> bool {
    carried.iter().all(|of| of.contains(&(LARGE as u64)) && of.contains(&0))
}

#[test]
fn fifo_sends_each_message_alone_on_the_first_rail() {
    assert_eq!(small("fifo"), [vec![1; 8], vec![]]);
    assert_eq!(large("fifo"), [[LARGE as u64, 0]; 2]);
}

#[test]
fn aggregate_coalesces_on_the_first_rail() {
    assert_eq!(small("aggregate"), [vec![8], vec![]]);
    assert_eq!(large("aggregate"), [[LARGE as u64, 0]; 2]);
}

#[test]
fn greedy_gives_each_idle_rail_the_next_message_whole() {
    let [first, second] = small("greedy");
    assert!(!first.is_empty() && !second.is_empty() && first.len() + second.len() == 8);
    assert!(first.iter().chain(&second).all(|&count| count == 1));
    assert!(are_whole(large("greedy")));
}

#[test]
fn aggregate_fastest_coalesces_on_the_rail_with_the_lowest_latency() {
    assert_eq!(small("aggregate_fastest"), [vec![], vec![8]]);
    assert!(are_whole(large("aggregate_fastest")));
}

#[test]
fn iso_split_halves_and_coalesces_on_the_rail_with_the_lowest_latency() {
    assert_eq!(small("iso_split"), [vec![], vec![8]]);
    assert_eq!(large("iso_split"), [[LARGE as u64 / 2; 2]; 2]);
}

#[test]
fn ratio_split_follows_the_bandwidths() {
    assert_eq!(small("ratio_split"), [vec![], vec![8]]);
    assert_eq!(large("ratio_split"), [[LARGE as u64 / 4, LARGE as u64 / 4 * 3]; 2]);
}

/// A rail with three times the bandwidth carries about three times as many bytes, whatever the protocol.
#[test]
fn strategies_that_predict_share_out_whatever_a_protocol_carries() {
    for strategy in ["dichotomy", "weighted", "split", "auto"] {
        for [slow, fast] in large(strategy) {
            let ratio = fast as f64 / slow as f64;
            assert!(slow + fast == LARGE as u64 && (2.7..3.5).contains(&ratio), "{strategy}: {slow}, {fast}");
        }
    }
}

#[test]
fn configured_bandwidths_override_the_nominal_ones() {
    let config = Config {
        strategy: "ratio_split".into(),
        bandwidths: vec![4_000_000_000, 1_000_000_000],
        ..Config::default()
    };
    let mut net = Net::new(2, &[Limits { bandwidth: 7, ..limits() }; 2], &config, 1);
    let recv = net.recv(1, from(0), 0, exact(2), LARGE);
    net.send(0, 1, 0, 2, &pattern(LARGE, 1));
    net.settle();
    assert!(net.got(1, recv, &pattern(LARGE, 1)));
    let carried = [0, 1].map(|rail| net.hosts[0].engine.inspect().counters(RailId(rail)).chunk_bytes);
    assert_eq!(carried, [LARGE as u64 / 5 * 4, LARGE as u64 / 5]);
}

#[test]
fn large_messages_of_greedy_use_all_rails_together() {
    let mut net = net("greedy", None);
    let receives: Vec<_> = (1..9).map(|tag| net.recv(1, from(0), 0, exact(tag), LARGE)).collect();
    (1..9).for_each(|tag| {
        net.send(0, 1, 0, tag, &pattern(LARGE, tag));
    });
    net.settle();
    let carried = [0, 1].map(|rail| net.hosts[0].engine.inspect().counters(RailId(rail)).chunk_bytes);
    assert!(carried.iter().all(|&bytes| bytes >= LARGE as u64 && bytes % LARGE as u64 == 0), "{carried:?}");
    for (tag, recv) in (1..9).zip(receives) {
        assert!(net.got(1, recv, &pattern(LARGE, tag)));
    }
}

/// With rails that accept everything at once, a waiting caller still respects when they are idle: the
/// second rail carries three times as much in the same time.
#[test]
fn greedy_with_a_waiting_caller_respects_idle_times() {
    let rails = [1_000_000_000, 3_000_000_000].map(|bandwidth| Limits { bandwidth, depth: 64, ..limits() });
    let config = Config { strategy: "greedy".into(), ..Config::default() };
    let mut net = Net::new(2, &rails, &config, 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.carried();
    (1..9).for_each(|tag| {
        net.send(0, 1, 0, tag, &[1; 4_000]);
    });
    net.turn(0, true);
    let of = |net: &Net, rail| net.hosts[0].engine.inspect().counters(RailId(rail));
    let before = [0, 1].map(|rail| of(&net, rail).packet_bytes / 4_000);
    assert!(before[0] >= 1 && before[1] >= 2 * before[0], "{before:?}");
    net.settle();
    (11..13).for_each(|tag| {
        net.recv(1, from(0), 0, exact(tag), LARGE);
        net.send(0, 1, 0, tag, &pattern(LARGE, tag));
    });
    net.settle();
    assert_eq!([0, 1].map(|rail| of(&net, rail).chunk_bytes), [LARGE as u64; 2]);
}

#[test]
fn a_strategy_is_chosen_for_one_peer_or_for_all() {
    let mut net = Net::new(3, &[limits(); 2], &Config::default(), 1);
    let engine = &mut net.hosts[0].engine;
    engine.setup().set_strategy(Some(PeerId(1)), "fifo").unwrap();
    let unknown = engine.setup().set_strategy(None, "best").unwrap_err();
    assert!(unknown.to_string().contains("'best'") && unknown.to_string().contains("aggregate_fastest"));
    [1, 2].into_iter().for_each(|peer| {
        net.send(0, peer, 0, 0, &[]);
    });
    net.settle();
    net.carried();
    for peer in [1, 2] {
        (0..4).for_each(|_| {
            net.send(0, peer, 0, 1, &[peer as u8; 10]);
        });
    }
    net.settle();
    let said = net.said(0);
    let packets = said.iter().map(|(_, text)| text.matches("eager").count()).filter(|&count| count > 0);
    let mut counts: Vec<usize> = packets.collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 1, 1, 4], "alone to peer 1, together to peer 2");
}

/// Returns how many of `messages` large messages used one rail with `auto`, if rails are `slower` times
/// slower than their forecasts.
fn alone(messages: u64, slower: u64) -> usize {
    let rails = [1_000_000_000, 3_000_000_000].map(|bandwidth| Limits { bandwidth, ..limits() });
    let mut net = Net::new(2, &rails, &Config { chunk: 10_000, ..Config::default() }, 1);
    net.hosts[0].engine.setup().set_strategy(None, "auto").expect("it is there");
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    let mut one = |seed| {
        let before = [0, 1].map(|rail| net.hosts[0].engine.inspect().counters(RailId(rail)).chunk_bytes);
        let recv = net.recv(1, from(0), 0, exact(2), LARGE);
        net.send(0, 1, 0, 2, &pattern(LARGE, seed));
        for turn in 0..200 {
            net.turn(turn % 2, true);
            net.now += slower * LARGE as u64 / 4 / 200;
        }
        net.settle();
        assert!(net.got(1, recv, &pattern(LARGE, seed)));
        let carried = |rail| {
            net.hosts[0].engine.inspect().counters(RailId(rail)).chunk_bytes > before[usize::from(rail)]
        };
        [0, 1].into_iter().filter(|&rail| carried(rail)).count() == 1
    };
    (0..messages).filter(|&seed| one(seed)).count()
}

#[test]
fn auto_tries_one_rail_when_all_together_are_slower_than_predicted() {
    assert_eq!(alone(20, 1), 0);
    assert!(alone(20, 20) > 0);
}
