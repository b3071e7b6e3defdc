//! Cases in which a rank records all frames of its host, as tcpdump does, and looks for its messages in them.

use crate::cases::open;
use newmadeleine::Session;
use rustix::net::{self, AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, sockopt};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The text of a short message, which travels in a packet, and of a large one, which travels in chunks.
const TEXTS: [&[u8; 16]; 2] = [b"known, but short", b"known, and large"];
/// How often each message repeats its text.
const TIMES: [usize; 2] = [60, 1 << 16];
/// Room for frames in the kernel, in bytes, if the system grants it.
const ROOM: usize = 16 << 20;
/// Recorded bytes from which the record has frames of the large message.
const RECORDED: usize = 64 << 10;
/// `ETH_P_ALL`: frames of all protocols, of all interfaces, in both directions.
const ALL_PROTOCOLS: u16 = 3;

/// Without encryption both messages are readable in the frames, so the case below can fail.
pub fn readable() {
    messages(true);
}

/// With encryption neither message is readable in the frames.
pub fn encrypted() {
    messages(false);
}

/// Rank 0 sends both messages; rank 1 records the frames of its host.
fn messages(are_readable: bool) {
    if std::env::var("PMI_RANK").as_deref() == Ok("0") {
        let session = open();
        send_all(&session);
        return session.close().unwrap();
    }
    let (socket, has_all) = (socket(), AtomicBool::new(false));
    let frames = thread::scope(|scope| {
        let recorder = scope.spawn(|| record(&socket, &has_all));
        // A rank that panics must not wait for the recorder.
        let received = thread::Builder::new()
            .spawn_scoped(scope, || receive_all(are_readable))
            .expect("a thread")
            .join();
        has_all.store(true, Ordering::Release);
        received.expect("both messages arrive");
        recorder.join().expect("frames can be read")
    });
    assert!(frames.len() >= RECORDED, "{} B were recorded", frames.len());
    let is_found = |text: &&[u8; 16]| frames.windows(text.len()).any(|window| window == &text[..]);
    assert_eq!(TEXTS.each_ref().map(is_found), [are_readable; 2]);
}

fn send_all(session: &Session) {
    for (tag, message) in (1..).zip(contents()) {
        session.send(1, tag, &message).unwrap_or_else(|e| panic!("{e}"));
    }
}

fn receive_all(are_readable: bool) {
    let session = open();
    for (tag, message) in (1..).zip(contents()) {
        let mut buffer = vec![0; message.len()];
        session.recv(0, tag, &mut buffer).unwrap_or_else(|e| panic!("{e}"));
        assert!(buffer == message, "message {tag} arrives unchanged");
    }
    assert!(session.rails().iter().any(|rail| rail.cipher.is_some() != are_readable));
    session.close().unwrap();
}

fn contents() -> [Vec<u8>; 2] {
    [0, 1].map(|which| TEXTS[which].repeat(TIMES[which]))
}

/// Opens a socket that receives all frames from now on.
fn socket() -> OwnedFd {
    let protocol = Protocol::from_raw(u32::from(ALL_PROTOCOLS.to_be()).try_into().expect("it is not 0"));
    let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
    let socket = net::socket_with(family, kind, SocketFlags::NONBLOCK, Some(protocol)).expect("a testbed");
    // With less room, frames of the large message may be missing; some are enough.
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, ROOM);
    socket
}

/// Returns the bytes of all frames until the messages have arrived.
fn record(socket: &OwnedFd, has_all: &AtomicBool) -> Vec<u8> {
    let (mut frames, mut frame) = (Vec::new(), vec![0; 1 << 17]);
    loop {
        let was_last = has_all.load(Ordering::Acquire);
        while let Ok((len, _)) = net::recv(socket, &mut frame[..], RecvFlags::empty()) {
            frames.extend_from_slice(&frame[..len]);
        }
        if was_last {
            return frames;
        }
        thread::sleep(Duration::from_millis(1));
    }
}
