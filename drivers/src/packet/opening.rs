//! Raw Ethernet's part of opening a link: the handshake of the UDP driver, over one socket for all peers.

use super::config::PacketConfig;
use super::frame::{Place, Way, head};
use super::net::Ethernet;
use super::route::Route;
use super::sys::Socket;
use crate::connections::Failure;
use crate::datagram::greeters::{Greeter, Greeting, Network, Step};
use crate::datagram::rail::{Links, Rail};
use crate::known::Known;
use crate::opening::{self, Content, Facts, FailureKind, Linked, Local, Medium, Origin};
use crate::tcp::address::Address;
use crate::tcp::now_ms;
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello};
use rustix::io::Errno;
use rustix::net::{self, SendFlags};

/// Frame lengths to try: jumbo frames, Ethernet, Ethernet in a tunnel, and the minimum.
const LENGTHS: &[usize] = &[8_996, 1_496, 1_396, 528];

/// Makes the state machine that opens links.
pub fn machine(config: &PacketConfig) -> opening::Opening {
    let PacketConfig { rank, rail, secret, bound, encrypt, .. } = *config;
    let local = Local { name: config.name(), rank, rail, secret, bound, encrypt, within_host: false };
    opening::Opening::new(local, Medium::Datagrams(LENGTHS))
}

/// Continues every attempt.
pub fn step(rail: &mut Rail<Ethernet>) {
    let Rail { net, machine, links, outcome, .. } = rail;
    let Ethernet { config, place, socket, known, greeters, .. } = net;
    let network = Opener { config, socket, ours: place.way(), known, links };
    Step { greeters, opening: machine, network, now_ms: now_ms(), outcome }.advance();
}

/// Handles a frame from a sender without a link; returns whether it was a handshake message.
pub fn handle(rail: &mut Rail<Ethernet>, from: Way, bytes: &[u8]) -> bool {
    let Rail { net, machine, links, outcome, .. } = rail;
    let Ethernet { config, place, socket, known, greeters, .. } = net;
    let network = Opener { config, socket, ours: place.way(), known, links };
    let Some(greeting) = Greeting::of(bytes, &network.config.secret, network.longest()) else { return false };
    // A hello comes from a new sender, a welcome from a peer to which we have sent a hello, and a proof
    // from a peer that we have sent a welcome.
    let is_attempt = match greeting.content {
        // Answer a hello only if it comes from the address that the launcher has published for its
        // rank.
        Content::Message(Control::Hello(hello)) if network.is_elsewhere(&hello, from) => return true,
        Content::Message(Control::Hello(_)) | Content::OtherVersion(_) | Content::Foreign(_) => None,
        Content::Message(Control::Welcome(_) | Control::Refuse(_)) => Some(true),
        Content::Message(Control::Proof(_)) => Some(false),
    };
    let mut step = Step { greeters, opening: machine, network, now_ms: now_ms(), outcome };
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

/// The parts of the rail that opening uses.
struct Opener<'a> {
    config: &'a PacketConfig,
    socket: &'a Socket,
    /// Address of the rail in frames.
    ours: Way,
    known: &'a Known<Place>,
    links: &'a Links<Route>,
}

impl Opener<'_> {
    /// Returns whether a hello comes from another address than that of its alleged sender.
    fn is_elsewhere(&self, hello: &Hello, from: Way) -> bool {
        let places = self.known.of(PeerId(hello.from));
        hello.to == self.config.rank.0 && places.iter().all(|known| known.address.way() != from)
    }

    /// Longest datagram that the interface takes.
    fn longest(&self) -> usize {
        self.socket.data_max() - super::frame::PORTS
    }
}

impl Facts for Opener<'_> {
    fn remotes(&self, peer: PeerId) -> Vec<u8> {
        self.known.remotes(peer)
    }

    fn linked(&self, peer: PeerId) -> Option<Linked> {
        self.links.to(peer).map(|link| link.linked())
    }

    fn is_far(&self, peer: PeerId) -> bool {
        let own = Address::at(&self.config.interface, 0);
        self.known.of(peer).iter().any(|known| own.is_far(&known.address.address))
    }

    fn no_address(&self) -> &'static str {
        "has no address on the network of this rail"
    }

    fn no_answer(&self, peer: PeerId) -> String {
        let first = self.known.of(peer).first();
        let there = first.map_or("it".into(), |known| known.address.address.to_string());
        format!(
            "did not answer any frame within {:?} (does {} pass EtherType 0x88B5 to {there}, or has it the \
             secret of another job?)",
            self.config.bound, self.config.interface.name
        )
    }
}

impl Network for Opener<'_> {
    type Way = Way;

    fn reach(&mut self, peer: PeerId, address: usize) -> Result<(Way, usize), Failure> {
        Ok((self.known.of(peer)[address].address.way(), self.longest()))
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
        // Half of the ring is advertised, because a short packet occupies a slot like a long one.
        (self.socket.slots() / 2 * self.socket.data_max()) as u32
    }

    fn failure(&self, _: &Way, e: Errno) -> Failure {
        Failure { kind: FailureKind::Unreachable, why: format!("cannot be reached: {e}") }
    }
}
