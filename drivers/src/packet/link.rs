//! One peer over this rail: the queue to it, and partly arrived orders from it.

use super::config::PacketConfig;
use super::frame::{HEAD, Way, head};
use super::sys::Socket;
use super::write::Outbox;
use crate::opening::Opened;
use crate::udp::assembly::Assemblies;
use crate::udp::datagram::{Datagram, Signal};
use crate::udp::greeters::Greeted;
use crate::udp::seal::Seal;
use crate::udp::silence::{Duty, Silence};
use crate::udp::write::Cut;
use nmad_engine::packet::PeerId;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use std::io;
use std::net::UdpSocket;

/// Why a link cannot go on.
#[derive(Debug)]
pub enum Broken {
    /// The system says so.
    System(Errno),
    /// The peer answers nothing any more.
    Silent,
}

impl Broken {
    /// The message about the peer.
    pub fn describe(&self, config: &PacketConfig) -> String {
        match self {
            Broken::System(e) => format!("is gone: {e} (has it died?)"),
            Broken::Silent => format!(
                "has not answered for {:?} (is its host gone, an interface down, or does a switch drop \
                 EtherType 0x88B5?)",
                config.silence
            ),
        }
    }
}

/// An open link.
#[derive(Debug)]
pub struct Link {
    /// To whom.
    pub peer: PeerId,
    /// Number of the peer's rail.
    pub remote: u8,
    /// Where it is.
    pub way: Way,
    /// Orders that the kernel has not taken yet.
    pub out: Outbox,
    /// Most bytes that a frame carries behind its headers.
    pub part: usize,
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
    head: [u8; HEAD],
    /// A socket towards the UDP port that the peer's process holds. Nobody reads there; but when the process
    /// has ended, its kernel says so.
    bell: Option<UdpSocket>,
    /// What this side says until it has heard something.
    proof: Vec<u8>,
    silence: Silence,
}

impl Link {
    /// A link that has just been opened, from `ours`.
    pub fn new(
        greeted: Greeted<Way>,
        ours: Way,
        bell: Option<UdpSocket>,
        secret: &[u8; 32],
        silence: Silence,
    ) -> Self {
        let Greeted { opened, way, proof, .. } = greeted;
        let Opened { peer, remote, ends, is_attempt, len } = opened;
        let (head, cut) = (head(ours, way), Cut::new(len, false));
        Link {
            peer,
            remote,
            way,
            out: Outbox::new(head, cut),
            part: cut.part,
            seal: Seal::new(&ends, secret, is_attempt),
            assemblies: Assemblies::default(),
            touched: false,
            blocked: false,
            heard: false,
            head,
            bell,
            proof,
            silence,
        }
    }

    /// Whether this side still has to prove itself, as far as it knows.
    pub fn is_unproved(&self) -> bool {
        !self.proof.is_empty()
    }

    /// Says something that carries nothing. What the kernel does not take is lost, as the network might.
    pub fn signal(&mut self, socket: &Socket, signal: Signal) {
        let datagram = Datagram::signal(self.seal.next() as u32, signal);
        let tag = self.seal.tag(&datagram);
        self.say(socket, &datagram.encode(tag));
    }

    fn say(&self, socket: &Socket, bytes: &[u8]) {
        let _ = net::send(socket, &[&self.head[..], bytes].concat(), SendFlags::empty());
    }

    /// Does what is to be done from time to time.
    ///
    /// # Errors
    /// The peer's kernel says that the process is gone, or nobody says anything any more.
    pub fn keep_up(&mut self, socket: &Socket, now_ms: u64) -> Result<(), Broken> {
        if self.heard {
            self.proof = Vec::new();
        }
        match self.silence.judge(std::mem::take(&mut self.heard), now_ms) {
            Duty::Over => return Err(Broken::Silent),
            Duty::Refused(e) => return Err(Broken::System(e)),
            _ if self.is_unproved() => self.say(socket, &self.proof),
            Duty::Nothing => {}
            Duty::Ask => {
                self.signal(socket, Signal::Probe);
                self.ring();
            }
        }
        Ok(())
    }

    /// What the kernel has to say is said of the ring before, and comes instead of another one.
    fn ring(&mut self) {
        let Some(bell) = &self.bell else { return };
        if let Err(e) = bell.send(&[])
            && e.kind() != io::ErrorKind::WouldBlock
        {
            let _ = bell.send(&[]);
            self.silence.refused(Errno::from_io_error(&e).unwrap_or(Errno::IO));
        }
    }
}
