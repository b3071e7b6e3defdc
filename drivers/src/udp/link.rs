//! A link to one peer over this rail: a socket, the send queue, and incomplete orders from the peer.

use super::assembly::Assemblies;
use super::datagram::{Datagram, LEN, Signal};
use super::seal::Seal;
use super::silence::{Duty, Silence};
use super::socket;
use super::write::{Cut, LEAST, Outbox};
use crate::opening::Opened;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use std::cell::Cell;

/// Reason for the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The system reports an error.
    System(Errno),
    /// The peer does not answer any more.
    Silent,
}

/// An open link.
#[derive(Debug)]
pub struct Link {
    /// Number of the peer's rail.
    pub remote: u8,
    /// The socket, connected to the peer.
    pub socket: OwnedFd,
    /// Orders that the kernel has not taken yet.
    pub out: Outbox,
    /// Length of the parts into which orders are cut.
    pub cut: Cut,
    /// Creates and checks tags.
    pub seal: Seal,
    /// Incomplete orders from the peer.
    pub assemblies: Assemblies,
    /// Orders were posted since the last flush.
    pub touched: bool,
    /// The kernel did not take everything.
    pub blocked: bool,
    /// A datagram of the peer has arrived since the last periodic check.
    pub has_arrived: bool,
    /// Successful reads since the socket was last watched.
    pub reads: Cell<u32>,
    /// Whether the socket is watched, so that its events wake a sleeper.
    pub is_watched: Cell<bool>,
    /// The message that this side repeats until it receives a datagram.
    proof: Vec<u8>,
    silence: Silence,
}

impl Link {
    /// Creates an open link on this socket.
    pub fn new(opened: &Opened, fd: OwnedFd, proof: Vec<u8>, secret: &[u8; 32], silence: Silence) -> Self {
        let Opened { remote, ends, is_attempt, len: datagram, .. } = *opened;
        let can_cut = socket::cut(&fd, datagram);
        socket::join(&fd);
        let mut link = Link {
            remote,
            socket: fd,
            out: Outbox::default(),
            cut: Cut::new(datagram, can_cut),
            seal: Seal::new(&ends, secret, is_attempt),
            assemblies: Assemblies::default(),
            touched: false,
            blocked: false,
            has_arrived: false,
            reads: Cell::new(0),
            is_watched: Cell::new(true),
            proof,
            silence,
        };
        if !is_attempt {
            link.signal(Signal::Alive);
        }
        link
    }

    /// Returns whether the peer has not confirmed yet that it received this side's proof.
    pub fn is_unproved(&self) -> bool {
        !self.proof.is_empty()
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: Signal) {
        let datagram = Datagram::signal(self.seal.next() as u32, signal);
        let tag = self.seal.tag(&datagram);
        let bytes: [u8; LEN] = datagram.encode(tag);
        self.send_bytes(&bytes);
    }

    /// Handles an error of the system, which is about this datagram or an earlier one. An unreachable peer
    /// is probed, and nothing more; orders too long for the path are cut into shorter datagrams. (Where the
    /// kernel cuts, an older one reports an invalid argument instead.)
    #[cold]
    pub fn refused(&mut self, e: Errno) {
        match e {
            Errno::MSGSIZE | Errno::INVAL if self.shorten() => {}
            // The error is about an earlier datagram.
            Errno::MSGSIZE => {}
            e => self.silence.refused(e),
        }
    }

    /// Shortens the datagrams to the present path MTU; false: they are short enough, or the path MTU is too
    /// small.
    fn shorten(&mut self) -> bool {
        let datagram = socket::longest(&self.socket);
        let Some(cut) = self.cut.shorter(datagram, |len| socket::cut(&self.socket, len)) else {
            return false;
        };
        self.cut = cut;
        self.out.restart();
        log::debug!("the path takes {datagram} B a datagram now");
        true
    }

    /// Sends probes and repetitions that are due.
    ///
    /// # Errors
    /// The peer cannot be reached.
    pub fn maintain(&mut self, now_ms: u64) -> Result<(), Broken> {
        if self.has_arrived {
            self.proof = Vec::new();
        }
        let longest = socket::longest(&self.socket);
        if longest <= socket::NOWHERE {
            self.silence.refused(Errno::NETDOWN);
        } else if longest < LEAST {
            return Err(Broken::System(Errno::MSGSIZE));
        }
        match self.silence.judge(std::mem::take(&mut self.has_arrived), now_ms) {
            Duty::Over => return Err(Broken::Silent),
            Duty::Refused(e) => return Err(Broken::System(e)),
            _ if self.is_unproved() => self.send_bytes(&self.proof.clone()),
            Duty::Nothing => {}
            Duty::Ask => self.signal(Signal::Probe),
        }
        Ok(())
    }

    /// Sends a datagram. If the kernel does not take it, it is lost, as it might be in the network. An
    /// error about an earlier datagram makes the kernel skip this one, so it is tried again.
    fn send_bytes(&mut self, bytes: &[u8]) {
        let send = |link: &Link| net::send(&link.socket, bytes, SendFlags::NOSIGNAL);
        if let Err(e) = send(self)
            && !matches!(e, Errno::AGAIN | Errno::INTR | Errno::NOBUFS)
        {
            self.refused(e);
            let _ = send(self);
        }
    }
}
