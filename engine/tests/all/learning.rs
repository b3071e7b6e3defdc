//! Learning about rails from messages.

use crate::common::leave_to_inner;
use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use crate::thresholds::profile;
use nmad_engine::{
    Config, Departure, Driver, Event, InForce, InPlace, Instant, Key, Limits, PacketBuilder, PeerId,
    PollScope, RailId, RailView, RegionId, Registry, Segments, Sent, Shares, Strategy, ThresholdOrigin,
    Window,
};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// A rail that notes from which lengths it shall leave data in place.
struct Limited {
    inner: Box<dyn Driver>,
    given: Arc<Mutex<Vec<InPlace>>>,
}

impl Driver for Limited {
    leave_to_inner!("limited");
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        self.inner.send(departure)
    }
    fn poll(&mut self, scope: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        self.inner.poll(scope, report)
    }
    fn leave_in_place(&mut self, from: Option<InPlace>) {
        self.given.lock().unwrap().extend(from);
    }
}

#[test]
fn a_rail_gets_the_limits_that_its_messages_have_corrected() {
    for blocks in [true, false] {
        let config = Config { adapts: true, ..Config::default() };
        let mut net = Net::new(2, &[Limits { blocks, ..limits() }], &config, 1);
        let given = Arc::<Mutex<Vec<InPlace>>>::default();
        for inner in std::mem::take(&mut net.hosts[0].rails) {
            net.hosts[0].rails.push(Box::new(Limited { inner, given: given.clone() }));
        }
        carry(&mut net, 1, 1_100);
        let learnt = net.hosts[0].engine.inspect().learnt(RailId(0), PeerId(1)).expect("it learns");
        let last = given.lock().unwrap().last().copied();
        assert_eq!(last, learnt.profile.in_place().filter(|_| blocks));
    }
}

/// Two hosts with learning; the first one can also reach itself.
fn net() -> Net {
    let mut net = Net::new(2, &[limits()], &Config { adapts: true, ..Config::default() }, 1);
    net.hosts[0].engine.setup().add_link(PeerId(0), RailId(0));
    net
}

/// Host 0 sends some messages, one after the other.
fn carry(net: &mut Net, to: u32, count: usize) {
    for _ in 0..count {
        let received = net.recv(to as usize, from(0), 0, exact(1), 64);
        net.send(0, to, 0, 1, &pattern(64, 1));
        net.settle();
        assert!(net.got(to as usize, received, &pattern(64, 1)));
    }
}

/// Sends messages; returns whether the peer was queried.
fn carries(net: &mut Net, to: u32) -> bool {
    net.carried();
    carry(net, to, 40);
    net.said(0).iter().any(|(_, text)| text.contains("question"))
}

/// Like `fifo`; counts the calls of [`Strategy::relearnt`].
struct Told(Arc<AtomicU32>);

impl Strategy for Told {
    fn name(&self) -> &str {
        "told"
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.take(window, rail.scope(true), |_, _| true);
    }

    fn split(&mut self, _: Instant, _: u64, _: &[RailView]) -> Shares {
        Shares::FirstIdle
    }

    fn relearnt(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_strategy_is_notified_when_a_rail_has_changed() {
    let count = Arc::new(AtomicU32::new(0));
    let (mut registry, counted) = (Registry::default(), count.clone());
    registry.add(move || Box::new(Told(counted.clone())));
    let config = Config { adapts: true, registry, strategy: "told".into(), ..Config::default() };
    let mut net = Net::new(2, &[limits()], &config, 1);
    carry(&mut net, 1, 1_100);
    assert_eq!(count.load(Ordering::Relaxed), 0, "the rail is as it was");
    net.set_faults(Faults { delay_ns: 400_000, ..Faults::default() });
    carry(&mut net, 1, 1_100);
    assert!(count.load(Ordering::Relaxed) > 0, "it takes a hundred times as long");
}

#[test]
fn messages_to_itself_are_not_learnt_from() {
    let mut net = net();
    assert!(carries(&mut net, 1), "another peer is asked what has arrived");
    assert!(net.hosts[0].engine.inspect().learnt(RailId(0), PeerId(1)).is_some());
    assert!(!carries(&mut net, 0), "nothing is timed");
    assert!(net.hosts[0].engine.inspect().learnt(RailId(0), PeerId(0)).is_none());
}

/// Host 0 sends messages of 64 B while each poll of the rails takes `look_ns`; returns the thresholds then
/// in force.
fn in_force(net: &mut Net, count: usize, look_ns: u64) -> InForce {
    for _ in 0..count {
        let (received, buffer) = net.recv(1, from(0), 0, exact(1), 64);
        net.send(0, 1, 0, 1, &pattern(64, 1));
        for turn in 0.. {
            net.turn(0, true);
            net.turn(1, true);
            net.now += look_ns;
            if net.got(1, (received, buffer), &pattern(64, 1)) {
                break;
            }
            assert!(turn < 100, "{}", net.views());
        }
    }
    net.hosts[0].engine.inspect().in_force(PeerId(1)).expect("the peer is known")
}

/// Every 4096 packets the engine checks whether answers take longer than at first.
#[test]
fn a_sampled_profile_follows_the_latency_and_returns() {
    let mut net = Net::pair(1, Config { adapts: true, ..Config::default() });
    (0..2).for_each(|host| net.hosts[host].engine.setup().set_profile(RailId(0), None, profile()));
    let before = in_force(&mut net, 1_200, 500);
    assert_eq!(before.rails[0].origin, ThresholdOrigin::Sampled);
    let later = in_force(&mut net, 3_100, 20_000);
    let ThresholdOrigin::Learnt { since, count } = later.rails[0].origin else { panic!("{later:?}") };
    assert!(since > Instant::default() && count >= 5, "{later:?}");
    assert!(later.eager_max > before.eager_max, "asking takes longer: {before:?}, {later:?}");
    let of = |in_force: &InForce| in_force.rails[0].thresholds.in_place_min;
    assert_eq!(of(&before), of(&later), "copied or in place, both have become slower");
    let again = in_force(&mut net, 4_100, 500);
    assert_eq!(again, before);
}

#[test]
fn a_peer_that_does_not_poll_is_not_queried_with_every_message() {
    let mut net = Net::pair(1, Config { adapts: true, ..Config::default() });
    carry(&mut net, 1, 1);
    net.carried();
    for _ in 0..1_000 {
        net.send(0, 1, 0, 1, &pattern(64, 1));
        net.turn(0, true);
    }
    let asked = net.said(0).iter().filter(|(_, text)| text.contains("question")).count();
    assert!(asked < 50, "{asked} questions that nobody has answered");
}
