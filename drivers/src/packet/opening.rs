//! Raw Ethernet's part of opening a link: the greetings of the UDP driver, on one socket for all peers.

use super::config::PacketConfig;
use super::frame::{Place, Way, head};
use super::link::Link;
use super::sys::Socket;
use crate::connections::Setback;
use crate::opening::{self, Around, Linked, Local, Medium, Origin, Said, Trouble};
use crate::udp::greeters::{Greeter, Greeters, Heard, Network, Outcome, Step};
use hashbrown::HashMap;
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello};
use rustix::io::Errno;
use rustix::net::{self, SendFlags};

/// What a frame carries on most networks: jumbo frames, Ethernet, and what a tunnel leaves of it.
const LENGTHS: &[usize] = &[8_996, 1_496, 1_396, 528];

/// Everything about links that are not open yet.
#[derive(Debug)]
pub struct Opening {
    /// The machine: it receives the wanted links.
    pub machine: opening::Opening,
    greeters: Greeters<Way>,
}

/// The parts of the rail that opening looks at.
pub struct Rail<'a> {
    /// Its configuration.
    pub config: &'a PacketConfig,
    /// Its socket.
    pub socket: &'a Socket,
    /// How frames name it.
    pub ours: Way,
    /// Bytes that it buffers for a link.
    pub buffer: u32,
    /// Where peers are, with the numbers of their rails.
    pub known: &'a HashMap<PeerId, Vec<(u8, Place)>>,
    /// The link to a peer.
    pub linked: &'a dyn Fn(PeerId) -> Option<&'a Link>,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Rail<'_> {
    fn places(&self, peer: PeerId) -> &[(u8, Place)] {
        self.known.get(&peer).map_or(&[], Vec::as_slice)
    }

    /// Whether a hello to this rank does not come from where its sender is.
    fn is_elsewhere(&self, hello: &Hello, from: Way) -> bool {
        let places = self.places(PeerId(hello.from));
        hello.to == self.config.rank.0 && places.iter().all(|(_, place)| place.way() != from)
    }

    /// Longest datagram that its interface takes.
    fn longest(&self) -> usize {
        self.socket.data_max() - super::frame::PORTS
    }
}

impl Opening {
    /// Nothing is to be opened yet.
    pub fn new(config: &PacketConfig) -> Opening {
        let PacketConfig { rank, rail, secret, bound, .. } = *config;
        let local = Local { name: config.name(), rank, rail, secret, bound };
        let machine = opening::Opening::new(local, Medium::Datagrams(LENGTHS));
        Opening { machine, greeters: Greeters::default() }
    }

    /// Goes on with every attempt.
    pub fn step(&mut self, rail: Rail<'_>, outcome: &mut Vec<Outcome<Way>>) {
        let (opening, greeters, now_ms) = (&mut self.machine, &mut self.greeters, rail.now_ms);
        Step { greeters, opening, network: rail, now_ms, outcome }.go_on();
    }

    /// A greeting has come, or something that is none: then false.
    pub fn hear(&mut self, from: Way, bytes: &[u8], rail: Rail<'_>, outcome: &mut Vec<Outcome<Way>>) -> bool {
        let Some(heard) = Heard::of(bytes, &rail.config.secret, rail.longest()) else { return false };
        // A hello comes from a stranger, a welcome from a peer to which we have said hello, and a proof from
        // a peer that we have welcomed.
        let is_attempt = match heard.said {
            // A hello gets an answer only if its sender is where the launcher says that its rank is.
            Said::Message(Control::Hello(hello)) if rail.is_elsewhere(&hello, from) => return true,
            Said::Message(Control::Hello(_)) | Said::OtherVersion(_) | Said::Foreign(_) => None,
            Said::Message(Control::Welcome(_) | Control::Refuse(_)) => Some(true),
            Said::Message(Control::Proof(_)) => Some(false),
        };
        let (opening, greeters, now_ms) = (&mut self.machine, &mut self.greeters, rail.now_ms);
        let mut step = Step { greeters, opening, network: rail, now_ms, outcome };
        match is_attempt {
            None => {
                let origin = Origin { text: format!("port {}", from.port), host: None, is_known: true };
                step.knock(from, origin, heard);
            }
            Some(is_attempt) => {
                let of_it = |greeter: &Greeter<Way>| (greeter.way, greeter.is_attempt) == (from, is_attempt);
                if let Some(at) = step.greeters.list.iter().position(of_it) {
                    step.hear(at, heard);
                }
            }
        }
        step.act();
        true
    }
}

impl Around for Rail<'_> {
    fn remotes(&self, peer: PeerId) -> Vec<u8> {
        self.places(peer).iter().map(|(rail, _)| *rail).collect()
    }

    fn linked(&self, peer: PeerId) -> Option<Linked> {
        (self.linked)(peer).map(|link| Linked { remote: link.remote, is_unproved: link.is_unproved() })
    }

    fn homeless(&self) -> &'static str {
        "has no address on the network of this rail"
    }

    fn silent(&self, peer: PeerId) -> String {
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

    fn reach(&mut self, peer: PeerId, address: usize) -> Result<(Way, usize), Setback> {
        Ok((self.places(peer)[address].1.way(), self.longest()))
    }

    fn welcome(&mut self, _: &mut Way) -> Result<(), Errno> {
        Ok(())
    }

    fn send(&mut self, way: &Way, bytes: &[u8]) -> Result<(), Errno> {
        // What the kernel does not take is lost, and said again.
        let _ = net::send(self.socket, &[&head(self.ours, *way)[..], bytes].concat(), SendFlags::empty());
        Ok(())
    }

    fn buffer(&self, _: &Way) -> u32 {
        self.buffer
    }

    fn setback(&self, _: &Way, e: Errno) -> Setback {
        Setback { trouble: Trouble::Unreachable, why: format!("cannot be reached: {e}") }
    }
}
