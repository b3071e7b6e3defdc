//! A link to one peer over this rail: the send queue, and incomplete orders from the peer.

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

/// Reason for the end of a link.
#[derive(Debug)]
pub enum Broken {
    /// The system reports an error.
    System(Errno),
    /// The peer does not answer any more.
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
    /// The peer.
    pub peer: PeerId,
    /// Number of the peer's rail.
    pub remote: u8,
    /// Address of the peer in frames.
    pub way: Way,
    /// Orders that the kernel has not taken yet.
    pub out: Outbox,
    /// Data bytes of a frame, at most.
    pub part: usize,
    /// Creates and checks tags.
    pub seal: Seal,
    /// Incomplete orders from the peer.
    pub assemblies: Assemblies,
    /// Orders were posted since the last flush.
    pub touched: bool,
    /// The kernel did not take everything.
    pub blocked: bool,
    /// A frame of the peer has arrived since the last periodic check.
    pub has_arrived: bool,
    head: [u8; HEAD],
    /// A socket connected to the UDP port that the peer's process holds. The peer does not read from that
    /// port; but when its process has ended, its kernel answers with an error.
    death_probe: Option<UdpSocket>,
    /// The message that this side repeats until it receives a frame.
    proof: Vec<u8>,
    silence: Silence,
}

impl Link {
    /// Creates an open link from the address `ours`.
    pub fn new(
        greeted: Greeted<Way>,
        ours: Way,
        death_probe: Option<UdpSocket>,
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
            has_arrived: false,
            head,
            death_probe,
            proof,
            silence,
        }
    }

    /// Returns whether the peer has not confirmed yet that it received this side's proof.
    pub fn is_unproved(&self) -> bool {
        !self.proof.is_empty()
    }

    /// Sends a signal. If the kernel does not take it, it is lost, as it might be in the network.
    pub fn signal(&mut self, socket: &Socket, signal: Signal) {
        let datagram = Datagram::signal(self.seal.next() as u32, signal);
        let tag = self.seal.tag(&datagram);
        self.send_bytes(socket, &datagram.encode(tag));
    }

    fn send_bytes(&self, socket: &Socket, bytes: &[u8]) {
        let _ = net::send(socket, &[&self.head[..], bytes].concat(), SendFlags::empty());
    }

    /// Sends probes and repetitions that are due.
    ///
    /// # Errors
    /// The peer's kernel reports that the process has ended, or the peer does not answer any more.
    pub fn maintain(&mut self, socket: &Socket, now_ms: u64) -> Result<(), Broken> {
        if self.has_arrived {
            self.proof = Vec::new();
        }
        match self.silence.judge(std::mem::take(&mut self.has_arrived), now_ms) {
            Duty::Over => return Err(Broken::Silent),
            Duty::Refused(e) => return Err(Broken::System(e)),
            _ if self.is_unproved() => self.send_bytes(socket, &self.proof),
            Duty::Nothing => {}
            Duty::Ask => {
                self.signal(socket, Signal::Probe);
                self.test_process();
            }
        }
        Ok(())
    }

    /// Sends a datagram to the peer's UDP port. An error of the kernel is about an earlier datagram, and is
    /// returned instead of sending this one.
    fn test_process(&mut self) {
        let Some(death_probe) = &self.death_probe else { return };
        if let Err(e) = death_probe.send(&[])
            && e.kind() != io::ErrorKind::WouldBlock
        {
            let _ = death_probe.send(&[]);
            self.silence.refused(Errno::from_io_error(&e).unwrap_or(Errno::IO));
        }
    }
}
