//! Blocking sends that end before their receivers answer: a copy of the data goes on.

use crate::net::memory::BufferId;
use crate::net::{Net, exact, from, limits, pattern};
use crate::thresholds::profile;
use nmad_engine::{Config, Duration, EarlyEnd, Error, Hints, Instant, Limits, PeerId, RailId, RequestId};

/// Above the eager limit; copying it takes less time than a handshake.
const LEN: usize = 3_000;
const MANY: u64 = 1_000_000;

fn net(early: u64) -> Net {
    let config = Config { eager_max: Some(1_000), early, ..Config::default() };
    let mut net = Net::new(3, &[limits()], &config, 1);
    (0..3).for_each(|host| net.hosts[host].engine.setup().set_profile(RailId(0), None, profile()));
    for peer in [1, 2] {
        net.send(0, peer, 0, 0, &[]);
    }
    net.settle();
    net
}

/// How long the next blocking send of this length waits, and its request.
fn begins(net: &mut Net, to: u32, data: &[u8]) -> (RequestId, Option<Duration>) {
    let sent = net.send(0, to, 0, 5, data);
    net.turn(0, true);
    (sent, patience(net, sent))
}

/// How long a blocking send waits from now on; `None`: it does not end early as it is now.
fn patience(net: &mut Net, sent: RequestId) -> Option<Duration> {
    match net.hosts[0].engine.early_end(sent, Instant::from_ns(net.now)) {
        EarlyEnd::After(patience) => Some(patience),
        EarlyEnd::Never | EarlyEnd::OnceItLeft => None,
    }
}

/// Ends a send early.
fn end(net: &mut Net, sent: RequestId) {
    assert!(net.hosts[0].engine.end_early(sent));
    net.turn(0, true);
    // The memory that the engine was lent is checked from the end on.
    assert!(matches!(net.result(0, sent), Some(Ok(envelope)) if envelope.len == LEN as u64));
}

fn copied(net: &Net) -> u64 {
    net.hosts[0].engine.inspect().early_bytes()
}

/// A program sends to two hosts, again and again, and neither receives yet.
fn phases(net: &mut Net, count: u64) -> Vec<Vec<Option<Duration>>> {
    let mut phases = Vec::new();
    for phase in 0..count {
        let mut waits = Vec::new();
        for to in [1, 2] {
            let (sent, wait) = begins(net, to, &pattern(LEN, 10 * phase + u64::from(to)));
            end(net, sent);
            let now = Instant::from_ns(net.now);
            net.hosts[0].engine.ended_blocking(now);
            waits.push(wait);
        }
        net.settle();
        net.now += 50_000_000;
        phases.push(waits);
    }
    phases
}

#[test]
fn it_ends_with_a_copy_and_its_message_arrives_later() {
    let mut net = net(MANY);
    let (sent, wait) = begins(&mut net, 1, &pattern(LEN, 7));
    assert!(wait.expect("nobody receives it").as_ns() > 750, "longer than a copy takes");
    end(&mut net, sent);
    net.settle();
    assert_eq!(copied(&net), LEN as u64);
    let received = net.recv(1, from(0), 0, exact(5), LEN);
    net.settle();
    assert!(net.got(1, received, &pattern(LEN, 7)));
    assert_eq!((copied(&net), net.pending()), (0, 0), "nothing of it is left");
}

#[test]
fn sends_of_a_phase_do_not_wait_for_each_other() {
    let mut net = net(MANY);
    let phases = phases(&mut net, 3);
    let zero = Some(Duration::from_ns(0));
    assert!(phases[0][0] > zero, "it is not known that another one follows");
    assert_eq!(phases[0][1], zero);
    assert_eq!(
        phases[1..],
        [vec![zero, zero], vec![zero, zero]],
        "phases are expected to be like the last one"
    );
    for (phase, to) in (0..3).flat_map(|phase| [(phase, 1), (phase, 2)]) {
        let received = net.recv(to as usize, from(0), 0, exact(5), LEN);
        net.settle();
        assert!(net.got(to as usize, received, &pattern(LEN, 10 * phase + to)));
    }
    assert_eq!(copied(&net), 0);
}

#[test]
fn copies_are_bounded_and_can_be_forbidden() {
    let mut net = net(2 * LEN as u64);
    let waits = phases(&mut net, 1);
    assert!(waits[0].iter().all(Option::is_some), "two fit");
    let mut none = self::net(0);
    assert_eq!(begins(&mut none, 1, &pattern(LEN, 1)).1, None);
    let mut full = self::net(LEN as u64);
    let (sent, wait) = begins(&mut full, 1, &pattern(LEN, 1));
    assert!(wait.is_some() && full.hosts[0].engine.end_early(sent));
    assert_eq!(begins(&mut full, 2, &pattern(LEN, 2)).1, None, "there is no room");
}

#[test]
fn synchronous_and_answered_sends_wait() {
    let mut net = net(MANY);
    let hints = Hints { synchronous: true, ..Hints::default() };
    let sent = net.send_with(0, 1, 0, 5, &pattern(LEN, 1), hints);
    net.turn(0, true);
    assert_eq!(patience(&mut net, sent), None);
    assert!(!net.hosts[0].engine.end_early(sent));
    let (sent, wait) = begins(&mut net, 2, &pattern(LEN, 2));
    assert!(wait.is_some());
    let received = net.recv(2, from(0), 0, exact(5), LEN);
    net.settle();
    assert!(!net.hosts[0].engine.end_early(sent), "it has ended");
    assert!(net.got(2, received, &pattern(LEN, 2)));
    assert_eq!(copied(&net), 0);
}

#[test]
fn a_copy_is_dropped_with_its_receiver() {
    let mut net = net(MANY);
    let (sent, _) = begins(&mut net, 1, &pattern(LEN, 7));
    end(&mut net, sent);
    net.settle();
    net.hosts[0].engine.setup().declare_failed(PeerId(1), "a test");
    net.settle();
    assert_eq!(copied(&net), 0);
    let later = net.send(0, 1, 0, 5, &[1]);
    net.settle();
    assert_eq!(net.result(0, later), Some(Err(Error::PeerLost(PeerId(1)))));
}

/// A send whose receiver has answered and reads nothing: with two rails, it waits until its message is there.
fn left(early: u64) -> (Net, RequestId, (RequestId, BufferId)) {
    let config = Config { eager_max: Some(1_000), early, ..Config::default() };
    left_over(Net::pair(2, config))
}

fn left_over(mut net: Net) -> (Net, RequestId, (RequestId, BufferId)) {
    for rail in 0..2 {
        net.hosts[0].engine.setup().set_profile(RailId(rail), None, profile());
    }
    net.send(0, 1, 0, 0, &[]);
    net.settle();
    let received = net.recv(1, from(0), 0, exact(5), LEN);
    let sent = net.send(0, 1, 0, 5, &pattern(LEN, 7));
    let mut turns = 0;
    while !net.hosts[0].engine.inspect().has_left(sent) {
        // The receiver answers, and does not look again.
        if turns < 8 && net.hosts[0].engine.early_end(sent, Instant::from_ns(net.now)) != EarlyEnd::OnceItLeft
        {
            net.turn(1, true);
        }
        net.turn(0, true);
        net.now += 10_000;
        turns += 1;
        assert!(turns < 100, "it never left: {}", net.views());
    }
    (net, sent, received)
}

#[test]
fn it_ends_with_a_copy_once_it_has_left() {
    let (mut net, sent, received) = left(MANY);
    assert!(patience(&mut net, sent).is_some());
    end(&mut net, sent);
    assert_eq!(copied(&net), LEN as u64);
    net.settle();
    assert!(net.got(1, received, &pattern(LEN, 7)));
    assert_eq!((copied(&net), net.pending()), (0, 0));
    let (mut none, sent, received) = left(0);
    assert_eq!(patience(&mut none, sent), None, "copies are forbidden");
    assert!(!none.hosts[0].engine.end_early(sent));
    none.settle();
    assert!(none.got(1, received, &pattern(LEN, 7)));
}

#[test]
fn a_copy_is_sent_again_when_a_rail_dies() {
    for rail in 0..2 {
        let (mut net, sent, received) = left(MANY);
        end(&mut net, sent);
        // The program writes other data there.
        net.kill(rail, 0, 1);
        net.settle();
        assert!(net.got(1, received, &pattern(LEN, 7)), "rail {rail}: {}", net.views());
        assert_eq!((copied(&net), net.pending()), (0, 0));
    }
}

#[test]
fn a_send_over_lossy_rails_waits_until_it_is_there() {
    let config = Config { eager_max: Some(1_000), early: MANY, ..Config::default() };
    let net = Net::new(2, &[Limits { lossy: true, ..limits() }; 2], &config, 1);
    let (mut net, sent, received) = left_over(net);
    assert_eq!(net.hosts[0].engine.early_end(sent, Instant::from_ns(net.now)), EarlyEnd::Never);
    assert!(!net.hosts[0].engine.end_early(sent), "lost chunks are sent again from its memory");
    net.settle();
    assert!(net.got(1, received, &pattern(LEN, 7)));
}
