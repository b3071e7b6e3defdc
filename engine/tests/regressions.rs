//! Each test was a bug once; its name says what must hold.

#[path = "common/net.rs"]
mod net;

use net::rail::Faults;
use net::{Net, exact, from, limits, pattern};
use nmad_engine::{
    Config, Context, Error, Event, Feed, Hints, Instant, Limits, PacketBuilder, PeerId, RailId, RailView,
    Shares, Source, Strategy, TagMatch, Window,
};
use nmad_wire::{Fin, Frame, Header, Kind, Withdrawn};

const LONG: usize = 100_000;

/// Spends all eager credit of host 0 towards host 1, in another context.
fn spend_credit(net: &mut Net) {
    net.send(0, 1, 99, 0, &[]);
    net.settle();
    for _ in 0..2_000 {
        net.send(0, 1, 99, 0, &[0; 1_000]);
    }
    for _ in 0..20 {
        net.send(0, 1, 99, 0, &[]);
    }
    net.settle();
}

#[test]
fn an_empty_message_ends_although_the_credit_is_spent() {
    for rails in [1, 2] {
        let mut net = Net::pair(rails, Config::default());
        spend_credit(&mut net);
        for capacity in [0, 10] {
            let sent = net.send(0, 1, 0, 5, &[]);
            net.settle();
            let recv = net.recv(1, from(0), 0, exact(5), capacity);
            net.settle();
            assert!(net.got(1, recv, &[]), "{capacity}");
            assert!(matches!(net.result(0, sent), Some(Ok(_))), "{rails} rails, {capacity} B of buffer");
        }
    }
}

#[test]
fn an_empty_message_ends_although_a_landing_was_promised() {
    let mut net = Net::pair(1, Config::default());
    spend_credit(&mut net);
    let first = net.recv(1, from(0), 0, exact(5), LONG);
    net.send(0, 1, 0, 5, &pattern(LONG, 1));
    net.settle();
    assert!(net.got(1, first, &pattern(LONG, 1)));
    let promised = net.recv(1, from(0), 0, exact(5), LONG);
    net.settle();
    let sent = net.send(0, 1, 0, 5, &[]);
    net.settle();
    assert!(net.got(1, promised, &[]));
    assert!(matches!(net.result(0, sent), Some(Ok(_))));
    assert_eq!(net.hosts[0].engine.peer_view(PeerId(1)).unwrap().body_backlog, 0);
    assert!(net.hosts[0].engine.is_drained());
}

#[test]
fn a_promise_taken_by_an_unordered_message_is_not_used_again() {
    let mut net = Net::pair(1, Config::default());
    net.recv(1, from(0), 0, exact(5), LONG);
    net.send(0, 1, 0, 5, &pattern(LONG, 1));
    net.settle();
    let promised = net.recv(1, from(0), 0, exact(5), LONG);
    net.settle();
    net.send_with(0, 1, 0, 5, &[7; 8], Hints { unordered: true, ..Hints::default() });
    net.settle();
    assert!(net.got(1, promised, &[7; 8]));
    net.send(0, 1, 0, 5, &pattern(LONG, 2));
    net.settle();
    let late = net.recv(1, from(0), 0, exact(5), LONG);
    net.settle();
    assert!(net.got(1, late, &pattern(LONG, 2)));
}

#[test]
fn an_unordered_message_does_not_get_into_the_landing_of_another() {
    for rails in [1, 2] {
        let mut net = Net::pair(rails, Config::default());
        net.recv(1, from(0), 0, exact(5), LONG);
        net.send(0, 1, 0, 5, &pattern(LONG, 1));
        net.settle();
        let promised = net.recv(1, from(0), 0, exact(5), LONG);
        net.settle();
        let (slow, fast) = (pattern(LONG, 2), pattern(LONG - 1, 3));
        net.send_with(0, 1, 0, 5, &slow, Hints { priority: -1, ..Hints::default() });
        net.send_with(0, 1, 0, 5, &fast, Hints { priority: 9, unordered: true, ..Hints::default() });
        net.settle();
        let late = net.recv(1, from(0), 0, exact(5), LONG);
        net.settle();
        let in_order = net.got(1, promised, &slow) && net.got(1, late, &fast);
        let overtaken = net.got(1, promised, &fast) && net.got(1, late, &slow);
        assert!(in_order || overtaken, "{rails} rails");
    }
}

#[test]
fn what_waited_for_an_acknowledgement_when_the_other_rail_died_is_forgotten() {
    let mut net = Net::pair(2, Config::default());
    for _ in 0..10 {
        net.send(0, 1, 0, 5, &[1; 100]);
        net.settle();
    }
    net.kill(1, 0, 1);
    for _ in 0..200 {
        net.send(0, 1, 0, 5, &[1; 100]);
        net.settle();
    }
    let kept = net.hosts[0].engine.peer_view(PeerId(1)).unwrap().in_flight;
    assert!(kept < 100, "{kept} packets are kept though one reliable rail is left");
}

#[test]
fn a_message_for_a_rail_that_is_gone_or_never_was_takes_another() {
    for rail in [0, 7] {
        for len in [8, LONG] {
            let mut net = Net::pair(2, Config::default());
            net.send(0, 1, 0, 0, &[0]);
            net.settle();
            net.kill(0, 0, 1);
            net.settle();
            let recv = net.recv(1, from(0), 0, exact(5), len);
            let hints = Hints { rail: Some(RailId(rail)), ..Hints::default() };
            let sent = net.send_with(0, 1, 0, 5, &pattern(len, 3), hints);
            net.settle();
            assert!(net.got(1, recv, &pattern(len, 3)), "rail {rail}, {len} B");
            assert!(matches!(net.result(0, sent), Some(Ok(_))));
        }
    }
}

#[test]
fn when_the_first_piece_is_cancelled_the_others_end_too() {
    let mut net = Net::pair(1, Config::default());
    let engine = &mut net.hosts[1].engine;
    let mut unpacking = engine.begin_unpacking(from(0), Context(0), exact(1));
    let first = engine.unpack(&mut unpacking, nmad_engine::Segments::empty());
    let second = engine.unpack(&mut unpacking, nmad_engine::Segments::empty());
    engine.end_unpacking(unpacking);
    assert!(net.cancel(1, first));
    assert_eq!(net.result(1, first), Some(Err(Error::Cancelled)));
    assert_eq!(net.result(1, second), Some(Err(Error::Cancelled)));
}

#[test]
fn when_the_first_piece_is_refused_the_others_end_too() {
    let mut net = Net::pair(1, Config::default());
    let engine = &mut net.hosts[1].engine;
    let mut unpacking = engine.begin_unpacking(from(5), Context(0), exact(1));
    let first = engine.unpack(&mut unpacking, nmad_engine::Segments::empty());
    let second = engine.unpack(&mut unpacking, nmad_engine::Segments::empty());
    engine.end_unpacking(unpacking);
    net.settle();
    assert_eq!(net.result(1, first), Some(Err(Error::PeerLost(PeerId(5)))));
    assert!(matches!(net.result(1, second), Some(Err(_))));
}

/// Host 0 sends, and is gone before host 1 receives.
fn gone_before_received(data: &[u8], hints: Hints) -> Net {
    let mut net = Net::pair(1, Config::default());
    net.send_with(0, 1, 0, 5, data, hints);
    net.settle();
    net.kill(0, 0, 1);
    net.settle();
    assert!(net.hosts[1].engine.failure(PeerId(0)).is_some());
    net
}

#[test]
fn a_large_message_of_a_peer_that_is_gone_is_not_offered() {
    for source in [from(0), Source::Any] {
        let mut net = gone_before_received(&pattern(LONG, 1), Hints::default());
        assert_eq!(net.hosts[1].engine.probe(source, Context(0), exact(5)), None);
        assert_eq!(net.hosts[1].engine.unexpected(), 0);
        let (recv, _) = net.recv(1, source, 0, exact(5), LONG);
        net.settle();
        let expected = (source != Source::Any).then_some(Err(Error::PeerLost(PeerId(0))));
        assert_eq!(net.result(1, recv), expected);
    }
}

#[test]
fn a_small_message_of_a_peer_that_is_gone_is_received_and_nothing_stays() {
    let mut net = gone_before_received(&[3; 9], Hints { synchronous: true, ..Hints::default() });
    let recv = net.recv(1, Source::Any, 0, TagMatch::Any, 9);
    net.settle();
    assert!(net.got(1, recv, &[3; 9]));
    assert!(net.hosts[1].engine.is_drained(), "nothing can be told to a peer that is gone");
    assert_eq!(net.hosts[1].engine.next_deadline(), None);
}

/// One slow rail that is busy for a millisecond, or more; fed one packet ahead.
fn slow() -> Limits {
    Limits { bandwidth: 1_000_000, ..limits() }
}

fn prepared(rails: usize) -> Net {
    let config = Config { feed: Feed::Prepare, ..Config::default() };
    let mut net = Net::new(2, &vec![slow(); rails], &config, 1);
    net.send(0, 1, 0, 0, &[0; 1000]);
    net.settle();
    net.send(0, 1, 0, 1, &[1; 1000]);
    net.turn(0, true);
    net
}

#[test]
fn a_prepared_packet_leaves_when_its_rail_is_idle_though_nothing_else_happens() {
    let mut net = prepared(1);
    let sent = net.send(0, 1, 0, 2, &[2; 1000]);
    net.turn(0, false);
    assert_eq!(net.result(0, sent), None);
    assert!(!net.hosts[0].engine.is_drained());
    let deadline = net.hosts[0].engine.next_deadline().expect("the prepared packet is due");
    net.now = deadline.as_ns();
    net.turn(0, false);
    assert!(matches!(net.result(0, sent), Some(Ok(_))));
    net.settle();
    assert_eq!(net.hosts[1].engine.unexpected(), 3);
}

#[test]
fn a_prepared_packet_survives_its_rail() {
    let mut net = prepared(2);
    let sent = net.send(0, 1, 0, 2, &[2; 1000]);
    net.turn(0, false);
    net.kill(0, 0, 1);
    net.settle();
    assert!(matches!(net.result(0, sent), Some(Ok(_))));
    assert_eq!(net.hosts[1].engine.unexpected(), 3);
    assert_eq!(net.pending(), 0);
}

#[test]
fn full_packets_of_a_dead_rail_are_replayed_whatever_the_strategy() {
    for strategy in ["fifo", "aggregate", "greedy", "aggregate_fastest", "iso_split", "ratio_split"] {
        // 8 * (1998 + 24) + 16 is all that a packet may hold.
        for len in [100, 1_998, 16_000] {
            let mut net = Net::pair(2, Config { strategy: strategy.into(), ..Config::default() });
            net.send(0, 1, 0, 0, &[]);
            net.settle();
            for _ in 0..200 {
                net.send(0, 1, 0, 1, &pattern(len, 1));
            }
            net.turn(0, true);
            net.turn(0, true);
            net.kill(0, 0, 1);
            net.settle();
            assert_eq!(net.hosts[1].engine.unexpected(), 201, "{strategy} {len}");
        }
    }
}

#[test]
fn rails_with_very_short_packets_carry_everything() {
    for packet in [Limits::PACKET_MIN, 600, 1000] {
        let mut net = Net::new(2, &[Limits { packet, ..limits() }; 2], &Config::default(), 1);
        for len in [0, 1, 100, LONG] {
            let recv = net.recv(1, from(0), 0, exact(1), len);
            net.send(0, 1, 0, 1, &pattern(len, 1));
            net.settle();
            assert!(net.got(1, recv, &pattern(len, 1)), "{packet} {len}");
        }
    }
}

#[test]
fn a_synchronous_message_in_place_ends_only_when_the_rail_has_let_go() {
    let mut net = Net::pair(1, Config::default());
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.recv(1, from(0), 0, exact(1), 8_000);
    let sent = net.send_with(0, 1, 0, 1, &pattern(8_000, 1), Hints { synchronous: true, ..Hints::default() });
    net.wires().tardy.insert((0, 0));
    (0..20).for_each(|_| {
        net.turn(0, true);
        net.turn(1, true);
        net.now += 1_000;
    });
    assert_eq!(net.result(0, sent), None, "the rail still uses the memory");
    net.wires().tardy.clear();
    net.settle();
    assert!(net.result(0, sent).is_some());
}

#[test]
fn a_fin_for_a_message_that_waits_for_none_closes_the_peer() {
    let mut net = Net::pair(1, Config::default());
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    let sent = net.send(0, 1, 0, 1, &[9; 100]);
    let fin = Frame::Fin(Fin { request: sent.0 });
    net.hosts[0].engine.handle(
        Instant::from_ns(net.now),
        RailId(0),
        Event::Arrived { from: PeerId(1), packet: &notice(&fin) },
    );
    net.settle();
    assert_eq!(net.result(0, sent), Some(Err(Error::PeerLost(PeerId(1)))));
}

/// A packet without a number of its own that holds just this frame.
fn notice(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; Header::LEN];
    frame.encode(&mut bytes);
    let header = Header { kind: Kind::Notice, len: bytes.len() as u32, number: 0, ack: 0 };
    bytes[..Header::LEN].copy_from_slice(&header.encode());
    bytes
}

#[test]
fn a_chunk_is_not_sent_again_from_memory_that_is_free() {
    for seed in 0..40 {
        // Fins come over the first rail, acknowledgements of chunks over the second.
        let rails = [limits(), Limits { lossy: true, ..limits() }];
        let config = Config { strategy: "iso_split".into(), chunk: 10_000, ..Config::default() };
        let mut net = Net::new(2, &rails, &config, seed);
        net.set_faults(Faults { drop: 100, ..Faults::default() });
        let recv = net.recv(1, from(0), 0, exact(1), LONG);
        net.send(0, 1, 0, 1, &pattern(LONG, seed));
        // The memory checks that no rail reads from a request that has ended.
        net.settle();
        assert!(net.got(1, recv, &pattern(LONG, seed)));
    }
}

#[test]
fn a_receive_that_nobody_cancelled_is_not_cancelled_by_its_peer() {
    let mut net = Net::pair(1, Config::default());
    net.recv(1, from(0), 0, exact(1), LONG);
    net.send(0, 1, 0, 1, &pattern(LONG, 1));
    net.settle();
    net.carried();
    let (promised, _) = net.recv(1, from(0), 0, exact(1), LONG);
    net.settle();
    let packets: Vec<_> = net.carried().into_iter().filter(|c| c.from == 1).collect();
    let landing = packets.iter().find_map(|c| {
        nmad_wire::frames(&c.bytes[Header::LEN..]).find_map(|frame| match frame {
            Ok(Frame::Promise(promise)) => Some(promise.landing),
            _ => None,
        })
    });
    let withdrawn = Frame::Withdrawn(Withdrawn { landing: landing.expect("a promise"), used: false });
    let event = Event::Arrived { from: PeerId(0), packet: &notice(&withdrawn) };
    net.hosts[1].engine.handle(Instant::from_ns(net.now), RailId(0), event);
    net.settle();
    assert_ne!(net.result(1, promised), Some(Err(Error::Cancelled)));
}

#[test]
fn shares_of_rails_that_are_not_there_are_carried_by_others() {
    struct Careless;
    impl Strategy for Careless {
        fn name(&self) -> &'static str {
            "careless"
        }
        fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
            if let Some(entry) = window.take_first(rail.scope(true), |_| true) {
                packet.push(entry);
            }
        }
        fn split(&mut self, _: Instant, len: u64, _: &[RailView]) -> Shares {
            Shares::Fixed(vec![(RailId(9), len / 2), (RailId(0), len * 3)])
        }
    }
    let mut config = Config { strategy: "careless".into(), ..Config::default() };
    config.registry.add(|| Box::new(Careless));
    let mut net = Net::pair(2, config);
    let recv = net.recv(1, from(0), 0, exact(1), LONG);
    net.send(0, 1, 0, 1, &pattern(LONG, 1));
    net.settle();
    assert!(net.got(1, recv, &pattern(LONG, 1)));
}

#[test]
fn a_link_given_up_for_silence_is_told_to_the_peer() {
    let rails = [Limits { lossy: true, ..limits() }, limits()];
    let mut net = Net::new(2, &rails, &Config::default(), 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.set_faults(Faults { drop: 255, ..Default::default() });
    net.carried();
    net.send_with(0, 1, 0, 1, &[1], Hints { rail: Some(RailId(0)), ..Hints::default() });
    net.settle();
    assert_eq!(net.hosts[1].engine.unexpected(), 2);
    assert!(net.said(0).iter().any(|(rail, text)| *rail == 1 && text.contains("rail 0 down")));
}

#[test]
fn unlimited_credit_is_no_overflow() {
    let mut net = Net::pair(1, Config { credit: u64::MAX, ..Config::default() });
    for _ in 0..10 {
        net.send(0, 1, 0, 1, &[1; 10_000]);
        let recv = net.recv(1, from(0), 0, exact(1), 10_000);
        net.settle();
        assert!(net.got(1, recv, &[1; 10_000]));
    }
}

#[test]
fn nothing_is_due_while_a_rail_takes_no_more() {
    for lossy in [false, true] {
        let mut net = Net::new(2, &[Limits { lossy, chunk: 500, ..limits() }], &Config::default(), 1);
        net.recv(1, from(0), 0, exact(1), LONG);
        net.send(0, 1, 0, 1, &pattern(LONG, 1));
        for turn in 0..14 {
            net.turn(turn % 2, true);
            net.now += 1_000;
        }
        // From now on host 1 is silent, and a reliable rail reports nothing.
        net.stall(0, 0, !lossy);
        for _ in 0..100 {
            net.turn(0, true);
        }
        assert!(net.hosts[0].engine.peer_view(PeerId(1)).unwrap().body_backlog > 0);
        let due = net.hosts[0].engine.next_deadline();
        assert!(due.is_none_or(|due| due.as_ns() > net.now), "lossy {lossy}: due {due:?} at {}", net.now);
    }
}
