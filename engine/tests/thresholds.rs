//! Thresholds: a profile that is given to a rail governs the paths, and what the user has set governs it.

#[path = "common/net.rs"]
mod net;

use net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Limits, Method, PeerId, Profile, Provenance, RailId, Sample};
use std::sync::Arc;

/// A rail where an iovec pays from 800 B, a rendezvous from about 5 KB, sharing a packet up to 400 B.
fn profile() -> Arc<Profile> {
    let sample = |len, ns| Sample { len, ns, low_ns: ns, high_ns: ns, count: 10 };
    let mut samples = Vec::new();
    for len in (0..16).map(|k| 1u64 << k) {
        samples.push((Method::Copy, sample(len, 3_000 + len + len / 4)));
        samples.push((Method::InPlace, sample(len, 3_200 + len)));
        samples.push((Method::Pair, sample(len, 3_100 + 2 * len)));
        samples.push((Method::Aggregate, sample(len, 3_000 + 2 * len + len / 4)));
        samples.push((Method::Memcpy, sample(len, 10 + len / 4)));
        samples.push((Method::Rendezvous, sample(len, 4_500 + len)));
    }
    Arc::new(Profile::new(Provenance::default(), samples).unwrap())
}

fn net(config: Config) -> Net {
    let mut net = Net::pair(1, config);
    (0..2).for_each(|host| net.hosts[host].engine.set_profile(RailId(0), None, profile()));
    // So that the link is open when it begins.
    net.send(0, 1, 9, 0, &[]);
    net.settle();
    net.carried();
    net
}

/// What host 0 says when these messages wait together.
fn says(net: &mut Net, lens: &[usize]) -> Vec<String> {
    let received: Vec<_> = lens.iter().map(|&len| net.recv(1, from(0), 0, exact(1), len)).collect();
    lens.iter().for_each(|&len| {
        net.send(0, 1, 0, 1, &pattern(len, 1));
    });
    net.settle();
    for (recv, &len) in received.into_iter().zip(lens) {
        assert!(net.got(1, recv, &pattern(len, 1)));
    }
    net.said(0).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn messages_are_announced_from_the_measured_threshold_on() {
    let mut net = net(Config::default());
    let max = net.hosts[0].engine.eager_max(PeerId(1)).unwrap();
    assert!((5_100..5_300).contains(&max), "{max}");
    assert!(says(&mut net, &[max]).iter().all(|text| !text.contains("rts")));
    assert!(says(&mut net, &[max + 1]).iter().any(|text| text.contains("rts")));
}

#[test]
fn what_the_user_has_set_overrules_the_profile() {
    let mut net = net(Config { eager_max: Some(300), aggregate_max: Some(1_000), ..Config::default() });
    assert_eq!(net.hosts[0].engine.eager_max(PeerId(1)), Some(300));
    assert!(says(&mut net, &[301]).iter().any(|text| text.contains("rts")));
    assert_eq!(says(&mut net, &[290, 290]).len(), 1, "one packet");
}

#[test]
fn messages_share_a_packet_while_that_was_measured_to_pay() {
    let mut net = net(Config::default());
    assert_eq!(says(&mut net, &[350, 350]).len(), 1, "350 B twice: one packet");
    assert_eq!(says(&mut net, &[450, 450]).len(), 2, "450 B twice: two packets");
    assert_eq!(says(&mut net, &[10, 4_000, 10]).len(), 1, "short ones always find a place");
}

/// A message that is copied ends for its sender when it is in its packet, one in place when the rail lets
/// it go.
#[test]
fn data_stays_in_place_from_the_measured_threshold_on() {
    for (len, copied) in [(700, true), (900, false)] {
        let mut net = net(Config::default());
        net.stall(0, 0, true);
        let sent = net.send(0, 1, 0, 1, &pattern(len, 1));
        net.turn(0, true);
        assert_eq!(net.result(0, sent).is_some(), copied, "{len} B");
        net.stall(0, 0, false);
        net.settle();
        assert!(net.result(0, sent).is_some());
    }
}

#[test]
fn short_messages_go_over_the_rail_that_was_measured_to_be_faster() {
    // By its nominal latency the first one is.
    let nominal = [1_000, 9_000].map(|latency_ns| Limits { latency_ns, ..limits() });
    let config = Config { strategy: "aggregate_fastest".into(), ..Config::default() };
    let mut net = Net::new(2, &nominal, &config, 1);
    net.hosts[0].engine.set_profile(RailId(1), None, profile());
    net.send(0, 1, 9, 0, &[]);
    net.settle();
    net.carried();
    net.send(0, 1, 0, 1, &[1; 64]);
    net.settle();
    assert_eq!(net.said(0)[0].0, 0, "1000 ns are still less than 3064 ns");
    let mut late = Net::new(2, &nominal.map(|l| Limits { latency_ns: l.latency_ns * 4, ..l }), &config, 1);
    late.hosts[0].engine.set_profile(RailId(1), None, profile());
    late.send(0, 1, 9, 0, &[]);
    late.settle();
    late.carried();
    late.send(0, 1, 0, 1, &[1; 64]);
    late.settle();
    assert_eq!(late.said(0)[0].0, 1, "3064 ns are less than 4000 ns");
}

#[test]
fn rails_that_share_a_message_are_worth_announcing_it_earlier() {
    let max = |rails: usize| {
        let mut net = Net::pair(rails, Config { strategy: "auto".into(), ..Config::default() });
        for rail in 0..rails {
            net.hosts[0].engine.set_profile(RailId(rail as u8), None, profile());
        }
        net.send(0, 1, 9, 0, &[]);
        net.settle();
        net.hosts[0].engine.eager_max(PeerId(1)).unwrap()
    };
    let (one, two) = (max(1), max(2));
    // One rail leaves data in place, two copy it, because each may have to send for the other. A handshake
    // over two is more work.
    assert!((5_100..5_300).contains(&one) && (4_300..4_700).contains(&two), "{one} and {two}");
}
