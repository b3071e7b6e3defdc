//! Clocks that jump: a virtual machine that was paused or moved, a broken time stamp counter.

use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Limits, NoticeKind, PeerId, RailId};

const LEN: usize = 1_000_000;
const HOUR: i64 = 3_600_000_000_000;
/// Where the clocks begin: they can jump back from there.
const START: u64 = 10 * HOUR as u64;

/// Two rails of 1 GB/s, on which something has been sent.
fn net(lossy: bool) -> Net {
    let limits = Limits { bandwidth: 1_000_000_000, latency_ns: 1_000, lossy, ..limits() };
    let config = Config { strategy: "auto".into(), ..Config::default() };
    let mut net = Net::new(2, &[limits; 2], &config, 1);
    net.now = START;
    let drop = if lossy { 8 } else { 0 };
    net.set_faults(Faults { delay_ns: 500_000, drop, ..Faults::default() });
    net
}

/// Sends `count` messages each way, and calls `meanwhile` while each of them is under way.
fn exchange(net: &mut Net, count: u64, mut meanwhile: impl FnMut(&mut Net)) {
    for tag in 0..count {
        let recvs = [0, 1].map(|at| net.recv(at, from(1 - at as u32), 0, exact(tag), LEN));
        (0..2).for_each(|at: usize| _ = net.send(at, 1 - at as u32, 0, tag, &pattern(LEN, tag)));
        for _ in 0..20 {
            net.turn(0, true);
            net.turn(1, true);
            net.now += 1_000;
        }
        meanwhile(net);
        net.settle();
        for (at, recv) in recvs.into_iter().enumerate() {
            assert!(net.got(at, recv, &pattern(LEN, tag)), "{at}, {tag}: {}", net.views());
        }
    }
}

/// The load of both rails as the first host sees them.
fn loads(net: &Net) -> [f64; 2] {
    [0, 1].map(|rail| {
        let forecast = net.hosts[0].engine.inspect().forecast(RailId(rail), PeerId(1)).unwrap();
        forecast.accuracy().map_or(1.0, |accuracy| accuracy.load)
    })
}

#[test]
fn a_jump_loses_no_message_and_no_link() {
    for lossy in [false, true] {
        for jump in [-HOUR, -1_000_000, 1_000_000, HOUR] {
            for jumping in [&[0][..], &[1], &[0, 1]] {
                let mut net = net(lossy);
                exchange(&mut net, 5, |_| {});
                let mut left = 1;
                let begin = net.now;
                exchange(&mut net, 5, |net| {
                    jumping.iter().for_each(|&host| net.hosts[host].ahead += jump * left);
                    left = 0;
                });
                let ms = (net.now - begin) / 1_000_000;
                assert!(ms < 1_000, "lossy {lossy}, {jump} ns on {jumping:?}: {ms} ms");
                let notices = net.hosts.iter().flat_map(|host| &host.notices);
                let bad: Vec<_> = notices.filter(|notice| notice.kind != NoticeKind::Detail).collect();
                assert!(bad.is_empty(), "lossy {lossy}, {jump} ns on {jumping:?}: {bad:?}");
            }
        }
    }
}

#[test]
fn shares_survive_clocks_that_jump_all_the_time() {
    let mut net = net(false);
    exchange(&mut net, 30, |_| {});
    let [first, second] = loads(&net);
    let mut sign = 1;
    exchange(&mut net, 30, |net| {
        net.hosts[0].ahead += sign * 3_000_000_000;
        sign = -sign;
    });
    exchange(&mut net, 100, |_| {});
    let [first_after, second_after] = loads(&net);
    assert!(first.is_finite() && first_after.is_finite());
    let ratio = (first_after / second_after) / (first / second);
    assert!((0.7..1.4).contains(&ratio), "{first} {second}, then {first_after} {second_after}");
}
