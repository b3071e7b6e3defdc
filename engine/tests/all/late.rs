//! Late receivers: messages sent eagerly because of them, within their credit, and the return to rendezvous
//! once they are timely.

use crate::net::{Net, exact, from, limits, pattern};
use crate::thresholds::profile;
use nmad_engine::{
    Caller, Config, Context, Hints, Instant, Limits, PeerId, Protocol, RailId, RequestId, Tag,
};

/// Length above the default eager limit: several packets.
const LEN: usize = 100_000;
/// Time that a receiver computes before it polls.
const LATE_NS: u64 = 2_000_000;

/// Rails of 1 GB/s; copying was not measured, so it is assumed to be as fast.
fn rail() -> Limits {
    Limits { bandwidth: 1_000_000_000, latency_ns: 5_000, ..limits() }
}

fn net(config: Config) -> Net {
    let mut net = Net::new(2, &[rail(), rail()], &config, 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net
}

fn config() -> Config {
    Config { strategy: "auto".into(), ..Config::default() }
}

/// Protocol of a message to host 1.
fn protocol(net: &Net, len: usize) -> Protocol {
    let to = (PeerId(1), Context(0), Tag(1));
    let now = Instant::from_ns(net.now);
    let engine = &net.hosts[0].engine;
    engine
        .inspect()
        .plan(to, len as u64, Hints::default(), Caller::GoesOn, now)
        .expect("it is there")
        .protocol
}

/// Runs only the pump of host 0 for a while: host 1 computes.
fn compute(net: &mut Net) {
    for _ in 0..200 {
        net.now += LATE_NS / 200;
        net.turn(0, true);
    }
}

/// Sends a message whose receive is posted, while the receiver computes; returns whether it was sent before
/// the receiver polled again.
fn overlapped(net: &mut Net, len: usize, seed: u64) -> bool {
    let recv = net.recv(1, from(0), 0, exact(1), len);
    let sent = net.send(0, 1, 0, 1, &pattern(len, seed));
    compute(net);
    let left = net.result(0, sent).is_some();
    net.settle();
    assert!(net.got(1, recv, &pattern(len, seed)), "message {seed}");
    left
}

#[test]
fn a_message_to_a_computing_receiver_is_sent_before_it_polls() {
    let mut net = net(config());
    assert_eq!(protocol(&net, LEN), Protocol::Rendezvous);
    assert!(!overlapped(&mut net, LEN, 1), "nobody knows yet that the receiver is late");
    assert_eq!(protocol(&net, LEN), Protocol::EagerParts);
    assert_eq!(protocol(&net, 40_000), Protocol::EagerParts);
    let left = (2..12).filter(|&seed| overlapped(&mut net, LEN, seed)).count();
    assert_eq!(left, 10);
}

/// What fits into a packet leaves with one call, over a rail that delivers it in time; a strategy that splits
/// every message splits this one, too.
#[test]
fn a_message_that_fits_into_a_packet_is_not_split_if_its_receiver_is_late() {
    for (strategy, alone) in [("auto", Some(RailId(0))), ("split", None)] {
        let limits = Limits { packet: 64 << 10, ..rail() };
        let config = Config { strategy: strategy.into(), ..config() };
        let mut net = Net::met(&[limits, limits], config);
        let plan = |net: &Net, len: u64| {
            let (to, now) = ((PeerId(1), Context(0), Tag(1)), Instant::from_ns(net.now));
            let engine = &net.hosts[0].engine;
            engine.inspect().plan(to, len, Hints::default(), Caller::Waits, now).expect("it is there")
        };
        assert_eq!(plan(&net, 40_000).protocol, Protocol::Rendezvous);
        overlapped(&mut net, LEN, 1);
        let now = plan(&net, 40_000);
        let expected = if alone.is_some() { Protocol::Eager } else { Protocol::EagerParts };
        assert_eq!((now.protocol, now.rail), (expected, alone), "{strategy}");
        assert_eq!(plan(&net, LEN as u64).protocol, Protocol::EagerParts, "it is longer than a packet");
    }
}

/// On a busy machine a waiting receiver may get its core late. Its answers say that it was waiting, so the
/// sender does not treat it as a receiver that computes.
#[test]
fn a_receiver_that_was_waiting_is_not_late() {
    for eager_max in [None, Some(0)] {
        let mut net = net(Config { eager_max, ..config() });
        for seed in 1..6 {
            net.hosts[1].engine.setup().waits(true);
            assert!(!overlapped(&mut net, LEN, seed), "it is asked, message {seed}");
        }
        assert_eq!(protocol(&net, LEN), Protocol::Rendezvous);
        // A receive that is posted late delays its message, whatever the receiver did before.
        net.hosts[1].engine.setup().waits(true);
        let sent = net.send(0, 1, 0, 1, &pattern(LEN, 6));
        compute(&mut net);
        net.turn(1, true);
        compute(&mut net);
        let recv = net.recv(1, from(0), 0, exact(1), LEN);
        net.settle();
        assert!(net.result(0, sent).is_some() && net.got(1, recv, &pattern(LEN, 6)));
        let expected = if eager_max.is_none() { Protocol::EagerParts } else { Protocol::Rendezvous };
        assert_eq!(protocol(&net, LEN), expected);
    }
}

/// A single rail that pushes, with chunks shorter than [`LEN`].
fn pushing(config: Config) -> Net {
    let limits = Limits { push: u64::MAX, ..rail() };
    let mut net = Net::new(2, &[limits], &Config { chunk: 64 << 10, ..config }, 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net
}

#[test]
fn messages_to_a_computing_receiver_are_pushed_whole_except_for_probes() {
    let mut net = pushing(config());
    assert!(!overlapped(&mut net, LEN, 1), "the rest of it waits for an answer");
    let waits: Vec<u64> = (2..40).filter(|&seed| !overlapped(&mut net, LEN, seed)).collect();
    assert_eq!(waits, [18], "the next one comes after twice as many");
    let mut net = pushing(Config { eager_max: Some(32 << 10), ..config() });
    (1..6).for_each(|seed| assert!(!overlapped(&mut net, LEN, seed), "the user has set a limit"));
}

#[test]
fn pushes_to_a_late_receiver_stay_within_the_credit() {
    let mut net = pushing(Config { credit: 1 << 20, ..config() });
    overlapped(&mut net, LEN, 1);
    let sent: Vec<RequestId> = (0..20).map(|seed| net.send(0, 1, 0, 1, &pattern(LEN, seed))).collect();
    compute(&mut net);
    let left = sent.iter().filter(|&&sent| net.result(0, sent).is_some()).count();
    assert!((4..9).contains(&left), "{left} of {LEN} B have left");
    let recvs: Vec<_> = (0..20).map(|_| net.recv(1, from(0), 0, exact(1), LEN)).collect();
    net.settle();
    for (recv, seed) in recvs.into_iter().zip(0..) {
        assert!(net.got(1, recv, &pattern(LEN, seed)), "message {seed}");
    }
}

#[test]
fn a_computing_receiver_does_not_make_rails_seem_slow() {
    let mut net = Net::new(2, &[Limits { packet: 72 << 10, ..rail() }; 2], &config(), 1);
    (0..2).for_each(|rail| net.hosts[0].engine.setup().set_profile(RailId(rail), None, profile()));
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    let mut most = 0.0f64;
    for seed in 1..100 {
        overlapped(&mut net, 3 * LEN, seed);
        for rail in [0, 1] {
            let forecast = net.hosts[0].engine.inspect().forecast(RailId(rail), PeerId(1)).expect("it is up");
            most = most.max(forecast.load());
        }
    }
    let forecast = net.hosts[0].engine.inspect().forecast(RailId(0), PeerId(1)).expect("it is up");
    let accuracy = forecast.accuracy().expect("what it carried was acknowledged");
    assert!(accuracy.count > 9 && accuracy.median > 2.0, "acknowledgements came late: {accuracy:?}");
    assert_eq!(protocol(&net, 3 * LEN), Protocol::EagerParts);
    // One of the two may seem slower for a while.
    assert!(most < 3.0, "{most}");
}

#[test]
fn a_waiting_sender_fills_all_rails_before_it_polls() {
    let mut net = net(config());
    overlapped(&mut net, LEN, 1);
    let packets = |net: &Net| [0, 1].map(|rail| net.hosts[0].engine.inspect().counters(RailId(rail)).packets);
    let before = packets(&net);
    net.send(0, 1, 0, 1, &pattern(LEN, 2));
    net.turn(0, true);
    let after = packets(&net);
    // Each rail carries half, in four packets.
    assert_eq!((after[0] - before[0], after[1] - before[1]), (4, 4));
}

#[test]
fn the_limit_of_the_user_stays() {
    let mut net = net(Config { eager_max: Some(32 << 10), ..config() });
    (1..6).for_each(|seed| assert!(!overlapped(&mut net, LEN, seed)));
    assert!(!(protocol(&net, LEN) == Protocol::EagerParts));
}

#[test]
fn one_of_sixteen_messages_is_a_probe_and_detects_a_timely_receiver() {
    let mut net = net(config());
    overlapped(&mut net, LEN, 1);
    let waits: Vec<u64> = (2..40).filter(|&seed| !overlapped(&mut net, LEN, seed)).collect();
    assert_eq!(waits, [18], "the next one comes after twice as many");
    // From now on the receiver polls all the time.
    let mut asked = 0;
    for seed in 0..400 {
        asked += usize::from(protocol(&net, LEN) != Protocol::EagerParts);
        let recv = net.recv(1, from(0), 0, exact(1), LEN);
        net.send(0, 1, 0, 1, &pattern(LEN, seed));
        net.settle();
        assert!(net.got(1, recv, &pattern(LEN, seed)));
    }
    assert!(asked > 200, "{asked} of 400 messages asked");
}

#[test]
fn receipts_name_the_parts_and_the_rails_that_carried_them() {
    let mut net = net(config());
    overlapped(&mut net, LEN, 1);
    net.hosts[0].engine.setup().record_receipts(Some(0));
    overlapped(&mut net, LEN, 2);
    let receipt = net.hosts[0].engine.next_receipt().expect("it was sent");
    assert_eq!((receipt.protocol, receipt.envelope.len), (Protocol::EagerParts, LEN as u64));
    assert_eq!(receipt.carried.iter().map(|(_, len)| len).sum::<u64>(), LEN as u64, "{receipt:?}");
}

/// Unexpected bytes at host 1.
fn kept(net: &Net) -> u64 {
    net.hosts[1].engine.inspect().traffic(PeerId(0)).expect("it is known").unexpected_bytes
}

#[test]
fn a_message_with_an_rtr_reports_no_lack_of_credit() {
    let mut net = net(config());
    let sent = net.send(0, 1, 0, 1, &pattern(LEN, 1));
    compute(&mut net);
    let recv = net.recv(1, from(0), 0, exact(1), LEN);
    net.settle();
    assert!(net.result(0, sent).is_some() && net.got(1, recv, &pattern(LEN, 1)));
    let recv = net.recv(1, from(0), 0, exact(1), LEN);
    net.settle();
    net.send(0, 1, 0, 1, &pattern(LEN, 2));
    net.settle();
    assert!(net.got(1, recv, &pattern(LEN, 2)));
    assert!(net.hosts[0].notices.is_empty(), "{:?}", net.hosts[0].notices);
}

#[test]
fn a_flood_falls_back_to_rendezvous_within_the_budget_and_recovers() {
    let credit = 1 << 20;
    let mut net = net(Config { credit, ..config() });
    overlapped(&mut net, LEN, 1);
    let lens: Vec<usize> = (0..200).map(|i| 20_000 + i * 997 % 150_000).collect();
    let sent: Vec<RequestId> =
        lens.iter().enumerate().map(|(i, &len)| net.send(0, 1, 0, 2, &pattern(len, i as u64))).collect();
    let mut most = 0;
    for _ in 0..2_000 {
        net.now += 10_000;
        net.turn(0, true);
        net.turn(1, false);
        most = most.max(kept(&net));
    }
    assert!(most > credit / 4 && most <= credit, "{most} bytes were kept");
    assert!(sent.iter().any(|&request| net.result(0, request).is_none()), "the rest waits for receives");
    let said =
        |net: &Net| net.hosts[0].notices.iter().filter(|n| n.text.contains("has received too few")).count();
    assert_eq!(said(&net), 1, "{:?}", net.hosts[0].notices);
    for (i, &len) in lens.iter().enumerate() {
        let recv = net.recv(1, from(0), 0, exact(2), len);
        net.settle();
        assert!(net.got(1, recv, &pattern(len, i as u64)), "message {i}");
    }
    assert_eq!((kept(&net), net.hosts[0].engine.inspect().pending(), said(&net)), (0, 0, 1));
    assert_eq!(protocol(&net, LEN), Protocol::EagerParts, "there is credit again");
}

/// A profile that was measured is checked by messages that ask, as long as their answers show anything.
#[test]
fn a_rail_is_not_timed_by_asking_a_late_receiver() {
    let mut net = pushing(Config { adapts: true, ..config() });
    net.hosts[0].engine.setup().set_profile(RailId(0), None, profile());
    let asked = (1..150).filter(|&seed| !overlapped(&mut net, 40_000, seed)).count();
    assert!(asked < 8, "{asked} of them asked");
}
