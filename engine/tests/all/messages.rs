//! Messages between two engines: small and large, early and late, whole and truncated.

use crate::common::{Pair, bytes, pattern};
use nmad_engine::{Config, Error, Hints, PeerId, Source, Tag, TagMatch};

const FROM_0: Source = Source::Peer(PeerId(0));

fn exact(tag: u64) -> TagMatch {
    TagMatch::Exact(Tag(tag))
}

#[test]
fn every_size_arrives_posted_early_or_late() {
    for rails in 1..=3 {
        for strategy in ["fifo", "aggregate", "greedy", "aggregate_fastest", "iso_split", "ratio_split"] {
            let mut pair = Pair::new(rails, Config { strategy: strategy.into(), ..Config::default() });
            for len in [0, 1, 8, 4095, 4096, 15_000, 40_000, 3_000_001] {
                for early in [true, false] {
                    let data = pattern(len);
                    let (recv, memory) = if early {
                        let recv = pair.recv(1, FROM_0, 7, exact(9), len);
                        pair.settle();
                        pair.send(0, 7, 9, data);
                        recv
                    } else {
                        pair.send(0, 7, 9, data);
                        pair.settle();
                        pair.recv(1, FROM_0, 7, exact(9), len)
                    };
                    pair.settle();
                    let envelope = pair.result(1, recv).expect("ended").expect("no error");
                    assert_eq!(envelope.len, len as u64, "{strategy} {rails} {early}");
                    assert_eq!(bytes(memory), data);
                    assert_eq!(
                        pair.hosts[0].engine.inspect().pending() + pair.hosts[1].engine.inspect().pending(),
                        0
                    );
                }
            }
        }
    }
}

#[test]
fn order_within_a_flow_holds_for_all_sizes() {
    let mut pair = Pair::new(2, Config { strategy: "greedy".into(), ..Config::default() });
    let lens = [100_000, 1, 20_000, 0, 70_000, 5];
    for (i, len) in lens.into_iter().enumerate() {
        pair.send(0, 1, i as u64, pattern(len));
    }
    let recvs: Vec<_> = lens.iter().map(|_| pair.recv(1, Source::Any, 1, TagMatch::Any, 100_000)).collect();
    pair.settle();
    for (i, (recv, memory)) in recvs.into_iter().enumerate() {
        let envelope = pair.result(1, recv).unwrap().unwrap();
        assert_eq!((envelope.tag.0, envelope.len, envelope.seq), (i as u64, lens[i] as u64, i as u32));
        assert_eq!(&bytes(memory)[..lens[i]], pattern(lens[i]));
    }
}

#[test]
fn a_message_that_is_too_long_is_truncated_and_others_are_unaffected() {
    for len in [100, 200_000] {
        let mut pair = Pair::new(1, Config::default());
        let (short, memory) = pair.recv(1, FROM_0, 0, exact(1), 10);
        let (next, _) = pair.recv(1, FROM_0, 0, exact(1), 10);
        let sent = pair.send(0, 0, 1, pattern(len));
        pair.send(0, 0, 1, pattern(3));
        pair.settle();
        let Some(Err(Error::Truncated { envelope, capacity: 10 })) = pair.result(1, short) else { panic!() };
        assert_eq!(envelope.len, len as u64);
        assert_eq!(bytes(memory), &pattern(len)[..10]);
        assert!(pair.result(0, sent).unwrap().is_ok());
        assert_eq!(pair.result(1, next).unwrap().unwrap().len, 3);
    }
}

#[test]
fn a_synchronous_send_ends_when_it_is_matched() {
    for len in [8, 100_000] {
        for rails in [1, 2] {
            let mut pair = Pair::new(rails, Config::default());
            let hints = Hints { synchronous: true, ..Hints::default() };
            let sent = pair.send_with(0, 0, 1, pattern(len), hints);
            pair.settle();
            assert_eq!(pair.result(0, sent), None);
            pair.recv(1, Source::Any, 0, exact(1), len);
            pair.settle();
            assert!(pair.result(0, sent).unwrap().is_ok());
        }
    }
}

#[test]
fn a_second_large_message_needs_no_handshake_when_its_receive_is_posted() {
    let mut pair = Pair::new(1, Config::default());
    for round in 0..3 {
        let (recv, memory) = pair.recv(1, FROM_0, 0, exact(1), 200_000);
        pair.settle();
        pair.seen[0].lock().unwrap().clear();
        pair.send(0, 0, 1, pattern(150_000));
        pair.hosts[0].turn(true);
        let invited = pair.seen[0].lock().unwrap().iter().any(|line| line.contains("open region"));
        assert_eq!(invited, round > 0, "the first message tells that the flow is large");
        pair.settle();
        assert_eq!(pair.result(1, recv).unwrap().unwrap().len, 150_000);
        assert_eq!(&bytes(memory)[..150_000], pattern(150_000));
    }
}

#[test]
fn a_receive_with_an_rtr_can_be_cancelled() {
    let mut pair = Pair::new(1, Config::default());
    pair.recv(1, FROM_0, 0, exact(1), 100_000);
    pair.send(0, 0, 1, pattern(100_000));
    pair.settle();
    let (recv, _) = pair.recv(1, FROM_0, 0, exact(1), 100_000);
    pair.settle();
    assert!(pair.hosts[1].engine.cancel(recv));
    pair.settle();
    assert_eq!(pair.result(1, recv), Some(Err(Error::Cancelled)));
    pair.send(0, 0, 1, pattern(90_000));
    pair.settle();
    let (late, memory) = pair.recv(1, FROM_0, 0, exact(1), 90_000);
    pair.settle();
    assert!(pair.result(1, late).unwrap().is_ok());
    assert_eq!(bytes(memory), pattern(90_000));
}

#[test]
fn sixteen_small_messages_of_sixteen_contexts_share_a_packet() {
    let mut pair = Pair::new(1, Config::default());
    pair.settle();
    for context in 0..16 {
        pair.send(0, context, 0, pattern(64));
    }
    pair.hosts[0].turn(true);
    pair.hosts[0].turn(true);
    assert_eq!(pair.seen[0].lock().unwrap().len(), 1);
    let mut pair = Pair::new(1, Config { strategy: "fifo".into(), ..Config::default() });
    pair.settle();
    for context in 0..3 {
        pair.send(0, context, 0, pattern(64));
    }
    pair.hosts[0].turn(true);
    pair.hosts[0].turn(true);
    assert_eq!(pair.seen[0].lock().unwrap().len(), 3);
}

#[test]
fn a_dead_rail_loses_nothing() {
    for len in [10, 5_000_000] {
        let mut pair =
            Pair::new(2, Config { strategy: "iso_split".into(), chunk: 100_000, ..Config::default() });
        let (first, _) = pair.recv(1, FROM_0, 0, exact(1), len);
        let sent = pair.send(0, 0, 1, pattern(len));
        (0..4).for_each(|_| pair.hosts.iter_mut().for_each(|host| host.turn(true)));
        pair.hosts[0].turn(true);
        *pair.cuts[0].lock().unwrap() = true;
        let second = pair.send(0, 0, 1, pattern(len));
        let (recv, memory) = pair.recv(1, FROM_0, 0, exact(1), len);
        pair.settle();
        for (at, request) in [(0, sent), (0, second), (1, first), (1, recv)] {
            assert_eq!(pair.result(at, request).map(|r| r.is_ok()), Some(true), "{len} {at}");
        }
        assert_eq!(bytes(memory), pattern(len));
    }
}

#[test]
fn when_the_last_rail_dies_requests_end_with_an_error() {
    let mut pair = Pair::new(2, Config::default());
    let (named, _) = pair.recv(1, FROM_0, 0, exact(1), 10);
    let (anyone, _) = pair.recv(1, Source::Any, 0, exact(2), 10);
    pair.settle();
    pair.cuts.iter().for_each(|cut| *cut.lock().unwrap() = true);
    pair.settle();
    assert_eq!(pair.result(1, named), Some(Err(Error::PeerLost(PeerId(0)))));
    assert_eq!(pair.result(1, anyone), None, "somebody else might send it");
    assert!(pair.hosts[1].engine.inspect().failure(PeerId(0)).is_some());
    let late = pair.send(1, 0, 0, pattern(1));
    pair.settle();
    assert_eq!(pair.result(1, late), Some(Err(Error::PeerLost(PeerId(0)))));
}

#[test]
fn out_of_credit_a_sender_falls_back_to_rendezvous() {
    let mut pair = Pair::new(1, Config { credit: 1 << 18, ..Config::default() });
    let count = 1000;
    for _ in 0..count {
        pair.send(0, 0, 1, pattern(1000));
    }
    pair.settle();
    let seen = pair.seen[0].lock().unwrap().join("\n");
    let eager = seen.matches("eager").count();
    assert!(eager as u64 <= (1 << 18) / 1128 + 1, "{eager} messages without credit");
    assert_eq!(pair.hosts[1].engine.inspect().unexpected(), count);
    let recvs: Vec<_> = (0..count).map(|_| pair.recv(1, FROM_0, 0, exact(1), 1000).0).collect();
    pair.settle();
    assert!(recvs.into_iter().all(|recv| matches!(pair.result(1, recv), Some(Ok(_)))));
    assert_eq!(pair.hosts[0].engine.inspect().pending(), 0);
}
