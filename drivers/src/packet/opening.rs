//! What is raw Ethernet's own of opening a link: the greetings of the UDP driver, on one socket for all.

use super::config::PacketConfig;
use super::frame::{Place, Way, head};
use super::link::Link;
use super::sys::Socket;
use crate::connections::Setback;
use crate::opening::{self, Around, Linked, Local, Medium, Said, Trouble};
use crate::udp::greeters::{Greeters, Heard, Network, Outcome, Step};
use crate::udp::greeting::{self, Terms};
use hashbrown::HashMap;
use nmad_engine::packet::PeerId;
use nmad_wire::Control;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};

/// What a frame carries on most networks: jumbo frames, Ethernet, and what a tunnel leaves of it.
const LENGTHS: &[usize] = &[8_996, 1_496, 1_396, 528];

/// Everything about links that are not open yet.
#[derive(Debug)]
pub struct Opening {
    machine: opening::Opening,
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

    /// Whether there is nothing to do but for who knocks next.
    pub fn is_idle(&self) -> bool {
        self.machine.is_idle()
    }

    /// Whether this side wants a link, so that looking after it often shortens the wait.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        self.machine.is_urgent()
    }

    /// Begins to open a link, unless that has begun.
    pub fn connect(&mut self, peer: PeerId, now_ms: u64) {
        self.machine.connect(peer, now_ms);
    }

    /// Wants no link to this peer any more.
    pub fn forget(&mut self, peer: PeerId) {
        self.machine.forget(peer);
    }

    /// Goes on with every attempt.
    pub fn step(&mut self, mut rail: Rail<'_>, outcome: &mut Vec<Outcome<Way>>) {
        let now_ms = rail.now_ms;
        let mut step = Step { opening: &mut self.machine, network: &mut rail, now_ms };
        self.greeters.step(&mut step, outcome);
    }

    /// A greeting has come, or something that is none: then false.
    pub fn hear(
        &mut self,
        from: Way,
        bytes: &[u8],
        mut rail: Rail<'_>,
        outcome: &mut Vec<Outcome<Way>>,
    ) -> bool {
        let (said, terms) = match greeting::decode(bytes, &rail.config.secret) {
            greeting::Heard::Message(message, terms) => (Said::Message(message), terms),
            greeting::Heard::OtherVersion(theirs) => {
                (Said::OtherVersion(theirs), Terms { datagram: 0, buffer: 0 })
            }
            greeting::Heard::Stranger => return false,
        };
        let longest = rail.longest();
        let terms = Terms { datagram: terms.datagram.min(longest as u32), ..terms };
        // Only who is where the launcher says that its rank is gets an answer.
        let is_elsewhere = match said {
            Said::Message(Control::Hello(hello)) if hello.to == rail.config.rank.0 => {
                rail.places(PeerId(hello.from)).iter().all(|(_, place)| place.way() != from)
            }
            _ => false,
        };
        // Who asks is a stranger, who answers is one to whom we have said hello, and who proves itself was
        // one that we have answered.
        let is_attempt = match said {
            Said::Message(Control::Hello(_)) | Said::OtherVersion(_) | Said::Foreign(_) => None,
            Said::Message(Control::Welcome(_) | Control::Refuse(_)) => Some(true),
            Said::Message(Control::Proof(_)) => Some(false),
        };
        let now_ms = rail.now_ms;
        let mut step = Step { opening: &mut self.machine, network: &mut rail, now_ms };
        let heard = Heard { said, terms, len: bytes.len() };
        let of_it = |is_attempt: bool| {
            self.greeters
                .list()
                .iter()
                .position(|greeter| (greeter.way, greeter.is_attempt) == (from, is_attempt))
        };
        match is_attempt.map(of_it) {
            None if is_elsewhere => {}
            None => self.greeters.knock(from, format!("port {}", from.port), heard, &mut step),
            Some(Some(at)) => self.greeters.hear(at, heard, &mut step),
            Some(None) => {}
        }
        self.greeters.act(&mut step, outcome);
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
