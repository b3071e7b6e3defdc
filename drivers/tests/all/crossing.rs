//! When both sides connect at once: each rank's part, against a peer that does everything by hand.

use nmad_drivers::handshake::{self, Ends};
use nmad_drivers::interface::Interface;
use nmad_drivers::tcp::{TcpConfig, TcpRail};
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use nmad_wire::{Control, Hello, RefusalCode};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const SECRET: [u8; 32] = [5; 32];

fn open(rank: u32) -> TcpRail {
    let config = TcpConfig::new(PeerId(rank), 0, Interface::loopback(), SECRET);
    TcpRail::open(config).expect("a rail opens on the loopback interface")
}

/// Polls the rail until `stream` has brought a whole message; none: it was closed.
fn hear(rail: &mut TcpRail, stream: &mut TcpStream, up: &mut u32) -> Option<Vec<u8>> {
    stream.set_nonblocking(true).expect("a socket option");
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        poll(rail, up);
        match stream.read(&mut byte) {
            Ok(0) => return None,
            Ok(_) => bytes.push(byte[0]),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
        if bytes.len() >= 4
            && bytes.len() == u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
        {
            return Some(bytes);
        }
    }
    panic!("no answer; {} bytes so far", bytes.len());
}

fn poll(rail: &mut TcpRail, up: &mut u32) {
    rail.poll(Scope::All, &mut |event| match event {
        Event::Up { .. } => *up += 1,
        other => panic!("not expected: {other:?}"),
    });
}

/// A rail of rank `me` that connects to us, rank `peer`; returns it and its connection, its hello read.
fn connecting(me: u32, peer: u32) -> (TcpRail, TcpStream, Hello) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut rail = open(me);
    assert!(rail.know(PeerId(peer), 0, &format!("127.0.0.1/8:{port}")));
    rail.send(Departure::Order(Order::Connect { to: PeerId(peer) }));
    poll(&mut rail, &mut 0);
    let (mut stream, _) = listener.accept().expect("the rail connects");
    let bytes = hear(&mut rail, &mut stream, &mut 0).expect("a hello");
    let Ok(Control::Hello(hello)) = Control::decode(&bytes) else { panic!("not a hello") };
    assert_eq!((hello.from, hello.to), (me, peer));
    (rail, stream, hello)
}

/// Our own connection to the rail, our hello said.
fn knock(rail: &TcpRail, from: u32, to: u32) -> (TcpStream, Hello) {
    let address = rail.address();
    let port = address.rsplit(':').next().expect("a port");
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("the rail listens");
    let hello =
        handshake::sealed(Hello { from, to, rail: 0, nonce: [3; 32], offer: None, mac: [0; 32] }, &SECRET);
    stream.write_all(&Control::Hello(hello).encode()).expect("the rail takes bytes");
    (stream, hello)
}

#[test]
fn the_lower_rank_refuses_the_other_connection() {
    let (mut rail, mut its, hello) = connecting(0, 1);
    let (mut ours, _) = knock(&rail, 1, 0);
    let mut up = 0;
    let answer = hear(&mut rail, &mut ours, &mut up).expect("a refusal");
    let Ok(Control::Refuse(refusal)) = Control::decode(&answer) else { panic!("not a refusal") };
    assert_eq!(refusal.code, RefusalCode::Crossed);
    let ends = Ends { hello, rail: 0, nonce: [4; 32], offer: None };
    its.write_all(&ends.welcome(&SECRET).encode()).expect("the rail takes bytes");
    let proof = hear(&mut rail, &mut its, &mut up).expect("a proof");
    assert!(matches!(Control::decode(&proof), Ok(Control::Proof(p)) if ends.proves(&p, &SECRET)));
    assert_eq!(up, 1);
}

#[test]
fn the_higher_rank_holds_its_proof_back_and_takes_the_other_connection() {
    let (mut rail, mut its, hello) = connecting(1, 0);
    let (mut ours, our_hello) = knock(&rail, 0, 1);
    let mut up = 0;
    let answer = hear(&mut rail, &mut ours, &mut up).expect("a welcome");
    let Ok(Control::Welcome(welcome)) = Control::decode(&answer) else { panic!("not a welcome") };
    let our_ends = Ends::new(our_hello, &welcome);
    assert!(our_ends.welcomes(&welcome, &SECRET), "the rail knows the secret");
    // The rail could prove its own connection now, and must not.
    let ends = Ends { hello, rail: 0, nonce: [4; 32], offer: None };
    its.write_all(&ends.welcome(&SECRET).encode()).expect("the rail takes bytes");
    (0..2000).for_each(|_| poll(&mut rail, &mut up));
    assert_eq!(up, 0, "no link is open yet");
    ours.write_all(&our_ends.proof(&SECRET).encode()).expect("the rail takes bytes");
    assert_eq!(hear(&mut rail, &mut its, &mut up), None, "it gives its own connection up, unproved");
    assert_eq!(up, 1);
}

#[test]
fn a_connection_that_the_peer_abandons_does_not_keep_ours_from_opening() {
    let (mut rail, mut its, hello) = connecting(1, 0);
    let (mut ours, _) = knock(&rail, 0, 1);
    let mut up = 0;
    hear(&mut rail, &mut ours, &mut up).expect("a welcome");
    let ends = Ends { hello, rail: 0, nonce: [4; 32], offer: None };
    its.write_all(&ends.welcome(&SECRET).encode()).expect("the rail takes bytes");
    drop(ours);
    let proof = hear(&mut rail, &mut its, &mut up).expect("a proof");
    assert!(matches!(Control::decode(&proof), Ok(Control::Proof(p)) if ends.proves(&p, &SECRET)));
    assert_eq!(up, 1);
}
