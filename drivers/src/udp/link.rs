//! One peer over this rail: a socket, the queue to it, and partly arrived orders from it.

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

/// Why a link cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The system says so.
    System(Errno),
    /// The peer answers nothing any more.
    Silent,
}

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
    /// Orders of which parts have arrived.
    pub assemblies: Assemblies,
    /// Orders were posted since the last flush.
    pub touched: bool,
    /// The kernel did not take everything.
    pub blocked: bool,
    /// Something of the peer has come since the last look at the clock.
    pub heard: bool,
    /// Reads with success since the socket was last watched.
    pub reads: Cell<u32>,
    /// Whether a sleeper wakes for it.
    pub watched: Cell<bool>,
    /// What this side says until it has heard something.
    proof: Vec<u8>,
    silence: Silence,
}

impl Link {
    /// A link that has just been opened, on this socket.
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
            heard: false,
            reads: Cell::new(0),
            watched: Cell::new(true),
            proof,
            silence,
        };
        if !is_attempt {
            link.signal(Signal::Alive);
        }
        link
    }

    /// Whether this side still has to prove itself, as far as it knows.
    pub fn is_unproved(&self) -> bool {
        !self.proof.is_empty()
    }

    /// Says something that carries nothing.
    pub fn signal(&mut self, signal: Signal) {
        let datagram = Datagram::signal(self.seal.next() as u32, signal);
        let tag = self.seal.tag(&datagram);
        let bytes: [u8; LEN] = datagram.encode(tag);
        self.say(&bytes);
    }

    /// The system has refused a datagram, or reports what happened to an earlier one. An unreachable peer is
    /// a reason to ask it, and no more; orders too long for the path go in shorter datagrams. (Where the
    /// kernel cuts, an older one calls that an invalid argument.)
    #[cold]
    pub fn refused(&mut self, e: Errno) {
        match e {
            Errno::MSGSIZE | Errno::INVAL if self.shorten() => {}
            // Of what was sent before.
            Errno::MSGSIZE => {}
            e => self.silence.refused(e),
        }
    }

    /// Cuts what is to be sent as short as the kernel now takes it; false: it is short enough, or cannot be
    /// so short.
    fn shorten(&mut self) -> bool {
        let datagram = socket::longest(&self.socket);
        let Some(cut) = self.cut.shorter(datagram, |len| socket::cut(&self.socket, len)) else {
            return false;
        };
        self.cut = cut;
        self.out.begin_again();
        log::debug!("the path takes {datagram} B a datagram now");
        true
    }

    /// Says what is to be said from time to time.
    ///
    /// # Errors
    /// The peer cannot be reached.
    pub fn keep_up(&mut self, now_ms: u64) -> Result<(), Broken> {
        if self.heard {
            self.proof = Vec::new();
        }
        let longest = socket::longest(&self.socket);
        if longest <= socket::NOWHERE {
            self.silence.refused(Errno::NETDOWN);
        } else if longest < LEAST {
            return Err(Broken::System(Errno::MSGSIZE));
        }
        match self.silence.judge(std::mem::take(&mut self.heard), now_ms) {
            Duty::Over => return Err(Broken::Silent),
            Duty::Refused(e) => return Err(Broken::System(e)),
            _ if self.is_unproved() => self.say(&self.proof.clone()),
            Duty::Nothing => {}
            Duty::Ask => self.signal(Signal::Probe),
        }
        Ok(())
    }

    /// What the kernel does not take is lost, as the network might. If it only tells of something that was
    /// sent before, it has not looked at this.
    fn say(&mut self, bytes: &[u8]) {
        let say = |link: &Link| net::send(&link.socket, bytes, SendFlags::NOSIGNAL);
        if let Err(e) = say(self)
            && !matches!(e, Errno::AGAIN | Errno::INTR | Errno::NOBUFS)
        {
            self.refused(e);
            let _ = say(self);
        }
    }
}
