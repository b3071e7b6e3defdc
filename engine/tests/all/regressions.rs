//! Regression tests of messages, Rtrs and memory; each name states the required behaviour.

use crate::net::{Net, exact, from, pattern};
use nmad_engine::{Config, Context, Error, Event, Hints, Instant, PeerId, RailId, Source, TagMatch};
use nmad_wire::{Cts, Fin, Frame, Header, Keys, Kind, Rtr, Rts, Withdraw, Withdrawn};

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
fn an_empty_message_completes_although_the_credit_is_spent() {
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
fn an_empty_message_completes_although_a_region_was_open_for_it() {
    let mut net = Net::pair(1, Config::default());
    spend_credit(&mut net);
    let first = net.recv(1, from(0), 0, exact(5), LONG);
    net.send(0, 1, 0, 5, &pattern(LONG, 1));
    net.settle();
    assert!(net.got(1, first, &pattern(LONG, 1)));
    let invited = net.recv(1, from(0), 0, exact(5), LONG);
    net.settle();
    let sent = net.send(0, 1, 0, 5, &[]);
    net.settle();
    assert!(net.got(1, invited, &[]));
    assert!(matches!(net.result(0, sent), Some(Ok(_))));
    assert_eq!(net.hosts[0].engine.inspect().peer_view(PeerId(1)).unwrap().body_backlog, 0);
    assert!(net.hosts[0].engine.inspect().is_drained());
}

#[test]
fn an_rtr_taken_by_an_unordered_message_is_not_used_again() {
    let mut net = Net::pair(1, Config::default());
    net.recv(1, from(0), 0, exact(5), LONG);
    net.send(0, 1, 0, 5, &pattern(LONG, 1));
    net.settle();
    let invited = net.recv(1, from(0), 0, exact(5), LONG);
    net.settle();
    net.send_with(0, 1, 0, 5, &[7; 8], Hints { unordered: true, ..Hints::default() });
    net.settle();
    assert!(net.got(1, invited, &[7; 8]));
    net.send(0, 1, 0, 5, &pattern(LONG, 2));
    net.settle();
    let late = net.recv(1, from(0), 0, exact(5), LONG);
    net.settle();
    assert!(net.got(1, late, &pattern(LONG, 2)));
}

#[test]
fn an_unordered_message_does_not_use_the_region_of_another() {
    for rails in [1, 2] {
        let mut net = Net::pair(rails, Config::default());
        net.recv(1, from(0), 0, exact(5), LONG);
        net.send(0, 1, 0, 5, &pattern(LONG, 1));
        net.settle();
        let invited = net.recv(1, from(0), 0, exact(5), LONG);
        net.settle();
        let (slow, fast) = (pattern(LONG, 2), pattern(LONG - 1, 3));
        net.send_with(0, 1, 0, 5, &slow, Hints { priority: -1, ..Hints::default() });
        net.send_with(0, 1, 0, 5, &fast, Hints { priority: 9, unordered: true, ..Hints::default() });
        net.settle();
        let late = net.recv(1, from(0), 0, exact(5), LONG);
        net.settle();
        let in_order = net.got(1, invited, &slow) && net.got(1, late, &fast);
        let overtaken = net.got(1, invited, &fast) && net.got(1, late, &slow);
        assert!(in_order || overtaken, "{rails} rails");
    }
}

#[test]
fn an_rtr_used_by_a_message_that_has_to_wait_for_an_earlier_one_is_not_withdrawn() {
    let mut net = Net::pair(1, Config::default());
    net.recv(1, from(0), 0, exact(2), LONG);
    net.send(0, 1, 0, 2, &pattern(LONG, 1));
    net.settle();
    // Used once, so that the sender expects Rtrs and holds back a request to send for a while.
    for _ in 0..2 {
        net.recv(1, from(0), 0, exact(2), LONG);
        net.settle();
        net.send(0, 1, 0, 2, &pattern(LONG, 2));
        net.settle();
    }
    let (invited, buffer) = net.recv(1, from(0), 0, exact(2), LONG);
    net.settle();
    net.send(0, 1, 0, 1, &pattern(LONG, 3));
    net.send(0, 1, 0, 2, &pattern(LONG, 4));
    assert!(net.cancel(1, invited));
    for turn in 0..60 {
        net.turn(turn % 2, true);
        net.now += 50;
    }
    net.settle();
    let first = net.recv(1, from(0), 0, exact(1), LONG);
    net.settle();
    let second = match net.result(1, invited) {
        Some(Err(Error::Cancelled)) => net.recv(1, from(0), 0, exact(2), LONG),
        _ => (invited, buffer),
    };
    net.settle();
    assert!(net.got(1, first, &pattern(LONG, 3)));
    assert!(net.got(1, second, &pattern(LONG, 4)));
}

#[test]
fn a_receive_cancelled_before_its_rtr_is_sent_sends_none() {
    let mut net = Net::pair(1, Config::default());
    net.recv(1, from(0), 0, exact(2), LONG);
    net.send(0, 1, 0, 2, &pattern(LONG, 1));
    net.settle();
    let (invited, _) = net.recv(1, from(0), 0, exact(2), LONG);
    assert!(net.cancel(1, invited));
    net.settle();
    assert_eq!(net.result(1, invited), Some(Err(Error::Cancelled)));
    net.send(0, 1, 0, 2, &pattern(LONG, 2));
    net.settle();
    let recv = net.recv(1, from(0), 0, exact(2), LONG);
    net.settle();
    assert!(net.got(1, recv, &pattern(LONG, 2)));
}

#[test]
fn when_the_first_piece_is_cancelled_the_others_end_too() {
    let mut net = Net::pair(1, Config::default());
    let engine = &mut net.hosts[1].engine;
    let mut unpacking = nmad_engine::Unpacking::new(engine, from(0), Context(0), exact(1));
    let first = unpacking.unpack(engine, nmad_engine::Segments::empty());
    let second = unpacking.unpack(engine, nmad_engine::Segments::empty());
    unpacking.end(engine);
    assert!(net.cancel(1, first));
    assert_eq!(net.result(1, first), Some(Err(Error::Cancelled)));
    assert_eq!(net.result(1, second), Some(Err(Error::Cancelled)));
}

#[test]
fn when_the_first_piece_is_refused_the_others_end_too() {
    let mut net = Net::pair(1, Config::default());
    let engine = &mut net.hosts[1].engine;
    let mut unpacking = nmad_engine::Unpacking::new(engine, from(5), Context(0), exact(1));
    let first = unpacking.unpack(engine, nmad_engine::Segments::empty());
    let second = unpacking.unpack(engine, nmad_engine::Segments::empty());
    unpacking.end(engine);
    net.settle();
    assert_eq!(net.result(1, first), Some(Err(Error::PeerLost(PeerId(5)))));
    assert!(matches!(net.result(1, second), Some(Err(_))));
}

/// Host 0 sends, and is lost before host 1 receives.
fn gone_before_received(data: &[u8], hints: Hints) -> Net {
    let mut net = Net::pair(1, Config::default());
    net.send_with(0, 1, 0, 5, data, hints);
    net.settle();
    net.kill(0, 0, 1);
    net.settle();
    assert!(net.hosts[1].engine.inspect().failure(PeerId(0)).is_some());
    net
}

#[test]
fn a_large_message_of_a_lost_peer_does_not_match() {
    for source in [from(0), Source::Any] {
        let mut net = gone_before_received(&pattern(LONG, 1), Hints::default());
        assert_eq!(net.hosts[1].engine.probe(source, Context(0), exact(5)), None);
        assert_eq!(net.hosts[1].engine.inspect().unexpected(), 0);
        let (recv, _) = net.recv(1, source, 0, exact(5), LONG);
        net.settle();
        let expected = (source != Source::Any).then_some(Err(Error::PeerLost(PeerId(0))));
        assert_eq!(net.result(1, recv), expected);
    }
}

#[test]
fn a_small_message_of_a_lost_peer_is_received() {
    let mut net = gone_before_received(&[3; 9], Hints { synchronous: true, ..Hints::default() });
    let recv = net.recv(1, Source::Any, 0, TagMatch::Any, 9);
    net.settle();
    assert!(net.got(1, recv, &[3; 9]));
    assert!(net.hosts[1].engine.inspect().is_drained(), "nothing can be told to a peer that is gone");
    assert_eq!(net.hosts[1].engine.inspect().next_deadline(), None);
}

#[test]
fn a_synchronous_message_in_place_completes_only_after_the_rail_has_released_it() {
    let mut net = Net::pair(1, Config { in_place_min: Some(4_000), ..Config::default() });
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
    let fin = Frame::Fin(Fin { request: sent.0, prompt: false });
    net.hosts[0].engine.handle(
        Instant::from_ns(net.now),
        RailId(0),
        Event::Arrived { from: PeerId(1), packet: &notice(&fin) },
    );
    net.settle();
    assert_eq!(net.result(0, sent), Some(Err(Error::PeerLost(PeerId(1)))));
}

#[test]
fn a_grant_that_no_rail_can_use_closes_the_peer() {
    // Keys for no rail, or only for one that dies.
    for keyed in [false, true] {
        let mut net = Net::pair(2, Config::default());
        let sent = net.send(0, 1, 0, 1, &pattern(LONG, 1));
        net.settle();
        net.stall(0, 0, true);
        let mut keys = Keys::default();
        if keyed {
            keys.push(0, 1);
        }
        let cts =
            notice(&Frame::Cts(Cts { request: sent.0, region: 1, len: LONG as u64, keys, prompt: false }));
        let event = Event::Arrived { from: PeerId(1), packet: &cts };
        net.hosts[0].engine.handle(Instant::from_ns(net.now), RailId(0), event);
        net.turn(0, true);
        net.kill(0, 0, 1);
        net.settle();
        assert_eq!(net.result(0, sent), Some(Err(Error::PeerLost(PeerId(1)))), "keyed: {keyed}");
    }
}

/// A packet without a number that contains only this frame.
fn notice(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; Header::LEN];
    frame.encode(&mut bytes);
    let header = Header { kind: Kind::Notice, len: bytes.len() as u32, number: 0, ack: 0 };
    bytes[..Header::LEN].copy_from_slice(&header.encode());
    bytes
}

#[test]
fn a_receive_cannot_be_cancelled_by_its_peer() {
    let mut net = Net::pair(1, Config::default());
    net.recv(1, from(0), 0, exact(1), LONG);
    net.send(0, 1, 0, 1, &pattern(LONG, 1));
    net.settle();
    net.carried();
    let (invited, _) = net.recv(1, from(0), 0, exact(1), LONG);
    net.settle();
    let packets: Vec<_> = net.carried().into_iter().filter(|c| c.from == 1).collect();
    let region = packets.iter().find_map(|c| {
        nmad_wire::frames(&c.bytes[Header::LEN..]).find_map(|frame| match frame {
            Ok(Frame::Rtr(rtr)) => Some(rtr.region),
            _ => None,
        })
    });
    let withdrawn = Frame::Withdrawn(Withdrawn { region: region.expect("an Rtr"), used: false });
    let event = Event::Arrived { from: PeerId(0), packet: &notice(&withdrawn) };
    net.hosts[1].engine.handle(Instant::from_ns(net.now), RailId(0), event);
    net.settle();
    assert_ne!(net.result(1, invited), Some(Err(Error::Cancelled)));
}

#[test]
fn an_rtr_that_arrives_after_its_withdrawal_is_not_used() {
    for overtaken in [false, true] {
        let mut net = Net::pair(1, Config::default());
        net.recv(1, from(0), 0, exact(1), LONG);
        net.send(0, 1, 0, 1, &pattern(LONG, 1));
        net.settle();
        let (region, mut keys) = (77, Keys::default());
        keys.push(0, 1);
        let rtr = Rtr { context: 0, tag: 1, seq: 1, region, len: LONG as u64, keys };
        let mut frames = [Frame::Rtr(rtr), Frame::Withdraw(Withdraw { region })];
        if overtaken {
            frames.reverse();
        }
        for frame in &frames {
            let event = Event::Arrived { from: PeerId(1), packet: &notice(frame) };
            net.hosts[0].engine.handle(Instant::from_ns(net.now), RailId(0), event);
        }
        net.carried();
        let recv = net.recv(1, Source::Any, 0, exact(1), LONG);
        net.send(0, 1, 0, 1, &pattern(LONG, 2));
        net.settle();
        assert!(net.got(1, recv, &pattern(LONG, 2)), "overtaken: {overtaken}");
        let packets: Vec<_> = net.carried().into_iter().filter(|c| c.from == 0 && c.is_packet).collect();
        let mut frames = packets.iter().flat_map(|c| nmad_wire::frames(&c.bytes[Header::LEN..]));
        let uses = |rts: &Rts| rts.region == region;
        assert!(!frames.any(|f| matches!(f, Ok(Frame::Rts(rts, _)) if uses(&rts))), "overtaken: {overtaken}");
    }
}

#[test]
fn unlimited_credit_does_not_overflow() {
    let mut net = Net::pair(1, Config { credit: u64::MAX, ..Config::default() });
    for _ in 0..10 {
        net.send(0, 1, 0, 1, &[1; 10_000]);
        let recv = net.recv(1, from(0), 0, exact(1), 10_000);
        net.settle();
        assert!(net.got(1, recv, &[1; 10_000]));
    }
}
