//! Connections on which links are being opened. Carries out the actions of [`Opening`] for all drivers that
//! have connections.
//!
//! One message at a time is read from a connection and handled before the next read, because the bytes
//! behind the last message belong to the link. Only connections with events are served, so silent ones cost
//! no time.

use crate::conversation::{Conversation, Received};
use crate::handshake::Fresh;
use crate::opening::{Action, Content, Facts, FailureKind, Id, Opened, Opening, Origin};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::Control;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, sockopt};

/// Passes over all connections in one step, as long as each pass makes progress.
const ROUNDS: usize = 4;
/// Connections accepted in one step, so that a flood of them does not starve the links.
const ACCEPTS: usize = 64;

/// A failed conversation, with a message that is printed behind the name of the peer.
#[derive(Debug)]
pub struct Failure {
    /// Kind of the failure; it decides what is tried next.
    pub kind: FailureKind,
    /// Cause and remedy.
    pub why: String,
}

impl Failure {
    /// A failure that another attempt would repeat.
    pub fn permanent(why: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Permanent, why: why.into() }
    }
}

/// The operations that differ between drivers.
pub trait Network: Facts {
    /// State of the driver's own exchange that follows the handshake.
    type Handover;
    /// Starts connecting to the address with index `address` in the peer's list.
    fn connect(&mut self, peer: PeerId, address: usize) -> Result<OwnedFd, Failure>;
    /// Accepts a waiting connection, if there is one.
    fn accept(&mut self) -> Option<Accepted>;
    /// Translates the error of a connection to that address; `stood`: the connection had been established.
    fn failure(&self, peer: PeerId, address: usize, stood: bool, e: Errno) -> Failure;
    /// Starts the driver's own exchange, after both sides have proved their identity.
    fn hand_over(&mut self, socket: &OwnedFd, opened: &Opened) -> Result<Self::Handover, Failure>;
    /// Continues the exchange; returns whether it is complete.
    fn proceed(&mut self, socket: &OwnedFd, handover: &mut Self::Handover) -> Result<bool, Failure>;
    /// Closes a connection such that the last message still arrives.
    fn leave(&mut self, socket: OwnedFd);
}

/// Result of an attempt or of an accepted connection.
#[derive(Debug)]
pub enum Outcome<H> {
    /// A link is open, on this connection.
    Open(Opened, OwnedFd, H),
    /// A link that this side wanted cannot be opened.
    Failed(PeerId, String),
}

/// A connection that was waiting to be accepted.
#[derive(Debug)]
pub enum Accepted {
    /// It may become a link.
    Stranger(OwnedFd, Origin),
    /// The driver closed it because the operating system identifies its peer as no process of the job; the
    /// text describes that peer.
    Rejected(String),
}

/// All connections on which links are being opened.
#[derive(Debug)]
pub struct Connections<H> {
    /// Their sockets; tokens are the numbers of their conversations.
    watch: Watch,
    list: Vec<Connection<H>>,
}

#[derive(Debug)]
struct Connection<H> {
    id: Id,
    talk: Box<Conversation>,
    stage: Stage<H>,
    /// The peer and address index that this side connects to; none for accepted connections.
    to: Option<(PeerId, usize)>,
}

#[derive(Debug)]
enum Stage<H> {
    /// `connect` is in progress.
    Reaching,
    /// Handshake messages are exchanged.
    Talking,
    /// The driver's own exchange is in progress.
    HandingOver(H),
}

impl<H> Connections<H> {
    /// An empty list, whose events wake a sleeper on the rail's `watch`.
    ///
    /// # Errors
    /// The system creates no epoll.
    pub fn new(watch: &Watch) -> Result<Self, Errno> {
        let own = Watch::new()?;
        watch.add(&own, Token::Opening, false)?;
        Ok(Connections { watch: own, list: Vec::new() })
    }
}

/// One step of the state machine, with the parts of the rail that it uses.
pub struct Step<'a, N: Network> {
    pub connections: &'a mut Connections<N::Handover>,
    /// The state machine that opens links.
    pub opening: &'a mut Opening,
    /// The driver's operations.
    pub network: N,
    /// Milliseconds.
    pub now_ms: u64,
    /// Receives the results.
    pub outcome: &'a mut Vec<Outcome<N::Handover>>,
}

impl<N: Network> Step<'_, N> {
    /// Accepts waiting connections, reads from all of them, and continues every attempt.
    pub fn run(mut self) {
        // Read before accepting: a silent connection may have to be dropped to make room.
        self.read_ready();
        self.act();
        self.accept();
        self.opening.step(self.now_ms, &self.network);
        for _ in 0..ROUNDS {
            self.read_ready();
            if !self.act() {
                break;
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            if !self.opening.has_room(self.now_ms) {
                return;
            }
            match self.network.accept() {
                None => return,
                Some(Accepted::Rejected(why)) => self.opening.rejected(&why, self.now_ms),
                Some(Accepted::Stranger(fd, origin)) => {
                    let id = self.opening.accepted(origin, self.now_ms);
                    if let Err(e) = self.add(id, fd, Stage::Talking, None) {
                        self.failed(id, unwatched(e));
                    }
                }
            }
        }
    }

    fn add(
        &mut self,
        id: Id,
        fd: OwnedFd,
        stage: Stage<N::Handover>,
        to: Option<(PeerId, usize)>,
    ) -> Result<(), Errno> {
        self.connections.watch.add(&fd, token(id), matches!(stage, Stage::Reaching))?;
        let talk = Box::new(Conversation::new(fd));
        self.connections.list.push(Connection { id, talk, stage, to });
        Ok(())
    }

    fn find(&self, id: Id) -> Option<usize> {
        self.connections.list.iter().position(|connection| connection.id == id)
    }

    fn take(&mut self, id: Id) -> Option<Connection<N::Handover>> {
        self.find(id).map(|at| self.connections.list.swap_remove(at))
    }

    fn failed(&mut self, id: Id, Failure { kind, why }: Failure) {
        self.opening.failed(id, kind, why, self.now_ms, &self.network);
    }

    /// Drops a conversation that this side cannot continue, and reports the failure.
    #[cold]
    fn give_up(&mut self, id: Id, why: String) {
        drop(self.take(id));
        self.failed(id, Failure::permanent(why));
    }

    fn read_ready(&mut self) {
        let mut ready = Vec::new();
        self.connections.watch.look(|token, _| ready.push(token));
        for of in ready {
            // Handling an earlier event may have removed this connection.
            let Some(at) = self.connections.list.iter().position(|it| token(it.id) == of) else { continue };
            match self.connections.list[at].stage {
                Stage::Reaching => self.reach(at),
                Stage::Talking => self.receive(at),
                Stage::HandingOver(_) => self.hand_over(at),
            }
        }
    }

    /// Checks whether a connection is established.
    fn reach(&mut self, at: usize) {
        let connection = &mut self.connections.list[at];
        match is_established(&connection.talk) {
            Ok(false) => {}
            Ok(true) => {
                let _ = self.connections.watch.change(connection.talk.as_fd(), token(connection.id), false);
                connection.stage = Stage::Talking;
                let id = connection.id;
                match Fresh::new() {
                    Ok(fresh) => self.opening.reached(id, 0, self.now_ms, fresh),
                    Err(why) => self.give_up(id, why),
                }
            }
            Err(e) => self.end(at, e),
        }
    }

    fn receive(&mut self, at: usize) {
        let Connection { id, talk, .. } = &mut self.connections.list[at];
        let content = match talk.receive() {
            Received::Nothing => return,
            Received::Ended => return self.end(at, Errno::CONNRESET),
            Received::Failed(e) => return self.end(at, e),
            Received::Message(message) => Content::Message(message),
            Received::OtherVersion(theirs) => Content::OtherVersion(theirs),
            Received::Foreign(e) => Content::Foreign(e),
        };
        let id = *id;
        match Fresh::new() {
            Ok(fresh) => self.opening.handle_message(id, content, 0, (self.now_ms, fresh), &self.network),
            Err(why) => self.give_up(id, why),
        }
    }

    fn hand_over(&mut self, at: usize) {
        let connection = &mut self.connections.list[at];
        let Connection { id, talk, stage: Stage::HandingOver(handover), .. } = connection else { return };
        let id = *id;
        match self.network.proceed(talk.socket(), handover) {
            Ok(false) => {}
            Ok(true) => {
                let Connection { talk, stage, .. } = self.connections.list.swap_remove(at);
                let _ = self.connections.watch.remove(talk.as_fd());
                if let (Some(opened), Stage::HandingOver(handover)) = (self.opening.finished(id), stage) {
                    self.outcome.push(Outcome::Open(opened, talk.into_socket(), handover));
                }
            }
            Err(failure) => {
                self.connections.list.swap_remove(at);
                self.failed(id, failure);
            }
        }
    }

    /// Handles the end of a connection.
    fn end(&mut self, at: usize, e: Errno) {
        let Connection { id, stage, to, .. } = self.connections.list.swap_remove(at);
        let stood = !matches!(stage, Stage::Reaching);
        let failure = match to {
            Some((peer, address)) => self.network.failure(peer, address, stood, e),
            None if e == Errno::CONNRESET => Failure::permanent("it closed the connection"),
            None => Failure::permanent(e.to_string()),
        };
        self.failed(id, failure);
    }

    /// Carries out the pending actions of the state machine; returns whether there were any.
    fn act(&mut self) -> bool {
        let mut acted = false;
        while let Some(action) = self.opening.next_action() {
            acted = true;
            match action {
                Action::Reach { id, peer, address } => self.connect(id, peer, address),
                Action::Send { id, message, .. } => self.send(id, &message),
                Action::Finish { id, .. } => self.finish(id),
                Action::Refuse { id, code, text } => {
                    if let Some(Connection { talk, .. }) = self.take(id) {
                        talk.refuse(code, &text);
                        self.network.leave(talk.into_socket());
                    }
                }
                Action::Drop { id } => drop(self.take(id)),
                Action::Failed { peer, why } => self.outcome.push(Outcome::Failed(peer, why)),
            }
        }
        acted
    }

    fn connect(&mut self, id: Id, peer: PeerId, address: usize) {
        let connected = self.network.connect(peer, address);
        let to = Some((peer, address));
        match connected.and_then(|fd| self.add(id, fd, Stage::Reaching, to).map_err(unwatched)) {
            Ok(()) => self.reach(self.connections.list.len() - 1),
            Err(failure) => self.failed(id, failure),
        }
    }

    fn send(&mut self, id: Id, message: &Control<'_>) {
        if let Some(at) = self.find(id)
            && let Err(e) = self.connections.list[at].talk.send(message)
        {
            self.end(at, e);
        }
    }

    fn finish(&mut self, id: Id) {
        let Some((at, opened)) = self.find(id).zip(self.opening.proved(id)) else { return };
        match self.network.hand_over(self.connections.list[at].talk.socket(), &opened) {
            Ok(handover) => {
                self.connections.list[at].stage = Stage::HandingOver(handover);
                self.hand_over(at);
            }
            Err(failure) => {
                self.connections.list.swap_remove(at);
                self.failed(id, failure);
            }
        }
    }
}

/// Token under which the socket of a conversation is watched.
fn token(id: Id) -> Token {
    Token::Link(id.number() as usize)
}

fn unwatched(e: Errno) -> Failure {
    Failure::permanent(format!("cannot be reached: cannot watch a socket: {e}"))
}

/// Returns whether a `connect` in progress has completed.
fn is_established(socket: impl AsFd) -> Result<bool, Errno> {
    sockopt::socket_error(&socket)??;
    match net::getpeername(&socket) {
        Ok(_) => Ok(true),
        Err(Errno::NOTCONN) => Ok(false),
        Err(e) => Err(e),
    }
}
