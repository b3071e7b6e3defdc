//! A link to one peer over a rail of datagrams.

use super::assembly::Assemblies;
use super::header::{Datagram, LEN, Signal};
use super::queue::Queue;
use super::seal::{Check, Seal};
use super::silence::{Duty, Silence};
use super::strays::Stray;
use crate::opening::{Linked, Opened};
use arrayvec::ArrayVec;
use nmad_engine::packet::PeerId;
use nmad_seal::TAG;
use rustix::io::Errno;

/// Reason for the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The system reports an error.
    System(Errno),
    /// The peer does not answer any more.
    Silent,
}

/// An open link; `route` is the network's part.
#[derive(Debug)]
pub struct Link<R> {
    /// The peer.
    pub peer: PeerId,
    /// Number of the peer's rail.
    pub remote: u8,
    /// The name of the cipher, if the link is encrypted.
    pub cipher: Option<&'static str>,
    /// How datagrams reach the peer.
    pub route: R,
    /// Orders that the kernel has not taken yet.
    pub queue: Queue,
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
    /// Detects that the peer is dead.
    pub silence: Silence,
    /// The message that this side repeats until it receives a datagram.
    proof: Vec<u8>,
}

/// A message that is due to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// This message once more.
    Proof(Vec<u8>),
    /// A probe.
    Probe,
}

impl<R> Link<R> {
    /// Creates an open link over this route.
    pub fn new(opened: &Opened, route: R, proof: Vec<u8>, secret: &[u8; 32], silence: Silence) -> Self {
        Link {
            peer: opened.peer,
            remote: opened.remote,
            cipher: opened.cipher(),
            route,
            queue: Queue::default(),
            seal: Seal::new(opened, secret),
            assemblies: Assemblies::default(),
            touched: false,
            blocked: false,
            has_arrived: false,
            silence,
            proof,
        }
    }

    /// Returns whether the peer has not confirmed yet that it received this side's proof.
    pub fn is_unproved(&self) -> bool {
        !self.proof.is_empty()
    }

    /// Returns what the opening of links has to know.
    pub fn linked(&self) -> Linked {
        Linked { remote: self.remote, is_unproved: self.is_unproved() }
    }

    /// Returns the datagram of a signal.
    pub fn sealed(&mut self, signal: Signal) -> ArrayVec<u8, { LEN + TAG }> {
        let len = LEN + self.seal.behind();
        let datagram = Datagram { len: len as u16, ..Datagram::signal(self.seal.next() as u32, signal) };
        let mut bytes = ArrayVec::from([0; LEN + TAG]);
        bytes.truncate(len);
        match self.seal.is_encrypted() {
            true => self.seal.encrypt(&datagram, &mut bytes),
            false => bytes.copy_from_slice(&datagram.encode(self.seal.tag(&datagram))),
        }
        bytes
    }

    /// Returns what is due.
    ///
    /// # Errors
    /// The peer cannot be reached, or does not answer any more.
    pub fn due(&mut self, now_ms: u64) -> Result<Due, Broken> {
        let has_arrived = std::mem::take(&mut self.has_arrived);
        if has_arrived {
            self.proof = Vec::new();
        }
        match self.silence.judge(has_arrived, now_ms) {
            Duty::Over => Err(Broken::Silent),
            Duty::Refused(e) => Err(Broken::System(e)),
            _ if self.is_unproved() => Ok(Due::Proof(self.proof.clone())),
            Duty::Nothing => Ok(Due::Nothing),
            Duty::Ask => Ok(Due::Probe),
        }
    }

    /// Judges a datagram without the link's tag. `None`: it is a repeated handshake message, whose answer was
    /// lost or late; its sender is to be answered that the link is open.
    #[cold]
    pub fn stray(&self, check: Check, bytes: &[u8]) -> Option<Stray> {
        if self.seal.is_greeting(bytes) {
            return None;
        }
        Some(match (check, Datagram::decode(bytes)) {
            (_, None) => Stray::Truncated,
            (Check::Repeated, _) => Stray::Repeated,
            _ => Stray::Forged,
        })
    }
}
