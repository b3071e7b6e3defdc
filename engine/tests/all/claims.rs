//! A message found by a matched probe is received only by its handle, whatever receives are posted.

use crate::net::memory::BufferId;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Claim, Config, Context, Error, Limits, PeerId, RequestId, Source, TagMatch};

/// Lengths of messages that are stored inline, stored, pushed, and sent by rendezvous.
const LENGTHS: [usize; 4] = [8, 3000, 100 << 10, 3 << 20];

fn net(pushes: bool) -> Net {
    let mut net =
        Net::new(2, &[Limits { push: if pushes { u64::MAX } else { 0 }, ..limits() }], &Config::default(), 1);
    let first = net.recv(1, from(0), 99, exact(0), 1);
    net.send(0, 1, 99, 0, &[1]);
    net.settle();
    assert!(net.got(1, first, &[1]));
    net
}

fn claim(net: &mut Net) -> Option<Claim> {
    net.hosts[1].engine.claim(Source::Any, Context(0), TagMatch::Any)
}

fn recv_claimed(net: &mut Net, claim: Claim, len: usize) -> (RequestId, BufferId) {
    let (buffer, into) = net.memory(|memory| memory.lend_blank(len, 0));
    let request = net.hosts[1].engine.recv_claimed(claim, into);
    net.lend(1, request, buffer, false);
    (request, buffer)
}

#[test]
fn a_message_is_found_once_and_received_after_later_ones() {
    for (len, pushes) in LENGTHS.into_iter().flat_map(|len| [(len, false), (len, true)]) {
        let mut net = net(pushes);
        let (first, second) = (pattern(len, 3), pattern(len, 4));
        net.send(0, 1, 0, 5, &first);
        net.send(0, 1, 0, 5, &second);
        net.settle();
        let found = claim(&mut net).expect("the first message is there");
        assert_eq!((found.envelope.len, found.envelope.tag.0), (len as u64, 5));
        let later = net.recv(1, from(0), 0, exact(5), len);
        net.settle();
        assert!(net.got(1, later, &second), "{len} B, pushes {pushes}");
        assert!(claim(&mut net).is_none());
        let request = recv_claimed(&mut net, found, len);
        net.settle();
        assert!(net.got(1, request, &first), "{len} B, pushes {pushes}");
        assert!(net.wires().own.is_empty(), "the engine's own memory is given back");
    }
}

#[test]
fn a_message_is_received_once() {
    let mut net = net(true);
    net.send(0, 1, 0, 5, &[7]);
    net.settle();
    let found = claim(&mut net).expect("the message is there");
    let request = recv_claimed(&mut net, found, 1);
    assert!(net.got(1, request, &[7]));
    let again = recv_claimed(&mut net, found, 1);
    assert_eq!(net.result(1, again.0), Some(Err(Error::PeerLost(PeerId(0)))));
}

#[test]
fn a_complete_message_outlives_its_sender_and_an_incomplete_one_fails() {
    for (len, pushes, survives) in [(3000, false, true), (3 << 20, false, false), (3 << 20, true, false)] {
        let mut net = net(pushes);
        let data = pattern(len, 3);
        net.send(0, 1, 0, 5, &data);
        net.settle();
        let found = claim(&mut net).expect("the message is there");
        net.kill(0, 0, 1);
        net.settle();
        let request = recv_claimed(&mut net, found, len);
        net.settle();
        if survives {
            assert!(net.got(1, request, &data));
        } else {
            assert_eq!(net.result(1, request.0), Some(Err(Error::PeerLost(PeerId(0)))), "pushes {pushes}");
        }
    }
}
