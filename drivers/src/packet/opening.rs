//! Raw Ethernet's part of opening a link: the handshake of the UDP driver, over one socket for all peers.

use super::config::PacketConfig;
use super::frame::{Place, Way, head};
use super::link::Link;
use super::sys::Socket;
use crate::connections::Failure;
use crate::opening::{self, Content, Facts, FailureKind, Linked, Local, Medium, Origin};
use crate::udp::greeters::{Greeter, Greeters, Greeting, Network, Outcome, Step};
use hashbrown::HashMap;
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello};
use rustix::io::Errno;
use rustix::net::{self, SendFlags};

/// Frame lengths to try: jumbo frames, Ethernet, Ethernet in a tunnel, and the minimum.
const LENGTHS: &[usize] = &[8_996, 1_496, 1_396, 528];

/// State of the links that are not open yet.
#[derive(Debug)]
pub struct Opening {
    /// The state machine, which also receives orders to open links.
    pub machine: opening::Opening,
    greeters: Greeters<Way>,
}

/// The parts of the rail that opening uses.
pub struct Rail<'a> {
    pub config: &'a PacketConfig,
    pub socket: &'a Socket,
    /// Address of the rail in frames.
    pub ours: Way,
    /// Bytes that the rail buffers for a link.
    pub buffer: u32,
    /// Addresses of peers, with the numbers of their rails.
    pub known: &'a HashMap<PeerId, Vec<(u8, Place)>>,
    /// Returns the link to a peer.
    pub linked: &'a dyn Fn(PeerId) -> Option<&'a Link>,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Rail<'_> {
    fn places(&self, peer: PeerId) -> &[(u8, Place)] {
        self.known.get(&peer).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a hello comes from another address than that of its alleged sender.
    fn is_elsewhere(&self, hello: &Hello, from: Way) -> bool {
        let places = self.places(PeerId(hello.from));
        hello.to == self.config.rank.0 && places.iter().all(|(_, place)| place.way() != from)
    }

    /// Longest datagram that the interface takes.
    fn longest(&self) -> usize {
        self.socket.data_max() - super::frame::PORTS
    }
}

impl Opening {
    /// Creates the state without any attempt.
    pub fn new(config: &PacketConfig) -> Opening {
        let PacketConfig { rank, rail, secret, bound, .. } = *config;
        let local = Local { name: config.name(), rank, rail, secret, bound };
        let machine = opening::Opening::new(local, Medium::Datagrams(LENGTHS));
        Opening { machine, greeters: Greeters::default() }
    }

    /// Continues every attempt.
    pub fn step(&mut self, rail: Rail<'_>, outcome: &mut Vec<Outcome<Way>>) {
        let (opening, greeters, now_ms) = (&mut self.machine, &mut self.greeters, rail.now_ms);
        Step { greeters, opening, network: rail, now_ms, outcome }.advance();
    }

    /// Handles a frame from a sender without a link; returns whether it was a handshake message.
    pub fn handle(
        &mut self,
        from: Way,
        bytes: &[u8],
        rail: Rail<'_>,
        outcome: &mut Vec<Outcome<Way>>,
    ) -> bool {
        let Some(greeting) = Greeting::of(bytes, &rail.config.secret, rail.longest()) else { return false };
        // A hello comes from a new sender, a welcome from a peer to which we have sent a hello, and a proof
        // from a peer that we have sent a welcome.
        let is_attempt = match greeting.content {
            // Answer a hello only if it comes from the address that the launcher has published for its
            // rank.
            Content::Message(Control::Hello(hello)) if rail.is_elsewhere(&hello, from) => return true,
            Content::Message(Control::Hello(_)) | Content::OtherVersion(_) | Content::Foreign(_) => None,
            Content::Message(Control::Welcome(_) | Control::Refuse(_)) => Some(true),
            Content::Message(Control::Proof(_)) => Some(false),
        };
        let (opening, greeters, now_ms) = (&mut self.machine, &mut self.greeters, rail.now_ms);
        let mut step = Step { greeters, opening, network: rail, now_ms, outcome };
        match is_attempt {
            None => {
                let origin = Origin { text: format!("port {}", from.port), host: None, is_known: true };
                step.accept_hello(from, origin, greeting);
            }
            Some(is_attempt) => {
                let of_it = |greeter: &Greeter<Way>| (greeter.way, greeter.is_attempt) == (from, is_attempt);
                if let Some(at) = step.greeters.list.iter().position(of_it) {
                    step.handle_message(at, greeting);
                }
            }
        }
        step.act();
        true
    }
}

impl Facts for Rail<'_> {
    fn remotes(&self, peer: PeerId) -> Vec<u8> {
        self.places(peer).iter().map(|(rail, _)| *rail).collect()
    }

    fn linked(&self, peer: PeerId) -> Option<Linked> {
        (self.linked)(peer).map(|link| Linked { remote: link.remote, is_unproved: link.is_unproved() })
    }

    fn no_address(&self) -> &'static str {
        "has no address on the network of this rail"
    }

    fn no_answer(&self, peer: PeerId) -> String {
        let there = self.places(peer).first().map_or("it".into(), |(_, place)| place.address.to_string());
        format!(
            "did not answer any frame within {:?} (does {} pass EtherType 0x88B5 to {there}, or has it the \
             secret of another job?)",
            self.config.bound, self.config.interface.name
        )
    }
}

impl Network for Rail<'_> {
    type Way = Way;

    fn reach(&mut self, peer: PeerId, address: usize) -> Result<(Way, usize), Failure> {
        Ok((self.places(peer)[address].1.way(), self.longest()))
    }

    fn welcome(&mut self, _: &mut Way) -> Result<(), Errno> {
        Ok(())
    }

    fn send(&mut self, way: &Way, bytes: &[u8]) -> Result<(), Errno> {
        // A message that the kernel does not take is lost, and will be repeated.
        let _ = net::send(self.socket, &[&head(self.ours, *way)[..], bytes].concat(), SendFlags::empty());
        Ok(())
    }

    fn buffer(&self, _: &Way) -> u32 {
        self.buffer
    }

    fn failure(&self, _: &Way, e: Errno) -> Failure {
        Failure { kind: FailureKind::Unreachable, why: format!("cannot be reached: {e}") }
    }
}
