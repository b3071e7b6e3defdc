//! Links that are not open yet: our attempts, who knocks, and which of two stays.
//!
//! The greetings and their rules are those of the UDP driver, on one socket for all: hellos of different
//! lengths until one is answered by a welcome of the same length; when both sides say hello at once the link
//! of the lower rank stays; who has answered a hello says none until that has come to something.

use super::config::PacketConfig;
use super::frame::{Place, Way, head};
use super::sys::Socket;
use crate::handshake::{self, Ends};
use crate::udp::greeting::{self, Heard, Terms};
use crate::udp::strays::Refusals;
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, Refusal, RefusalCode, VERSION};
use rustix::net::{self, SendFlags};

/// Time between two hellos, in milliseconds.
pub const RETRY_MS: u64 = 25;
/// Hellos of one length before a shorter one is tried.
const TRIES: u32 = 4;
/// What a frame carries on most networks: jumbo frames, Ethernet, and what a tunnel leaves of it.
const LENGTHS: [usize; 4] = [8_996, 1_496, 1_396, 528];
/// Those who have said hello and not proved themselves, at once; the oldest makes room.
const STRANGERS: usize = 256;

/// Everything about links that are not open yet.
#[derive(Debug, Default)]
pub struct Opening {
    attempts: Vec<Attempt>,
    strangers: Vec<Stranger>,
    refusals: Refusals,
}

/// A link that this side opens.
#[derive(Debug)]
struct Attempt {
    peer: PeerId,
    until_ms: u64,
    next_ms: u64,
    tries: u32,
    /// Which of the peer's places.
    at: usize,
    len: usize,
    hello: Hello,
}

/// Somebody who has said hello.
#[derive(Debug)]
struct Stranger {
    place: Place,
    ends: Ends,
    since_ms: u64,
}

/// A link that is open.
#[derive(Debug)]
pub struct Opened {
    /// To whom.
    pub peer: PeerId,
    /// To which rail of it.
    pub remote: u8,
    /// Where it is.
    pub place: Place,
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
    pub config: &'a PacketConfig,
    /// Its socket.
    pub socket: &'a Socket,
    /// How frames name it.
    pub ours: Way,
    /// Bytes that it buffers for a link.
    pub buffer: u32,
    /// Where peers are.
    pub known: &'a dyn Fn(PeerId) -> Vec<Place>,
    /// The peer's rail to which there is a link.
    pub linked: &'a dyn Fn(PeerId) -> Option<u8>,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Rail<'_> {
    fn say(&self, to: Way, bytes: &[u8]) {
        // What the kernel does not take is lost, and said again.
        let _ = net::send(self.socket, &[&head(self.ours, to)[..], bytes].concat(), SendFlags::empty());
    }

    fn terms(&self, datagram: usize) -> Terms {
        Terms { datagram: datagram as u32, buffer: self.buffer }
    }

    /// Longest datagram that its interface takes.
    fn longest(&self) -> usize {
        self.socket.data_max() - super::frame::PORTS
    }
}

impl Opening {
    /// Whether there is nothing to do but for who knocks next.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.strangers.is_empty()
    }

    /// Whether this side wants a link, so that looking after it often shortens the wait.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        !self.attempts.is_empty()
    }

    /// Begins to open a link, unless that has begun.
    pub fn connect(&mut self, peer: PeerId, rail: &Rail<'_>) {
        if self.attempts.iter().any(|attempt| attempt.peer == peer) {
            return;
        }
        let (from, to, number) = (rail.config.rank.0, peer.0, rail.config.rail);
        let hello = Hello { from, to, rail: number, nonce: handshake::nonce() };
        let until_ms = rail.now_ms + rail.config.bound.as_millis() as u64;
        let len = rail.longest();
        self.attempts.push(Attempt { peer, until_ms, next_ms: 0, tries: 0, at: 0, len, hello });
    }

    /// Wants no link to this peer any more.
    pub fn forget(&mut self, peer: PeerId) {
        self.attempts.retain(|attempt| attempt.peer != peer);
    }

    /// Goes on with every attempt.
    pub fn step(&mut self, rail: &Rail<'_>, outcome: &mut Vec<Outcome>) {
        let bound_ms = rail.config.bound.as_millis() as u64;
        self.strangers.retain(|stranger| rail.now_ms < stranger.since_ms + bound_ms);
        let strangers = &self.strangers;
        self.attempts.retain_mut(|attempt| {
            let rival = strangers.iter().any(|stranger| stranger.ends.hello.from == attempt.peer.0);
            let Some(why) = attempt.step(rail, rival) else { return true };
            outcome.push(Outcome::Failed(attempt.peer, why));
            false
        });
    }

    /// A greeting has come, or something that is none: then false.
    pub fn hear(&mut self, from: Way, bytes: &[u8], rail: &Rail<'_>, outcome: &mut Vec<Outcome>) -> bool {
        match greeting::decode(bytes, &rail.config.secret) {
            Heard::Message(Control::Hello(hello), terms) => self.hello(hello, terms, from, bytes.len(), rail),
            Heard::Message(Control::Welcome(welcome), terms) => {
                let secret = &rail.config.secret;
                let answered = self.attempts.iter().enumerate().find_map(|(at, attempt)| {
                    let place = attempt.place(rail).filter(|place| place.way() == from)?;
                    Some((at, place, Ends::from_welcome(attempt.hello, &welcome, secret)?))
                });
                if let Some((at, place, ends)) = answered {
                    let attempt = self.attempts.swap_remove(at);
                    self.strangers.retain(|stranger| stranger.ends.hello.from != attempt.peer.0);
                    outcome.push(prove(&attempt, place, ends, (terms, bytes.len()), rail));
                }
            }
            Heard::Message(Control::Proof(proof), terms) => {
                let proved = |stranger: &Stranger| {
                    stranger.place.way() == from && stranger.ends.proves(&proof, &rail.config.secret)
                };
                if let Some(at) = self.strangers.iter().position(proved) {
                    let Stranger { place, ends, .. } = self.strangers.swap_remove(at);
                    self.forget(PeerId(ends.hello.from));
                    let datagram = (terms.datagram as usize).clamp(LENGTHS[3], rail.longest());
                    let (peer, remote, buffer) = (PeerId(ends.hello.from), ends.hello.rail, terms.buffer);
                    let proof = Vec::new();
                    let opened = Opened { peer, remote, place, ends, proof, datagram, buffer };
                    outcome.push(Outcome::Open(opened));
                }
            }
            Heard::Message(Control::Refuse(refusal), _) => self.refused(from, refusal.text, rail, outcome),
            Heard::OtherVersion(theirs) => {
                let text = format!(
                    "rank {} speaks version {VERSION} of the format, the other side version {theirs} \
                     (start one release everywhere)",
                    rail.config.rank.0
                );
                self.refuse(RefusalCode::Version, &text, from, rail);
            }
            Heard::Stranger => return false,
        }
        true
    }

    fn refuse(&mut self, code: RefusalCode, text: &str, to: Way, rail: &Rail<'_>) {
        if self.refusals.is_due(rail.now_ms) {
            log::warn!("rail {}: refused port {}: {text}", rail.config.name(), to.port);
        }
        let refusal = Control::Refuse(Refusal { code, text });
        rail.say(to, &greeting::encode(&refusal, rail.terms(0), &rail.config.secret));
    }

    fn refused(&mut self, from: Way, text: &str, rail: &Rail<'_>, outcome: &mut Vec<Outcome>) {
        let is_it = |attempt: &Attempt| attempt.place(rail).is_some_and(|place| place.way() == from);
        if let Some(at) = self.attempts.iter().position(is_it) {
            let attempt = self.attempts.swap_remove(at);
            outcome.push(Outcome::Failed(attempt.peer, format!("refused the link: {text}")));
        }
    }

    fn hello(&mut self, hello: Hello, terms: Terms, from: Way, got: usize, rail: &Rail<'_>) {
        let me = rail.config.rank.0;
        if hello.to != me || hello.from == me {
            let text = format!("rank {me} was reached, not rank {} (is its address right?)", hello.to);
            return self.refuse(RefusalCode::Rank, &text, from, rail);
        }
        let other = (rail.linked)(PeerId(hello.from)).filter(|linked| *linked != hello.rail);
        if let Some(linked) = other {
            let text = format!("rail {} of rank {me} is linked to rail {linked} already", rail.config.rail);
            return self.refuse(RefusalCode::Rank, &text, from, rail);
        }
        // Only who is where the launcher says that its rank is gets an answer.
        let places = (rail.known)(PeerId(hello.from));
        let Some(place) = places.into_iter().find(|place| place.way() == from) else { return };
        if me < hello.from && self.attempts.iter().any(|attempt| attempt.peer.0 == hello.from) {
            return;
        }
        let datagram = (terms.datagram as usize).min(got).min(rail.longest());
        if self.strangers.iter().all(|stranger| stranger.ends.hello != hello) {
            // Whoever says another hello has given up the one before.
            self.strangers.retain(|stranger| stranger.ends.hello.from != hello.from);
            if self.strangers.len() >= STRANGERS {
                self.strangers.remove(0);
            }
            let ends = Ends { hello, rail: rail.config.rail, nonce: handshake::nonce() };
            self.strangers.push(Stranger { place, ends, since_ms: rail.now_ms });
        }
        if let Some(stranger) = self.strangers.iter().find(|stranger| stranger.ends.hello == hello) {
            let welcome = stranger.ends.welcome(&rail.config.secret);
            rail.say(from, &greeting::padded(&welcome, rail.terms(datagram), &rail.config.secret));
        }
    }
}

impl Attempt {
    fn place(&self, rail: &Rail<'_>) -> Option<Place> {
        let known = (rail.known)(self.peer);
        known.get(self.at % known.len().max(1)).copied()
    }

    /// Says hello if it is time to, and not the peer's turn, whose own hello this side has answered; why it
    /// failed.
    fn step(&mut self, rail: &Rail<'_>, rival: bool) -> Option<String> {
        let Some(place) = self.place(rail) else {
            return Some("has no address on the network of this rail".into());
        };
        if rail.now_ms >= self.until_ms {
            return Some(format!(
                "did not answer any frame within {:?} (does {} pass EtherType 0x88B5 to {}, or has it the \
                 secret of another job?)",
                rail.config.bound, rail.config.interface.name, place.address
            ));
        }
        if rival || rail.now_ms < self.next_ms {
            return None;
        }
        self.next_ms = rail.now_ms + RETRY_MS;
        if self.tries == TRIES {
            self.shorten(rail);
        }
        self.tries += 1;
        let (hello, terms) = (Control::Hello(self.hello), rail.terms(self.len));
        let place = self.place(rail)?;
        rail.say(place.way(), &greeting::padded(&hello, terms, &rail.config.secret));
        None
    }

    /// Tries a shorter frame, or after the shortest the next place.
    fn shorten(&mut self, rail: &Rail<'_>) {
        self.tries = 0;
        match LENGTHS.iter().find(|len| **len < self.len) {
            Some(len) => self.len = *len,
            None => {
                self.len = rail.longest();
                self.at += 1;
            }
        }
    }
}

/// The peer has shown that it knows the secret, by an answer of `len` bytes.
fn prove(
    attempt: &Attempt,
    place: Place,
    ends: Ends,
    (theirs, len): (Terms, usize),
    rail: &Rail<'_>,
) -> Outcome {
    let datagram = len.min(theirs.datagram as usize).min(rail.longest());
    if datagram < LENGTHS[3] {
        let why = "answered with a frame that is too short to carry anything".into();
        return Outcome::Failed(attempt.peer, why);
    }
    let secret = &rail.config.secret;
    let proof = greeting::encode(&ends.proof(secret), rail.terms(datagram), secret);
    rail.say(place.way(), &proof);
    let (remote, buffer) = (ends.rail, theirs.buffer);
    Outcome::Open(Opened { peer: attempt.peer, remote, place, ends, proof, datagram, buffer })
}
