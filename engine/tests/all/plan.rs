//! The plan of a message names its protocol, and the message uses it; recording receipts changes nothing.

use crate::common::leave_to_inner;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{
    Caller, Config, Context, Departure, Driver, Event, Hints, How, Instant, Key, Limits, Order, PeerId, Plan,
    PollScope, Protocol, RailId, RegionId, Segments, Sent, Tag,
};
use std::sync::{Arc, Mutex};

const KIB: usize = 1 << 10;

/// The orders that a rail was given, in words.
type Given = Arc<Mutex<Vec<&'static str>>>;

/// A rail that records the orders that it is given.
struct Recording {
    inner: Box<dyn Driver>,
    given: Given,
}

impl Driver for Recording {
    leave_to_inner!("recording");

    fn send(&mut self, departure: Departure<'_>) -> Sent {
        let what = match &departure {
            Departure::Message { how: How::Inject, .. } => "injected",
            Departure::Message { how: How::Send, .. } => "sent",
            Departure::Pushed { .. } => "pushed",
            Departure::Order(Order::Packet { packet, .. }) if packet.in_place.is_empty() => "packet",
            Departure::Order(Order::Packet { .. }) => "packet with data in place",
            Departure::Order(Order::Chunk { key: Key::PUSH, .. }) => "pushed chunk",
            Departure::Order(Order::Chunk { .. }) => "chunk",
            Departure::Order(_) => "no data",
        };
        self.given.lock().unwrap().push(what);
        self.inner.send(departure)
    }
    fn poll(&mut self, scope: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        self.inner.poll(scope, report)
    }
}

/// A situation.
#[derive(Clone, Copy)]
struct Case {
    limits: Limits,
    len: usize,
    caller: Caller,
    /// A receive is posted, and the receiver knows that large messages arrive, so that it sends an Rtr for
    /// the next one.
    invited: bool,
}

/// The result of a send.
#[derive(Debug, PartialEq)]
struct Outcome {
    plan: Plan,
    given: Vec<&'static str>,
    /// The orders that the sender's rail carried.
    carried: Vec<Vec<u8>>,
}

/// Plans and sends a message in this situation. It arrives, and its receipt, if recorded, names the
/// protocol of the plan.
fn run(case: Case, receipts: bool) -> Outcome {
    let Case { limits, len, caller, invited } = case;
    let config = Config { in_place_min: Some(2_000), ..Config::default() };
    let mut net = Net::new(2, &[limits], &config, 1);
    net.wires().at_once = [Sent::Done].into();
    // The link is up, and the sender knows its credit and perhaps has an Rtr.
    let before = if invited { 100 * KIB } else { 1 };
    let first = net.recv(1, from(0), 0, exact(5), before);
    net.send(0, 1, 0, 5, &pattern(before, 1));
    net.settle();
    assert!(net.got(1, first, &pattern(before, 1)));
    let early = invited.then(|| net.recv(1, from(0), 0, exact(5), len));
    net.settle();
    net.carried();
    let given = Given::default();
    let inner = net.hosts[0].rails.pop().expect("one rail");
    net.hosts[0].rails.push(Box::new(Recording { inner, given: given.clone() }));

    let data = pattern(len, 2);
    let to = (PeerId(1), Context(0), Tag(5));
    let now = Instant::from_ns(net.now);
    let engine = &mut net.hosts[0].engine;
    engine.setup().record_receipts(receipts.then_some(0));
    let plan =
        engine.inspect().plan(to, len as u64, Hints::default(), caller, now).expect("the peer is known");
    let sent = net.send_at_once(0, (1, 0, 5), &data, Hints::default(), caller);
    assert_eq!(sent.is_ok(), plan.rail.is_some(), "a plan with a rail is one that leaves at once");
    if let Err(refused) = sent {
        assert!(refused.is_none());
        net.send_as(0, (1, 0, 5), &data, None);
    }
    let posted = early.unwrap_or_else(|| {
        net.turn(0, true);
        net.recv(1, from(0), 0, exact(5), len)
    });
    net.settle();
    assert!(net.got(1, posted, &data), "{plan:?}");
    let told = net.hosts[0].engine.next_receipt().map(|receipt| (receipt.protocol, receipt.envelope.len));
    assert_eq!(told, receipts.then_some((plan.protocol, len as u64)));
    let carried = net.carried().into_iter().filter(|carried| carried.from == 0).map(|c| c.bytes).collect();
    let given = given.lock().unwrap().clone();
    Outcome { plan, given, carried }
}

/// Checks the plan, at once or through the window, and the first orders of the rail, with receipts and
/// without.
fn check(case: Case, protocol: Protocol, at_once: bool, first: &[&str]) -> Outcome {
    let [outcome, with_receipts] = [false, true].map(|receipts| run(case, receipts));
    let rail = at_once.then_some(RailId(0));
    assert_eq!((outcome.plan.protocol, outcome.plan.rail), (protocol, rail));
    assert!(outcome.given.starts_with(first), "{protocol:?}: {:?}", outcome.given);
    let same = (outcome.plan, &outcome.given) == (with_receipts.plan, &with_receipts.given);
    assert!(same && outcome.carried == with_receipts.carried, "{protocol:?}: receipts change nothing");
    outcome
}

fn said(outcome: &Outcome) -> String {
    nmad_wire::explain(&outcome.carried[0]).to_string()
}

const PUSHES: u64 = u64::MAX;

fn case(limits: Limits, len: usize, caller: Caller) -> Case {
    Case { limits, len, caller, invited: false }
}

#[test]
fn a_message_that_fits_a_packet_is_injected_or_sent_or_waits() {
    let injects = Limits { inject: true, ..limits() };
    for caller in [Caller::GoesOn, Caller::Steps, Caller::Waits, Caller::Looked] {
        check(case(injects, 100, caller), Protocol::Inject, true, &["injected"]);
    }
    for caller in [Caller::Steps, Caller::Waits, Caller::Looked] {
        check(case(limits(), 100, caller), Protocol::Eager, true, &["sent"]);
    }
    check(case(limits(), 100, Caller::GoesOn), Protocol::Eager, false, &["packet"]);
    let first = &["packet with data in place"];
    check(case(limits(), 4_000, Caller::GoesOn), Protocol::EagerZcopy, false, first);
    let copies = Limits { gather: 0, ..limits() };
    check(case(copies, 4_000, Caller::GoesOn), Protocol::Eager, false, &["packet"]);
}

#[test]
fn a_long_message_is_pushed_or_uses_rendezvous_or_an_rtr() {
    let pushes = Limits { push: PUSHES, ..limits() };
    let pushed = check(case(pushes, 100 * KIB, Caller::Looked), Protocol::Push, true, &["pushed"]);
    assert!(pushed.carried.len() == 2 && said(&pushed).contains("pushed"), "{}", said(&pushed));
    let first = &["packet", "pushed chunk"];
    check(case(pushes, 100 * KIB, Caller::GoesOn), Protocol::Push, false, first);

    let asked = check(case(limits(), 100 * KIB, Caller::Waits), Protocol::Rendezvous, false, &["packet"]);
    assert!(asked.given.contains(&"chunk") && !said(&asked).contains("open region"));

    let invited = Case { invited: true, ..case(limits(), 100 * KIB, Caller::Waits) };
    let invited = check(invited, Protocol::Rtr, false, &["packet", "chunk"]);
    assert!(said(&invited).contains("open region"), "{}", said(&invited));
}

#[test]
fn there_is_no_plan_for_an_unknown_peer() {
    let net = Net::pair(1, Config::default());
    let to = (PeerId(7), Context(0), Tag(5));
    let plan = net.hosts[0].engine.inspect().plan(to, 1, Hints::default(), Caller::Waits, Instant::default());
    assert!(plan.is_none());
}
