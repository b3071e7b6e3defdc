//! Every driver passes the suite.

use nmad_drivers::around::Around;
use nmad_drivers::around::fault::{Fault, Faults};
use nmad_drivers::around::layers::Layers;
use nmad_drivers::around::renumber::Renumbered;
use nmad_drivers::around::throttle::Throttle;
use nmad_drivers::around::trace::Trace;
use nmad_drivers::conformance::{Pair, check};
use nmad_drivers::interface::{Interface, interfaces};
use nmad_drivers::loopback::LoopbackRail;
use nmad_drivers::network::{Network, Place};
use nmad_drivers::shm::{ShmConfig, ShmRail};
use nmad_drivers::tcp::{TcpConfig, TcpRail};
use nmad_drivers::udp::{UdpConfig, UdpRail};
use nmad_engine::packet::PeerId;
use nmad_seal::Policy;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

fn tcp(rank: u32, interface: &Interface) -> TcpRail {
    let config = TcpConfig::new(PeerId(rank), 0, interface.clone(), [5; 32]);
    TcpRail::open(config).expect("a rail opens on the loopback interface")
}

fn tcp_pair(interface: &Interface) -> (TcpRail, TcpRail) {
    (tcp(0, interface), tcp(1, interface))
}

fn udp(rank: u32, interface: &Interface) -> UdpRail {
    let config = UdpConfig::new(PeerId(rank), 0, interface.clone(), [5; 32]);
    UdpRail::open(config).expect("a rail opens on the loopback interface")
}

/// The interface that drivers are tested on: the one of this name in the environment (a virtual machine has
/// one with an RDMA device), otherwise the loopback interface.
fn interface() -> Interface {
    let Ok(name) = std::env::var("NMAD_TEST_INTERFACE") else { return Interface::loopback() };
    let found = interfaces().expect("the system tells its interfaces");
    let named = found.into_iter().find(|interface| interface.name == name);
    named.unwrap_or_else(|| panic!("there is an interface {name}"))
}

/// Each registered driver, or the one that the environment names, which then must be able to run here. They
/// mostly wait for time limits, so all run at once.
#[test]
fn networks() {
    let only = std::env::var("NMAD_TEST_DRIVER").ok();
    let is_asked = |network: &&Network| only.as_ref().is_none_or(|only| only == network.name());
    std::thread::scope(|scope| {
        for network in Network::ALL.iter().filter(is_asked) {
            if let Some(why) = network.hindrance() {
                assert!(only.is_none(), "{}: {why}", network.name());
                eprintln!("skipped: {}: {why}", network.name());
                continue;
            }
            for (policy, how) in [(Policy::Off, ""), (Policy::On, ", encrypted")] {
                scope.spawn(move || {
                    let rail = |rank| {
                        let (rank, interface) = (PeerId(rank), interface());
                        let place = Place { rank, rail: 0, interface, secret: [5; 32], encrypt: policy };
                        let opened = network.open(place, &Layers::default());
                        opened.unwrap_or_else(|e| panic!("{e}")).0
                    };
                    check(&format!("{}{how}", network.name()), || Pair::introduced(rail(0), rail(1)));
                });
            }
        }
    });
}

#[test]
fn udp_v6() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    check("udp v6", || Pair::introduce(udp(0, &v6()), udp(1, &v6())));
}

#[test]
fn udp_with_faults() {
    check("faults around udp", || {
        let faults = Faults { pretend_lossy: true, drop: 0.1, duplicate: 0.1, delay: 0.2, ..Faults::none(7) };
        let around = |rail| Around::new(rail, Fault::new(faults.clone()));
        Pair::introduce(around(udp(0, &Interface::loopback())), around(udp(1, &Interface::loopback())))
    });
}

fn v6() -> Interface {
    Interface { address: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128, ..Interface::loopback() }
}

#[test]
fn loopback() {
    check("loopback", || Pair {
        first: Box::new(LoopbackRail::new(PeerId(0), 3)),
        second: None,
        rails: [3, 3],
        tick: Box::new(|| ()),
    });
}

#[test]
fn tcp_v6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    check("tcp v6", || {
        let (first, second) = tcp_pair(&v6());
        Pair::introduce(first, second)
    });
}

fn shm(rank: u32, cross_memory: bool) -> ShmRail {
    let config = ShmConfig { cross_memory, ..ShmConfig::new(PeerId(rank), 0, [5; 32]) };
    ShmRail::open(config).expect("a rail opens in shared memory")
}

#[test]
fn shm_across() {
    check("shm", || Pair::introduce(shm(0, true), shm(1, true)));
}

#[test]
fn shm_through_the_area() {
    check("shm without cross-memory access", || Pair::introduce(shm(0, false), shm(1, false)));
}

#[test]
fn shm_pushed_only() {
    check("shm, the sender copies", || Pair::introduce(shm(0, true), shm(1, false)));
}

#[test]
fn shm_pulled_only() {
    check("shm, the receiver copies", || Pair::introduce(shm(0, false), shm(1, true)));
}

#[test]
fn shm_with_layers() {
    check("trace around shm", || {
        let around = |rail| Around::new(rail, Trace::new("shm", 1000, true));
        Pair::introduce(around(shm(0, true)), around(shm(1, true)))
    });
    check("throttle around shm", || {
        let around = |rail| Around::new(rail, Throttle::new(1_000_000_000, Duration::from_micros(200)));
        Pair::introduce(around(shm(0, true)), around(shm(1, true)))
    });
    for faults in [
        Faults::none(1),
        Faults { pretend_lossy: true, drop: 0.1, duplicate: 0.1, delay: 0.2, ..Faults::none(7) },
    ] {
        check("faults around shm", || {
            let around = |rail| Around::new(rail, Fault::new(faults.clone()));
            Pair::introduce(around(shm(0, true)), around(shm(1, true)))
        });
    }
}

/// The first peer is rank 1 to its rail, and the second one rank 0.
#[test]
fn renumbered() {
    let numbers = || vec![PeerId(1), PeerId(0)];
    check("shm with other numbers", || {
        let around = |rank| Renumbered::new(Box::new(shm(rank, true)), numbers());
        Pair::introduce(around(1), around(0))
    });
    check("tcp with other numbers", || {
        let (second, first) = tcp_pair(&Interface::loopback());
        let around = |rail| Renumbered::new(Box::new(rail), numbers());
        Pair::introduce(around(first), around(second))
    });
}

#[test]
fn traced() {
    check("trace around tcp", || {
        let around = |rail| Around::new(rail, Trace::new("tcp/lo", 1000, true));
        let (first, second) = tcp_pair(&Interface::loopback());
        Pair::introduce(around(first), around(second))
    });
}

#[test]
fn throttled() {
    check("throttle around tcp", || {
        let around = |rail| Around::new(rail, Throttle::new(1_000_000_000, Duration::from_micros(200)));
        let (first, second) = tcp_pair(&Interface::loopback());
        Pair::introduce(around(first), around(second))
    });
}

#[test]
fn without_faults() {
    check("fault around tcp", || {
        let around = |rail| Around::new(rail, Fault::new(Faults::none(1)));
        let (first, second) = tcp_pair(&Interface::loopback());
        Pair::introduce(around(first), around(second))
    });
}

#[test]
fn lossy() {
    check("faults around tcp", || {
        let faults = Faults { pretend_lossy: true, drop: 0.1, duplicate: 0.1, delay: 0.2, ..Faults::none(7) };
        let around = |rail| Around::new(rail, Fault::new(faults.clone()));
        let (first, second) = tcp_pair(&Interface::loopback());
        Pair::introduce(around(first), around(second))
    });
}
