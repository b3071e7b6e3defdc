//! Peers that leave in good order, and requests that wait for them.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Error, LinkView, PeerId, RailCounters, RailId, Source, TagMatch};

const LONG: usize = 100_000;

fn three(rails: usize) -> Net {
    let mut net = Net::new(3, &vec![limits(); rails], &Config::default(), 1);
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        net.send(a, b, 9, 0, &[]);
        net.recv(b as usize, from(a as u32), 9, exact(0), 0);
    }
    net.settle();
    net
}

/// Host 0 announces that it leaves and closes its links.
fn leave(net: &mut Net, rails: usize) {
    net.hosts[0].engine.leave();
    net.settle();
    assert!(net.hosts[0].engine.inspect().is_drained());
    for rail in 0..rails {
        net.kill(rail, 0, 1);
        net.kill(rail, 0, 2);
    }
    net.settle();
}

#[test]
fn messages_sent_before_leaving_arrive() {
    for rails in 1..=3 {
        let mut net = three(rails);
        let early = net.recv(1, from(0), 0, exact(1), 10);
        let large = net.recv(1, from(0), 0, exact(2), LONG);
        net.send(0, 1, 0, 1, &[1; 10]);
        net.send(0, 1, 0, 2, &pattern(LONG, 2));
        net.send(0, 1, 0, 3, &[3; 10]);
        leave(&mut net, rails);
        assert!(net.got(1, early, &[1; 10]) && net.got(1, large, &pattern(LONG, 2)));
        let late = net.recv(1, from(0), 0, exact(3), 10);
        net.settle();
        assert!(net.got(1, late, &[3; 10]), "it was here before its sender left");
    }
}

#[test]
fn requests_for_a_peer_that_left_fail_and_others_continue() {
    let mut net = three(2);
    let (named, _) = net.recv(1, from(0), 0, exact(1), 10);
    let (wild, _) = net.recv(1, Source::Any, 0, TagMatch::Any, 10);
    let unanswered = net.send(1, 0, 0, 5, &pattern(LONG, 1));
    let other = net.recv(1, from(2), 0, exact(1), LONG);
    leave(&mut net, 2);
    let lost = Some(Err(Error::PeerLost(PeerId(0))));
    assert_eq!((net.result(1, named), net.result(1, unanswered)), (lost, lost));
    assert_eq!(net.result(1, wild), None, "somebody else may send it");
    net.send(2, 1, 0, 2, &[2; 10]);
    net.send(2, 1, 0, 1, &pattern(LONG, 4));
    net.settle();
    assert!(matches!(net.result(1, wild), Some(Ok(envelope)) if envelope.peer == PeerId(2)));
    assert!(net.got(1, other, &pattern(LONG, 4)));
    let after = net.send(1, 0, 0, 5, &[1]);
    let (receive, _) = net.recv(1, from(0), 0, exact(1), 10);
    net.settle();
    assert_eq!((net.result(1, after), net.result(1, receive)), (lost, lost));
    assert_eq!(net.hosts[1].engine.inspect().pending(), 0);
}

#[test]
fn a_peer_that_left_is_reported_as_such_without_a_notice() {
    for rails in 1..=3 {
        let mut net = three(rails);
        leave(&mut net, rails);
        for host in [1, 2] {
            let why = net.hosts[host].engine.inspect().failure(PeerId(0)).expect("it is gone");
            assert!(why.contains("has left"), "{why}");
            let about: Vec<_> = net.hosts[host].notices.iter().filter(|n| n.peer == PeerId(0)).collect();
            assert!(about.is_empty(), "{about:?}");
        }
        assert_eq!(net.hosts[1].engine.inspect().failure(PeerId(2)), None);
    }
}

#[test]
fn a_link_that_ends_before_the_goodbye_is_read_causes_no_notice() {
    let mut net = three(2);
    net.hosts[0].engine.leave();
    net.kill(0, 0, 1);
    net.settle();
    net.kill(1, 0, 1);
    net.settle();
    let why = net.hosts[1].engine.inspect().failure(PeerId(0)).expect("it is gone");
    assert!(why.contains("has left"), "{why}");
    assert!(net.hosts[1].notices.is_empty(), "{:?}", net.hosts[1].notices);
}

#[test]
fn a_lost_link_of_a_staying_peer_is_reported() {
    let mut net = three(2);
    net.kill(0, 0, 1);
    net.settle();
    let wanted = net.recv(1, from(0), 0, exact(1), 10);
    net.send(0, 1, 0, 1, &[1; 10]);
    net.settle();
    assert!(net.got(1, wanted, &[1; 10]));
    let about: Vec<&str> = net.hosts[1].notices.iter().map(|notice| &*notice.text).collect();
    assert!(matches!(about[..], [one] if one.contains("the other rails to peer 0 carry")), "{about:?}");
}

#[test]
fn a_peer_without_goodbye_is_reported_as_lost() {
    let mut net = three(1);
    net.kill(0, 0, 1);
    net.settle();
    let why = net.hosts[1].engine.inspect().failure(PeerId(0)).expect("it is gone");
    assert!(!why.contains("has left"), "{why}");
}

#[test]
fn leaving_twice_or_without_contact_is_harmless() {
    let mut net = Net::new(3, &[limits()], &Config::default(), 1);
    net.hosts[0].engine.leave();
    net.settle();
    assert!(net.hosts[0].engine.inspect().is_drained());
    net.send(0, 1, 0, 1, &[1; 5]);
    net.hosts[0].engine.leave();
    net.hosts[0].engine.leave();
    net.settle();
    let recv = net.recv(1, from(0), 0, exact(1), 5);
    net.settle();
    assert!(net.got(1, recv, &[1; 5]));
}

#[test]
fn the_rail_of_a_removed_peer_serves_others() {
    let mut net = three(1);
    let (named, _) = net.recv(0, from(1), 0, exact(1), 10);
    net.send(0, 1, 0, 1, &[1; 10]);
    net.hosts[0].engine.setup().part(PeerId(1));
    net.settle();
    let engine = &mut net.hosts[0].engine;
    assert!(engine.inspect().has_parted(PeerId(1)));
    engine.setup().forget(PeerId(1));
    net.settle();
    assert_eq!(net.result(0, named), Some(Err(Error::PeerLost(PeerId(1)))));
    let engine = &mut net.hosts[0].engine;
    assert_eq!((engine.next_notice(), engine.inspect().link(PeerId(1), RailId(0))), (None, None));
    let (next, rails) = (engine.inspect().next_peer(), engine.inspect().counters(RailId(1)));
    assert_eq!((next, rails), (PeerId(3), RailCounters::default()));
    engine.setup().place_rail(RailId(1), limits());
    engine.setup().add_link(next, RailId(1));
    assert_eq!(engine.inspect().link(next, RailId(1)), Some(LinkView::Opening));
    assert!(engine.inspect().has_parted(next), "nothing was submitted");
    let other = net.recv(2, from(0), 0, exact(1), LONG);
    net.send(0, 2, 0, 1, &pattern(LONG, 1));
    net.settle();
    assert!(net.got(2, other, &pattern(LONG, 1)), "the others stay");
}
