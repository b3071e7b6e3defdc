//! Each baseline over loopback, with both sides in one process.
use std::io;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use super::datagram::Datagrams;
use super::trains::Trains;
use super::*;

const LIMIT: Duration = Duration::from_secs(10);

/// Two connected sockets: the active one and the passive one.
fn pair() -> (Socket, Socket) {
    pair_under(&Policy::default())
}

fn pair_under(policy: &Policy) -> (Socket, Socket) {
    let listener = Listener::open((Ipv4Addr::LOCALHOST, 0).into(), policy).expect("loopback listens");
    let to = listener.addr().expect("bound");
    let active =
        Socket::connect(Some(Ipv4Addr::LOCALHOST.into()), to, policy, LIMIT).expect("loopback connects");
    (active, listener.accept(LIMIT).expect("connected before"))
}

#[test]
fn latency_gives_one_sample_per_batch() {
    let (mut active, mut passive) = pair();
    let plan = latency::Plan { len: 8, batches: 5, rounds: 20, limit: LIMIT };
    let other = thread::spawn(move || latency::answer(&mut passive, &plan));
    let samples = latency::measure(&mut active, &plan).expect("both sides run");
    other.join().expect("no panic").expect("both sides run");
    assert_eq!(samples.len(), 5);
    assert!(samples.iter().all(|us| *us > 0.1 && *us < 1e6), "{samples:?}");
}

#[test]
fn rate_counts_windows_of_messages() {
    let (mut active, mut passive) = pair();
    let plan = rate::Plan { len: 8, window: 16, batches: 4, rounds: 10, limit: LIMIT };
    let other = thread::spawn(move || rate::answer(&mut passive, &plan));
    let samples = rate::measure(&mut active, &plan).expect("both sides run");
    other.join().expect("no panic").expect("both sides run");
    assert_eq!(samples.len(), 4);
    assert!(samples.iter().all(|rate| *rate > 1e-5 && *rate < 1e3), "{samples:?}");
}

#[test]
fn a_paced_socket_is_held_back_alone_and_among_others() {
    let (mut active, mut passive) = pair_under(&Policy { pace: Some(100_000_000), ..Policy::default() });
    let plan =
        bandwidth::Plan { len: 2 << 20, way: bandwidth::Way::OneWay, batches: 2, messages: 2, limit: LIMIT };
    let other = thread::spawn(move || bandwidth::answer(&mut passive, &plan, &mut Vec::new()));
    let samples = bandwidth::measure(&mut active, &plan, &mut Vec::new()).expect("both sides run");
    other.join().expect("no panic").expect("both sides run");
    // 100 MB/s, and the burst that goes at once.
    assert!(samples.iter().all(|rate| *rate < 105.0), "{samples:?}");
    let slow = Policy { pace: Some(50_000_000), ..Policy::default() };
    let (mut active, mut passive): (Vec<_>, Vec<_>) = (0..2).map(|_| pair_under(&slow)).unzip();
    let plan = rails::Plan { len: 4 << 20, piece: 64 << 10, batches: 2, limit: LIMIT };
    let other = thread::spawn(move || rails::answer(&mut passive, &plan, &mut Vec::new()));
    let samples = rails::measure(&mut active, &plan, &mut Vec::new()).expect("both sides run");
    other.join().expect("no panic").expect("every byte in its place");
    assert!(samples.iter().all(|sample| sample.total < 110.0), "{samples:?}");
}

#[test]
fn bandwidth_runs_both_ways() {
    for way in [bandwidth::Way::OneWay, bandwidth::Way::PingPong] {
        let (mut active, mut passive) = pair();
        let plan = bandwidth::Plan { len: 300_001, way, batches: 3, messages: 4, limit: LIMIT };
        let other = thread::spawn(move || bandwidth::answer(&mut passive, &plan, &mut Vec::new()));
        let samples = bandwidth::measure(&mut active, &plan, &mut Vec::new()).expect("both sides run");
        other.join().expect("no panic").expect("both sides run");
        assert_eq!(samples.len(), 3);
        assert!(samples.iter().all(|rate| *rate > 1.0), "{way:?}: {samples:?}");
    }
}

#[test]
fn rails_share_a_message_whose_every_byte_arrives() {
    let (mut active, mut passive): (Vec<_>, Vec<_>) = (0..3).map(|_| pair()).unzip();
    // The length is no multiple of the piece, and the receiver compares the first message.
    let plan = rails::Plan { len: 3_000_001, piece: 10_000, batches: 3, limit: LIMIT };
    let other = thread::spawn(move || rails::answer(&mut passive, &plan, &mut Vec::new()));
    let samples = rails::measure(&mut active, &plan, &mut Vec::new()).expect("both sides run");
    other.join().expect("no panic").expect("every byte in its place");
    assert_eq!(samples.len(), 3);
    for sample in samples {
        let sum: f64 = sample.rails.iter().sum();
        assert!((sum - sample.total).abs() < 1e-6 * sum, "{sample:?}");
    }
}

#[test]
fn a_silent_peer_ends_in_a_timeout() {
    let (mut active, _passive) = pair();
    let limit = Duration::from_millis(50);
    let start = Instant::now();
    let short = latency::Plan { limit, ..latency::Plan::default() };
    let error = latency::measure(&mut active, &short).expect_err("nobody answers");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let bulk = bandwidth::Plan { limit, ..bandwidth::Plan::of(64 << 20, bandwidth::Way::OneWay) };
    let error = bandwidth::measure(&mut active, &bulk, &mut Vec::new()).expect_err("nobody reads");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn a_peer_that_leaves_is_an_error() {
    let (mut active, passive) = pair();
    drop(passive);
    let plan = latency::Plan { limit: LIMIT, ..latency::Plan::default() };
    let error = latency::measure(&mut active, &plan).expect_err("nobody is there");
    assert!(error.kind() != io::ErrorKind::TimedOut, "{error}");
}

#[test]
fn a_refused_congestion_control_falls_back_to_the_next() {
    let policy = Policy { congestion: vec!["none of that name".into(), "reno".into()], ..Policy::default() };
    let listener = Listener::open((Ipv4Addr::LOCALHOST, 0).into(), &policy).expect("loopback listens");
    let socket = Socket::connect(None, listener.addr().expect("bound"), &policy, LIMIT).expect("connects");
    assert_eq!(socket.congestion().expect("a name"), "reno");
    assert_eq!(listener.accept(LIMIT).expect("connected").congestion().expect("a name"), "reno");
}

/// Two datagram sockets that are tied to each other.
fn datagrams() -> (Datagrams, Datagrams) {
    let open = || Datagrams::open(Ipv4Addr::LOCALHOST.into()).expect("loopback has ports");
    let ((active, here), (passive, there)) = (open(), open());
    active.connect(there).expect("tied");
    passive.connect(here).expect("tied");
    (active, passive)
}

#[test]
fn trains_carry_one_batch_after_the_other() {
    let (active, passive) = datagrams();
    let mut active = Trains::new(active, LIMIT).expect("options are set");
    let mut passive = Trains::new(passive, LIMIT).expect("options are set");
    let len = 300_001;
    let other = thread::spawn(move || {
        let mut into = Vec::new();
        for _ in 0..3 {
            passive.receive(&mut into, len).expect("both sides run");
        }
        into
    });
    for _ in 0..3 {
        assert_eq!(active.send(&vec![7; len], 5).expect("both sides run"), 5 * len as u64, "nothing is lost");
    }
    let into = other.join().expect("no panic");
    // Up to a page before it and the end, which lands where the next message would begin, are other bytes.
    assert!(into.iter().filter(|byte| **byte == 7).count() + 16 >= len);
}

#[test]
fn an_end_that_was_said_twice_does_not_end_the_next_batch() {
    let (active, passive) = datagrams();
    let mut active = Trains::new(active, LIMIT).expect("options are set");
    let mut passive = Trains::new(passive, LIMIT).expect("options are set");
    let other = thread::spawn(move || {
        let mut into = Vec::new();
        passive.receive(&mut into, 1000).and_then(|()| passive.receive(&mut into, 1000))
    });
    active.send(&[7; 1000], 3).expect("both sides run");
    active.say_end(Instant::now() + LIMIT).expect("loopback takes it");
    assert_eq!(active.send(&[7; 1000], 3).expect("both sides run"), 3000);
    other.join().expect("no panic").expect("both sides run");
}

#[test]
fn bare_datagrams_to_nobody_end_in_a_timeout() {
    let (active, _passive) = datagrams();
    let mut active = Trains::new(active, Duration::from_millis(50)).expect("options are set");
    assert_eq!(active.send(&[7; 1000], 3).expect_err("nobody reads").kind(), io::ErrorKind::TimedOut);
}
