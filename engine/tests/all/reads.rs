//! Messages that their receivers read from the sender's memory.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{
    Caller, Config, Context, Error, Hints, Instant, Limits, PeerId, Protocol, Reads, RemoteAccess, Sent,
    Submitted, Tag,
};

/// Shorter messages are sent in packets.
const FROM: usize = 1_000;

fn rail() -> Limits {
    Limits { remote: RemoteAccess::Copies, reads: Reads::From(FROM as u64), inject: true, ..limits() }
}

fn net_of(rails: &[Limits]) -> Net {
    let mut net = Net::new(2, rails, &Config::default(), 1);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net.carried();
    net
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

/// Bytes on the wire from host 0 since the last call.
fn carried(net: &mut Net) -> usize {
    net.carried().iter().filter(|one| one.from == 0).map(|one| one.bytes.len()).sum()
}

#[test]
fn a_message_is_read_when_a_receive_has_matched_it_and_its_memory_is_in_use_until_then() {
    let mut net = net_of(&[rail()]);
    assert_eq!(protocol(&net, FROM - 1), Protocol::Inject);
    assert_eq!(protocol(&net, FROM), Protocol::Read);
    for is_early in [true, false] {
        let data = pattern(100_000, 7);
        let early = is_early.then(|| net.recv(1, from(0), 0, exact(1), data.len()));
        let sent = net.send(0, 1, 0, 1, &data);
        net.settle();
        assert_eq!(net.result(0, sent).is_some(), is_early, "its memory is free when it was read");
        let posted = early.unwrap_or_else(|| net.recv(1, from(0), 0, exact(1), data.len()));
        net.settle();
        assert!(net.got(1, posted, &data) && matches!(net.result(0, sent), Some(Ok(_))));
        assert!(carried(&mut net) < 200, "no data was on the wire");
    }
    assert_eq!(net.pending(), 0);
}

#[test]
fn a_message_is_read_whether_sent_at_once_or_refused_and_sent_later() {
    let mut net = net_of(&[rail()]);
    let data = [pattern(5_000, 1), pattern(6_000, 2)];
    net.wires().at_once = [Sent::Done, Sent::Retry].into();
    let to = (1, 0, 1);
    let first = net.send_at_once(0, to, &data[0], Hints::default(), Caller::GoesOn);
    assert!(matches!(first, Ok(Submitted::Request(_))), "it ends when it was read: {first:?}");
    let second = net.send_at_once(0, to, &data[1], Hints::default(), Caller::Waits);
    let refused = second.expect_err("the rail refuses").expect("it was asked");
    assert_eq!(refused.protocol(), Protocol::Read);
    net.send_as(0, to, &data[1], Some(refused));
    let posted = [0, 1].map(|place| net.recv(1, from(0), 0, exact(1), data[place].len()));
    net.settle();
    assert!(net.got(1, posted[0], &data[0]) && net.got(1, posted[1], &data[1]), "in order");
    assert_eq!(net.pending(), 0);
}

#[test]
fn a_short_receive_reads_only_what_fits() {
    let mut net = net_of(&[rail()]);
    let data = pattern(9_000, 3);
    for room in [4_000, 0] {
        let sent = net.send(0, 1, 0, 1, &data);
        let (recv, buffer) = net.recv(1, from(0), 0, exact(1), room);
        net.settle();
        let result = net.result(1, recv).expect("it has ended");
        assert!(matches!(result, Err(Error::Truncated { capacity, .. }) if capacity == room as u64));
        assert!(net.memory(|memory| memory.holds(buffer, &data[..room])));
        assert!(matches!(net.result(0, sent), Some(Ok(_))));
    }
    assert_eq!(net.pending(), 0);
}

#[test]
fn an_unreadable_message_uses_a_cts_and_later_ones_are_not_offered() {
    let mut net = net_of(&[rail()]);
    net.wires().refuses_copies = true;
    let data = pattern(90_000, 4);
    for expected in [Protocol::Read, Protocol::Rendezvous] {
        assert_eq!(protocol(&net, data.len()), expected);
        let sent = net.send(0, 1, 0, 1, &data);
        let posted = net.recv(1, from(0), 0, exact(1), data.len());
        net.settle();
        assert!(net.got(1, posted, &data) && matches!(net.result(0, sent), Some(Ok(_))));
        assert!(carried(&mut net) > data.len());
    }
    assert_eq!(net.pending(), 0);
}

#[test]
fn non_contiguous_memory_is_not_read() {
    let mut net = net_of(&[rail()]);
    let data = pattern(50_000, 5);
    let (buffer, segments) = net.memory(|memory| memory.lend(&data, 700));
    let engine = &mut net.hosts[0].engine;
    let sent = engine.send(PeerId(1), Context(0), Tag(1), segments, Hints::default());
    net.lend(0, sent, buffer, true);
    let posted = net.recv(1, from(0), 0, exact(1), data.len());
    net.settle();
    assert!(net.got(1, posted, &data) && matches!(net.result(0, sent), Some(Ok(_))));
    assert!(carried(&mut net) > data.len());
}

#[test]
fn a_sender_that_is_far_ahead_of_its_receiver_pushes() {
    let len = 20_000;
    for (push, expected) in [(u64::MAX, Protocol::Push), (0, Protocol::Read)] {
        let mut net = net_of(&[Limits { push, ..rail() }]);
        for seed in 0..32 {
            assert_eq!(protocol(&net, len), Protocol::Read, "message {seed}");
            net.send(0, 1, 0, 1, &pattern(len, seed));
            net.settle();
        }
        assert_eq!(protocol(&net, len), expected, "where nothing is pushed the receiver reads all");
        for seed in 0..32 {
            let posted = net.recv(1, from(0), 0, exact(1), len);
            net.settle();
            assert!(net.got(1, posted, &pattern(len, seed)));
        }
        assert_eq!(protocol(&net, len), Protocol::Read);
    }
}

#[test]
fn messages_split_over_several_rails_are_not_read() {
    let net = net_of(&[rail(), rail()]);
    assert_eq!(protocol(&net, 100_000), Protocol::Rendezvous);
}

#[test]
fn a_lost_peer_ends_its_reads() {
    let mut net = net_of(&[rail()]);
    let sent = net.send(0, 1, 0, 1, &pattern(10_000, 6));
    net.settle();
    net.kill(0, 0, 1);
    net.settle();
    assert!(matches!(net.result(0, sent), Some(Err(Error::PeerLost(_)))));
    let (recv, _) = net.recv(1, from(0), 0, exact(1), 10_000);
    net.settle();
    assert!(matches!(net.result(1, recv), Some(Err(Error::PeerLost(_)))), "it was announced only");
    assert_eq!(net.pending(), 0);
}
