//! Links that are not open yet: our attempts, who knocks, and which of two stays.
//!
//! When both sides say hello at once the link of the lower rank stays: the lower one does not answer before
//! its own attempt is over and the other side has been heard on the link, the higher one answers and forgets
//! its own as soon as the other has proved itself. Who has answered a hello says none until that has come to
//! something: else each side might take the other's welcome, and each would have another link.

use super::config::UdpConfig;
use super::connect::{Around, Attempt, Step};
use super::greeting::{self, Heard, Terms};
use super::link::Link;
use super::peers::Peers;
use super::strangers::Stranger;
use super::strays::{Refusals, Stray, Strays};
use crate::handshake::Ends;
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, Refusal, RefusalCode, VERSION};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use std::net::SocketAddr;

/// Strangers at once; the oldest makes room.
const STRANGERS: usize = 256;
/// Datagrams read from the listening socket per turn, so that a flood of them does not starve the links.
const AT_ONCE: usize = 64;

/// Everything about links that are not open yet.
#[derive(Debug)]
pub struct Opening {
    listener: OwnedFd,
    port: u16,
    attempts: Vec<Attempt>,
    strangers: Vec<Stranger>,
    refusals: Refusals,
}

/// A link that is open.
#[derive(Debug)]
pub struct Opened {
    /// To whom.
    pub peer: PeerId,
    /// To which rail of it.
    pub remote: u8,
    /// The socket, tied to the peer.
    pub fd: OwnedFd,
    /// What both sides know.
    pub ends: Ends,
    /// What the connecting side says until it hears something; empty at the other one.
    pub proof: Vec<u8>,
    /// Longest datagram that passes.
    pub datagram: usize,
    /// Bytes that the peer buffers.
    pub buffer: u32,
}

/// What became of an attempt or a stranger.
#[derive(Debug)]
pub enum Outcome {
    /// A link is open.
    Open(Opened),
    /// A link that this side wanted cannot be opened.
    Failed(PeerId, String),
}

/// The parts of the rail that opening looks at.
pub struct Rail<'a> {
    /// Its configuration.
    pub config: &'a UdpConfig,
    /// Its sockets.
    pub watch: &'a Watch,
    /// Its peers and their links.
    pub peers: &'a Peers,
    /// What is dropped.
    pub strays: &'a mut Strays,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Opening {
    /// Behind this socket, on this port.
    pub fn new(listener: OwnedFd, port: u16) -> Self {
        Opening { listener, port, attempts: Vec::new(), strangers: Vec::new(), refusals: Refusals::default() }
    }

    /// Whether this side wants a link, so that looking after it often shortens the wait.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        !self.attempts.is_empty()
    }

    /// Whether there is nothing to do but for who knocks next.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.strangers.is_empty()
    }

    /// Begins to open a link, unless that has begun.
    pub fn connect(&mut self, peer: PeerId, config: &UdpConfig, now_ms: u64) {
        if self.attempts.iter().all(|attempt| attempt.peer != peer) {
            self.attempts.push(Attempt::new(peer, config, now_ms));
        }
    }

    /// Wants no link to this peer any more.
    pub fn forget(&mut self, peer: PeerId) {
        self.attempts.retain(|attempt| attempt.peer != peer);
    }

    /// Listens to everyone and goes on with every attempt.
    pub fn step(&mut self, rail: &mut Rail<'_>, scratch: &mut [u8], outcome: &mut Vec<Outcome>) {
        self.answer(rail, scratch);
        self.listen(rail, scratch, outcome);
        self.attempt(rail, scratch, outcome);
    }

    /// Listens to those who have been answered.
    fn listen(&mut self, rail: &mut Rail<'_>, scratch: &mut [u8], outcome: &mut Vec<Outcome>) {
        for at in (0..self.strangers.len()).rev() {
            let stranger = &self.strangers[at];
            if let Some(terms) = stranger.listen(rail.config, scratch, rail.strays) {
                let stranger = self.strangers.swap_remove(at);
                self.forget(stranger.claims());
                outcome.push(Outcome::Open(stranger.into_opened(terms)));
            } else if rail.now_ms >= stranger.since_ms + rail.config.bound.as_millis() as u64 {
                self.strangers.swap_remove(at);
            }
        }
    }

    /// Goes on with every attempt.
    fn attempt(&mut self, rail: &mut Rail<'_>, scratch: &mut [u8], outcome: &mut Vec<Outcome>) {
        for at in (0..self.attempts.len()).rev() {
            let peer = self.attempts[at].peer;
            let known = rail.peers.known(peer);
            let rival = self.strangers.iter().any(|stranger| stranger.claims() == peer);
            let Rail { config, watch, now_ms, .. } = *rail;
            let around = Around { config, watch, known, rival, now_ms };
            let result = match self.attempts[at].step(&around, scratch, rail.strays) {
                Step::On => continue,
                Step::Open(opened) => Outcome::Open(opened),
                Step::Failed(why) => Outcome::Failed(peer, why),
            };
            self.attempts.swap_remove(at);
            self.strangers.retain(|stranger| stranger.claims() != peer);
            outcome.push(result);
        }
    }

    /// Reads the socket on which peers say hello.
    fn answer(&mut self, rail: &mut Rail<'_>, scratch: &mut [u8]) {
        for _ in 0..AT_ONCE {
            let (got, from) = match net::recvfrom(&self.listener, &mut *scratch, RecvFlags::empty()) {
                Ok((_, got, Some(from))) => (got, from),
                Ok((_, _, None)) | Err(Errno::INTR) => continue,
                Err(_) => return,
            };
            let Ok(from) = SocketAddr::try_from(from) else { continue };
            match greeting::decode(&scratch[..got], &rail.config.secret) {
                Heard::Message(Control::Hello(hello), terms) => {
                    let terms = Terms { datagram: terms.datagram.min(got as u32), ..terms };
                    self.hello(hello, terms, from, rail);
                }
                Heard::OtherVersion(theirs) => {
                    let text = format!(
                        "this side speaks version {VERSION} of the format, the other side version {theirs} \
                         (start one release everywhere)"
                    );
                    self.refuse(RefusalCode::Version, &text, from, rail);
                }
                // The answer of a link that is open, or was, from a peer that does not know.
                Heard::Message(..) => {}
                // For a link that is not open yet, or not any more.
                Heard::Stranger if rail.peers.is_one_at(from) => rail.strays.count(Stray::Untimely),
                Heard::Stranger => rail.strays.count(Stray::Stranger),
            }
        }
    }

    fn hello(&mut self, hello: Hello, terms: Terms, from: SocketAddr, rail: &mut Rail<'_>) {
        if let Some(stranger) = self.strangers.iter().find(|stranger| stranger.has_said(&hello)) {
            return stranger.answer(terms, rail.config);
        }
        if let Some(text) = objection(&hello, rail) {
            return self.refuse(RefusalCode::Rank, &text, from, rail);
        }
        if rail.config.rank.0 < hello.from && self.has_precedence(PeerId(hello.from), rail) {
            return;
        }
        // Whoever says another hello has given up the one before.
        self.strangers.retain(|stranger| stranger.claims().0 != hello.from);
        if self.strangers.len() >= STRANGERS {
            self.strangers.remove(0);
        }
        match Stranger::welcome(rail.config, self.port, from, (hello, terms), rail.now_ms) {
            Ok(stranger) if rail.watch.add(stranger.socket(), Token::Opening, false).is_ok() => {
                self.strangers.push(stranger);
            }
            Ok(_) => {}
            Err(e) => log::warn!("rail {}: no socket for peer {}: {e}", rail.config.name(), hello.from),
        }
    }

    /// Whether this side opens a link to a peer, or has opened one of which the peer may not know yet.
    fn has_precedence(&self, peer: PeerId, rail: &Rail<'_>) -> bool {
        self.attempts.iter().any(|attempt| attempt.peer == peer)
            || rail.peers.link(peer).is_some_and(Link::is_unproved)
    }

    fn refuse(&mut self, code: RefusalCode, text: &str, to: SocketAddr, rail: &Rail<'_>) {
        if self.refusals.is_due(rail.now_ms) {
            log::warn!("rail {}: refused {to}: {text}", rail.config.name());
        }
        let terms = Terms { datagram: 0, buffer: 0 };
        let bytes = greeting::encode(&Control::Refuse(Refusal { code, text }), terms, &rail.config.secret);
        let _ = net::sendto(&self.listener, &bytes, SendFlags::NOSIGNAL, &to);
    }
}

/// Why a hello is refused.
fn objection(hello: &Hello, rail: &Rail<'_>) -> Option<String> {
    let me = rail.config.rank.0;
    if hello.to != me || hello.from == me {
        return Some(format!("rank {me} was reached, not rank {} (is its address right?)", hello.to));
    }
    let link = rail.peers.link(PeerId(hello.from)).filter(|link| link.remote != hello.rail)?;
    Some(format!("rail {} of rank {me} is linked to rail {} already", rail.config.rail, link.remote))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Interface;
    use crate::tcp::address::Address;

    /// One of two ranks whose links are to open, taken step by step.
    struct Side {
        config: UdpConfig,
        watch: Watch,
        peers: Peers,
        strays: Strays,
        opening: Opening,
        scratch: Vec<u8>,
        outcome: Vec<Outcome>,
    }

    impl Side {
        fn new(rank: u32) -> Side {
            let config = UdpConfig::new(PeerId(rank), 0, Interface::loopback(), [5; 32]);
            let (listener, port) = super::super::socket::listen("test", &config).expect("a socket");
            Side {
                watch: Watch::new().expect("an epoll"),
                peers: Peers::default(),
                strays: Strays::default(),
                opening: Opening::new(listener, port),
                scratch: vec![0; 1 << 17],
                outcome: Vec::new(),
                config,
            }
        }

        fn with(&mut self, what: impl FnOnce(&mut Opening, &mut Rail<'_>, &mut [u8], &mut Vec<Outcome>)) {
            let Side { config, watch, peers, strays, opening, scratch, outcome } = self;
            what(opening, &mut Rail { config, watch, peers, strays, now_ms: 1000 }, scratch, outcome);
        }

        fn step(&mut self) {
            self.with(|opening, rail, scratch, outcome| opening.step(rail, scratch, outcome));
        }

        fn answer(&mut self) {
            self.with(|opening, rail, scratch, _| opening.answer(rail, scratch));
        }

        fn listen(&mut self) {
            self.with(|opening, rail, scratch, outcome| opening.listen(rail, scratch, outcome));
        }

        fn attempt(&mut self) {
            self.with(|opening, rail, scratch, outcome| opening.attempt(rail, scratch, outcome));
        }

        fn connect(&mut self, to: &Side) {
            let index = self.peers.find_or_add(to.config.rank);
            let at = SocketAddr::new(to.config.address(), to.opening.port);
            self.peers[index].learn(0, Address { socket: at, prefix: 8 }, 0);
            self.with(|opening, rail, _, _| opening.connect(to.config.rank, rail.config, rail.now_ms));
        }

        /// Whether this side has opened its link by its own attempt; none: it has none.
        fn has_connected(&self) -> Option<bool> {
            match &self.outcome[..] {
                [] => None,
                [Outcome::Open(opened)] => Some(!opened.proof.is_empty()),
                more => panic!("one link at most: {more:?}"),
            }
        }
    }

    /// Rank 0 has answered rank 1 and wants a link itself before that has come to something. Then both take
    /// a step at the same time: neither hears a proof before it looks for a welcome.
    #[test]
    fn who_has_answered_a_hello_opens_no_link_of_its_own() {
        let (mut a, mut b) = (Side::new(0), Side::new(1));
        b.connect(&a);
        b.step();
        a.answer();
        a.connect(&b);
        a.step();
        b.answer();
        [&mut a, &mut b].into_iter().for_each(Side::listen);
        [&mut a, &mut b].into_iter().for_each(Side::attempt);
        a.step();
        assert_eq!((a.has_connected(), b.has_connected()), (Some(false), Some(true)));
        assert!(a.opening.is_idle() && b.opening.is_idle());
    }

    /// The other way round, the lower rank has said hello before it hears of the other.
    #[test]
    fn of_two_hellos_the_lower_rank_s_is_the_one() {
        let (mut a, mut b) = (Side::new(0), Side::new(1));
        b.connect(&a);
        a.connect(&b);
        b.step();
        a.step();
        b.answer();
        a.step();
        b.step();
        assert_eq!((a.has_connected(), b.has_connected()), (Some(true), Some(false)));
        a.step();
        assert!(b.opening.is_idle());
    }
}
