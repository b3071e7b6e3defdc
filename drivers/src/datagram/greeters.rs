//! Handshakes over datagrams: carries out the actions of [`Opening`](crate::opening::Opening) for all
//! drivers that use datagrams.
//!
//! The hello is sent first in the longest datagram that the interface takes, then in shorter ones: an
//! answer is as long as its hello, so a length that comes back has passed in both directions. Answers come
//! in the order of the hellos, also from a peer that was busy and finds several of them at once.

use super::greeting::{self, Terms};
use crate::connections::Failure;
use crate::handshake::Fresh;
use crate::opening::{Action, Content, Facts, Id, Opened, Opening, Origin};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Refusal};
use rustix::io::Errno;

/// The operations that differ between drivers.
pub trait Network: Facts {
    /// The route to a peer: a socket, or the addresses in a frame.
    type Way;
    /// Creates the route to the address with index `address` in the peer's list, and returns the longest
    /// datagram that the interface takes on it.
    fn reach(&mut self, peer: PeerId, address: usize) -> Result<(Self::Way, usize), Failure>;
    /// Completes the route to an accepted sender before it gets its first answer.
    fn welcome(&mut self, way: &mut Self::Way) -> Result<(), Errno>;
    /// Sends a handshake message.
    fn send(&mut self, way: &Self::Way, bytes: &[u8]) -> Result<(), Errno>;
    /// Bytes that this side buffers for a link on this route.
    fn buffer(&self, way: &Self::Way) -> u32;
    /// Translates an error on this route.
    fn failure(&self, way: &Self::Way, e: Errno) -> Failure;
}

/// Result of an attempt or of an accepted hello.
#[derive(Debug)]
pub enum Outcome<W> {
    /// A link is open.
    Open(Box<Greeted<W>>),
    /// A link that this side wanted cannot be opened.
    Failed(PeerId, String),
}

/// An open link.
#[derive(Debug)]
pub struct Greeted<W> {
    /// The peer, and the data that both sides share.
    pub opened: Opened,
    /// The route to the peer.
    pub way: W,
    /// The message that the connecting side repeats until it receives an answer; empty at the other side.
    pub proof: Vec<u8>,
    /// Bytes that the peer buffers.
    pub buffer: u32,
}

/// All handshakes in progress.
#[derive(Debug)]
pub struct Greeters<W> {
    pub list: Vec<Greeter<W>>,
}

/// A handshake over datagrams.
#[derive(Debug)]
pub struct Greeter<W> {
    id: Id,
    /// The route to the other side.
    pub way: W,
    /// Whether this side has started the handshake.
    pub is_attempt: bool,
    /// The last message of this side, for retransmission.
    last_message: Vec<u8>,
    /// Bytes that the other side buffers.
    buffer: u32,
}

/// A received handshake message.
pub struct Greeting<'a> {
    /// The message.
    pub content: Content<'a>,
    /// The terms of its sender.
    pub terms: Terms,
    /// Its length in bytes, limited to the longest datagram of this side.
    pub len: usize,
}

impl<'a> Greeting<'a> {
    /// Decodes `bytes`, if their sender knows the secret; `longest` is the longest datagram that this side
    /// expects to pass.
    pub fn of(bytes: &'a [u8], secret: &[u8; 32], longest: usize) -> Option<Greeting<'a>> {
        let (content, terms) = match greeting::decode(bytes, secret) {
            greeting::Decoded::Message(message, terms) => (Content::Message(message), terms),
            greeting::Decoded::OtherVersion(theirs) => {
                (Content::OtherVersion(theirs), Terms { datagram: 0, buffer: 0 })
            }
            greeting::Decoded::Stranger => return None,
        };
        let terms = Terms { datagram: terms.datagram.min(longest as u32), ..terms };
        Some(Greeting { content, terms, len: bytes.len() })
    }
}

impl<W> Default for Greeters<W> {
    fn default() -> Self {
        Greeters { list: Vec::new() }
    }
}

/// One step of the state machine, with the parts of the rail that it uses.
pub struct Step<'a, N: Network> {
    /// The handshakes.
    pub greeters: &'a mut Greeters<N::Way>,
    /// The state machine that opens links.
    pub opening: &'a mut Opening,
    /// The driver's operations.
    pub network: N,
    /// Milliseconds.
    pub now_ms: u64,
    /// Receives the results.
    pub outcome: &'a mut Vec<Outcome<N::Way>>,
}

impl<N: Network> Step<'_, N> {
    /// Handles a hello, or a message of another version, that belongs to no handshake in progress as far as
    /// the driver can tell.
    pub fn accept_hello(&mut self, way: N::Way, origin: Origin, greeting: Greeting<'_>) {
        let id = self.opening.accepted(origin, self.now_ms);
        self.add(id, way, false);
        self.handle_message(self.greeters.list.len() - 1, greeting);
    }

    /// Handles a message of the handshake at this index of the list. [`Step::act`] carries out the
    /// resulting actions.
    pub fn handle_message(&mut self, at: usize, Greeting { content, terms, len }: Greeting<'_>) {
        let offered = terms.datagram as usize;
        // A proof is short, and carries the length that has passed before.
        let len =
            if matches!(content, Content::Message(Control::Proof(_))) { offered } else { offered.min(len) };
        let greeter = &mut self.greeters.list[at];
        greeter.buffer = terms.buffer;
        let id = greeter.id;
        match Fresh::new() {
            Ok(fresh) => self.opening.handle_message(id, content, len, (self.now_ms, fresh), &self.network),
            Err(why) => self.give_up(id, why),
        }
    }

    /// Handles an error on the route of the handshake at this index.
    pub fn route_failed(&mut self, at: usize, e: Errno) {
        // Only attempts fail: an accepted peer may come back by another route, and the error may have been
        // caused by a forged packet.
        if self.greeters.list[at].is_attempt {
            let Greeter { id, way, .. } = self.greeters.list.swap_remove(at);
            let failure = self.network.failure(&way, e);
            self.failed(id, failure);
        }
    }

    /// Continues every attempt.
    pub fn advance(&mut self) {
        self.opening.step(self.now_ms, &self.network);
        self.act();
    }

    /// Carries out the pending actions of the state machine.
    pub fn act(&mut self) {
        while let Some(action) = self.opening.next_action() {
            match action {
                Action::Reach { id, peer, address } => self.reach(id, peer, address),
                Action::Send { id, message, len } => self.send(id, &message, len),
                Action::Refuse { id, code, text } => {
                    if let Some(Greeter { way, .. }) = self.take(id) {
                        let refusal = Control::Refuse(Refusal { code, text: &text });
                        let terms = Terms { datagram: 0, buffer: 0 };
                        let bytes = greeting::encode(&refusal, terms, &self.opening.local().secret);
                        let _ = self.network.send(&way, &bytes);
                    }
                }
                Action::Finish { id, is_attempt } => {
                    if let Some(Greeter { way, last_message, buffer, .. }) = self.take(id)
                        && let Some(opened) = self.opening.finished(id)
                    {
                        let proof = if is_attempt { last_message } else { Vec::new() };
                        let greeted = Greeted { opened, way, proof, buffer };
                        self.outcome.push(Outcome::Open(Box::new(greeted)));
                    }
                }
                Action::Drop { id } => drop(self.take(id)),
                Action::Failed { peer, why } => self.outcome.push(Outcome::Failed(peer, why)),
            }
        }
    }

    fn add(&mut self, id: Id, way: N::Way, is_attempt: bool) {
        self.greeters.list.push(Greeter { id, way, is_attempt, last_message: Vec::new(), buffer: 0 });
    }

    fn find(&self, id: Id) -> Option<usize> {
        self.greeters.list.iter().position(|greeter| greeter.id == id)
    }

    fn take(&mut self, id: Id) -> Option<Greeter<N::Way>> {
        self.find(id).map(|at| self.greeters.list.swap_remove(at))
    }

    fn failed(&mut self, id: Id, Failure { kind, why }: Failure) {
        self.opening.failed(id, kind, why, self.now_ms, &self.network);
    }

    /// Drops a handshake that this side cannot continue, and reports the failure.
    #[cold]
    fn give_up(&mut self, id: Id, why: String) {
        drop(self.take(id));
        self.failed(id, Failure::permanent(why));
    }

    fn reach(&mut self, id: Id, peer: PeerId, address: usize) {
        match self.network.reach(peer, address) {
            Ok((way, longest)) => {
                self.add(id, way, true);
                match Fresh::new() {
                    Ok(fresh) => self.opening.reached(id, longest, self.now_ms, fresh),
                    Err(why) => self.give_up(id, why),
                }
            }
            Err(failure) => self.failed(id, failure),
        }
    }

    fn send(&mut self, id: Id, message: &Control<'_>, len: usize) {
        let Some(at) = self.find(id) else { return };
        let greeter = &mut self.greeters.list[at];
        if matches!(message, Control::Welcome(_))
            && let Err(e) = self.network.welcome(&mut greeter.way)
        {
            self.greeters.list.swap_remove(at);
            return self.failed(id, Failure::permanent(e.to_string()));
        }
        let terms = Terms { datagram: len as u32, buffer: self.network.buffer(&greeter.way) };
        let encode = if matches!(message, Control::Proof(_)) { greeting::encode } else { greeting::padded };
        greeter.last_message = encode(message, terms, &self.opening.local().secret);
        match self.network.send(&greeter.way, &greeter.last_message) {
            // The kernel already knows that the path MTU is smaller.
            Err(Errno::MSGSIZE) => self.opening.too_long(id, self.now_ms),
            // A lost message is sent again.
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) | Ok(()) => {}
            Err(e) => self.route_failed(at, e),
        }
    }
}
