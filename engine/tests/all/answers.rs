//! When a message in a packet of its own is acknowledged, where several rails share messages.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Limits, RailId};

const LEN: usize = 60_000;

/// Packets that host 1 has sent.
fn packets(net: &Net) -> u64 {
    [0, 1].iter().map(|&rail| net.hosts[1].engine.inspect().counters(RailId(rail)).packets).sum()
}

/// Two hosts, of which the second one has just received a message; and the packets that it has sent.
fn received() -> (Net, u64) {
    let rails = [Limits { packet: 72 << 10, ..limits() }; 2];
    let mut net = Net::met(&rails, Config { eager_max: Some(64 << 10), ..Config::default() });
    let before = packets(&net);
    let data = pattern(LEN, 1);
    net.send(0, 1, 0, 1, &data);
    let recv = net.recv(1, from(0), 0, exact(1), LEN);
    for _ in 0..10_000 {
        net.turn(0, true);
        net.turn(1, true);
        if net.result(1, recv.0).is_some() {
            assert!(net.got(1, recv, &data));
            return (net, before);
        }
        net.now += 1_000;
    }
    panic!("it does not arrive");
}

#[test]
fn the_thread_that_waits_for_a_message_continues_before_it_is_acknowledged() {
    let (mut net, before) = received();
    assert_eq!(packets(&net), before);
    net.now += 1_000;
    net.turn(1, true);
    assert_eq!(packets(&net), before + 1, "it waits again");
}

#[test]
fn an_answer_carries_the_acknowledgement() {
    let (mut net, before) = received();
    net.send(1, 0, 0, 2, &[2]);
    let answer = net.recv(0, from(1), 0, exact(2), 1);
    net.settle();
    assert!(net.got(0, answer, &[2]));
    assert_eq!(packets(&net), before + 1);
}
