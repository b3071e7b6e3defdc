//! One peer over this rail: a socket, what is to be sent on it, and what has arrived of it in parts.

use super::assembly::Assemblies;
use super::datagram::{Datagram, LEN, Signal};
use super::opening::Opened;
use super::seal::Seal;
use super::socket;
use super::write::{Cut, Outbox};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use std::cell::Cell;

/// Silence after which a peer is asked whether it is there, in milliseconds. The kernel answers for a process
/// that has ended, and the neighbours' protocol for a host that is gone.
const SILENT_MS: u64 = 500;

/// An open link.
#[derive(Debug)]
pub struct Link {
    /// Number of the peer's rail.
    pub remote: u8,
    /// The socket, tied to the peer.
    pub socket: OwnedFd,
    /// Orders that the kernel has not taken yet.
    pub out: Outbox,
    /// How they are cut.
    pub cut: Cut,
    /// Makes and checks tags.
    pub seal: Seal,
    /// What has arrived in parts.
    pub assemblies: Assemblies,
    /// Orders were posted since the last flush.
    pub touched: bool,
    /// The kernel did not take everything.
    pub blocked: bool,
    /// Something of the peer has come since the last look at the clock.
    pub heard: bool,
    /// Reads with success since the socket was last watched.
    pub reads: u32,
    /// Whether a sleeper wakes for it.
    pub watched: Cell<bool>,
    /// What this side says until it has heard something.
    proof: Vec<u8>,
    heard_ms: u64,
}

impl Link {
    /// A link that has just been opened.
    pub fn new(opened: Opened, secret: &[u8; 32], now_ms: u64) -> Self {
        let Opened { remote, fd, ends, proof, datagram, .. } = opened;
        let can_cut = socket::cut(&fd, datagram);
        socket::join(&fd);
        let mut link = Link {
            remote,
            socket: fd,
            out: Outbox::default(),
            cut: Cut::new(datagram, can_cut),
            seal: Seal::new(&ends, secret, !proof.is_empty()),
            assemblies: Assemblies::default(),
            touched: false,
            blocked: false,
            heard: false,
            reads: 0,
            watched: Cell::new(true),
            proof,
            heard_ms: now_ms,
        };
        if link.proof.is_empty() {
            link.signal(Signal::Alive);
        }
        link
    }

    /// Whether this side still has to prove itself, as far as it knows.
    pub fn is_unproved(&self) -> bool {
        !self.proof.is_empty()
    }

    /// Says something that carries nothing. What the kernel does not take is lost, as the network might.
    pub fn signal(&mut self, signal: Signal) {
        let datagram = Datagram::signal(self.seal.next() as u32, signal);
        let tag = self.seal.tag(&datagram);
        let bytes: [u8; LEN] = datagram.encode(tag);
        let _ = net::send(&self.socket, &bytes, SendFlags::NOSIGNAL);
    }

    /// Says what is to be said from time to time.
    ///
    /// # Errors
    /// The system says that the peer cannot be reached.
    pub fn keep_up(&mut self, now_ms: u64) -> Result<(), Errno> {
        if std::mem::take(&mut self.heard) {
            self.heard_ms = now_ms;
            self.proof = Vec::new();
        } else if self.is_unproved() {
            return sent(net::send(&self.socket, &self.proof, SendFlags::NOSIGNAL));
        } else if now_ms >= self.heard_ms + SILENT_MS {
            let datagram = Datagram::signal(self.seal.next() as u32, Signal::Probe);
            let tag = self.seal.tag(&datagram);
            return sent(net::send(&self.socket, &datagram.encode(tag), SendFlags::NOSIGNAL));
        }
        Ok(())
    }
}

fn sent(result: Result<usize, Errno>) -> Result<(), Errno> {
    match result {
        Err(e) if !matches!(e, Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Err(e),
        _ => Ok(()),
    }
}
