//! Receipts: protocol, rails and times of each message, on demand.

use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Limits, PeerId, Protocol, RailId, Receipt};

/// 1 GB/s and 3 GB/s.
fn net() -> Net {
    let rails = [(5_000, 1_000_000_000), (2_000, 3_000_000_000)].map(|(latency_ns, bandwidth)| Limits {
        latency_ns,
        bandwidth,
        ..limits()
    });
    let mut net = Net::new(2, &rails, &Config { strategy: "auto".into(), ..Config::default() }, 1);
    net.send(0, 1, 9, 0, &[]);
    net.settle();
    net
}

fn transfer(net: &mut Net, len: usize) -> Option<Receipt> {
    let recv = net.recv(1, from(0), 0, exact(1), len);
    net.send(0, 1, 0, 1, &pattern(len, 1));
    net.settle();
    assert!(net.got(1, recv, &pattern(len, 1)));
    net.hosts[0].engine.next_receipt()
}

#[test]
fn nothing_is_recorded_before_or_after_recording() {
    let mut net = net();
    assert_eq!(transfer(&mut net, 100), None);
    net.hosts[0].engine.setup().record_receipts(Some(0));
    assert!(transfer(&mut net, 100).is_some());
    net.hosts[0].engine.setup().record_receipts(None);
    assert_eq!(transfer(&mut net, 100), None);
}

#[test]
fn short_messages_get_no_receipt_if_only_long_ones_are_recorded() {
    let mut net = net();
    net.hosts[0].engine.setup().record_receipts(Some(4_096));
    assert_eq!(transfer(&mut net, 100), None);
    let before = nmad_engine::Instant::from_ns(net.now);
    let receipt = transfer(&mut net, 1 << 20).expect("it is long");
    assert!(receipt.envelope.len == 1 << 20 && receipt.began >= before, "{receipt:?}");
    assert_eq!(transfer(&mut net, 4_095), None);
}

#[test]
fn a_small_message_names_its_rail_and_the_others() {
    let mut net = net();
    net.hosts[0].engine.setup().record_receipts(Some(0));
    let receipt = transfer(&mut net, 100).unwrap();
    assert!(
        receipt.protocol == Protocol::Eager
            && receipt.envelope.len == 100
            && receipt.envelope.peer == PeerId(1)
    );
    assert_eq!(receipt.carried, [(RailId(1), 100)]);
    let times: Vec<_> = receipt.candidates.iter().map(|c| (c.rail.0, c.busy_ns, c.alone_ns)).collect();
    assert_eq!(times, [(0, 0, 5_100), (1, 0, 2_033)]);
    assert_eq!(receipt.predicted_ns, 2_033);
    assert_eq!(receipt.eager_max, net.hosts[0].engine.inspect().eager_max(PeerId(1)).unwrap() as u64);
}

#[test]
fn a_receipt_of_a_large_message_has_its_shares_and_both_times() {
    let mut net = net();
    net.hosts[0].engine.setup().record_receipts(Some(0));
    let receipt = transfer(&mut net, 4_000_000).unwrap();
    assert_eq!(receipt.protocol, Protocol::Rendezvous);
    assert_eq!(receipt.carried.iter().map(|(_, len)| len).sum::<u64>(), 4_000_000);
    let fast = receipt.carried.iter().find(|(rail, _)| *rail == RailId(1)).unwrap().1;
    assert!(fast.abs_diff(3_000_000) < 20_000, "{receipt:?}");
    assert!(receipt.predicted_ns.abs_diff(1_003_000) < 5_000, "{receipt:?}");
    assert!(receipt.actual_ns > 0);
}
