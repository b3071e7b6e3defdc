//! What the drivers around a driver do to what passes.

use nmad_drivers::around::fault::{Fault, Faults};
use nmad_drivers::around::throttle::Throttle;
use nmad_drivers::around::trace::{Trace, What};
use nmad_drivers::around::{Around, Layer};
use nmad_drivers::conformance::memory::Memory;
use nmad_drivers::loopback::LoopbackRail;
use nmad_engine::packet::{Key, Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use nmad_wire::{Header, Kind};
use std::time::{Duration, Instant};

const ME: PeerId = PeerId(0);

fn up<L: Layer>(layer: L) -> Around<LoopbackRail, L> {
    let mut rail = Around::new(LoopbackRail::new(ME, 0), layer);
    rail.send(Departure::Order(Order::Connect { to: ME }));
    let begun = Instant::now();
    let mut up = false;
    while !up {
        rail.poll(Scope::All, &mut |event| up |= matches!(event, Event::Up { .. }));
        assert!(begun.elapsed() < Duration::from_secs(5), "the link comes up");
    }
    rail
}

fn packet(number: u32) -> Order {
    let header = Header { kind: Kind::Packet, len: 80, number, ack: 0 };
    let mut bytes = header.encode().to_vec();
    bytes.resize(80, number as u8);
    Order::Packet { to: ME, number, packet: Packet { bytes, in_place: Vec::new() } }
}

/// Sends packets and returns those that arrived.
fn send(rail: &mut impl Driver, count: u32) -> Vec<Vec<u8>> {
    let mut arrived = Vec::new();
    let mut note = |event: Event<'_>| {
        if let Event::Arrived { packet, .. } = event {
            arrived.push(packet.to_vec());
        }
    };
    for number in 0..count {
        rail.send(Departure::Order(packet(number)));
        rail.poll(Scope::All, &mut note);
    }
    (0..1000).for_each(|_| _ = rail.poll(Scope::All, &mut note));
    arrived
}

#[test]
fn faults_follow_from_the_seed_and_have_the_rates_asked_for() {
    let faults =
        |seed| Faults { pretend_lossy: true, drop: 0.2, duplicate: 0.1, delay: 0.3, ..Faults::none(seed) };
    let run = |seed| send(&mut up(Fault::new(faults(seed))), 5000);
    let (once, again, other) = (run(1), run(1), run(2));
    assert!(once == again && once != other, "the seed decides");
    // 0.8 * 1.1 of them arrive.
    assert!((4200..4600).contains(&once.len()), "{} of 5000", once.len());
    let numbers: Vec<u32> = once.iter().map(|p| Header::decode(p).expect("intact").number).collect();
    assert!(!numbers.is_sorted(), "some are overtaken");
}

#[test]
fn a_reliable_rail_stays_reliable_unless_told_otherwise() {
    let faults = Faults { drop: 0.5, duplicate: 0.5, delay: 0.5, ..Faults::none(1) };
    assert_eq!(send(&mut up(Fault::new(faults)), 500).len(), 500);
}

#[test]
fn corruption_changes_one_bit() {
    let faults = Faults { corrupt: 1.0, ..Faults::none(3) };
    for (number, arrived) in send(&mut up(Fault::new(faults)), 100).iter().enumerate() {
        let Order::Packet { packet, .. } = packet(number as u32) else { panic!("not a packet") };
        let changed: u32 = arrived.iter().zip(&packet.bytes).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!(changed, 1, "packet {number}");
    }
}

#[test]
fn a_killed_link_gives_back_what_was_not_sent() {
    let mut rail = up(Fault::new(Faults { kill_after: Some(800), ..Faults::none(1) }));
    (0..14).for_each(|number| _ = rail.send(Departure::Order(packet(number))));
    let (mut sent, mut back) = (0, 0);
    for _ in 0..3 {
        rail.poll(Scope::All, &mut |event| match event {
            Event::Sent { .. } => sent += 1,
            Event::Lost { unsent, why, .. } => {
                assert!(why.contains("peer 0 killed after 800 B"), "{why}");
                back += unsent.len();
            }
            _ => {}
        });
    }
    assert_eq!((sent, back), (10, 4));
}

/// How close it comes from below depends on who else uses the machine; it is never faster.
#[test]
fn the_throttle_is_never_faster_than_its_rate() {
    for _ in 0..5 {
        let ratio = throttled(400_000_000);
        assert!(ratio < 1.04, "{ratio:.3} of the rate");
    }
}

/// Sends chunks for some milliseconds; returns the part of `rate` that was reached.
fn throttled(rate: u64) -> f64 {
    const COUNT: u32 = 200;
    let mut rail = up(Throttle::new(rate, Duration::ZERO));
    let (source, target) = (Memory::pattern(100_000, 1), Memory::zeroed(100_000));
    let key = rail.open(RegionId(1), ME, target.segments());
    let (mut posted, mut sent) = (0, 0);
    let begun = Instant::now();
    while sent < COUNT {
        if posted < COUNT && rail.room() > 0 {
            rail.send(Departure::Order(chunk(posted, key, &source)));
            posted += 1;
        }
        rail.poll(Scope::All, &mut |event| sent += u32::from(matches!(event, Event::Sent { .. })));
    }
    f64::from(COUNT) * 100_000.0 / begun.elapsed().as_secs_f64() / rate as f64
}

fn chunk(number: u32, key: Key, source: &Memory) -> Order {
    let from = source.segments();
    Order::Chunk { to: ME, number, ack: 0, region: RegionId(1), key, offset: 0, from }
}

#[test]
fn the_throttle_adds_its_latency() {
    let mut rail = up(Throttle::new(1 << 40, Duration::from_millis(20)));
    rail.send(Departure::Order(packet(0)));
    let begun = Instant::now();
    let mut arrived = false;
    while !arrived {
        rail.poll(Scope::All, &mut |event| arrived |= matches!(event, Event::Arrived { .. }));
    }
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert_eq!(rail.limits().latency_ns, 100 + 20_000_000);
}

#[test]
fn the_trace_tells_what_passed_and_keeps_the_latest() {
    let trace = Trace::new("loopback", 6, true);
    let handle = trace.handle();
    let mut rail = up(trace);
    assert_eq!(send(&mut rail, 2).len(), 2);
    let records = handle.records();
    let what: Vec<_> = records.iter().map(|r| (r.what, r.number, r.len)).collect();
    let each = |n| [(What::PostPacket, n, 80), (What::Arrived, n, 80), (What::Sent, n, 80)];
    assert_eq!(what, [each(0), each(1)].concat(), "connect and up have fallen out");
    assert!(records.is_sorted_by_key(|r| r.at_ns));
    assert!(records[0].text.starts_with("packet #0 of 80 B"), "{}", records[0].text);
    let lines = handle.json_lines();
    assert_eq!(lines.lines().count(), 6);
    assert!(lines.lines().all(|line| line.starts_with("{\"at_ns\":") && line.ends_with("\"}")), "{lines}");
}

#[test]
fn what_passed_before_a_trace_begins_is_forgotten_and_links_are_not() {
    // Two records of links and three for each message: the ring is full, and then it is not.
    for most in [4, 20] {
        let trace = Trace::new("loopback", most, false);
        let handle = trace.handle();
        let mut rail = up(trace);
        send(&mut rail, 1);
        handle.forget_traffic();
        let links = handle.records().len();
        assert!(handle.records().iter().all(|record| matches!(record.what, What::Connect | What::Up)));
        send(&mut rail, 1);
        let what: Vec<_> = handle.records().iter().map(|record| record.what).collect();
        assert_eq!(what[what.len() - 3..], [What::PostPacket, What::Arrived, What::Sent]);
        assert_eq!(what.len(), (links + 3).min(most), "{what:?}");
    }
}
