//! Regression tests of rails that die, fill up or get packets in advance; each name states the required
//! behaviour.

use crate::net::rail::Faults;
use crate::net::{Host, Net, exact, from, limits, pattern};
use nmad_engine::{
    Config, Feed, Hints, Instant, Limits, LinkView, PacketBuilder, PeerId, RailId, RailView, Shares,
    Strategy, Window, pump,
};

const LONG: usize = 100_000;

#[test]
fn kept_packets_are_dropped_when_the_other_rail_dies() {
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
    let kept = net.hosts[0].engine.inspect().peer_view(PeerId(1)).unwrap().in_flight;
    assert!(kept < 100, "{kept} packets are kept though one reliable rail is left");
}

#[test]
fn a_message_for_a_dead_or_unknown_rail_takes_another() {
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

/// A slow rail that is busy for a millisecond or more, with one packet prepared in advance.
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
fn a_prepared_packet_is_sent_when_its_rail_is_idle_without_other_events() {
    let mut net = prepared(1);
    let sent = net.send(0, 1, 0, 2, &[2; 1000]);
    net.turn(0, false);
    assert_eq!(net.result(0, sent), None);
    assert!(!net.hosts[0].engine.inspect().is_drained());
    let deadline = net.hosts[0].engine.inspect().next_deadline().expect("the prepared packet is due");
    net.now = deadline.as_ns();
    net.turn(0, false);
    assert!(matches!(net.result(0, sent), Some(Ok(_))));
    net.settle();
    assert_eq!(net.hosts[1].engine.inspect().unexpected(), 3);
}

#[test]
fn a_prepared_packet_survives_its_rail() {
    let mut net = prepared(2);
    let sent = net.send(0, 1, 0, 2, &[2; 1000]);
    net.turn(0, false);
    net.kill(0, 0, 1);
    net.settle();
    assert!(matches!(net.result(0, sent), Some(Ok(_))));
    assert_eq!(net.hosts[1].engine.inspect().unexpected(), 3);
    assert_eq!(net.pending(), 0);
}

#[test]
fn orders_given_before_the_loss_of_a_link_is_reported_take_another() {
    for strategy in ["fifo", "aggregate", "greedy", "aggregate_fastest", "iso_split", "ratio_split"] {
        for rail in [0, 1] {
            let mut net = Net::pair(2, Config { strategy: strategy.into(), ..Config::default() });
            net.send(0, 1, 0, 0, &[0]);
            net.settle();
            net.kill(rail, 0, 1);
            let hints = Hints { rail: Some(RailId(rail as u8)), ..Hints::default() };
            let recv = net.recv(1, from(0), 0, exact(2), LONG);
            net.send_with(0, 1, 0, 1, &pattern(100, 1), hints);
            net.send_with(0, 1, 0, 2, &pattern(LONG, 2), hints);
            let (now, Host { engine, rails, .. }) = (Instant::from_ns(net.now), &mut net.hosts[0]);
            let given = engine.inspect().counters(RailId(rail as u8)).packets;
            // As on submission: the rails are not polled.
            pump::feed(&mut pump::Exclusive(engine, rails), now, &mut || now, true);
            assert!(
                engine.inspect().counters(RailId(rail as u8)).packets > given,
                "{strategy}: rail {rail} is used"
            );
            net.settle();
            assert_eq!(net.hosts[1].engine.inspect().unexpected(), 2, "{strategy}, rail {rail}");
            assert!(net.got(1, recv, &pattern(LONG, 2)), "{strategy}, rail {rail}");
        }
    }
}

#[test]
fn full_packets_of_a_dead_rail_are_replayed_with_any_strategy() {
    for strategy in ["fifo", "aggregate", "greedy", "aggregate_fastest", "iso_split", "ratio_split"] {
        // 8 * (1998 + 24) + 16 is the largest packet.
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
            assert_eq!(net.hosts[1].engine.inspect().unexpected(), 201, "{strategy} {len}");
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
fn a_chunk_is_not_sent_again_from_memory_that_is_free() {
    for seed in 0..40 {
        // Fins arrive over the first rail, acknowledgements of chunks over the second.
        let rails = [limits(), Limits { lossy: true, ..limits() }];
        let config = Config { strategy: "iso_split".into(), chunk: 10_000, ..Config::default() };
        let mut net = Net::new(2, &rails, &config, seed);
        net.set_faults(Faults { drop: 100, ..Faults::default() });
        let recv = net.recv(1, from(0), 0, exact(1), LONG);
        net.send(0, 1, 0, 1, &pattern(LONG, seed));
        // The test memory checks that no rail reads from a completed request.
        net.settle();
        assert!(net.got(1, recv, &pattern(LONG, seed)));
    }
}

#[test]
fn shares_of_missing_rails_are_carried_by_others() {
    struct Careless;
    impl Strategy for Careless {
        fn name(&self) -> &'static str {
            "careless"
        }
        fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
            packet.take(window, rail.scope(true), |_, _| true);
        }
        fn split(&mut self, _: Instant, len: u64, _: &[RailView]) -> Shares {
            Shares::of([(RailId(9), len / 2), (RailId(0), len * 3)])
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
fn the_peer_is_notified_of_a_link_given_up_for_silence() {
    let rails = [Limits { lossy: true, ..limits() }, limits()];
    let mut net = Net::new(2, &rails, &Config::default(), 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.set_faults(Faults { drop: 255, ..Default::default() });
    net.carried();
    net.send_with(0, 1, 0, 1, &[1], Hints { rail: Some(RailId(0)), ..Hints::default() });
    net.settle();
    assert_eq!(net.hosts[1].engine.inspect().unexpected(), 2);
    assert!(net.said(0).iter().any(|(rail, text)| *rail == 1 && text.contains("rail 0 down")));
}

#[test]
fn a_link_that_was_idle_for_long_is_not_given_up_early() {
    let rails = [Limits { lossy: true, ..limits() }, limits()];
    let mut net = Net::new(2, &rails, &Config::default(), 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.now += 10_000_000_000;
    net.set_faults(Faults { drop: 255, ..Default::default() });
    net.send_with(0, 1, 0, 1, &[1], Hints { rail: Some(RailId(0)), ..Hints::default() });
    // The peer has no core for a second.
    for _ in 0..1000 {
        net.turn(0, true);
        net.now += 1_000_000;
    }
    let state = |net: &Net| net.hosts[0].engine.inspect().link(PeerId(1), RailId(0));
    assert!(matches!(state(&net), Some(LinkView::Up { .. })), "{:?}", state(&net));
    assert!(net.hosts[0].engine.inspect().counters(RailId(0)).resent > 6, "it was tried again and again");
}

#[test]
fn nothing_is_due_while_a_rail_is_full() {
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
        assert!(net.hosts[0].engine.inspect().peer_view(PeerId(1)).unwrap().body_backlog > 0);
        let due = net.hosts[0].engine.inspect().next_deadline();
        assert!(due.is_none_or(|due| due.as_ns() > net.now), "lossy {lossy}: due {due:?} at {}", net.now);
    }
}
