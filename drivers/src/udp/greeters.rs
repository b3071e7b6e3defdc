//! Greetings under way: what the drivers that have datagrams share of carrying out what
//! [`Opening`](crate::opening::Opening) wants.
//!
//! The longest datagram that the interface takes is tried first, then shorter ones: an answer is as long as
//! the hello that it answers, so what comes back has passed in both directions. Answers come in the order of
//! the hellos, also from a peer that was busy and finds several of them at once.

use super::greeting::{self, Terms};
use crate::connections::Setback;
use crate::handshake;
use crate::opening::{Action, Around, Id, Opened, Opening, Origin, Said};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Refusal};
use rustix::io::Errno;

/// What a driver does by itself.
pub trait Network: Around {
    /// A way to somebody: a socket, or what stands in a frame.
    type Way;
    /// A way to the address of a peer at that place in the list, and the longest datagram that the interface
    /// takes on it.
    fn reach(&mut self, peer: PeerId, address: usize) -> Result<(Self::Way, usize), Setback>;
    /// Gives a stranger that gets an answer what it needs besides its way.
    fn welcome(&mut self, way: &mut Self::Way) -> Result<(), Errno>;
    /// Sends a greeting.
    fn send(&mut self, way: &Self::Way, bytes: &[u8]) -> Result<(), Errno>;
    /// Bytes that this side buffers for a link on this way.
    fn buffer(&self, way: &Self::Way) -> u32;
    /// What an error on this way means.
    fn setback(&self, way: &Self::Way, e: Errno) -> Setback;
}

/// What became of an attempt or a stranger.
#[derive(Debug)]
pub enum Outcome<W> {
    /// A link is open.
    Open(Greeted<W>),
    /// A link that this side wanted cannot be opened.
    Failed(PeerId, String),
}

/// A link that is open.
#[derive(Debug)]
pub struct Greeted<W> {
    /// To whom, and what both sides know.
    pub opened: Opened,
    /// The way there.
    pub way: W,
    /// What the connecting side says until it hears something; empty at the other one.
    pub proof: Vec<u8>,
    /// Bytes that the peer buffers.
    pub buffer: u32,
}

/// The greetings.
#[derive(Debug)]
pub struct Greeters<W> {
    /// All of them.
    pub list: Vec<Greeter<W>>,
}

/// A conversation by greetings.
#[derive(Debug)]
pub struct Greeter<W> {
    id: Id,
    /// The way to the other side.
    pub way: W,
    /// Whether this side has begun.
    pub is_attempt: bool,
    /// The last message of this side.
    said: Vec<u8>,
    /// Bytes that the other side buffers.
    buffer: u32,
}

/// A greeting that has come.
pub struct Heard<'a> {
    /// Its message.
    pub said: Said<'a>,
    /// The terms of its sender.
    pub terms: Terms,
    /// Its length in bytes, but no longer than this side can answer.
    pub len: usize,
}

impl<'a> Heard<'a> {
    /// Decodes `bytes`, if their sender knows the secret; this side believes no datagram longer than
    /// `longest` to pass.
    pub fn of(bytes: &'a [u8], secret: &[u8; 32], longest: usize) -> Option<Heard<'a>> {
        let (said, terms) = match greeting::decode(bytes, secret) {
            greeting::Heard::Message(message, terms) => (Said::Message(message), terms),
            greeting::Heard::OtherVersion(theirs) => {
                (Said::OtherVersion(theirs), Terms { datagram: 0, buffer: 0 })
            }
            greeting::Heard::Stranger => return None,
        };
        let terms = Terms { datagram: terms.datagram.min(longest as u32), ..terms };
        Some(Heard { said, terms, len: bytes.len() })
    }
}

impl<W> Default for Greeters<W> {
    fn default() -> Self {
        Greeters { list: Vec::new() }
    }
}

/// One step, and the parts of the rail that it works with.
pub struct Step<'a, N: Network> {
    /// The conversations.
    pub greeters: &'a mut Greeters<N::Way>,
    /// The machine.
    pub opening: &'a mut Opening,
    /// The driver's part.
    pub network: N,
    /// Milliseconds.
    pub now_ms: u64,
    /// The results.
    pub outcome: &'a mut Vec<Outcome<N::Way>>,
}

impl<N: Network> Step<'_, N> {
    /// A hello has come, or a message of another version, outside of all conversations as far as the driver
    /// can tell.
    pub fn knock(&mut self, way: N::Way, origin: Origin, heard: Heard<'_>) {
        let id = self.opening.accepted(origin, self.now_ms);
        self.add(id, way, false);
        self.hear(self.greeters.list.len() - 1, heard);
    }

    /// A greeting has come in the conversation at this place in the list. [`Step::act`] carries out the
    /// consequences.
    pub fn hear(&mut self, at: usize, Heard { said, terms, len }: Heard<'_>) {
        let told = terms.datagram as usize;
        // A proof is as short as it is, and tells the length that has passed before.
        let len = if matches!(said, Said::Message(Control::Proof(_))) { told } else { told.min(len) };
        let greeter = &mut self.greeters.list[at];
        greeter.buffer = terms.buffer;
        self.opening.heard(greeter.id, said, len, (self.now_ms, handshake::nonce()), &self.network);
    }

    /// The way of the conversation at this place in the list does not work.
    pub fn broke(&mut self, at: usize, e: Errno) {
        // A stranger may come back by another way; what the system says of one may come from anybody.
        if self.greeters.list[at].is_attempt {
            let Greeter { id, way, .. } = self.greeters.list.swap_remove(at);
            let setback = self.network.setback(&way, e);
            self.failed(id, setback);
        }
    }

    /// Goes on with every attempt.
    pub fn go_on(&mut self) {
        self.opening.step(self.now_ms, &self.network);
        self.act();
    }

    /// Does what the machine wants.
    pub fn act(&mut self) {
        while let Some(action) = self.opening.next_action() {
            match action {
                Action::Reach { id, peer, address } => self.reach(id, peer, address),
                Action::Say { id, message, len } => self.say(id, &message, len),
                Action::Refuse { id, code, text } => {
                    if let Some(Greeter { way, .. }) = self.take(id) {
                        let refusal = Control::Refuse(Refusal { code, text: &text });
                        let terms = Terms { datagram: 0, buffer: 0 };
                        let bytes = greeting::encode(&refusal, terms, &self.opening.local().secret);
                        let _ = self.network.send(&way, &bytes);
                    }
                }
                Action::Finish { id, is_attempt } => {
                    if let Some(Greeter { way, said, buffer, .. }) = self.take(id)
                        && let Some(opened) = self.opening.finished(id)
                    {
                        let proof = if is_attempt { said } else { Vec::new() };
                        self.outcome.push(Outcome::Open(Greeted { opened, way, proof, buffer }));
                    }
                }
                Action::Drop { id } => drop(self.take(id)),
                Action::Failed { peer, why } => self.outcome.push(Outcome::Failed(peer, why)),
            }
        }
    }

    fn add(&mut self, id: Id, way: N::Way, is_attempt: bool) {
        self.greeters.list.push(Greeter { id, way, is_attempt, said: Vec::new(), buffer: 0 });
    }

    fn find(&self, id: Id) -> Option<usize> {
        self.greeters.list.iter().position(|greeter| greeter.id == id)
    }

    fn take(&mut self, id: Id) -> Option<Greeter<N::Way>> {
        self.find(id).map(|at| self.greeters.list.swap_remove(at))
    }

    fn failed(&mut self, id: Id, Setback { trouble, why }: Setback) {
        self.opening.failed(id, trouble, why, self.now_ms, &self.network);
    }

    fn reach(&mut self, id: Id, peer: PeerId, address: usize) {
        match self.network.reach(peer, address) {
            Ok((way, longest)) => {
                self.add(id, way, true);
                self.opening.reached(id, longest, self.now_ms, handshake::nonce());
            }
            Err(setback) => self.failed(id, setback),
        }
    }

    fn say(&mut self, id: Id, message: &Control<'_>, len: usize) {
        let Some(at) = self.find(id) else { return };
        let greeter = &mut self.greeters.list[at];
        if matches!(message, Control::Welcome(_))
            && let Err(e) = self.network.welcome(&mut greeter.way)
        {
            self.greeters.list.swap_remove(at);
            return self.failed(id, Setback::hopeless(e.to_string()));
        }
        let terms = Terms { datagram: len as u32, buffer: self.network.buffer(&greeter.way) };
        let encode = if matches!(message, Control::Proof(_)) { greeting::encode } else { greeting::padded };
        greeter.said = encode(message, terms, &self.opening.local().secret);
        match self.network.send(&greeter.way, &greeter.said) {
            // The kernel knows a shorter path already.
            Err(Errno::MSGSIZE) => self.opening.too_long(id, self.now_ms),
            // A lost greeting is sent again.
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) | Ok(()) => {}
            Err(e) => self.broke(at, e),
        }
    }
}
