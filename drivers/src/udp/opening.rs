//! Links that are not open yet: our attempts, who knocks, and which of two stays.
//!
//! When both sides say hello at once the link of the lower rank stays: the lower one does not answer while
//! its own attempt is under way, the higher one answers and forgets its own as soon as the other has proved
//! itself.

use super::config::UdpConfig;
use super::connect::{Around, Attempt, Step};
use super::greeting::{self, Heard, Terms};
use super::peers::Peers;
use super::strangers::Stranger;
use super::strays::{Stray, Strays};
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
        Opening { listener, port, attempts: Vec::new(), strangers: Vec::new() }
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
        for at in (0..self.attempts.len()).rev() {
            let peer = self.attempts[at].peer;
            let known = rail.peers.known(peer);
            let around = Around { config: rail.config, watch: rail.watch, known, now_ms: rail.now_ms };
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
        let me = rail.config.rank.0;
        if me < hello.from && self.attempts.iter().any(|attempt| attempt.peer.0 == hello.from) {
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

    fn refuse(&self, code: RefusalCode, text: &str, to: SocketAddr, rail: &Rail<'_>) {
        log::warn!("rail {}: refused {to}: {text}", rail.config.name());
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
