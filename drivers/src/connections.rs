//! Connections on which links are being opened: what the drivers that have connections share of carrying out
//! what [`Opening`] wants.
//!
//! One message is read from a connection at a time, and what follows from it is done before the next one is
//! read: after the last message the stream belongs to the link. Only connections on which something happened
//! are looked at, so that silent ones cost no time.

use crate::conversation::{Conversation, Heard};
use crate::handshake;
use crate::opening::{Action, Around, Id, Opened, Opening, Origin, Said, Trouble};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::Control;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, sockopt};

/// Looks at all connections in one step, while something happens on them.
const ROUNDS: usize = 4;
/// Connections accepted in one step, so that a flood of them does not starve the links.
const ACCEPTS: usize = 64;

/// A failure in a conversation, and the message that follows the name of the peer.
#[derive(Debug)]
pub struct Setback {
    /// As far as it matters for what comes next.
    pub trouble: Trouble,
    /// Cause and remedy.
    pub why: String,
}

impl Setback {
    /// Another try would fail, too.
    pub fn hopeless(why: impl Into<String>) -> Setback {
        Setback { trouble: Trouble::Hopeless, why: why.into() }
    }
}

/// What a driver does by itself.
pub trait Network: Around {
    /// State of the exchange behind the messages, while both sides carry it out.
    type Handover;
    /// Begins to connect to the address of a peer at that place in the list.
    fn connect(&mut self, peer: PeerId, address: usize) -> Result<OwnedFd, Setback>;
    /// Takes a connection that waits, if there is one.
    fn accept(&mut self) -> Option<Accepted>;
    /// What the error of a connection to that address means; `stood`: the connection was there before.
    fn setback(&self, peer: PeerId, address: usize, stood: bool, e: Errno) -> Setback;
    /// Both sides have proved themselves: begins to hand over what else is needed.
    fn hand_over(&mut self, socket: &OwnedFd, opened: &Opened) -> Result<Self::Handover, Setback>;
    /// Goes on with that; whether it is complete.
    fn goes_on(&mut self, socket: &OwnedFd, handover: &mut Self::Handover) -> Result<bool, Setback>;
    /// Closes a connection such that what was said last still arrives.
    fn leave(&mut self, socket: OwnedFd);
}

/// What became of an attempt or a stranger.
#[derive(Debug)]
pub enum Outcome<H> {
    /// A link is open, on this connection.
    Open(Opened, OwnedFd, H),
    /// A link that this side wanted cannot be opened.
    Failed(PeerId, String),
}

/// A connection that waited.
#[derive(Debug)]
pub enum Accepted {
    /// It may become a link.
    Stranger(OwnedFd, Origin),
    /// It was closed, since the system says that it is none of the job's; and what it was.
    TurnedAway(String),
}

/// The connections.
#[derive(Debug)]
pub struct Connections<H> {
    /// Their sockets, by the numbers of their conversations.
    watch: Watch,
    list: Vec<Connection<H>>,
}

#[derive(Debug)]
struct Connection<H> {
    id: Id,
    talk: Box<Conversation>,
    stage: Stage<H>,
    /// To whom and at which address; none: a stranger's.
    to: Option<(PeerId, usize)>,
}

#[derive(Debug)]
enum Stage<H> {
    /// It is being connected.
    Reaching,
    /// Messages come and go.
    Talking,
    /// What else is needed is on its way.
    HandingOver(H),
}

impl<H> Connections<H> {
    /// None yet; `watch` is that of the rail.
    ///
    /// # Errors
    /// The system gives no epoll.
    pub fn new(watch: &Watch) -> Result<Self, Errno> {
        let own = Watch::new()?;
        watch.add(&own, Token::Opening, false)?;
        Ok(Connections { watch: own, list: Vec::new() })
    }
}

/// One step, and the parts of the rail that it works with.
pub struct Step<'a, N: Network> {
    /// The connections.
    pub connections: &'a mut Connections<N::Handover>,
    /// The machine.
    pub opening: &'a mut Opening,
    /// The driver's part.
    pub network: N,
    /// Milliseconds.
    pub now_ms: u64,
    /// The results.
    pub outcome: &'a mut Vec<Outcome<N::Handover>>,
}

impl<N: Network> Step<'_, N> {
    /// Accepts waiting connections, reads all of them, goes on with every attempt.
    pub fn run(mut self) {
        // Before others are accepted: a silent stranger may have to make room.
        self.listen();
        self.act();
        self.accept();
        self.opening.step(self.now_ms, &self.network);
        for _ in 0..ROUNDS {
            self.listen();
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
                Some(Accepted::TurnedAway(why)) => self.opening.turned_away(&why, self.now_ms),
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

    fn failed(&mut self, id: Id, Setback { trouble, why }: Setback) {
        self.opening.failed(id, trouble, why, self.now_ms, &self.network);
    }

    fn listen(&mut self) {
        let mut ready = Vec::new();
        self.connections.watch.look(|token, _| ready.push(token));
        for of in ready {
            // One that an earlier one has ended is not there any more.
            let Some(at) = self.connections.list.iter().position(|it| token(it.id) == of) else { continue };
            match self.connections.list[at].stage {
                Stage::Reaching => self.reach(at),
                Stage::Talking => self.hear(at),
                Stage::HandingOver(_) => self.hand_over(at),
            }
        }
    }

    /// Looks whether a connection stands.
    fn reach(&mut self, at: usize) {
        let connection = &mut self.connections.list[at];
        match stands(&connection.talk) {
            Ok(false) => {}
            Ok(true) => {
                let _ = self.connections.watch.change(connection.talk.as_fd(), token(connection.id), false);
                connection.stage = Stage::Talking;
                self.opening.reached(connection.id, 0, self.now_ms, handshake::nonce());
            }
            Err(e) => self.end(at, e),
        }
    }

    fn hear(&mut self, at: usize) {
        let Connection { id, talk, .. } = &mut self.connections.list[at];
        let said = match talk.hear() {
            Heard::Nothing => return,
            Heard::Ended => return self.end(at, Errno::CONNRESET),
            Heard::Failed(e) => return self.end(at, e),
            Heard::Message(message) => Said::Message(message),
            Heard::OtherVersion(theirs) => Said::OtherVersion(theirs),
            Heard::Foreign(e) => Said::Foreign(e),
        };
        self.opening.heard(*id, said, 0, (self.now_ms, handshake::nonce()), &self.network);
    }

    fn hand_over(&mut self, at: usize) {
        let connection = &mut self.connections.list[at];
        let Connection { id, talk, stage: Stage::HandingOver(handover), .. } = connection else { return };
        let id = *id;
        match self.network.goes_on(talk.socket(), handover) {
            Ok(false) => {}
            Ok(true) => {
                let Connection { talk, stage, .. } = self.connections.list.swap_remove(at);
                let _ = self.connections.watch.remove(talk.as_fd());
                if let (Some(opened), Stage::HandingOver(handover)) = (self.opening.finished(id), stage) {
                    self.outcome.push(Outcome::Open(opened, talk.into_socket(), handover));
                }
            }
            Err(setback) => {
                self.connections.list.swap_remove(at);
                self.failed(id, setback);
            }
        }
    }

    /// A connection has ended.
    fn end(&mut self, at: usize, e: Errno) {
        let Connection { id, stage, to, .. } = self.connections.list.swap_remove(at);
        let stood = !matches!(stage, Stage::Reaching);
        let setback = match to {
            Some((peer, address)) => self.network.setback(peer, address, stood, e),
            None if e == Errno::CONNRESET => Setback::hopeless("it closed the connection"),
            None => Setback::hopeless(e.to_string()),
        };
        self.failed(id, setback);
    }

    /// Does what the machine wants; whether that was anything.
    fn act(&mut self) -> bool {
        let mut acted = false;
        while let Some(action) = self.opening.next_action() {
            acted = true;
            match action {
                Action::Reach { id, peer, address } => self.connect(id, peer, address),
                Action::Say { id, message, .. } => self.say(id, &message),
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
            Err(setback) => self.failed(id, setback),
        }
    }

    fn say(&mut self, id: Id, message: &Control<'_>) {
        if let Some(at) = self.find(id)
            && let Err(e) = self.connections.list[at].talk.say(message)
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
            Err(setback) => {
                self.connections.list.swap_remove(at);
                self.failed(id, setback);
            }
        }
    }
}

/// What the sockets of a conversation are watched as.
fn token(id: Id) -> Token {
    Token::Link(id.number() as usize)
}

fn unwatched(e: Errno) -> Setback {
    Setback::hopeless(format!("cannot be reached: cannot watch a socket: {e}"))
}

/// Whether a connection that was begun stands.
fn stands(socket: impl AsFd) -> Result<bool, Errno> {
    sockopt::socket_error(&socket)??;
    match net::getpeername(&socket) {
        Ok(_) => Ok(true),
        Err(Errno::NOTCONN) => Ok(false),
        Err(e) => Err(e),
    }
}
