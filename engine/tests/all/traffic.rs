//! Counts of messages by peer.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, PeerId, Traffic};

const LONG: usize = 1 << 20;

#[test]
fn messages_are_counted_by_peer_and_protocol() {
    let mut net = Net::new(2, &[limits()], &Config::default(), 1);
    for tag in 0..3 {
        net.send(0, 1, 0, tag, &[7; 100]);
    }
    net.send(0, 1, 5, 0, &pattern(LONG, 1));
    net.settle();
    let traffic = |net: &Net, host: usize, peer| net.hosts[host].engine.inspect().traffic(PeerId(peer));
    let sent = Traffic { sent: 4, requested: 1, ..Traffic::default() };
    assert_eq!(traffic(&net, 0, 1), Some(sent));
    let there = Traffic { received: 4, unexpected: 4, unexpected_bytes: 300, ..Traffic::default() };
    assert_eq!(traffic(&net, 1, 0), Some(there), "the long one has only announced itself");
    for tag in 0..3 {
        net.recv(1, from(0), 0, exact(tag), 100);
    }
    let long = net.recv(1, from(0), 5, exact(0), LONG);
    net.settle();
    assert!(net.got(1, long, &pattern(LONG, 1)));
    assert_eq!(traffic(&net, 1, 0), Some(Traffic { received: 4, ..Traffic::default() }));
    assert_eq!(traffic(&net, 0, 7), None);
}
