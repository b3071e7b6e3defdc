//! Decides whether frames wake a sleeper. Each frame for a watched socket makes its sender's kernel check
//! twice for sleepers (measured: 0.26 us between hosts of one machine), so a process that finds frames
//! without sleeping is not woken until it sleeps again.

use super::config::PacketConfig;
use super::sys::Socket;
use crate::watch::{TRUSTED_AFTER, Token, Watch};
use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// The descriptors of a rail that wake a sleeper. The packet socket is included only temporarily.
#[derive(Debug)]
pub struct Wakes {
    /// Contains the descriptors that always wake, and the socket while it is watched.
    pub watch: Watch,
    watched: Cell<bool>,
    /// Frames found since a thread was last about to sleep.
    frames: Cell<u32>,
}

impl Wakes {
    /// Uses this set, which contains the socket.
    pub fn new(watch: Watch) -> Wakes {
        Wakes { watch, watched: Cell::new(true), frames: Cell::new(0) }
    }

    /// Counts a frame that was found.
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

    /// Watches the socket, because a thread is about to sleep.
    pub fn watch_socket(&self, socket: &Socket) {
        self.frames.set(0);
        if !self.watched.get() && self.watch.add(socket, Token::Opening, false).is_ok() {
            self.watched.set(true);
        }
    }
}

/// Opens a socket connected to the UDP port that a peer's process holds.
pub fn death_probe(config: &PacketConfig, to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::new(config.interface.address, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(to)?;
    Ok(socket)
}
