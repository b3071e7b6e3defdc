//! What TCP rails do with peers that are not what they should be.

use nmad_drivers::conformance::memory::Memory;
use nmad_drivers::handshake::sealed;
use nmad_drivers::interface::Interface;
use nmad_drivers::tcp::{TcpConfig, TcpRail};
use nmad_engine::packet::{Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use nmad_wire::{Control, Header, Hello, Kind};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const SECRET: [u8; 32] = [5; 32];

fn config(rank: u32) -> TcpConfig {
    TcpConfig::new(PeerId(rank), 0, Interface::loopback(), SECRET)
}

fn open(config: TcpConfig) -> TcpRail {
    TcpRail::open(config).expect("a rail opens on the loopback interface")
}

/// What a rail reported, as text.
fn poll(rail: &mut TcpRail) -> Vec<String> {
    let mut seen = Vec::new();
    rail.poll(Scope::All, &mut |event| {
        seen.push(match event {
            Event::Moved { .. } | Event::Accessed { .. } => return,
            Event::Buffers { .. } | Event::Carrier { .. } => return,
            Event::Up { peer, .. } => format!("up {}", peer.0),
            Event::Lost { why, .. } => format!("lost: {why}"),
            Event::Arrived { packet, .. } => format!("arrived {}", packet.len()),
            Event::Pushed { len, .. } => format!("pushed {len}"),
            Event::Sent { number, .. } => format!("sent {number}"),
            Event::Landed { number, .. } => format!("landed {number}"),
        });
    });
    seen
}

/// Polls all rails until the first has reported something with `what` in it; returns that.
fn until(rails: &mut [&mut TcpRail], what: &str) -> String {
    let begun = Instant::now();
    let mut all = Vec::new();
    while begun.elapsed() < Duration::from_secs(10) {
        for (place, rail) in rails.iter_mut().enumerate() {
            let seen = poll(rail);
            if place == 0 {
                if let Some(found) = seen.iter().find(|line| line.contains(what)) {
                    return found.clone();
                }
                all.extend(seen);
            }
        }
    }
    panic!("awaited in vain: {what}; seen: {all:?}");
}

/// Opens a link from the first rail, which learns of it first, to the second.
fn connect(from: (&mut TcpRail, u32), to: (&mut TcpRail, u32)) {
    let ((a, from), (b, to)) = (from, to);
    assert!(a.know(PeerId(to), 0, &b.address()), "the other rail is on the same subnet");
    a.send(Departure::Order(Order::Connect { to: PeerId(to) }));
    until(&mut [a, b], &format!("up {to}"));
    until(&mut [b, a], &format!("up {from}"));
}

/// Where a rail listens.
fn socket(rail: &TcpRail) -> SocketAddr {
    let address = rail.address();
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Says `bytes` to the rail and returns what it answered until it closed.
fn strange(rail: &mut TcpRail, bytes: &[u8], close: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(socket(rail)).expect("the rail listens");
    stream.write_all(bytes).expect("the rail takes bytes");
    if close {
        stream.shutdown(Shutdown::Write).expect("the stream is open");
    }
    stream.set_nonblocking(true).expect("a socket option");
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        assert_eq!(poll(rail), Vec::<String>::new(), "a stranger is no event");
        match stream.read(&mut buffer) {
            Ok(0) => return answer,
            Ok(len) => answer.extend_from_slice(&buffer[..len]),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(e) => panic!("the rail closes in good order: {e}"),
        }
    }
    panic!("the rail does not close the connection");
}

fn refusal(answer: &[u8]) -> String {
    match Control::decode(answer) {
        Ok(Control::Refuse(refusal)) => refusal.text.into(),
        other => panic!("not a refusal: {other:?}"),
    }
}

fn hello(from: u32, to: u32) -> Vec<u8> {
    Control::Hello(sealed(Hello { from, to, rail: 0, nonce: [1; 32], offer: None, mac: [0; 32] }, &SECRET))
        .encode()
}

#[test]
fn another_secret_is_refused_on_both_sides() {
    let mut a = open(config(0));
    let mut b = open(TcpConfig { secret: [6; 32], ..config(1) });
    assert!(a.know(PeerId(1), 0, &b.address()) && b.know(PeerId(0), 0, &a.address()));
    a.send(Departure::Order(Order::Connect { to: PeerId(1) }));
    let why = until(&mut [&mut a, &mut b], "lost");
    assert!(why.contains("rail tcp/lo: peer 1") && why.contains("secret"), "{why}");
    b.send(Departure::Order(Order::Connect { to: PeerId(0) }));
    let why = until(&mut [&mut b, &mut a], "lost");
    assert!(why.contains("rail tcp/lo: peer 0") && why.contains("secret"), "{why}");
}

#[test]
fn another_version_is_refused_with_words() {
    let mut a = open(config(0));
    let mut bytes = hello(1, 0);
    bytes[5] = 9;
    let text = refusal(&strange(&mut a, &bytes, false));
    assert!(text.contains("version 9"), "{text}");
    // And the side that connects says so too.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    assert!(a.know(PeerId(1), 0, &format!("127.0.0.1/8:{port}")));
    a.send(Departure::Order(Order::Connect { to: PeerId(1) }));
    poll(&mut a);
    let (mut other, _) = listener.accept().expect("the rail connects");
    other.write_all(&bytes).expect("the rail takes bytes");
    let why = until(&mut [&mut a], "lost");
    assert!(why.contains("version 9") && why.contains("peer 1"), "{why}");
}

#[test]
fn another_rank_is_refused_with_words() {
    let mut a = open(config(0));
    let text = refusal(&strange(&mut a, &hello(1, 7), false));
    assert!(text.contains("rank 0") && text.contains("rank 7"), "{text}");
}

#[test]
fn foreign_bytes_are_refused_and_harm_nobody() {
    let (mut a, mut b) = (open(config(0)), open(config(1)));
    connect((&mut a, 0), (&mut b, 1));
    let text = refusal(&strange(&mut a, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", false));
    assert!(text.contains("malformed"), "{text}");
    let packet = Header { kind: Kind::Packet, len: 16, number: 0, ack: 0 }.encode();
    assert!(refusal(&strange(&mut a, &packet, false)).contains("not open"));
    let packet = Packet { bytes: packet.to_vec(), in_place: Vec::new() };
    b.send(Departure::Order(Order::Packet { to: PeerId(0), number: 0, packet }));
    b.flush();
    until(&mut [&mut a, &mut b], "arrived 16");
}

#[test]
fn truncations_of_every_length_are_dropped() {
    let mut a = open(config(0));
    let whole = hello(1, 0);
    for len in 0..whole.len() {
        assert_eq!(strange(&mut a, &whole[..len], true), b"", "{len} bytes of a hello");
    }
    // A wrong byte at every place: refused or, where it is only a name or a nonce, welcomed.
    for place in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[place] ^= 0x55;
        strange(&mut a, &wrong, true);
    }
}

#[test]
fn a_proof_that_is_none_is_refused() {
    let mut a = open(config(0));
    let mut bytes = hello(1, 0);
    bytes.extend(Control::Proof(nmad_wire::Proof { mac: [0; 32] }).encode());
    let answer = strange(&mut a, &bytes, false);
    let welcome = u32::from_le_bytes(answer[..4].try_into().expect("four bytes")) as usize;
    assert!(matches!(Control::decode(&answer[..welcome]), Ok(Control::Welcome(_))));
    assert!(refusal(&answer[welcome..]).contains("secret"));
}

#[test]
fn a_slow_stranger_is_dropped_and_many_leave_room_for_the_right_one() {
    let bound = Duration::from_millis(600);
    let mut a = open(TcpConfig { bound, ..config(0) });
    let begun = Instant::now();
    assert_eq!(strange(&mut a, &hello(1, 0)[..40], false), b"");
    assert!(begun.elapsed() >= bound / 2, "not at once: the right one may be slow too");
    let crowd: Vec<_> = (0..200).map(|_| TcpStream::connect(socket(&a)).expect("the rail listens")).collect();
    let mut b = open(config(1));
    connect((&mut a, 0), (&mut b, 1));
    drop(crowd);
}

#[test]
fn an_address_that_answers_nothing_is_given_up_within_the_bound() {
    // No room is left for connections that wait, so the kernel answers no more.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    rustix::net::listen(&listener, 0).expect("it listens already");
    let address = listener.local_addr().expect("an address");
    let _waits = TcpStream::connect(address).expect("there is room for one");
    let mut a = open(TcpConfig { bound: Duration::from_millis(700), ..config(0) });
    assert!(a.know(PeerId(1), 0, &format!("127.0.0.1/8:{}", address.port())));
    a.send(Departure::Order(Order::Connect { to: PeerId(1) }));
    let begun = Instant::now();
    let why = until(&mut [&mut a], "lost");
    let elapsed = begun.elapsed();
    assert!(elapsed >= Duration::from_millis(650) && elapsed < Duration::from_secs(2), "{elapsed:?}");
    assert!(why.contains("rail tcp/lo: peer 1 did not answer within 700ms (is 127.0.0.1 reachable"), "{why}");
}

#[test]
fn a_peer_that_is_slow_to_answer_is_waited_for_and_one_that_dies_is_not() {
    let bound = Duration::from_millis(200);
    let mut a = open(TcpConfig { bound, ..config(0) });
    // The kernel takes the connection long before the process looks at it.
    let mut b = open(config(1));
    assert!(a.know(PeerId(1), 0, &b.address()));
    a.send(Departure::Order(Order::Connect { to: PeerId(1) }));
    let begun = Instant::now();
    while begun.elapsed() < 3 * bound {
        assert_eq!(poll(&mut a), [""; 0]);
    }
    until(&mut [&mut a, &mut b], "up 1");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    assert!(a.know(PeerId(2), 0, &format!("127.0.0.1/8:{port}")));
    a.send(Departure::Order(Order::Connect { to: PeerId(2) }));
    assert_eq!(poll(&mut a), [""; 0]);
    drop(listener);
    assert!(until(&mut [&mut a], "lost").contains("is gone"));
}

#[test]
fn a_port_without_listener_is_given_up_at_once() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let mut a = open(config(0));
    assert!(a.know(PeerId(1), 0, &format!("127.0.0.1/8:{port}")));
    a.send(Departure::Order(Order::Connect { to: PeerId(1) }));
    let begun = Instant::now();
    let why = until(&mut [&mut a], "lost");
    assert!(begun.elapsed() < Duration::from_secs(1) && why.contains("no process listens"), "{why}");
}

#[test]
fn without_an_address_the_link_is_lost_at_once() {
    let mut a = open(config(0));
    assert!(!a.know(PeerId(1), 0, "10.1.2.3/24:77"), "another subnet");
    assert!(!a.know(PeerId(1), 0, "nonsense"));
    a.send(Departure::Order(Order::Connect { to: PeerId(1) }));
    assert!(until(&mut [&mut a], "lost").contains("has no address on the subnet"));
    a.send(Departure::Order(Order::Connect { to: PeerId(0) }));
    assert!(until(&mut [&mut a], "lost").contains("itself"));
}

#[test]
fn a_malformed_packet_ends_that_link_only() {
    let (mut a, mut b, mut c) = (open(config(0)), open(config(1)), open(config(2)));
    connect((&mut a, 0), (&mut b, 1));
    connect((&mut c, 2), (&mut a, 0));
    let kinds: [(&[u8], &str); 3] = [
        (b"\x10\0\0\0\x09\x01\0\0aaaabbbb", "unknown kind"),
        (b"\xff\xff\xff\x01\x01\x01\0\0aaaabbbb", "longer than"),
        (b"\x01\0\0\0\x01\x01\0\0aaaabbbb", "out of range"),
    ];
    for (number, (bytes, what)) in kinds.into_iter().enumerate() {
        let packet = Packet { bytes: bytes.to_vec(), in_place: Vec::new() };
        b.send(Departure::Order(Order::Packet { to: PeerId(0), number: number as u32, packet }));
        b.flush();
        let why = until(&mut [&mut a, &mut b], "lost");
        assert!(why.contains("peer 1 broke the protocol") && why.contains(what), "{why}");
        until(&mut [&mut b, &mut a], "lost");
        connect((&mut a, 0), (&mut b, 1));
    }
    let bytes = Header { kind: Kind::Packet, len: 16, number: 0, ack: 0 }.encode().to_vec();
    c.send(Departure::Order(Order::Packet {
        to: PeerId(0),
        number: 0,
        packet: Packet { bytes, in_place: Vec::new() },
    }));
    c.flush();
    until(&mut [&mut a, &mut c], "arrived 16");
}

/// A chunk and a packet of each of many peers lie in the sockets before the first is read, so that each read
/// of a chunk's end takes the packet along.
#[test]
fn a_packet_behind_a_chunk_arrives_however_many_peers_send() {
    const PEERS: u32 = 12;
    const LEN: usize = 100_000;
    let mut receiver = open(config(0));
    let mut senders: Vec<_> = (1..=PEERS).map(|rank| open(config(rank))).collect();
    let (source, target) = (Memory::pattern(LEN, 1), Memory::zeroed(LEN));
    for (rank, sender) in (1..).zip(&mut senders) {
        connect((&mut receiver, 0), (sender, rank));
    }
    for (rank, sender) in (1..).zip(&mut senders) {
        let (to, region) = (PeerId(0), RegionId(u64::from(rank)));
        let key = receiver.open(region, PeerId(rank), target.segments());
        let from = source.segments();
        sender.send(Departure::Order(Order::Chunk { to, number: 0, ack: 0, region, key, offset: 0, from }));
        let bytes = Header { kind: Kind::Packet, len: 16, number: 1, ack: 0 }.encode().to_vec();
        let packet = Packet { bytes, in_place: Vec::new() };
        sender.send(Departure::Order(Order::Packet { to, number: 1, packet }));
        sender.flush();
        until(&mut [sender], "sent 1");
    }
    let (begun, mut seen) = (Instant::now(), Vec::new());
    let arrived = |seen: &[String]| seen.iter().filter(|line| line.starts_with("arrived")).count();
    while arrived(&seen) < PEERS as usize {
        seen.extend(poll(&mut receiver));
        assert!(begun.elapsed() < Duration::from_secs(10), "{seen:?}");
    }
}

#[test]
fn crossing_connections_end_in_one_link_always() {
    for round in 0..60u32 {
        let (mut a, mut b) = (open(config(0)), open(config(1)));
        assert!(a.know(PeerId(1), 0, &b.address()) && b.know(PeerId(0), 0, &a.address()));
        // Every interleaving of the first polls, roughly.
        a.send(Departure::Order(Order::Connect { to: PeerId(1) }));
        (0..round % 8).for_each(|_| assert!(poll(&mut a).is_empty()));
        b.send(Departure::Order(Order::Connect { to: PeerId(0) }));
        (0..round / 8).for_each(|_| drop(poll(&mut b)));
        let (mut up, mut polls) = ([0, 0], 0);
        let begun = Instant::now();
        while polls < 200 {
            for (side, rail) in [&mut a, &mut b].into_iter().enumerate() {
                for line in poll(rail) {
                    assert!(line.starts_with("up"), "round {round}: {line}");
                    up[side] += 1;
                }
            }
            polls += u32::from(up[0] > 0);
            assert!(begun.elapsed() < Duration::from_secs(5), "round {round}: {up:?}");
        }
        assert_eq!(up[0], 1, "round {round}");
        assert!(up[1] <= 1, "round {round}");
    }
}
