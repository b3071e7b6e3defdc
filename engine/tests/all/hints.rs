//! Hints of the application about a message: dependency, preference, its own strategy; and strategies that
//! read them.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{
    Config, Hints, Instant, Limits, PacketBuilder, PeerId, Prefer, RailId, RailView, Shares, Strategy,
    Waiting, Window,
};
use std::sync::{Arc, Mutex};

/// One kilobyte takes a millisecond.
const SLOW: u64 = 1_000_000;

/// Two hosts on rails that are open and idle.
fn net(rails: &[Limits], config: Config) -> Net {
    let mut net = Net::new(2, rails, &config, 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.now += 1_000_000;
    net.carried();
    net.said(0);
    net
}

fn slow() -> Limits {
    Limits { bandwidth: SLOW, depth: 64, ..limits() }
}

/// Makes the rail busy for ten milliseconds.
fn occupy(net: &mut Net) {
    net.send(0, 1, 0, 9, &[7; 10_000]);
    net.turn(0, false);
    net.turn(0, false);
    net.said(0);
}

/// Tags of the messages in each packet sent, in order.
fn tags(net: &mut Net) -> Vec<Vec<u64>> {
    let tag = |word: &str| u64::from_str_radix(word.strip_prefix("tag 0x")?.split(' ').next()?, 16).ok();
    let tags = |text: &str| text.match_indices("tag 0x").filter_map(|(at, _)| tag(&text[at..])).collect();
    net.said(0).iter().map(|(_, text)| tags(text)).filter(|tags: &Vec<u64>| !tags.is_empty()).collect()
}

fn with_priority(priority: i8) -> Hints {
    Hints { priority, ..Hints::default() }
}

#[test]
fn a_dependent_message_is_never_sent_first() {
    for (depends, expected) in [(false, [2, 3, 1]), (true, [1, 2, 3])] {
        let mut net = net(&[slow()], Config::default());
        occupy(&mut net);
        net.send_with(0, 1, 0, 1, &[1], with_priority(-3));
        net.send_with(0, 1, 0, 2, &[2], Hints { depends, ..with_priority(5) });
        net.send_with(0, 1, 0, 3, &[3], Hints { depends, ..with_priority(4) });
        net.now += 20_000_000;
        net.turn(0, false);
        net.turn(0, false);
        assert_eq!(tags(&mut net).concat(), expected, "depends: {depends}");
    }
}

#[test]
fn a_dependent_message_waits_for_one_on_another_rail() {
    let mut net = net(&[slow(), slow()], Config { strategy: "greedy".into(), ..Config::default() });
    for rail in [0, 1] {
        net.send_with(0, 1, 0, 9, &[7; 10_000], Hints { rail: Some(RailId(rail)), ..Hints::default() });
    }
    net.turn(0, false);
    net.now += 5_000_000;
    // The first rail is busy longer.
    net.send_with(0, 1, 0, 9, &[7; 10_000], Hints { rail: Some(RailId(0)), ..Hints::default() });
    net.now += 5_100_000;
    net.turn(0, false);
    net.turn(0, false);
    net.said(0);
    net.send_with(0, 1, 0, 1, &[1], Hints { rail: Some(RailId(0)), ..Hints::default() });
    net.send_with(0, 1, 0, 2, &[2], Hints { depends: true, ..Hints::default() });
    net.turn(0, false);
    net.turn(0, false);
    assert_eq!(tags(&mut net).len(), 0, "rail 1 is idle, but its message depends on one for rail 0");
    net.now += 20_000_000;
    net.settle();
    assert_eq!(tags(&mut net).concat(), [1, 2]);
}

#[test]
fn a_dependent_message_makes_a_large_one_send_its_request_at_once() {
    // The second large message of a flow waits a short time for an Rtr.
    let mut net = net(&[limits()], Config::default());
    let data = pattern(200_000, 1);
    for _ in 0..2 {
        let recv = net.recv(1, from(0), 0, exact(5), data.len());
        net.send(0, 1, 0, 5, &data);
        net.settle();
        assert!(net.got(1, recv, &data));
    }
    net.said(0);
    net.send(0, 1, 0, 5, &data);
    net.send_with(0, 1, 0, 6, &[6], Hints { depends: true, ..with_priority(5) });
    let recv = net.recv(1, from(0), 0, exact(5), data.len());
    net.settle();
    assert!(net.got(1, recv, &data));
    assert_eq!(tags(&mut net).concat()[..2], [5, 6]);
}

#[test]
fn latency_does_not_wait_for_the_rail_and_bandwidth_takes_the_fastest() {
    let prefers = |prefer| Hints { prefer, ..Hints::default() };
    for (prefer, leaves) in [(Prefer::Either, 0), (Prefer::Bandwidth, 0), (Prefer::Latency, 1)] {
        let mut net = net(&[slow()], Config::default());
        occupy(&mut net);
        net.send_with(0, 1, 0, 1, &[1], prefers(prefer));
        net.turn(0, false);
        net.turn(0, false);
        assert_eq!(tags(&mut net).concat().len(), leaves, "{prefer:?}");
    }
    let quick = Limits { latency_ns: 1_000, bandwidth: 100_000_000, ..limits() };
    let wide = Limits { latency_ns: 100_000, bandwidth: 10_000_000_000, ..limits() };
    let auto = Config { strategy: "auto".into(), ..Config::default() };
    for (prefer, rail) in [(Prefer::Either, 0), (Prefer::Latency, 0), (Prefer::Bandwidth, 1)] {
        let mut net = self::net(&[quick, wide], auto.clone());
        net.send_with(0, 1, 0, 1, &[1], prefers(prefer));
        net.settle();
        let said = net.said(0);
        let on: Vec<usize> =
            said.iter().filter(|(_, text)| text.contains("tag 0x1 ")).map(|(on, _)| *on).collect();
        assert_eq!(on, [rail], "{prefer:?}: {said:?}");
    }
}

#[test]
fn a_message_may_have_a_strategy_of_its_own() {
    let rails = [limits(), limits()];
    let mut net = net(&rails, Config { strategy: "fifo".into(), ..Config::default() });
    let registry = net.hosts[0].engine.inspect().registry();
    let own = |name| Hints { strategy: Some(registry.place(name).expect(name)), ..Hints::default() };
    let (aggregate, iso) = (own("aggregate"), own("iso_split"));
    assert!(registry.place("no").expect_err("there is none").to_string().contains("iso_split"));
    for tag in 1..=4 {
        net.send_with(0, 1, 0, tag, &[0; 8], if tag % 2 == 0 { aggregate } else { Hints::default() });
    }
    net.settle();
    let mut tags = tags(&mut net);
    tags.sort();
    assert_eq!(tags, [vec![1], vec![2, 4], vec![3]], "fifo sends each alone");
    let before = [0, 1].map(|rail| net.hosts[0].engine.inspect().counters(RailId(rail)).chunk_bytes);
    let large = pattern(300_000, 1);
    for (hints, expected) in [(Hints::default(), [300_000, 0]), (iso, [450_000, 150_000])] {
        let recv = net.recv(1, from(0), 0, exact(7), large.len());
        net.send_with(0, 1, 0, 7, &large, hints);
        net.settle();
        assert!(net.got(1, recv, &large));
        let carried = |rail: usize| {
            net.hosts[0].engine.inspect().counters(RailId(rail as u8)).chunk_bytes - before[rail]
        };
        assert_eq!([carried(0), carried(1)], expected);
    }
}

/// Records what a strategy has seen, and the peer that it prefers.
#[derive(Debug, Default)]
struct Seen {
    entries: Vec<String>,
    peers: Vec<PeerId>,
}

struct Watchful(Arc<Mutex<Seen>>);

impl Strategy for Watchful {
    fn name(&self) -> &str {
        "watchful"
    }

    fn meet(&mut self, peer: PeerId) {
        self.0.lock().unwrap().peers.push(peer);
    }

    fn chooses(&self) -> bool {
        true
    }

    fn choose(&mut self, _: Instant, _: RailId, peers: &[Waiting]) -> Option<PeerId> {
        peers.iter().max_by_key(|waiting| waiting.peer).map(|waiting| waiting.peer)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        for entry in window.entries(rail.scope(true)) {
            if let Some(names) = entry.names() {
                let (to, prefer, depends) = (window.peer().0, entry.prefer(), entry.depends());
                let text = format!("{to} {names:?} {} {prefer:?} {depends}", entry.priority());
                self.0.lock().unwrap().entries.push(text);
            }
        }
        // The last one first: any order is valid.
        let numbers: Vec<u32> = window.entries(rail.scope(true)).map(|entry| entry.number()).collect();
        for number in numbers.into_iter().rev() {
            assert!(packet.take(window, rail.scope(true), |_, entry| entry.number() == number));
        }
    }

    fn split(&mut self, _: Instant, _: u64, _: &[RailView]) -> Shares {
        Shares::FirstIdle
    }
}

#[test]
fn a_strategy_sees_waiting_messages_and_chooses_between_peers() {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut config = Config { strategy: "watchful".into(), ..Config::default() };
    let shown = seen.clone();
    config.registry.add(move || Box::new(Watchful(shown.clone())));
    let mut net = Net::new(3, &[slow()], &config, 1);
    for peer in [1, 2] {
        net.send(0, peer, 0, 0, &[]);
    }
    net.settle();
    net.said(0);
    seen.lock().unwrap().entries.clear();
    net.now += 1_000_000;
    net.send(0, 1, 0, 3, &[7; 10_000]);
    net.turn(0, false);
    net.send_with(0, 1, 4, 5, &[0; 12], with_priority(3));
    net.send_with(0, 2, 4, 6, &[0; 100_000], Hints { prefer: Prefer::Bandwidth, ..Hints::default() });
    net.send_with(0, 2, 4, 7, &[0; 8], Hints { depends: true, ..Hints::default() });
    net.now += 20_000_000;
    net.turn(0, false);
    net.turn(0, false);
    let tags = tags(&mut net);
    // The peer with the highest number comes first; a dependent message is visible once the one before it
    // is taken.
    assert_eq!(tags[tags.len() - 3..], [[6], [7], [5]], "{tags:?}");
    let seen = seen.lock().unwrap();
    let large = "2 Names { context: Context(4), tag: Tag(6), seq: 0, len: 100000 } 0 Bandwidth false";
    let first = "1 Names { context: Context(4), tag: Tag(5), seq: 0, len: 12 } 3 Either false";
    for expected in [large, first] {
        assert!(seen.entries.iter().any(|entry| entry == expected), "{expected}: {:?}", seen.entries);
    }
    assert!(seen.peers.contains(&PeerId(1)) && seen.peers.contains(&PeerId(2)), "{:?}", seen.peers);
}
