//! On a single reliable rail the first part of a large message follows its request to send without an
//! answer.

use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Error, Event, Hints, Instant, Limits, PeerId, Protocol, RailId};
use proptest::collection::vec;
use proptest::prelude::*;

const KIB: usize = 1 << 10;

fn net(credit: u64) -> Net {
    Net::met(&[Limits { push: u64::MAX, ..limits() }], Config { credit, ..Config::default() })
}

fn said(net: &mut Net, host: u32) -> Vec<String> {
    let carried = net.said(host);
    carried.into_iter().map(|(_, text)| text).filter(|text| !text.contains("credit")).collect()
}

/// The kinds of frames, without the details.
fn kinds(said: &[String]) -> Vec<&str> {
    let kind =
        |text: &String| ["pushed", "rts", "cts", "fin", "chunk"].into_iter().find(|k| text.contains(k));
    said.iter().filter_map(kind).collect()
}

#[test]
fn a_posted_receive_gets_a_push_without_an_answer() {
    let mut net = net(1 << 20);
    let data = pattern(200 * KIB, 3);
    let recv = net.recv(1, from(0), 0, exact(5), data.len());
    net.send(0, 1, 0, 5, &data);
    net.settle();
    assert!(net.got(1, recv, &data));
    let both = net.carried();
    let (mine, theirs): (Vec<_>, Vec<_>) = both.into_iter().partition(|carried| carried.from == 0);
    assert_eq!(mine.len(), 2, "the request and the chunk");
    assert!(theirs.len() <= 1, "at most a new limit");
    assert!(net.wires().own.is_empty(), "no memory of the engine's own was used");
}

#[test]
fn a_push_is_sent_before_its_receive_and_stored_until_then() {
    let mut net = net(1 << 20);
    let data = pattern(100 * KIB, 4);
    let send = net.send(0, 1, 0, 5, &data);
    net.settle();
    assert!(matches!(net.result(0, send), Some(Ok(_))), "the sender's memory is free");
    assert_eq!(net.hosts[1].engine.inspect().unexpected(), 1);
    assert_eq!(net.wires().own.len(), 1);
    let recv = net.recv(1, from(0), 0, exact(5), data.len() + 7);
    net.settle();
    assert!(net.got(1, recv, &data));
    assert!(net.wires().own.is_empty(), "the memory is given back");
}

#[test]
fn the_first_part_is_pushed_and_the_rest_sent_by_rendezvous() {
    // A whole chunk if there is credit for it.
    let cases = [(1 << 20, "262144"), (4 << 20, "1048576")];
    for ((credit, pushed), posted) in cases.into_iter().flat_map(|case| [(case, true), (case, false)]) {
        let mut net = net(credit);
        let data = pattern(4500 * KIB, 5);
        let early = posted.then(|| net.recv(1, from(0), 0, exact(5), data.len()));
        net.send(0, 1, 0, 5, &data);
        net.settle();
        let recv = early.unwrap_or_else(|| net.recv(1, from(0), 0, exact(5), data.len()));
        net.settle();
        assert!(net.got(1, recv, &data), "posted {posted}");
        let said = said(&mut net, 0);
        assert_eq!(kinds(&said)[..2], ["pushed", "chunk"], "{said:?}");
        assert!(said[1].contains(pushed), "{said:?}");
        assert!(said.len() > 4, "the rest in chunks: {said:?}");
    }
}

#[test]
fn a_short_receive_truncates_only_its_own_message() {
    let lens = [(100, 0), (100, 10), (100, 99), (3000, 0), (3000, 100), (3000, 256), (3000, 300)];
    let few = lens.map(|(len, room)| (1 << 20, len, room));
    // The pushed part of these is a whole chunk.
    let many = [100, 1000, 1024, 1100].map(|room| (4 << 20, 3000, room));
    let cases = few.into_iter().chain(many);
    for ((credit, len, room), posted) in cases.flat_map(|case| [(case, true), (case, false)]) {
        let mut net = net(credit);
        let (data, next) = (pattern(len * KIB, 6), pattern(50 * KIB, 7));
        let early = posted.then(|| net.recv(1, from(0), 0, exact(5), room * KIB));
        let send = net.send(0, 1, 0, 5, &data);
        net.send(0, 1, 0, 5, &next);
        net.settle();
        let recv = early.unwrap_or_else(|| net.recv(1, from(0), 0, exact(5), room * KIB));
        net.settle();
        let what = format!("{len} KiB into {room} KiB, posted {posted}");
        let Some(Err(Error::Truncated { envelope, capacity })) = net.result(1, recv.0) else {
            panic!("{what}: {:?}", net.result(1, recv.0))
        };
        assert_eq!((envelope.len, capacity), ((len * KIB) as u64, (room * KIB) as u64), "{what}");
        assert!(net.memory(|memory| memory.holds(recv.1, &data[..room * KIB])), "{what}");
        assert!(matches!(net.result(0, send), Some(Ok(_))), "{what}: the sender ends");
        let recv = net.recv(1, from(0), 0, exact(5), next.len());
        net.settle();
        assert!(net.got(1, recv, &next), "{what}: the next one is whole");
        assert_eq!(net.pending(), 0, "{what}");
        assert!(net.wires().own.is_empty(), "{what}");
    }
}

#[test]
fn a_synchronous_send_ends_when_it_is_matched() {
    let mut net = net(1 << 20);
    let data = pattern(100 * KIB, 8);
    let send = net.send_with(0, 1, 0, 5, &data, Hints { synchronous: true, ..Hints::default() });
    net.settle();
    assert_eq!(net.result(0, send), None);
    let recv = net.recv(1, from(0), 0, exact(5), data.len());
    net.settle();
    assert!(net.got(1, recv, &data));
    assert!(matches!(net.result(0, send), Some(Ok(_))));
}

#[test]
fn unexpected_pushes_stay_within_the_credit() {
    let mut net = net(1 << 20);
    let data = pattern(100 * KIB, 9);
    for tag in 0..40 {
        net.send(0, 1, 0, tag, &data);
    }
    net.settle();
    assert_eq!(net.hosts[1].engine.inspect().unexpected(), 40);
    let stored = net.wires().own.len();
    assert!((3..=10).contains(&stored), "{stored} messages of 100 KiB with 1 MiB of credit");
    let chunks = said(&mut net, 0).iter().filter(|text| text.starts_with("chunk")).count();
    assert_eq!(chunks, stored, "the others only ask");
    for tag in (0..40).rev() {
        let recv = net.recv(1, from(0), 0, exact(tag), data.len());
        net.settle();
        assert!(net.got(1, recv, &data), "tag {tag}");
    }
    assert!(net.wires().own.is_empty());
}

#[test]
fn a_push_can_be_received_after_its_sender_has_left() {
    let mut net = net(1 << 20);
    let (data, partly) = (pattern(100 * KIB, 10), pattern(3000 * KIB, 11));
    net.send(0, 1, 0, 5, &data);
    net.send(0, 1, 1, 6, &partly);
    net.settle();
    net.hosts[0].engine.leave();
    net.settle();
    net.kill(0, 0, 1);
    net.settle();
    assert_eq!(net.hosts[1].engine.inspect().unexpected(), 1, "what is not here whole is forgotten");
    let whole = net.recv(1, from(0), 0, exact(5), data.len());
    let part = net.recv(1, from(0), 1, exact(6), partly.len());
    net.settle();
    assert!(net.got(1, whole, &data));
    assert_eq!(net.result(1, part.0), Some(Err(Error::PeerLost(PeerId(0)))));
    assert!(net.wires().own.is_empty());
}

#[test]
fn a_chunk_that_was_not_announced_closes_its_peer() {
    let mut net = net(1 << 20);
    let engine = &mut net.hosts[1].engine;
    engine.handle(Instant::from_ns(0), RailId(0), Event::Pushed { from: PeerId(0), request: 77, len: 100 });
    let why = engine.inspect().failure(PeerId(0)).expect("closed");
    assert!(why.contains("pushed chunk that was not announced"), "{why}");
}

#[test]
fn several_rails_do_not_push() {
    let rails = [Limits { push: u64::MAX, ..limits() }; 2];
    let mut net = Net::new(2, &rails, &Config::default(), 1);
    net.carried();
    let data = pattern(100 * KIB, 12);
    let recv = net.recv(1, from(0), 0, exact(5), data.len());
    net.send(0, 1, 0, 5, &data);
    net.settle();
    assert!(net.got(1, recv, &data));
    assert!(!kinds(&said(&mut net, 0)).contains(&"pushed"));
}

fn size() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![0, 9, 33, 90, 200, 700])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn everything_arrives_in_order_whatever_comes_first(
        seed in any::<u64>(),
        credit in prop::sample::select(vec![1u64, 300 << 10, 1 << 20]),
        messages in vec((0..3u32, 0..3u64, size(), 0..3u8), 1..25),
    ) {
        let config = Config { credit, chunk: 400 << 10, ..Config::default() };
        let mut net = Net::new(2, &[Limits { push: u64::MAX, ..limits() }], &config, seed);
        net.set_faults(Faults { delay_ns: 3_000, ..Faults::default() });
        let mut expected = Vec::new();
        let mut late = Vec::new();
        for (index, &(context, tag, len, when)) in messages.iter().enumerate() {
            let data = pattern(len * KIB, index as u64);
            let room = if when == 2 { data.len() / 2 } else { data.len() };
            // Receives of one tag are posted in the order of the sends.
            let posted = when == 0 && late.is_empty();
            if posted {
                let recv = net.recv(1, from(0), context, exact(tag), room);
                expected.push((recv, data.clone()));
            } else {
                late.push((context, tag, room, data.clone()));
            }
            net.send(0, 1, context, tag, &data);
            for _ in 0..seed % 4 {
                net.turn(index % 2, index % 3 == 0);
            }
        }
        net.settle();
        for (context, tag, room, data) in late {
            let recv = net.recv(1, from(0), context, exact(tag), room);
            expected.push((recv, data));
        }
        net.settle();
        for ((request, buffer), data) in expected {
            match net.result(1, request) {
                Some(Ok(envelope)) => prop_assert_eq!(envelope.len, data.len() as u64),
                Some(Err(Error::Truncated { capacity, .. })) => prop_assert!(capacity < data.len() as u64),
                other => prop_assert!(false, "{:?}", other),
            }
            let room = net.memory(|memory| memory.content(buffer).len());
            prop_assert!(net.memory(|memory| memory.holds(buffer, &data[..room.min(data.len())])));
        }
        prop_assert_eq!(net.pending(), 0);
        prop_assert!(net.wires().own.is_empty());
        net.memory(|memory| memory.check());
    }
}

#[test]
fn a_receipt_shows_the_pushed_part_and_the_rest() {
    for (len, chunks) in [(100 * KIB, 1), (3000 * KIB, 4)] {
        let mut net = net(1 << 20);
        net.hosts[0].engine.setup().record_receipts(Some(0));
        let data = pattern(len, 14);
        let recv = net.recv(1, from(0), 0, exact(5), len);
        net.send(0, 1, 0, 5, &data);
        net.settle();
        assert!(net.got(1, recv, &data));
        let receipt = net.hosts[0].engine.next_receipt().expect("one message was sent");
        assert_eq!(receipt.carried, [(RailId(0), len as u64)]);
        assert!(receipt.protocol == Protocol::Push && receipt.actual_ns > 0, "{receipt:?}");
        let sent = said(&mut net, 0).iter().filter(|text| text.starts_with("chunk")).count();
        assert_eq!(sent, chunks);
    }
}
