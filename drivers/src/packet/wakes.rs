//! Whether frames wake a sleeper. Each frame for a watched socket costs its sender's kernel two looks for
//! sleepers (measured: 0.26 us between hosts of one machine), so a process that finds frames without sleeping
//! is not woken until it sleeps again.

use super::config::PacketConfig;
use super::sys::Socket;
use crate::watch::{TRUSTED_AFTER, Token, Watch};
use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Which sockets of a rail wake a sleeper, and when the frames do.
#[derive(Debug)]
pub struct Wakes {
    /// Has what wakes always, and the socket while it is watched.
    pub watch: Watch,
    watched: Cell<bool>,
    /// That came since somebody was about to sleep.
    frames: Cell<u32>,
}

impl Wakes {
    /// Of these, to which the socket belongs.
    pub fn new(watch: Watch) -> Wakes {
        Wakes { watch, watched: Cell::new(true), frames: Cell::new(0) }
    }

    /// A frame was found.
    #[inline]
    pub fn found(&self, socket: &Socket) {
        if self.watched.get() {
            self.trust(socket);
        }
    }

    fn trust(&self, socket: &Socket) {
        self.frames.set(self.frames.get() + 1);
        if self.frames.get() >= TRUSTED_AFTER && self.watch.remove(socket).is_ok() {
            self.watched.set(false);
        }
    }

    /// Somebody is about to sleep.
    pub fn attend(&self, socket: &Socket) {
        self.frames.set(0);
        if !self.watched.get() && self.watch.add(socket, Token::Opening, false).is_ok() {
            self.watched.set(true);
        }
    }
}

/// A socket towards the UDP port that a peer's process holds.
pub fn bell(config: &PacketConfig, to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::new(config.interface.address, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(to)?;
    Ok(socket)
}
