//! Links that are not open yet: our attempts and the strangers at the door, and which of two stays.
//!
//! When both sides connect at once the connection of the lower rank stays. The lower one refuses the
//! other's hello (crossed) while its own attempt is under way. The higher one holds back its proof while
//! the lower one's connection is being opened, so that no two connections are ever both proved.

use super::config::TcpConfig;
use super::connect::{Around, Attempt, Step};
use super::leave::Leaving;
use super::peers::Peers;
use super::socket::{self, Exit};
use super::strangers::{PATIENCE_MS, Progress, Stranger};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::{Hello, RefusalCode};
use rustix::fd::{AsFd, OwnedFd};

/// Strangers at once; others wait in the kernel.
const STRANGERS: usize = 64;

/// Everything about links that are not open yet.
#[derive(Debug)]
pub struct Opening {
    listener: OwnedFd,
    exit: Exit,
    attempts: Vec<Attempt>,
    strangers: Vec<Stranger>,
    leaving: Leaving,
}

/// What became of an attempt or a stranger.
#[derive(Debug)]
pub enum Outcome {
    /// A link is open, to this rail of the peer.
    Open(PeerId, u8, OwnedFd),
    /// A link that this side wanted cannot be opened.
    Failed(PeerId, String),
}

/// The parts of the rail that opening looks at.
pub struct Rail<'a> {
    /// Its configuration.
    pub config: &'a TcpConfig,
    /// Its sockets.
    pub watch: &'a Watch,
    /// Its peers and their links.
    pub peers: &'a Peers,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Opening {
    /// Behind this listening socket.
    pub fn new(listener: OwnedFd, config: &TcpConfig) -> Self {
        let (exit, leaving) = (Exit::new(config), Leaving::default());
        Opening { listener, exit, attempts: Vec::new(), strangers: Vec::new(), leaving }
    }

    /// Whether this side wants a link, so that looking after it often shortens the wait.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        !self.attempts.is_empty()
    }

    /// Whether there is nothing to do but for who knocks next.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.strangers.is_empty() && self.leaving.is_empty()
    }

    /// Begins to open a link, unless that has begun.
    pub fn connect(&mut self, peer: PeerId, config: &TcpConfig, now_ms: u64) {
        if self.attempts.iter().all(|attempt| attempt.peer != peer) {
            self.attempts.push(Attempt::new(peer, config, now_ms));
        }
    }

    /// Wants no link to this peer any more.
    pub fn forget(&mut self, peer: PeerId) {
        self.attempts.retain(|attempt| attempt.peer != peer);
    }

    /// Leaves a link such that what was sent still arrives.
    pub fn leave(&mut self, fd: OwnedFd, now_ms: u64) {
        self.leaving.add(fd, now_ms);
    }

    /// Reads away what has come on links that were left, since the rail ends.
    pub fn drain(&mut self, scratch: &mut [u8]) {
        self.leaving.step(scratch, 0);
    }

    /// Lets in who waits, listens to everyone, goes on with every attempt.
    pub fn step(&mut self, rail: &Rail<'_>, scratch: &mut [u8], outcome: &mut Vec<Outcome>) {
        self.leaving.step(scratch, rail.now_ms);
        self.accept(rail);
        for at in (0..self.strangers.len()).rev() {
            self.hear(at, rail, outcome);
        }
        for at in (0..self.attempts.len()).rev() {
            let peer = self.attempts[at].peer;
            let rival = self.strangers.iter().any(|stranger| stranger.claims() == Some(peer));
            let known = rail.peers.known(peer);
            let (config, exit, watch, now_ms) = (rail.config, &self.exit, rail.watch, rail.now_ms);
            let around = Around { config, exit, watch, known, rival, now_ms };
            let result = match self.attempts[at].step(&around) {
                Step::On => continue,
                Step::Open(fd, remote) => Outcome::Open(peer, remote, fd),
                Step::Failed(why) => Outcome::Failed(peer, why),
            };
            self.attempts.swap_remove(at);
            outcome.push(result);
        }
    }

    fn accept(&mut self, rail: &Rail<'_>) {
        loop {
            if self.strangers.len() >= STRANGERS && !self.evict(rail) {
                return;
            }
            let Some((fd, from)) = socket::accept(&self.listener, rail.config, &self.exit) else { return };
            if rail.watch.add(&fd, Token::Opening, false).is_ok() {
                self.strangers.push(Stranger::new(fd, from, rail.now_ms));
            }
        }
    }

    /// Makes room by dropping the oldest that has not even said hello for a while.
    fn evict(&mut self, rail: &Rail<'_>) -> bool {
        let old = |s: &Stranger| s.claims().is_none() && rail.now_ms >= s.since_ms + PATIENCE_MS;
        match self.strangers.iter().position(old) {
            Some(at) => {
                let stranger = self.strangers.remove(at);
                log::warn!("rail {}: dropped silent {} to make room", rail.config.name(), stranger.from);
                true
            }
            None => false,
        }
    }

    fn hear(&mut self, at: usize, rail: &Rail<'_>, outcome: &mut Vec<Outcome>) {
        let config = rail.config;
        let from = self.strangers[at].from;
        match self.strangers[at].listen(&config.secret) {
            Progress::On => {
                let bound_ms = config.bound.as_millis() as u64;
                if rail.now_ms >= self.strangers[at].since_ms + bound_ms {
                    let bound = config.bound;
                    log::warn!(
                        "rail {}: {from} did not finish its handshake within {bound:?}",
                        rail.config.name()
                    );
                    self.strangers.swap_remove(at);
                }
            }
            Progress::Hello(hello) => match self.objection(&hello, rail) {
                Some((code, text)) => self.refuse(at, code, &text, rail),
                None if self.strangers[at].welcome(hello, config.rail, &config.secret) => {}
                None => drop(self.strangers.swap_remove(at)),
            },
            Progress::Proved(peer, remote) => {
                self.forget(peer);
                let socket = self.strangers.swap_remove(at).into_socket();
                outcome.push(Outcome::Open(peer, remote, socket));
            }
            Progress::Refuse(code, text) => self.refuse(at, code, &text, rail),
            Progress::Gone(why) => {
                let stranger = self.strangers.swap_remove(at);
                // One that gives way to another connection of the same peer is no news.
                match stranger.claims() {
                    Some(peer) if rail.peers.link(peer).is_some() => {}
                    Some(peer) => {
                        log::info!(
                            "rail {}: no link from peer {} at {from}: {why}",
                            rail.config.name(),
                            peer.0
                        )
                    }
                    None => log::info!("rail {}: stranger at {from}: {why}", rail.config.name()),
                }
            }
        }
    }

    fn refuse(&mut self, at: usize, code: RefusalCode, text: &str, rail: &Rail<'_>) {
        let stranger = self.strangers.swap_remove(at);
        if code != RefusalCode::Crossed {
            log::warn!("rail {}: refused {}: {text}", rail.config.name(), stranger.from);
        }
        self.leaving.add(stranger.refuse(code, text), rail.now_ms);
    }

    /// Why a hello is refused.
    fn objection(&self, hello: &Hello, rail: &Rail<'_>) -> Option<(RefusalCode, String)> {
        let me = rail.config.rank.0;
        let peer = PeerId(hello.from);
        if hello.to != me || hello.from == me {
            let text = format!("rank {me} was reached, not rank {} (is its address right?)", hello.to);
            return Some((RefusalCode::Rank, text));
        }
        let taken = |remote: u8| {
            let text = format!("rail {} of rank {me} is linked to rail {remote} already", rail.config.rail);
            (RefusalCode::Rank, text)
        };
        if let Some(link) = rail.peers.link(peer).filter(|link| link.remote != hello.rail) {
            return Some(taken(link.remote));
        }
        let attempt = self.attempts.iter().find(|attempt| attempt.peer == peer)?;
        match attempt.under_way()? {
            remote if remote != hello.rail => Some(taken(remote)),
            _ if me < hello.from => Some((RefusalCode::Crossed, "both sides connected at once".into())),
            _ => None,
        }
    }

    /// The listening socket.
    pub fn listener(&self) -> impl AsFd + '_ {
        &self.listener
    }
}
