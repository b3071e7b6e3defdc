//! Sends that are cancelled end without a receive, and their messages arrive when there is one.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Error, Hints, Limits, PeerId, Reads, RemoteAccess, RequestId};

const LEN: usize = 3 << 20;

/// Sends that ask, are pushed in part, are offered for reading, and ask over two rails.
fn ways() -> [Vec<Limits>; 4] {
    let reads = Limits { remote: RemoteAccess::Copies, reads: Reads::From(1000), inject: true, ..limits() };
    let pushes = Limits { push: u64::MAX, ..limits() };
    [vec![limits()], vec![pushes], vec![reads], vec![limits(), limits()]]
}

fn net(rails: &[Limits]) -> Net {
    let mut net = Net::new(2, rails, &Config::default(), 1);
    let first = net.recv(1, from(0), 0, exact(0), 1);
    net.send(0, 1, 0, 0, &[1]);
    net.settle();
    assert!(net.got(1, first, &[1]));
    net
}

/// It has ended well; the memory that the engine was lent is checked from then on.
fn has_ended(net: &Net, sent: RequestId) -> bool {
    matches!(net.result(0, sent), Some(Ok(envelope)) if envelope.len == LEN as u64)
}

#[test]
fn it_ends_and_its_message_arrives_later() {
    for (rails, settles) in ways().iter().flat_map(|rails| [(rails, true), (rails, false)]) {
        let mut net = net(rails);
        let (data, other) = (pattern(LEN, 7), pattern(LEN, 8));
        let sent = net.send(0, 1, 0, 5, &data);
        if settles {
            net.settle();
            assert_eq!(net.result(0, sent), None, "nobody receives it");
        }
        assert!(!net.cancel(0, sent), "a send is not taken back");
        net.settle();
        assert!(has_ended(&net, sent), "{rails:?}, {settles}");
        let later = net.send(0, 1, 0, 5, &other);
        net.settle();
        let received = [0, 1].map(|_| net.recv(1, from(0), 0, exact(5), LEN));
        net.settle();
        assert!(net.got(1, received[0], &data) && net.got(1, received[1], &other), "{rails:?}");
        assert!(has_ended(&net, later));
        assert_eq!(net.pending(), 0, "{rails:?}: nothing of it is left");
    }
}

#[test]
fn it_ends_once_however_often_it_is_cancelled() {
    for rails in ways() {
        let mut net = net(&rails);
        let data = pattern(LEN, 7);
        let sent = net.send(0, 1, 0, 5, &data);
        (0..3).for_each(|_| assert!(!net.cancel(0, sent)));
        net.settle();
        assert!(has_ended(&net, sent));
        net.cancel(0, sent);
        assert_eq!(net.hosts[0].engine.take(sent), None, "its end was told");
        assert_eq!(net.hosts[0].engine.has_ended(sent), Some(false), "it goes on under its name");
        let received = net.recv(1, from(0), 0, exact(5), LEN);
        net.settle();
        assert!(net.got(1, received, &data));
        assert_eq!(net.hosts[0].engine.has_ended(sent), None);
    }
}

#[test]
fn one_that_a_receive_has_matched_ends_with_it() {
    for rails in ways() {
        let mut net = net(&rails);
        let data = pattern(LEN, 7);
        let received = net.recv(1, from(0), 0, exact(5), LEN);
        let sent = net.send(0, 1, 0, 5, &data);
        net.turn(0, true);
        net.cancel(0, sent);
        net.settle();
        assert!(net.got(1, received, &data) && has_ended(&net, sent));
        assert_eq!(net.pending(), 0);
    }
}

#[test]
fn a_claimed_message_is_not_read_from_memory_that_is_free() {
    let mut net = net(&ways()[2]);
    let data = pattern(LEN, 7);
    let sent = net.send(0, 1, 0, 5, &data);
    net.settle();
    let claim = net.hosts[1].engine.claim(from(0), nmad_engine::Context(0), exact(5)).expect("it is there");
    net.cancel(0, sent);
    net.settle();
    assert!(has_ended(&net, sent));
    let (buffer, into) = net.memory(|memory| memory.lend_blank(LEN, 0));
    let request = net.hosts[1].engine.recv_claimed(claim, into);
    net.lend(1, request, buffer, false);
    net.settle();
    assert!(net.got(1, (request, buffer), &data));
}

#[test]
fn a_small_one_does_not_wait_for_the_receive_that_matches_it() {
    let mut net = net(&[limits()]);
    let hints = Hints { synchronous: true, ..Hints::default() };
    let sent = net.send_with(0, 1, 0, 5, &[3], hints);
    net.settle();
    assert_eq!(net.result(0, sent), None, "it is synchronous");
    net.cancel(0, sent);
    net.settle();
    assert!(matches!(net.result(0, sent), Some(Ok(_))));
    let received = net.recv(1, from(0), 0, exact(5), 1);
    net.settle();
    assert!(net.got(1, received, &[3]), "the answer that comes now is taken");
    let next = net.send_with(0, 1, 0, 6, &[4], hints);
    let received = net.recv(1, from(0), 0, exact(6), 1);
    net.settle();
    assert!(net.got(1, received, &[4]) && matches!(net.result(0, next), Some(Ok(_))));
}

#[test]
fn it_is_dropped_with_its_peer() {
    for rails in ways() {
        let mut net = net(&rails);
        let data = pattern(LEN, 7);
        let (sent, other) = (net.send(0, 1, 0, 5, &data), net.send(0, 1, 0, 5, &data));
        net.cancel(0, sent);
        net.settle();
        assert!(has_ended(&net, sent));
        (0..rails.len()).for_each(|rail| net.kill(rail, 0, 1));
        net.settle();
        assert_eq!(net.result(0, other), Some(Err(Error::PeerLost(PeerId(1)))));
        assert!(has_ended(&net, sent), "it stays so");
        assert_eq!(net.hosts[0].engine.inspect().pending(), 0);
    }
}
