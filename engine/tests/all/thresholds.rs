//! Thresholds: the profile of a rail determines the protocols, and the user's settings override it.

use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Context, Hints, Limits, Method, PeerId, Profile, Provenance, RailId, Sample, Tag};
use std::sync::Arc;

/// A rail where an iovec pays from 800 B, a rendezvous from about 5 KB, sharing a packet up to 400 B.
pub fn profile() -> Arc<Profile> {
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
    (0..2).for_each(|host| net.hosts[host].engine.setup().set_profile(RailId(0), None, profile()));
    // Opens the link first.
    net.send(0, 1, 9, 0, &[]);
    net.settle();
    net.carried();
    net
}

/// Returns the frames that host 0 sends when these messages wait together.
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
fn rendezvous_is_used_from_the_measured_threshold_on() {
    let mut net = net(Config::default());
    let max = net.hosts[0].engine.inspect().eager_max(PeerId(1)).unwrap();
    assert!((5_100..5_300).contains(&max), "{max}");
    assert!(says(&mut net, &[max]).iter().all(|text| !text.contains("rts")));
    assert!(says(&mut net, &[max + 1]).iter().any(|text| text.contains("rts")));
}

#[test]
fn settings_of_the_user_override_the_profile() {
    let mut net = net(Config { eager_max: Some(300), aggregate_max: Some(1_000), ..Config::default() });
    assert_eq!(net.hosts[0].engine.inspect().eager_max(PeerId(1)), Some(300));
    assert!(says(&mut net, &[301]).iter().any(|text| text.contains("rts")));
    assert_eq!(says(&mut net, &[290, 290]).len(), 1, "one packet");
}

#[test]
fn messages_share_a_packet_up_to_the_measured_threshold() {
    let mut net = net(Config::default());
    assert_eq!(says(&mut net, &[350, 350]).len(), 1, "350 B twice: one packet");
    assert_eq!(says(&mut net, &[450, 450]).len(), 2, "450 B twice: two packets");
    assert_eq!(says(&mut net, &[10, 4_000, 10]).len(), 1, "short ones always find a place");
}

/// Blocks of 300 B are packed into the packet, those of 420 B are sent in place: the threshold is 360 B.
#[test]
fn blocks_are_sent_in_place_from_the_measured_threshold_on() {
    for (block, packed) in [(300, true), (420, false)] {
        let mut net = net(Config::default());
        net.stall(0, 0, true);
        let data = pattern(5 * block, 1);
        let (buffer, segments) = net.memory(|memory| memory.lend(&data, block));
        let (to, tag) = (PeerId(1), Tag(1));
        let sent = net.hosts[0].engine.send(to, Context(0), tag, segments, Hints::default());
        net.lend(0, sent, buffer, true);
        net.turn(0, true);
        assert_eq!(net.result(0, sent).is_some(), packed, "blocks of {block} B");
        net.stall(0, 0, false);
        let recv = net.recv(1, from(0), 0, exact(1), data.len());
        net.settle();
        assert!(net.got(1, recv, &data));
    }
}

/// With several rails, or a lossy one, packets may have to be sent again. The copy for retransmission is
/// made when the rail has the packet, and the sender's memory is free then.
#[test]
fn data_is_sent_in_place_with_several_rails_and_lossy_ones() {
    let lossy = Limits { lossy: true, ..limits() };
    for rails in [&[limits(), limits()][..], &[lossy], &[limits(), lossy]] {
        for (len, copied) in [(700, true), (900, false)] {
            let mut net = Net::new(2, rails, &Config { eager_max: Some(8_000), ..Config::default() }, 1);
            let number = |rail: usize| RailId(rail as u8);
            (0..rails.len())
                .for_each(|rail| net.hosts[0].engine.setup().set_profile(number(rail), None, profile()));
            net.send(0, 1, 9, 0, &[]);
            net.settle();
            (0..rails.len()).for_each(|rail| net.stall(rail, 0, true));
            let sent = net.send(0, 1, 0, 1, &pattern(len, 1));
            net.turn(0, true);
            assert_eq!(net.result(0, sent).is_some(), copied, "{len} B over {} rails", rails.len());
            (0..rails.len()).for_each(|rail| net.stall(rail, 0, false));
            net.turn(0, true);
            net.turn(0, true);
            assert!(net.result(0, sent).is_some(), "it does not wait for the acknowledgement");
            // The wire has the original data, although the memory is no longer kept.
            let recv = net.recv(1, from(0), 0, exact(1), len);
            net.settle();
            assert!(net.got(1, recv, &pattern(len, 1)));
        }
    }
}

#[test]
fn data_in_place_survives_losses_and_dead_rails() {
    for seed in 0..40 {
        let lossy = Limits { lossy: true, ..limits() };
        let config = Config { in_place_min: Some(1), eager_max: Some(8_000), ..Config::default() };
        let config = Config { strategy: ["greedy", "auto"][seed as usize % 2].into(), ..config };
        let mut net = Net::new(2, &[limits(), lossy, limits()], &config, seed);
        net.set_faults(Faults { delay_ns: 100_000, drop: 30, repeat: 20 });
        let posted: Vec<_> = (0..30).map(|tag| net.recv(1, from(0), 0, exact(tag), 3_000)).collect();
        for tag in 0..30 {
            net.send(0, 1, 0, tag, &pattern(3_000, tag));
            net.now += 5_000;
            net.turn((tag % 3 == 0).into(), true);
            if tag == seed % 30 {
                net.kill((seed % 3) as usize, 0, 1);
            }
        }
        // The test memory fails if a rail or the engine reads memory of a completed request.
        net.settle();
        for (tag, recv) in posted.into_iter().enumerate() {
            assert!(net.got(1, recv, &pattern(3_000, tag as u64)), "seed {seed}, message {tag}");
        }
        assert_eq!([0, 1].map(|host| net.hosts[host].engine.inspect().pending()), [0, 0], "seed {seed}");
    }
}

/// A message that is copied completes for its sender when it is in its packet, one in place when the rail
/// has released it.
#[test]
fn data_is_sent_in_place_from_the_measured_threshold_on() {
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
fn short_messages_use_the_rail_measured_to_be_faster() {
    // By nominal latency the first rail is faster.
    let nominal = [1_000, 9_000].map(|latency_ns| Limits { latency_ns, ..limits() });
    let config = Config { strategy: "aggregate_fastest".into(), ..Config::default() };
    let mut net = Net::new(2, &nominal, &config, 1);
    net.hosts[0].engine.setup().set_profile(RailId(1), None, profile());
    net.send(0, 1, 9, 0, &[]);
    net.settle();
    net.carried();
    net.send(0, 1, 0, 1, &[1; 64]);
    net.settle();
    assert_eq!(net.said(0)[0].0, 0, "1000 ns are still less than 3064 ns");
    let mut late = Net::new(2, &nominal.map(|l| Limits { latency_ns: l.latency_ns * 4, ..l }), &config, 1);
    late.hosts[0].engine.setup().set_profile(RailId(1), None, profile());
    late.send(0, 1, 9, 0, &[]);
    late.settle();
    late.carried();
    late.send(0, 1, 0, 1, &[1; 64]);
    late.settle();
    assert_eq!(late.said(0)[0].0, 1, "3064 ns are less than 4000 ns");
}

#[test]
fn several_rails_have_a_threshold_of_their_own() {
    let max = |rails: usize| {
        let mut net = Net::pair(rails, Config { strategy: "auto".into(), ..Config::default() });
        for rail in 0..rails {
            net.hosts[0].engine.setup().set_profile(RailId(rail as u8), None, profile());
        }
        net.send(0, 1, 9, 0, &[]);
        net.settle();
        net.hosts[0].engine.inspect().eager_max(PeerId(1)).unwrap()
    };
    let (one, two) = (max(1), max(2));
    // Both send data in place. Over two rails a large message completes only when its Fin has arrived, and
    // short messages gain little from two.
    assert!((5_100..5_300).contains(&one) && (14_300..14_900).contains(&two), "{one} and {two}");
}
