//! Encrypted links between two rails, with a relay between them that records, changes, repeats and removes
//! bytes.

use nmad_drivers::around::layers::Layers;
use nmad_drivers::conformance::memory::Memory;
use nmad_drivers::interface::Interface;
use nmad_drivers::network::{Network, Place};
use nmad_engine::packet::{Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use nmad_seal::Policy;
use nmad_wire::{Header, Kind};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const SECRET: [u8; 32] = [5; 32];
const BOUND: Duration = Duration::from_secs(10);

fn open(driver: &str, rank: u32, encrypt: Policy, secret: [u8; 32]) -> Box<dyn Driver> {
    let place = Place { rank: PeerId(rank), rail: 0, interface: Interface::loopback(), secret, encrypt };
    let network = Network::named(driver).expect("a driver");
    network.open(place, &Layers::default()).expect("a rail opens on the loopback interface").0
}

/// Polls a rail; returns its events as text.
fn poll(rail: &mut dyn Driver) -> Vec<String> {
    let mut seen = Vec::new();
    rail.poll(Scope::All, &mut |event| match event {
        Event::Up { peer, .. } => seen.push(format!("up {}", peer.0)),
        Event::Lost { why, .. } => seen.push(format!("lost: {why}")),
        Event::Arrived { packet, .. } => seen.push(format!("arrived {}", packet.len())),
        Event::Landed { number, .. } => seen.push(format!("landed {number}")),
        _ => {}
    });
    seen
}

/// The rail to which bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    B,
    A,
}

/// Changes bytes that the relay has read; the number is their offset in this direction.
type Change = Box<dyn FnMut(To, usize, &mut Vec<u8>)>;

/// Forwards one TCP connection.
struct Relay {
    listener: TcpListener,
    to: String,
    ends: Option<[TcpStream; 2]>,
    seen: [Vec<u8>; 2],
    change: Change,
}

impl Relay {
    fn new(to: &dyn Driver, change: Change) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket option");
        Relay { listener, to: socket(to), ends: None, seen: [Vec::new(), Vec::new()], change }
    }

    /// The address of the relay, in the form that rails publish.
    fn address(&self) -> String {
        format!("127.0.0.1/8:{}", self.listener.local_addr().expect("bound").port())
    }

    fn step(&mut self) {
        if self.ends.is_none()
            && let Ok((here, _)) = self.listener.accept()
        {
            let there = TcpStream::connect(&self.to).expect("the rail listens");
            for end in [&here, &there] {
                end.set_nonblocking(true).expect("a socket option");
            }
            self.ends = Some([here, there]);
        }
        let Relay { ends: Some(ends), seen, change, .. } = self else { return };
        for (from, to) in [(0, To::B), (1, To::A)] {
            let mut bytes = vec![0; 1 << 16];
            let got = match ends[from].read(&mut bytes) {
                Ok(got) => got,
                Err(e) if e.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => 0,
            };
            if got == 0 {
                let _ = ends[1 - from].shutdown(std::net::Shutdown::Write);
                continue;
            }
            bytes.truncate(got);
            let at = seen[from].len();
            seen[from].extend_from_slice(&bytes);
            change(to, at, &mut bytes);
            write_all(&mut ends[1 - from], &bytes);
        }
    }
}

/// Writes everything to a stream that does not block.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) {
    let begun = Instant::now();
    while !bytes.is_empty() && begun.elapsed() < BOUND {
        match stream.write(bytes) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            // The rail has closed its end.
            Err(_) => return,
        }
    }
}

/// Returns the socket address at which a rail listens.
fn socket(rail: &dyn Driver) -> String {
    let address = rail.address();
    format!("127.0.0.1:{}", address.rsplit(':').next().expect("a port"))
}

/// Two rails and the relay between them.
struct World {
    a: Box<dyn Driver>,
    b: Box<dyn Driver>,
    relay: Relay,
    seen: [Vec<String>; 2],
}

impl World {
    fn new(policies: [Policy; 2], change: Change) -> World {
        let (mut a, mut b) = (open("tcp", 0, policies[0], SECRET), open("tcp", 1, policies[1], SECRET));
        let relay = Relay::new(&*b, change);
        assert!(a.know(PeerId(1), 0, &relay.address()) && b.know(PeerId(0), 0, &a.address()));
        a.send(Departure::Order(Order::Connect { to: PeerId(1) }));
        World { a, b, relay, seen: [Vec::new(), Vec::new()] }
    }

    fn step(&mut self) {
        self.seen[0].extend(poll(&mut *self.a));
        self.relay.step();
        self.seen[1].extend(poll(&mut *self.b));
        self.relay.step();
    }

    /// Continues until side `at` has reported an event that contains `what`; returns that event.
    fn until(&mut self, at: usize, what: &str) -> String {
        let begun = Instant::now();
        while begun.elapsed() < BOUND {
            if let Some(found) = self.seen[at].iter().find(|line| line.contains(what)) {
                return found.clone();
            }
            self.step();
        }
        panic!("awaited in vain: {what}; seen: {:?}", self.seen);
    }

    /// Continues until both sides have a link.
    fn open(policies: [Policy; 2], change: Change) -> World {
        let mut world = World::new(policies, change);
        world.until(0, "up 1");
        world.until(1, "up 0");
        world
    }

    /// Sends a packet from A to B.
    fn send(&mut self, number: u32, data: &[u8]) {
        self.a.send(Departure::Order(Order::Packet { to: PeerId(1), number, packet: packet(number, data) }));
        self.a.flush();
    }
}

fn packet(number: u32, data: &[u8]) -> Packet {
    let len = (Header::LEN + data.len()) as u32;
    let header = Header { kind: Kind::Packet, len, number, ack: 0 };
    Packet { bytes: [&header.encode()[..], data].concat(), in_place: Vec::new() }
}

/// Text of which each 8 bytes are different and occur nowhere else.
fn known(len: usize) -> Vec<u8> {
    (0..len / 8).flat_map(|n| format!("K{n:07}").into_bytes()).collect()
}

/// Returns whether a part of `data` is in `bytes`.
fn holds(bytes: &[u8], data: &[u8]) -> bool {
    let parts: std::collections::HashSet<_> = data.chunks(8).collect();
    bytes.windows(8).any(|window| parts.contains(window))
}

fn nothing() -> Change {
    Box::new(|_, _, _| ())
}

/// Sends a known packet and a known chunk; returns what passed the relay.
fn capture(encrypt: Policy) -> Vec<u8> {
    let mut world = World::open([encrypt; 2], nothing());
    let (data, source, target) = (known(4000), Memory::pattern(1 << 20, 3), Memory::zeroed(1 << 20));
    world.send(0, &data);
    let key = world.b.open(RegionId(7), PeerId(0), target.segments());
    let (region, from) = (RegionId(7), source.segments());
    world.a.send(Departure::Order(Order::Chunk {
        to: PeerId(1),
        number: 1,
        ack: 0,
        region,
        key,
        offset: 0,
        from,
    }));
    world.a.flush();
    world.until(1, &format!("arrived {}", data.len() + Header::LEN));
    world.until(1, "landed 1");
    assert!(target.bytes() == source.bytes(), "the chunk arrives unchanged");
    let [bytes, _] = &world.relay.seen;
    assert_eq!(holds(bytes, &data), holds(bytes, source.bytes()), "both or none");
    bytes.clone()
}

#[test]
fn what_is_sent_does_not_appear_on_the_wire() {
    assert!(!holds(&capture(Policy::On), &known(4000)));
    assert!(holds(&capture(Policy::Off), &known(4000)), "the capture would show it");
}

/// Returns the number of bytes that pass to B until both sides have a link.
fn opening_len() -> usize {
    World::open([Policy::On; 2], nothing()).relay.seen[0].len()
}

#[test]
fn a_changed_byte_anywhere_in_the_opening_or_a_record_ends_the_link_with_one_line() {
    let (opening, data) = (opening_len(), known(48));
    let record = 4 + Header::LEN + data.len() + 16;
    for place in 0..opening + record {
        let bit = 1 << (place % 8);
        let change = move |to: To, at: usize, bytes: &mut Vec<u8>| {
            if to == To::B && (at..at + bytes.len()).contains(&place) {
                bytes[place - at] ^= bit;
            }
        };
        let mut world = World::new([Policy::On; 2], Box::new(change));
        // If the length of the hello is changed, the other side waits for its rest, so the loop ends by time.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(300)
            && !world.seen[0].iter().any(|l| l.contains("lost"))
        {
            world.step();
            if world.seen[0].iter().any(|line| line == "up 1") && world.relay.seen[0].len() == opening {
                world.send(0, &data);
            }
            if place >= opening && world.seen[1].iter().any(|line| line.contains("lost")) {
                break;
            }
        }
        assert!(!world.seen[1].iter().any(|line| line.contains("arrived")), "byte {place}: {:?}", world.seen);
        if place >= opening + 4 {
            let lines: Vec<_> = world.seen[1].iter().filter(|line| line.contains("lost")).collect();
            assert_eq!(lines.len(), 1, "byte {place}: {:?}", world.seen);
            assert!(lines[0].contains("a record was changed on its way"), "{}", lines[0]);
        }
    }
}

#[test]
fn records_that_are_repeated_reordered_reflected_or_left_out_end_the_link() {
    let data = known(48);
    let record = 4 + Header::LEN + data.len() + 16;
    type Harm = fn(&mut Vec<u8>, usize);
    let harms: [(&str, Harm); 4] = [
        ("repeated", |bytes, record| bytes.extend_from_within(..record)),
        ("reordered", |bytes, record| bytes.rotate_left(record)),
        ("left out", |bytes, record| drop(bytes.drain(..record))),
        ("of another length", |bytes, _| bytes[0] ^= 1),
    ];
    for (name, harm) in harms {
        let opening = opening_len();
        let mut held = Vec::new();
        let change = move |to: To, at: usize, bytes: &mut Vec<u8>| {
            if to == To::B && at >= opening {
                // Two records that were read one after the other count as one piece.
                held.append(bytes);
                if held.len() == 2 * record {
                    harm(&mut held, record);
                    bytes.append(&mut held);
                }
            }
        };
        let mut world = World::open([Policy::On; 2], Box::new(change));
        world.send(0, &data);
        world.send(1, &data);
        // Otherwise the last record is incomplete, and only the end of the stream shows that.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(500)
            && !world.seen[1].iter().any(|l| l.contains("lost"))
        {
            world.step();
        }
        let arrived = world.seen[1].iter().filter(|line| line.contains("arrived")).count();
        assert_eq!(arrived, if name == "repeated" { 2 } else { 0 }, "{name}: {:?}", world.seen);
        let lost = world.seen[1].iter().filter(|line| line.contains("lost")).count();
        assert_eq!(lost, 1, "{name}: {:?}", world.seen);
    }
    // The relay sends A's bytes back to A.
    let mut world = World::open([Policy::On; 2], nothing());
    let opening = world.relay.seen[0].len();
    world.send(0, &data);
    world.until(1, "arrived");
    let sent = world.relay.seen[0][opening..].to_vec();
    let [to_a, _] = world.relay.ends.as_mut().expect("they are connected");
    write_all(to_a, &sent);
    let why = world.until(0, "lost");
    assert!(why.contains("a record was changed on its way"), "{why}");
}

#[test]
fn a_recorded_session_opens_nothing_and_leaves_other_links_alone() {
    let mut world = World::open([Policy::On; 2], nothing());
    world.send(0, &known(48));
    world.until(1, "arrived");
    let mut replayed = TcpStream::connect(socket(&*world.b)).expect("the rail listens");
    replayed.set_nonblocking(true).expect("a socket option");
    write_all(&mut replayed, &world.relay.seen[0].clone());
    let (begun, mut buffer) = (Instant::now(), [0; 4096]);
    while !matches!(replayed.read(&mut buffer), Ok(0)) && begun.elapsed() < BOUND {
        world.step();
    }
    assert!(begun.elapsed() < BOUND, "the rail ends the conversation");
    world.send(1, &known(80));
    world.until(1, &format!("arrived {}", 80 + Header::LEN));
    assert_eq!(world.seen[1].len(), 3, "one link and two packets: {:?}", world.seen[1]);
}

/// If one rail encrypts and its peer does not, both report that in one line.
#[test]
fn sides_that_do_not_agree_have_no_link() {
    for driver in ["tcp", "udp"] {
        for policies in [[Policy::On, Policy::Off], [Policy::Off, Policy::On]] {
            let mut rails = [0, 1].map(|rank| open(driver, rank as u32, policies[rank], SECRET));
            introduce(&mut rails);
            rails[0].send(Departure::Order(Order::Connect { to: PeerId(1) }));
            let why = until(&mut rails, 0, "lost");
            assert!(why.contains("refused the link") && why.contains("NMAD_ENCRYPT alike"), "{why}");
            let plain = policies.iter().position(|one| *one == Policy::Off).expect("one of them");
            assert!(why.contains(&format!("rank {plain} does not")), "{why}");
        }
    }
}

#[test]
fn a_side_that_leaves_it_to_the_other_encrypts_if_the_other_does() {
    for driver in ["tcp", "udp"] {
        for policies in [[Policy::Auto, Policy::On], [Policy::On, Policy::Auto], [Policy::Auto; 2]] {
            let mut rails = [0, 1].map(|rank| open(driver, rank as u32, policies[rank], SECRET));
            introduce(&mut rails);
            rails[0].send(Departure::Order(Order::Connect { to: PeerId(1) }));
            until(&mut rails, 0, "up 1");
        }
    }
}

#[test]
fn another_secret_is_refused() {
    let mut rails = [open("tcp", 0, Policy::On, SECRET), open("tcp", 1, Policy::On, [6; 32])];
    introduce(&mut rails);
    rails[0].send(Departure::Order(Order::Connect { to: PeerId(1) }));
    let why = until(&mut rails, 0, "lost");
    assert!(why.contains("secret"), "{why}");
}

fn introduce(rails: &mut [Box<dyn Driver>; 2]) {
    let addresses = rails.each_ref().map(|rail| rail.address());
    assert!(rails[0].know(PeerId(1), 0, &addresses[1]) && rails[1].know(PeerId(0), 0, &addresses[0]));
}

/// Polls both rails until rail `at` has reported an event that contains `what`; returns that event.
fn until(rails: &mut [Box<dyn Driver>; 2], at: usize, what: &str) -> String {
    let (begun, mut all) = (Instant::now(), Vec::new());
    while begun.elapsed() < BOUND {
        for (place, rail) in rails.iter_mut().enumerate() {
            let seen = poll(&mut **rail);
            if place == at {
                if let Some(found) = seen.iter().find(|line| line.contains(what)) {
                    return found.clone();
                }
                all.extend(seen);
            }
        }
    }
    panic!("awaited in vain: {what}; seen: {all:?}");
}
