//! One-sided accesses: choice of the rail, and results when a link is lost.

use crate::net::{Net, exact, from, limits};
use nmad_engine::{
    Act, Atomics, Config, Error, Exposure, Instant, Keys, Limits, PeerId, RailCounters, RailId, RemoteAccess,
    RequestId,
};

fn reaching() -> Limits {
    Limits { remote: RemoteAccess::Network(Atomics::Adapter), returns: true, ..limits() }
}

/// Two hosts whose links are open on all rails.
fn connected(rails: &[Limits]) -> Net {
    let mut net = Net::new(2, rails, &Config::default(), 1);
    net.recv(1, from(0), 0, exact(0), 0);
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    net
}

/// Memory exposed on these rails.
fn exposure(rails: &[u8]) -> Exposure {
    let mut keys = Keys::default();
    rails.iter().for_each(|&rail| keys.push(rail, 7));
    Exposure { keys, atomic: keys }
}

/// Host 0 begins an access to host 1.
fn access(net: &mut Net, act: Act, rails: &[u8], len: usize) -> Option<RequestId> {
    let (buffer, here) = net.memory(|memory| memory.lend(&vec![1; len], 0));
    let now = Instant::from_ns(net.now);
    let begun = net.hosts[0].engine.access(now, PeerId(1), act, (4096, &exposure(rails)), here);
    match begun {
        Some(request) => net.lend(0, request, buffer, true),
        None => net.memory(|memory| memory.end(buffer, true)),
    }
    begun
}

fn counts(net: &Net, rail: u8) -> (u64, u64) {
    let RailCounters { accesses, access_bytes, .. } = net.hosts[0].engine.inspect().counters(RailId(rail));
    (accesses, access_bytes)
}

/// Advances time: a link that may come back is retried without end.
fn run(net: &mut Net, ms: u64) {
    let until = net.now + ms * 1_000_000;
    while net.now < until {
        (0..2).for_each(|host| _ = net.turn(host, true));
        net.now += 50_000;
    }
}

#[test]
fn an_access_needs_an_open_link_and_completes_without_the_peer() {
    let mut net = Net::new(2, &[reaching()], &Config::default(), 1);
    assert_eq!(access(&mut net, Act::Put, &[0], 8), None);
    // This requested the link.
    net.settle();
    let put = access(&mut net, Act::Put, &[0], 8).expect("the link is open");
    (0..4).for_each(|_| _ = net.turn(0, true));
    assert!(matches!(net.result(0, put), Some(Ok(envelope)) if envelope.len == 8));
    assert_eq!(counts(&net, 0), (1, 8));
    assert_eq!(access(&mut net, Act::Put, &[1], 8), None, "it is exposed on another rail only");
}

#[test]
fn an_access_worth_splitting_is_refused_in_favour_of_a_message() {
    let mut net = connected(&[limits(), reaching()]);
    let short = access(&mut net, Act::Get, &[0, 1], 1000).expect("one rail reaches");
    let long = access(&mut net, Act::Get, &[0, 1], 1 << 20);
    net.settle();
    assert!(matches!(net.result(0, short), Some(Ok(_))));
    assert_eq!((long, counts(&net, 0), counts(&net, 1)), (None, (0, 0), (1, 1000)));
    let mut alone = connected(&[reaching()]);
    assert!(access(&mut alone, Act::Get, &[0], 1 << 20).is_some());
    alone.settle();
}

#[test]
fn atomics_need_a_rail_that_has_them() {
    let without = Limits { remote: RemoteAccess::Network(Atomics::None), ..reaching() };
    let mut net = connected(&[without, reaching()]);
    let add = access(&mut net, Act::Add(1), &[0, 1], 8).expect("the second one has");
    assert_eq!(access(&mut net, Act::Swap(1, 2), &[0], 8), None);
    net.settle();
    assert!(matches!(net.result(0, add), Some(Ok(_))));
    assert_eq!((counts(&net, 0), counts(&net, 1)), ((0, 0), (1, 8)));
}

#[test]
fn an_access_over_a_lost_link_ends_when_both_sides_have_closed_it() {
    // The order in which the rails are polled must not matter.
    for (rail, rails) in [(0, [reaching(), limits()]), (1, [limits(), reaching()])] {
        let mut net = connected(&rails);
        net.stall(rail, 0, true);
        let lost = access(&mut net, Act::Put, &[rail as u8], 100).expect("the link is open");
        net.turn(0, true);
        net.kill(rail, 0, 1);
        for _ in 0..100 {
            net.turn(0, true);
            net.now += 10_000;
        }
        assert_eq!(net.result(0, lost), None, "what it writes may still come");
        net.stall(rail, 0, false);
        run(&mut net, 10);
        assert_eq!(net.result(0, lost), Some(Err(Error::AccessLost(PeerId(1)))));
        // The link opens again; the next loss is handled like the first.
        net.wires().mended.insert(rail);
        run(&mut net, 2000);
        net.stall(rail, 0, true);
        let again = access(&mut net, Act::Put, &[rail as u8], 100).expect("the link is open again");
        net.turn(0, true);
        net.kill(rail, 0, 1);
        net.turn(1, true);
        net.turn(1, true);
        net.stall(rail, 0, false);
        run(&mut net, 10);
        assert_eq!(net.result(0, again), Some(Err(Error::AccessLost(PeerId(1)))));
    }
}

#[test]
fn an_access_that_the_rail_cannot_do_ends_at_once() {
    let mut net = connected(&[reaching(), limits()]);
    // The engine does not know yet that the link is lost.
    net.kill(0, 0, 1);
    let undone = access(&mut net, Act::Put, &[0], 100).expect("the link seems open");
    net.turn(0, true);
    net.turn(0, true);
    assert_eq!(net.result(0, undone), Some(Err(Error::AccessLost(PeerId(1)))));
    run(&mut net, 10);
}

#[test]
fn a_lost_peer_ends_its_accesses() {
    let mut net = connected(&[Limits { returns: false, ..reaching() }]);
    net.stall(0, 0, true);
    let lost = access(&mut net, Act::Put, &[0], 100).expect("the link is open");
    net.turn(0, true);
    net.kill(0, 0, 1);
    net.settle();
    assert_eq!(net.result(0, lost), Some(Err(Error::PeerLost(PeerId(1)))));
    assert_eq!(access(&mut net, Act::Put, &[0], 100), None);
}
