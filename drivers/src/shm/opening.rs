//! Shared memory's own part of opening a link: the listening socket, and the descriptors that are passed
//! after the proof. The side that opens a link passes the segment and its wakeup descriptor, the other one
//! its wakeup descriptor.
//!
//! The system reports when a peer has died: its socket refuses connections, or the connection ends. A peer
//! that does not answer is therefore alive but busy, or has too little CPU time on an oversubscribed node,
//! so this side keeps waiting.

use crate::connections::{Accepted, Connections, Failure, Network, Outcome, Step};
use crate::error::DriverError;
use crate::node::Segment;
use crate::node::descriptors::{self, Given};
use crate::opening::{self, Facts, FailureKind, Linked, Local, Medium, Opened};
use crate::shm::config::{NAME, ShmConfig};
use crate::shm::home::Home;
use crate::shm::layout::End;
use crate::shm::peers::Peers;
use crate::watch::Watch;
use nmad_engine::packet::PeerId;
use nmad_seal::Policy;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;

/// State of the links that are not open yet.
#[derive(Debug)]
pub struct Opening {
    pub machine: opening::Opening,
    connections: Connections<Handover>,
}

/// The segment and the peer's wakeup descriptor, as far as they are available.
#[derive(Debug)]
pub struct Handover {
    /// The segment, and which end of it is this side's.
    pub memory: Option<(Segment, End)>,
    /// The peer's wakeup descriptor.
    pub wakeup: Option<OwnedFd>,
}

/// The parts of the rail that opening uses.
#[derive(Clone, Copy)]
pub struct Rail<'a> {
    pub config: &'a ShmConfig,
    pub home: &'a Home,
    pub peers: &'a Peers,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Opening {
    /// Creates the state without any attempt.
    ///
    /// # Errors
    /// The system creates no epoll.
    pub fn new(config: &ShmConfig, watch: &Watch) -> Result<Opening, DriverError> {
        let ShmConfig { rank, rail, secret, bound, .. } = *config;
        let local =
            Local { name: NAME.into(), rank, rail, secret, bound, encrypt: Policy::Off, within_host: true };
        let machine = opening::Opening::new(local, Medium::Connections);
        let connections =
            Connections::new(watch).map_err(|e| DriverError::new(NAME, "cannot make an epoll", e))?;
        Ok(Opening { machine, connections })
    }

    /// Accepts connections, reads from all of them, and continues every attempt.
    pub fn step(&mut self, rail: Rail<'_>, outcome: &mut Vec<Outcome<Handover>>) {
        let Opening { machine, connections } = self;
        let (now_ms, network) = (rail.now_ms, Listener(rail));
        Step { connections, opening: machine, network, now_ms, outcome }.run();
    }
}

struct Listener<'a>(Rail<'a>);

/// Formats an error of the system, with the remedy if a limit of this process is the cause.
fn describe(e: impl Into<io::Error>) -> String {
    let e = e.into();
    let remedy = match Errno::from_io_error(&e) {
        Some(Errno::MFILE) => " (this process may open no more files: `ulimit -n` is too low)",
        Some(Errno::FBIG) => " (this process may make no file that long: `ulimit -f` is too low)",
        _ => "",
    };
    format!("{e}{remedy}")
}

impl Facts for Listener<'_> {
    fn remotes(&self, peer: PeerId) -> Vec<u8> {
        // Each process of a node has one rail of this kind.
        self.0.peers.known(peer).map(|(rail, _)| *rail).into_iter().collect()
    }

    fn linked(&self, peer: PeerId) -> Option<Linked> {
        self.0.peers.link(peer).map(|link| Linked { remote: link.remote, is_unproved: false })
    }

    fn is_far(&self, _: PeerId) -> bool {
        false
    }

    fn no_address(&self) -> &'static str {
        "is not on this node"
    }

    fn no_answer(&self, _: PeerId) -> String {
        format!("did not answer within {:?} (does it run?)", self.0.config.bound)
    }
}

impl Network for Listener<'_> {
    type Handover = Handover;

    fn connect(&mut self, peer: PeerId, address: usize) -> Result<OwnedFd, Failure> {
        let Some((_, at)) = self.0.peers.known(peer) else {
            return Err(Failure::permanent(self.no_address()));
        };
        self.0.home.connect(at).map_err(|e| self.failure(peer, address, false, e))
    }

    fn accept(&mut self) -> Option<Accepted> {
        self.0.home.accept()
    }

    fn failure(&self, _: PeerId, _: usize, stood: bool, e: Errno) -> Failure {
        let (kind, why) = match e {
            _ if stood => {
                (FailureKind::Ended, "closed the connection while the link was opened (has it died?)".into())
            }
            Errno::AGAIN => (FailureKind::Busy, "has too many connections waiting".into()),
            Errno::CONNREFUSED => {
                (FailureKind::Unreachable, "is gone: no process listens at its socket (has it died?)".into())
            }
            e => (FailureKind::Permanent, format!("cannot be reached: {}", describe(e))),
        };
        Failure { kind, why }
    }

    fn hand_over(&mut self, socket: &OwnedFd, opened: &Opened) -> Result<Handover, Failure> {
        if !opened.is_attempt {
            return Ok(Handover { memory: None, wakeup: None });
        }
        let home = self.0.home;
        let (segment, memory) = home.segment().map_err(|e| {
            Failure::permanent(format!("gets no link: cannot make shared memory: {}", describe(e)))
        })?;
        match descriptors::give(socket, &[memory.as_fd(), home.wakeup.as_fd()]) {
            Ok(()) => Ok(Handover { memory: Some((segment, End::Opened)), wakeup: None }),
            Err(e @ (Errno::PIPE | Errno::CONNRESET)) => Err(self.failure(PeerId(0), 0, true, e)),
            Err(e) => Err(Failure::permanent(format!("cannot be handed the shared memory: {e}"))),
        }
    }

    fn proceed(&mut self, socket: &OwnedFd, handover: &mut Handover) -> Result<bool, Failure> {
        let count = if handover.memory.is_some() { 1 } else { 2 };
        let mut fds = match descriptors::take(socket, count) {
            Given::Nothing => return Ok(false),
            Given::All(fds) => fds,
            Given::Ended => return Err(self.failure(PeerId(0), 0, true, Errno::CONNRESET)),
            Given::Wrong(why) => return Err(Failure::permanent(format!("broke the handshake: {why}"))),
        };
        handover.wakeup = fds.pop();
        if let Some(memory) = fds.pop() {
            let segment = self.0.home.adopt(memory.as_fd()).map_err(Failure::permanent)?;
            handover.memory = Some((segment, End::Answered));
            descriptors::give(socket, &[self.0.home.wakeup.as_fd()])
                .map_err(|e| Failure::permanent(e.to_string()))?;
        }
        Ok(true)
    }

    fn leave(&mut self, socket: OwnedFd) {
        // Bytes written to a Unix socket stay readable after it is closed.
        drop(socket);
    }
}
