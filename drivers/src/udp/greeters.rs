//! Greetings under way: what the drivers that have datagrams share of carrying out what
//! [`Opening`](crate::opening::Opening) wants.
//!
//! The longest datagram that the interface takes is tried first, then shorter ones: an answer is as long as
//! the hello that it answers, so what comes back has passed in both directions. Answers come in the order of
//! the hellos, also from a peer that was busy and finds several of them at once.

use super::greeting::{self, Terms};
use crate::connections::Setback;
use crate::handshake;
use crate::opening::{Action, Around, Id, Opened, Opening, Said, Trouble};
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
    list: Vec<Greeter<W>>,
}

/// A conversation by greetings.
#[derive(Debug)]
pub struct Greeter<W> {
    id: Id,
    /// The way to the other side.
    pub way: W,
    /// Whether this side has begun.
    pub is_attempt: bool,
    /// What was said last.
    said: Vec<u8>,
    /// Bytes that the other side buffers.
    buffer: u32,
}

/// The rail's parts that a step works with.
pub struct Step<'a, N: Network> {
    /// The machine.
    pub opening: &'a mut Opening,
    /// The driver's part.
    pub network: &'a mut N,
    /// Milliseconds.
    pub now_ms: u64,
}

/// A greeting that has come.
pub struct Heard<'a> {
    /// What it says.
    pub said: Said<'a>,
    /// What it says of its sender.
    pub terms: Terms,
    /// How long it is, in bytes, but no longer than this side can answer.
    pub len: usize,
}

impl<W> Default for Greeters<W> {
    fn default() -> Self {
        Greeters { list: Vec::new() }
    }
}

impl<W> Greeters<W> {
    /// All of them.
    pub fn list(&self) -> &[Greeter<W>] {
        &self.list
    }

    /// Somebody has said hello, or something in another version, who is in no conversation as far as the
    /// driver can tell.
    pub fn knock<N: Network<Way = W>>(
        &mut self,
        way: W,
        from: String,
        heard: Heard<'_>,
        step: &mut Step<'_, N>,
    ) {
        let id = step.opening.accepted(from, step.now_ms);
        self.list.push(Greeter { id, way, is_attempt: false, said: Vec::new(), buffer: 0 });
        self.hear(self.list.len() - 1, heard, step);
    }

    /// A greeting has come in the conversation at this place in the list. What follows from it is done by
    /// [`Greeters::act`].
    pub fn hear<N: Network<Way = W>>(&mut self, at: usize, heard: Heard<'_>, step: &mut Step<'_, N>) {
        let Heard { said, terms, len } = heard;
        let told = terms.datagram as usize;
        // A proof is as short as it is, and tells the length that has passed before.
        let len = if matches!(said, Said::Message(Control::Proof(_))) { told } else { told.min(len) };
        self.list[at].buffer = terms.buffer;
        let at_once = (step.now_ms, handshake::nonce());
        step.opening.heard(self.list[at].id, said, len, at_once, step.network);
    }

    /// The way of the conversation at this place in the list does not work.
    pub fn broke<N: Network<Way = W>>(&mut self, at: usize, e: Errno, step: &mut Step<'_, N>) {
        // A stranger may come back by another way; what the system says of one may come from anybody.
        if self.list[at].is_attempt {
            let Greeter { id, way, .. } = self.list.swap_remove(at);
            let Setback { trouble, why } = step.network.setback(&way, e);
            step.opening.failed(id, trouble, why, step.now_ms, step.network);
        }
    }

    /// Goes on with every attempt.
    pub fn step<N: Network<Way = W>>(&mut self, step: &mut Step<'_, N>, outcome: &mut Vec<Outcome<W>>) {
        step.opening.step(step.now_ms, step.network);
        self.act(step, outcome);
    }

    /// Does what the machine wants.
    pub fn act<N: Network<Way = W>>(&mut self, step: &mut Step<'_, N>, outcome: &mut Vec<Outcome<W>>) {
        while let Some(action) = step.opening.next_action() {
            match action {
                Action::Reach { id, peer, address } => self.reach(id, peer, address, step),
                Action::Say { id, message, len } => self.say(id, &message, len, step),
                Action::Refuse { id, code, text } => {
                    if let Some(Greeter { way, .. }) = self.take(id) {
                        let (refusal, terms) = (
                            Control::Refuse(Refusal { code, text: &text }),
                            Terms { datagram: 0, buffer: 0 },
                        );
                        let bytes = greeting::encode(&refusal, terms, &step.opening.local().secret);
                        let _ = step.network.send(&way, &bytes);
                    }
                }
                Action::Finish { id, is_attempt } => {
                    if let Some(Greeter { way, said, buffer, .. }) = self.take(id)
                        && let Some(opened) = step.opening.finished(id)
                    {
                        let proof = if is_attempt { said } else { Vec::new() };
                        outcome.push(Outcome::Open(Greeted { opened, way, proof, buffer }));
                    }
                }
                Action::Drop { id } => drop(self.take(id)),
                Action::Failed { peer, why } => outcome.push(Outcome::Failed(peer, why)),
            }
        }
    }

    fn find(&self, id: Id) -> Option<usize> {
        self.list.iter().position(|greeter| greeter.id == id)
    }

    fn take(&mut self, id: Id) -> Option<Greeter<W>> {
        self.find(id).map(|at| self.list.swap_remove(at))
    }

    fn reach<N: Network<Way = W>>(&mut self, id: Id, peer: PeerId, address: usize, step: &mut Step<'_, N>) {
        match step.network.reach(peer, address) {
            Ok((way, longest)) => {
                self.list.push(Greeter { id, way, is_attempt: true, said: Vec::new(), buffer: 0 });
                step.opening.reached(id, longest, step.now_ms, handshake::nonce());
            }
            Err(Setback { trouble, why }) => {
                step.opening.failed(id, trouble, why, step.now_ms, step.network);
            }
        }
    }

    fn say<N: Network<Way = W>>(
        &mut self,
        id: Id,
        message: &Control<'_>,
        len: usize,
        step: &mut Step<'_, N>,
    ) {
        let Some(at) = self.find(id) else { return };
        let greeter = &mut self.list[at];
        if matches!(message, Control::Welcome(_))
            && let Err(e) = step.network.welcome(&mut greeter.way)
        {
            self.list.swap_remove(at);
            return step.opening.failed(id, Trouble::Hopeless, e.to_string(), step.now_ms, step.network);
        }
        let terms = Terms { datagram: len as u32, buffer: step.network.buffer(&greeter.way) };
        let encode = if matches!(message, Control::Proof(_)) { greeting::encode } else { greeting::padded };
        greeter.said = encode(message, terms, &step.opening.local().secret);
        match step.network.send(&greeter.way, &greeter.said) {
            // The kernel knows a shorter path already.
            Err(Errno::MSGSIZE) => step.opening.too_long(id, step.now_ms),
            // What is lost is said again.
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) | Ok(()) => {}
            Err(e) => self.broke(at, e, step),
        }
    }
}
