//! Messages sent at once over a lossy rail, and kept while in flight.

use crate::common::{self, Pair, bytes, leave_to_inner, limits, pattern, segments};
use crate::short;
use nmad_engine::{
    Caller, Config, Context, Departure, Driver, Event, Hints, How, Instant, Key, Limits, Order, Packet,
    PeerId, PollScope, RailId, RegionId, Segments, Sent, Source, Tag, TagMatch, pump,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A lossy rail that sends a packet at once, unless `refuses` is true for its number among such packets,
/// and loses those for which `loses` is true.
struct Hasty {
    inner: Box<dyn Driver>,
    refuses: fn(u32) -> bool,
    loses: fn(u32) -> bool,
    asked: u32,
    carried: u32,
    lost: Vec<(PeerId, u32, Packet)>,
    hurried: Arc<AtomicU32>,
}

impl Driver for Hasty {
    leave_to_inner!("hasty");
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { to, number, head, data, how } => {
                assert_eq!(how, How::Send, "it is lossy");
                self.asked += 1;
                if (self.refuses)(self.asked) {
                    return Sent::Retry;
                }
                let bytes = short::whole(head, data);
                assert_eq!(bytes[8..12], number.to_le_bytes(), "told the number of the packet");
                self.hurried.fetch_add(1, Ordering::Relaxed);
                self.carried += 1;
                if !(self.loses)(self.carried) {
                    short::carry(&mut *self.inner, to, bytes);
                }
                Sent::Done
            }
            Departure::Order(order) => {
                self.carried += 1;
                match order {
                    Order::Packet { to, number, packet } if (self.loses)(self.carried) => {
                        self.lost.push((to, number, packet));
                        Sent::Posted
                    }
                    order => self.inner.send(Departure::Order(order)),
                }
            }
            Departure::Pushed { .. } => panic!("nothing is pushed here"),
        }
    }
    fn poll(&mut self, scope: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        for (to, number, packet) in self.lost.drain(..) {
            report(Event::Sent { to, number, packet: Some(packet) });
        }
        short::poll(&mut *self.inner, scope, report)
    }
}

/// Two hosts with such a rail from the first to the second.
fn pair(refuses: fn(u32) -> bool, loses: fn(u32) -> bool) -> (Pair, Arc<AtomicU32>) {
    // Data in the retransmission buffer is copied anyway, so the threshold for sending in place does not
    // matter.
    let config = Config { in_place_min: Some(16), ..Config::default() };
    connected(Pair::with(1, config, Limits { lossy: true, ..limits() }), refuses, loses)
}

/// Connects any pair, with such rails from the first to the second.
fn connected(mut pair: Pair, refuses: fn(u32) -> bool, loses: fn(u32) -> bool) -> (Pair, Arc<AtomicU32>) {
    // Exchange the initial credit limits.
    for _ in 0..2 {
        pair.send(0, 9, 9, pattern(1));
        pair.recv(1, Source::Peer(PeerId(0)), 9, TagMatch::Any, 1);
        pair.settle();
    }
    let hurried = Arc::<AtomicU32>::default();
    for rail in std::mem::take(&mut pair.hosts[0].rails) {
        let (lost, hurried) = (Vec::new(), hurried.clone());
        let hasty = Hasty { inner: rail, refuses, loses, asked: 0, carried: 0, lost, hurried };
        pair.hosts[0].rails.push(Box::new(hasty));
    }
    pair.settle();
    (pair, hurried)
}

/// Sends as a caller that waits; returns whether the message ended at once.
fn send(pair: &mut Pair, tag: u64, data: &'static [u8]) -> bool {
    let host = &mut pair.hosts[0];
    let (data, now) = (segments(data), Instant::from_ns(host.now));
    let to = (PeerId(1), Context(0), Tag(tag));
    let (hints, caller) = (Hints::default(), Caller::Steps);
    let node = &mut pump::Exclusive(&mut host.engine, &mut host.rails);
    let sent = pump::send_at_once(node, &to, (&data, hints), caller, &mut || now);
    let Err(refused) = sent else { return true };
    host.engine.send_as(to, data, hints, refused);
    false
}

/// Runs both pumps until nothing is in flight, for at most ten simulated seconds.
fn deliver(pair: &mut Pair) {
    for _ in 0..10_000 {
        pair.hosts.iter_mut().for_each(|host| {
            host.now += 1_000_000;
            host.turn(true);
        });
        if pair.hosts[0].engine.inspect().peer_view(PeerId(1)).is_some_and(|peer| peer.in_flight == 0) {
            return;
        }
    }
    panic!("not all was acknowledged");
}

#[test]
fn messages_sent_at_once_arrive_in_order_despite_refusals_and_losses() {
    let lens: Vec<usize> = (0..400).map(|n| n * n * 13 % 3000).collect();
    let patterns: [fn(u32) -> bool; 3] = [|_| false, |n| n % 3 == 0, |n| n % 7 > 4];
    for refuses in patterns {
        for loses in patterns {
            let (mut pair, hurried) = pair(refuses, loses);
            for (tag, &len) in lens.iter().enumerate() {
                send(&mut pair, tag as u64, pattern(len));
                if tag % 3 == 2 {
                    pair.hosts.iter_mut().for_each(|host| host.turn(true));
                }
                if tag % 50 == 49 {
                    deliver(&mut pair);
                }
            }
            deliver(&mut pair);
            assert!(hurried.load(Ordering::Relaxed) > 50, "some did leave at once");
            check(&mut pair, &lens);
            let counters = pair.hosts[0].engine.inspect().counters(RailId(0));
            assert!(counters.entries >= lens.len() as u64, "{counters:?}");
        }
    }
}

#[test]
fn messages_sent_at_once_over_a_rail_that_dies_arrive_over_the_other() {
    for strategy in ["auto", "fifo", "greedy"] {
        let config = Config { strategy: strategy.into(), ..Config::default() };
        let (mut pair, hurried) = connected(Pair::new(2, config), |n| n % 5 == 0, |_| false);
        let lens: Vec<usize> = (0..200).map(|n| n * n * 13 % 3000).collect();
        for (tag, &len) in lens.iter().enumerate() {
            send(&mut pair, tag as u64, pattern(len));
            if tag % 3 == 2 {
                pair.hosts.iter_mut().for_each(|host| host.turn(true));
            }
            if tag == 100 {
                assert!(hurried.load(Ordering::Relaxed) > 40, "{strategy}: with two rails, too");
                *pair.cuts[0].lock().expect("not poisoned") = true;
            }
        }
        deliver(&mut pair);
        check(&mut pair, &lens);
    }
}

fn check(pair: &mut Pair, lens: &[usize]) {
    for (number, &len) in lens.iter().enumerate() {
        let (request, memory) = pair.recv(1, Source::Peer(PeerId(0)), 0, TagMatch::Any, len.max(1));
        pair.hosts[1].turn(true);
        let envelope = pair.result(1, request).expect("it has ended").expect("and well");
        assert_eq!((envelope.tag.0, envelope.len), (number as u64, len as u64), "in order");
        assert!(bytes(memory)[..len] == pattern(len)[..], "message {number} is intact");
    }
}

/// A lost message is retransmitted when its timeout has passed, even without any event; until then no order
/// is due.
#[test]
fn a_lost_message_sent_at_once_is_retransmitted_in_time() {
    let (mut pair, hurried) = pair(|_| false, |n| n == 1);
    assert!(send(&mut pair, 0, pattern(8)) && hurried.load(Ordering::Relaxed) == 1);
    let engine = &mut pair.hosts[0].engine;
    let deadline = engine.inspect().next_deadline().expect("it waits for an acknowledgement");
    let (before, after) = (Instant::from_ns(deadline.as_ns() - 1), deadline);
    pair.hosts[0].now = before.as_ns() - 2_000;
    pair.hosts[0].turn(true);
    assert!(!pair.hosts[0].engine.has_orders(before), "nothing is due");
    assert!(pair.hosts[0].engine.has_orders(after), "it is to be sent again");
    deliver(&mut pair);
    check(&mut pair, &[8]);
    assert!(pair.hosts[0].engine.inspect().counters(RailId(0)).resent >= 1);
}

/// A blocking receive completes with a message over a lossy rail, which is acknowledged.
#[test]
fn the_expected_message_is_received_and_acknowledged() {
    let (mut pair, _) = pair(|_| false, |n| n == 30);
    let (into, place) = common::memory(100);
    let mut met = 0;
    for round in 0..100u64 {
        let from = Source::Peer(PeerId(0));
        assert!(pair.hosts[1].engine.expect(from, Context(0), TagMatch::Exact(Tag(round)), &into).is_some());
        assert!(send(&mut pair, round, pattern(round as usize)), "round {round}");
        // A waiting caller checks after each pass.
        let met_or_posted = (0..10_000).find_map(|_| {
            pair.hosts.iter_mut().for_each(|host| {
                host.now += 1_000_000;
                host.turn(true);
            });
            Some(pair.hosts[1].engine.met()).filter(|met| *met != nmad_engine::Met::Not)
        });
        deliver(&mut pair);
        match met_or_posted.unwrap_or(nmad_engine::Met::Not) {
            nmad_engine::Met::Message(envelope) => {
                met += 1;
                assert_eq!((envelope.tag, envelope.len), (Tag(round), round));
            }
            nmad_engine::Met::Request(request) => {
                assert!(pair.result(1, request).is_some_and(|ended| ended.is_ok()), "round {round}");
            }
            nmad_engine::Met::Not => panic!("round {round}: not met"),
        }
        assert!(bytes(place)[..round as usize] == *pattern(round as usize));
    }
    assert!(met > 90, "{met}");
}

/// A waiting caller gets its message before the engine handles the acknowledgement that arrived with it;
/// but the acknowledgement is handled before any retransmission or query of the state, however late the
/// next pass is.
#[test]
fn an_acknowledgement_with_the_expected_message_prevents_retransmission() {
    for sends_at_once in [false, true] {
        let (mut pair, _) = pair(|_| false, |_| false);
        assert!(send(&mut pair, 0, pattern(8)));
        pair.hosts[1].turn(true);
        let (into, _) = common::memory(100);
        let from = Source::Peer(PeerId(1));
        assert!(pair.hosts[0].engine.expect(from, Context(0), TagMatch::Exact(Tag(5)), &into).is_some());
        pair.send(1, 0, 5, pattern(8));
        pair.hosts[1].turn(true);
        pair.hosts[0].turn(true);
        assert!(matches!(pair.hosts[0].engine.met(), nmad_engine::Met::Message(_)));
        pair.hosts[0].now += 1_000_000_000;
        if sends_at_once {
            assert!(send(&mut pair, 1, pattern(8)));
        }
        pair.hosts[0].turn(false);
        let view = pair.hosts[0].engine.inspect().peer_view(PeerId(1)).expect("it is known");
        assert_eq!(view.in_flight, usize::from(sends_at_once));
        assert_eq!(pair.hosts[0].engine.inspect().counters(RailId(0)).resent, 0);
    }
}
