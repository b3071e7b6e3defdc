//! The last link to a peer is lost while others that were given up may come back.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Duration, Error, Event, Instant, Limits, PeerId, RailId};

const LEN: usize = 100_000;

/// Two hosts with two rails that may come back; the first has failed.
fn with_one_left(config: &Config) -> Net {
    let mut net = Net::new(2, &[Limits { returns: true, ..limits() }; 2], config, 1);
    net.recv(1, from(0), 0, exact(0), 0);
    net.send(0, 1, 0, 0, &[]);
    net.recv(0, from(1), 0, exact(0), 0);
    net.send(1, 0, 0, 0, &[]);
    net.settle();
    net.kill(0, 0, 1);
    run(&mut net, 50);
    net
}

/// Advances time.
fn run(net: &mut Net, ms: u64) {
    let until = net.now + ms * 1_000_000;
    while net.now < until {
        for host in 0..net.hosts.len() {
            net.turn(host, true);
        }
        net.now += 50_000;
    }
}

#[test]
fn a_peer_without_a_link_returns_when_one_opens() {
    let mut net = with_one_left(&Config { return_within: Duration::from_ms(10_000), ..Config::default() });
    let early = net.recv(1, from(0), 0, exact(1), LEN);
    net.send(0, 1, 0, 1, &pattern(LEN, 1));
    net.kill(1, 0, 1);
    run(&mut net, 1000);
    let late = net.recv(1, from(0), 0, exact(2), LEN);
    net.send(0, 1, 0, 2, &pattern(LEN, 2));
    run(&mut net, 1000);
    assert_eq!(net.hosts[1].engine.inspect().failure(PeerId(0)), None);
    net.wires().mended.insert(0);
    run(&mut net, 2_000);
    assert!(net.got(1, early, &pattern(LEN, 1)) && net.got(1, late, &pattern(LEN, 2)), "{}", net.views());
}

#[test]
fn a_peer_without_a_link_is_lost_in_time() {
    let mut net = with_one_left(&Config::default());
    net.kill(1, 0, 1);
    run(&mut net, 10);
    let sent = net.send(0, 1, 0, 1, &pattern(LEN, 1));
    run(&mut net, 2900);
    assert_eq!(net.result(0, sent), None);
    run(&mut net, 200);
    assert_eq!(net.result(0, sent), Some(Err(Error::PeerLost(PeerId(1)))));
    assert!(
        net.hosts[0].engine.inspect().failure(PeerId(1)).is_some_and(|why| why.contains("the link was cut"))
    );
}

#[test]
fn without_a_wait_the_loss_is_reported_at_once() {
    let mut net = with_one_left(&Config { return_within: Duration::ZERO, ..Config::default() });
    let sent = net.send(0, 1, 0, 1, &pattern(LEN, 1));
    net.kill(1, 0, 1);
    run(&mut net, 5);
    assert_eq!(net.result(0, sent), Some(Err(Error::PeerLost(PeerId(1)))));
}

#[test]
fn a_down_link_is_retried_when_the_last_one_falls_silent() {
    let mut net = with_one_left(&Config::default());
    // The link flaps until its retry pause is several seconds.
    for _ in 0..6 {
        net.wires().mended.insert(0);
        run(&mut net, 7_000);
        net.kill(0, 0, 1);
        run(&mut net, 20);
    }
    net.wires().mended.insert(0);
    run(&mut net, 1_000);
    let links = |net: &Net| net.hosts[0].engine.inspect().peer_view(PeerId(1)).map(|view| view.links_up);
    assert_eq!(links(&net), Some(1), "it rests");
    let got = net.recv(1, from(0), 0, exact(1), 10);
    net.stall(1, 0, true);
    net.send(0, 1, 0, 1, &[1; 10]);
    run(&mut net, 300);
    assert!(net.got(1, got, &[1; 10]), "{}", net.views());
}

#[test]
fn a_link_that_never_opens_is_told_only_if_no_other_does() {
    for returns in [false, true] {
        let mut net = Net::new(2, &[Limits { returns, ..limits() }; 3], &Config::default(), 1);
        let never = |net: &mut Net, rail: u8, why: &str| {
            let lost = Event::Lost { peer: PeerId(1), why: why.into(), unsent: Vec::new() };
            net.hosts[0].engine.handle(Instant::from_ns(net.now), RailId(rail), lost);
        };
        never(&mut net, 0, "docker0 leads nowhere");
        let got = net.recv(1, from(0), 0, exact(1), LEN);
        net.send(0, 1, 0, 1, &pattern(LEN, 1));
        run(&mut net, 100);
        assert!(net.got(1, got, &pattern(LEN, 1)));
        assert!(net.hosts.iter().all(|host| host.notices.is_empty()), "{:?}", net.hosts[0].notices);

        let mut net = Net::new(2, &[Limits { returns, ..limits() }; 3], &Config::default(), 1);
        let sent = net.send(0, 1, 0, 1, &pattern(LEN, 1));
        ["one", "two", "three"].iter().zip(0..).for_each(|(why, rail)| never(&mut net, rail, why));
        run(&mut net, 1);
        assert_eq!(net.result(0, sent), Some(Err(Error::PeerLost(PeerId(1)))));
        let texts: Vec<_> = net.hosts[0].notices.iter().map(|notice| notice.text.as_str()).collect();
        assert_eq!(texts, ["one; two; three"], "one notice that says all");
    }
}
