//! A sleeper is woken, and a thread that polls is not: being watched costs each packet a look for sleepers.

use nmad_drivers::interface::Interface;
use nmad_drivers::tcp::{TcpConfig, TcpRail};
use nmad_drivers::udp::{UdpConfig, UdpRail};
use nmad_engine::packet::{Packet, PeerId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Interest, Order, Scope};
use nmad_wire::{Header, Kind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

const SECRET: [u8; 32] = [5; 32];
/// More than a link has to bring before it is trusted.
const MANY: u32 = 40;

struct Pair {
    sender: Box<dyn Driver>,
    receiver: Box<dyn Driver>,
    arrived: u32,
    sent: u32,
}

impl Pair {
    fn connect(mut sender: impl Driver + 'static, mut receiver: impl Driver + 'static) -> Pair {
        assert!(sender.know(PeerId(1), 0, &receiver.address()), "on the same subnet");
        assert!(receiver.know(PeerId(0), 0, &sender.address()), "on the same subnet");
        sender.send(Departure::Order(Order::Connect { to: PeerId(1) }));
        let mut pair = Pair { sender: Box::new(sender), receiver: Box::new(receiver), arrived: 0, sent: 0 };
        let (mut here, mut there) = (false, false);
        pair.until(|pair| {
            pair.sender.poll(Scope::All, &mut |event| here |= matches!(event, Event::Up { .. }));
            pair.receiver.poll(Scope::All, &mut |event| there |= matches!(event, Event::Up { .. }));
            here && there
        });
        pair
    }

    fn until(&mut self, mut done: impl FnMut(&mut Pair) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < Duration::from_secs(10), "awaited in vain");
        }
    }

    fn send(&mut self) {
        let header = Header { kind: Kind::Packet, len: Header::LEN as u32, number: self.sent, ack: 0 };
        let packet = Packet { bytes: header.encode().to_vec(), in_place: Vec::new() };
        self.sender.send(Departure::Order(Order::Packet { to: PeerId(1), number: self.sent, packet }));
        self.sender.flush();
        self.sender.poll(Scope::All, &mut |_| ());
        self.sent += 1;
    }

    fn receive(&mut self) {
        self.until(|pair| {
            let Pair { receiver, arrived, .. } = pair;
            receiver
                .poll(Scope::All, &mut |event| *arrived += u32::from(matches!(event, Event::Arrived { .. })));
            pair.arrived == pair.sent
        });
    }

    fn converse(&mut self) {
        for _ in 0..MANY {
            self.send();
            self.receive();
        }
    }

    /// The request of a thread that is about to sleep.
    fn descriptor(&mut self) -> i32 {
        self.receiver.wakeup(Interest::Traffic).expect("sockets have one")
    }
}

/// Whether a thread that sleeps on the descriptor is woken within `bound`.
#[allow(unsafe_code)]
fn wakes(descriptor: i32, bound: Duration) -> bool {
    // SAFETY: the rail that it belongs to outlives the borrow.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let bound = Timespec::try_from(bound).expect("a short time");
    poll(&mut polled, Some(&bound)).expect("a descriptor") == 1
}

fn only_sleepers_are_woken(mut pair: Pair) {
    pair.converse();
    for round in 0..3 {
        let descriptor = pair.descriptor();
        pair.send();
        assert!(wakes(descriptor, Duration::from_secs(5)), "round {round}: somebody sleeps");
        pair.receive();
        // A timer of the rail makes it readable now and then, too.
        let is_left_alone = (0..10).any(|_| {
            pair.converse();
            pair.send();
            let woken = wakes(descriptor, Duration::ZERO);
            pair.receive();
            !woken
        });
        assert!(is_left_alone, "round {round}: nobody has asked since");
    }
}

#[test]
fn tcp() {
    let open = |rank| TcpRail::open(TcpConfig::new(PeerId(rank), 0, Interface::loopback(), SECRET));
    let [sender, receiver] = [0, 1].map(|rank| open(rank).expect("a rail opens on the loopback interface"));
    only_sleepers_are_woken(Pair::connect(sender, receiver));
}

#[test]
fn udp() {
    let open = |rank| UdpRail::open(UdpConfig::new(PeerId(rank), 0, Interface::loopback(), SECRET));
    let [sender, receiver] = [0, 1].map(|rank| open(rank).expect("a rail opens on the loopback interface"));
    only_sleepers_are_woken(Pair::connect(sender, receiver));
}
