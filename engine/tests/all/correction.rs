//! Online correction: observed transfers change the forecasts.

use crate::net::rail::Faults;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{Config, Limits, PeerId, RailId};

const LEN: usize = 4_000_000;

/// Rails with a nominal bandwidth of 1 GB/s that take 1 us and up to `delay_ns` for each order.
fn net(rails: usize, delay_ns: u64) -> Net {
    let claimed = Limits { bandwidth: 1_000_000_000, latency_ns: 1_000, ..limits() };
    let config = Config { strategy: "auto".into(), ..Config::default() };
    let mut net = Net::new(2, &vec![claimed; rails], &config, 1);
    net.send(0, 1, 9, 0, &[]);
    net.settle();
    net.set_faults(Faults { delay_ns, ..Faults::default() });
    net
}

fn transfer(net: &mut Net, times: u64) {
    for tag in 0..times {
        let recv = net.recv(1, from(0), 0, exact(tag), LEN);
        net.send(0, 1, 0, tag, &pattern(LEN, tag));
        net.settle();
        assert!(net.got(1, recv, &pattern(LEN, tag)));
    }
}

#[test]
fn rails_slower_than_nominal_get_slower_forecasts() {
    let mut net = net(2, 30_000_000);
    transfer(&mut net, 20);
    for rail in [0, 1] {
        let forecast = net.hosts[0].engine.inspect().forecast(RailId(rail), PeerId(1)).unwrap();
        let accuracy = forecast.accuracy().expect("chunks were acknowledged");
        assert!(accuracy.count >= 5 && accuracy.load > 1.5, "{accuracy:?}");
        assert!(forecast.body_ns(100_000) > 150_000);
        assert!(
            net.hosts[1].engine.inspect().forecast(RailId(rail), PeerId(0)).unwrap().accuracy().is_none()
        );
    }
}

#[test]
fn a_single_rail_is_not_observed() {
    let mut net = net(1, 0);
    net.carried();
    transfer(&mut net, 3);
    assert!(net.hosts[0].engine.inspect().forecast(RailId(0), PeerId(1)).unwrap().accuracy().is_none());
}
