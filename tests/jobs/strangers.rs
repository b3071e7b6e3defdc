//! Processes that do not know the secret of the job, at the ports of its ranks.

use crate::cases::open;
use newmadeleine::Session;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Connections of strangers at each port.
const HELD: usize = 300;
/// Connections that are made in a row.
const AT_ONCE: usize = 50;
/// How long they are held before the job opens its links.
const BEFORE: Duration = Duration::from_millis(700);

/// Each rank holds connections to its own port, with a well-formed hello and nothing more; those that the
/// rank closes are made anew. All links open late, under attack.
pub fn hold_ports() {
    let session = open();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let made = scope.spawn(|| hold(port(&session), (session.rank(), session.size()), &is_over));
        session.node().wait_for(BEFORE, |_| false);
        let others = || (0..session.size()).filter(|rank| *rank != session.rank());
        for rank in others() {
            session.send(rank, 1, b"late").expect("the link opens");
        }
        for rank in others() {
            let mut buffer = [0; 4];
            session.recv(rank, 1, &mut buffer).expect("the link opens");
            assert_eq!(&buffer, b"late");
        }
        is_over.store(true, Ordering::Relaxed);
        let made = made.join().expect("it holds connections");
        assert!(made >= HELD, "only {made} connections were made");
    });
    session.close().unwrap();
}

/// Where the rank listens on the loopback interface.
fn port(session: &Session) -> u16 {
    let rails = session.rails();
    let mut ports = rails.iter().rev().filter_map(|rail| {
        let (_, port) = rail.address.strip_prefix("127.0.0.1/")?.split_once(':')?;
        port.parse().ok()
    });
    ports.next().expect("a rail over TCP")
}

/// How many connections were made.
fn hold(port: u16, (rank, size): (u32, u32), is_over: &AtomicBool) -> usize {
    let (mut held, mut made) = (Vec::<TcpStream>::new(), 0);
    let hello = hello((rank + 1) % size, rank);
    while !is_over.load(Ordering::Relaxed) {
        held.retain_mut(|stream| match stream.read(&mut [0; 256]) {
            Ok(len) => len > 0,
            Err(e) => e.kind() == ErrorKind::WouldBlock,
        });
        for _ in 0..AT_ONCE.min(HELD - held.len()) {
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { break };
            stream.set_nonblocking(true).expect("a socket option");
            // What a full buffer does not take is not said.
            let _ = stream.write(&hello);
            held.push(stream);
            made += 1;
        }
        std::thread::yield_now();
    }
    made
}

/// A hello as docs/wire.md describes it, with a MAC that nobody has made with the secret.
fn hello(from: u32, to: u32) -> Vec<u8> {
    let mut body = b"NMAD\x01\x01\x00\x00".to_vec();
    body.extend(from.to_le_bytes());
    body.extend(to.to_le_bytes());
    body.extend([7; 64]);
    let mut bytes = (16 + body.len() as u32).to_le_bytes().to_vec();
    bytes.extend([3, 1, 0, 0]);
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}
