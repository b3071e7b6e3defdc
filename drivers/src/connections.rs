//! Connections on which links are being opened: what the drivers that have connections share of carrying out
//! what [`Opening`] wants.
//!
//! One message is read from a connection at a time, and what follows from it is done before the next one is
//! read: after the last message the stream belongs to the link.

use crate::conversation::{Conversation, Heard};
use crate::handshake;
use crate::opening::{Action, Around, Id, Opened, Opening, Said, Trouble};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::Control;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, sockopt};

/// Looks at all connections in one step, while something happens on them.
const ROUNDS: usize = 4;

/// What went wrong in a conversation, and the same in words that follow the name of the peer.
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
    /// What goes from one side to the other besides the messages, as far as it has come.
    type Handover;
    /// Begins to connect to the address of a peer at that place in the list.
    fn connect(&mut self, peer: PeerId, address: usize) -> Result<OwnedFd, Setback>;
    /// Takes a connection that waits, if there is one, and says from where it comes.
    fn accept(&mut self) -> Option<(OwnedFd, String)>;
    /// What the error of a connection to that address means; `stood`: the connection was there before.
    fn setback(&self, peer: PeerId, address: usize, stood: bool, e: Errno) -> Setback;
    /// Both sides have proved themselves: begins to hand over what else is needed.
    fn hand_over(&mut self, socket: &OwnedFd, is_attempt: bool) -> Result<Self::Handover, Setback>;
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

/// The connections.
#[derive(Debug)]
pub struct Connections<H> {
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

/// The rail's parts that a step works with.
pub struct Step<'a, N: Network> {
    /// The machine.
    pub opening: &'a mut Opening,
    /// The driver's part.
    pub network: &'a mut N,
    /// The rail's sockets.
    pub watch: &'a Watch,
    /// Milliseconds.
    pub now_ms: u64,
}

impl<H> Default for Connections<H> {
    fn default() -> Self {
        Connections { list: Vec::new() }
    }
}

impl<H> Connections<H> {
    /// Listens to everyone, lets in who waits, goes on with every attempt.
    pub fn step<N: Network<Handover = H>>(&mut self, mut step: Step<'_, N>, outcome: &mut Vec<Outcome<H>>) {
        // Before others are let in: whoever has said nothing so far may have to make room.
        self.listen(&mut step, outcome);
        self.act(&mut step, outcome);
        self.accept(&mut step);
        step.opening.step(step.now_ms, step.network);
        for _ in 0..ROUNDS {
            self.listen(&mut step, outcome);
            if !self.act(&mut step, outcome) {
                break;
            }
        }
    }

    fn accept<N: Network<Handover = H>>(&mut self, step: &mut Step<'_, N>) {
        while step.opening.has_room(step.now_ms) {
            let Some((fd, from)) = step.network.accept() else { return };
            if step.watch.add(&fd, Token::Opening, false).is_ok() {
                let id = step.opening.accepted(from, step.now_ms);
                let talk = Box::new(Conversation::new(fd));
                self.list.push(Connection { id, talk, stage: Stage::Talking, to: None });
            }
        }
    }

    fn listen<N: Network<Handover = H>>(&mut self, step: &mut Step<'_, N>, outcome: &mut Vec<Outcome<H>>) {
        for at in (0..self.list.len()).rev() {
            match self.list[at].stage {
                Stage::Reaching => self.reach(at, step),
                Stage::Talking => self.hear(at, step),
                Stage::HandingOver(_) => self.hand_over(at, step, outcome),
            }
        }
    }

    /// Looks whether a connection stands.
    fn reach<N: Network<Handover = H>>(&mut self, at: usize, step: &mut Step<'_, N>) {
        let connection = &mut self.list[at];
        match stands(&connection.talk) {
            Ok(false) => {}
            Ok(true) => {
                let _ = step.watch.change(connection.talk.as_fd(), Token::Opening, false);
                connection.stage = Stage::Talking;
                step.opening.reached(connection.id, 0, step.now_ms, handshake::nonce());
            }
            Err(e) => self.end(at, e, step),
        }
    }

    fn hear<N: Network<Handover = H>>(&mut self, at: usize, step: &mut Step<'_, N>) {
        let Connection { id, talk, .. } = &mut self.list[at];
        let said = match talk.hear() {
            Heard::Nothing => return,
            Heard::Ended => return self.end(at, Errno::CONNRESET, step),
            Heard::Failed(e) => return self.end(at, e, step),
            Heard::Message(message) => Said::Message(message),
            Heard::OtherVersion(theirs) => Said::OtherVersion(theirs),
            Heard::Foreign(e) => Said::Foreign(e),
        };
        step.opening.heard(*id, said, 0, (step.now_ms, handshake::nonce()), step.network);
    }

    fn hand_over<N: Network<Handover = H>>(
        &mut self,
        at: usize,
        step: &mut Step<'_, N>,
        outcome: &mut Vec<Outcome<H>>,
    ) {
        let Connection { id, talk, stage: Stage::HandingOver(handover), .. } = &mut self.list[at] else {
            return;
        };
        match step.network.goes_on(talk.socket(), handover) {
            Ok(false) => {}
            Ok(true) => {
                let opened = step.opening.finished(*id);
                let Connection { talk, stage, .. } = self.list.swap_remove(at);
                if let (Some(opened), Stage::HandingOver(handover)) = (opened, stage) {
                    outcome.push(Outcome::Open(opened, talk.into_socket(), handover));
                }
            }
            Err(Setback { trouble, why }) => {
                let Connection { id, .. } = self.list.swap_remove(at);
                step.opening.failed(id, trouble, why, step.now_ms, step.network);
            }
        }
    }

    /// A connection has ended.
    fn end<N: Network<Handover = H>>(&mut self, at: usize, e: Errno, step: &mut Step<'_, N>) {
        let Connection { id, stage, to, .. } = self.list.swap_remove(at);
        let Setback { trouble, why } = match to {
            Some((peer, address)) => {
                step.network.setback(peer, address, !matches!(stage, Stage::Reaching), e)
            }
            None if e == Errno::CONNRESET => Setback::hopeless("it closed the connection"),
            None => Setback::hopeless(e.to_string()),
        };
        step.opening.failed(id, trouble, why, step.now_ms, step.network);
    }

    /// Does what the machine wants; whether that was anything.
    fn act<N: Network<Handover = H>>(
        &mut self,
        step: &mut Step<'_, N>,
        outcome: &mut Vec<Outcome<H>>,
    ) -> bool {
        let mut acted = false;
        while let Some(action) = step.opening.next_action() {
            acted = true;
            match action {
                Action::Reach { id, peer, address } => self.connect(id, peer, address, step),
                Action::Say { id, message, .. } => self.say(id, &message, step),
                Action::Finish { id, is_attempt } => self.finish(id, is_attempt, step, outcome),
                Action::Refuse { id, code, text } => {
                    if let Some(at) = self.find(id) {
                        let Connection { talk, .. } = self.list.swap_remove(at);
                        talk.refuse(code, &text);
                        step.network.leave(talk.into_socket());
                    }
                }
                Action::Drop { id } => self.list.retain(|connection| connection.id != id),
                Action::Failed { peer, why } => outcome.push(Outcome::Failed(peer, why)),
            }
        }
        acted
    }

    fn find(&self, id: Id) -> Option<usize> {
        self.list.iter().position(|connection| connection.id == id)
    }

    fn connect<N: Network<Handover = H>>(
        &mut self,
        id: Id,
        peer: PeerId,
        address: usize,
        step: &mut Step<'_, N>,
    ) {
        let connected = step.network.connect(peer, address).and_then(|fd| {
            let watched = step.watch.add(&fd, Token::Opening, true);
            watched
                .map(|()| fd)
                .map_err(|e| Setback::hopeless(format!("cannot be reached: cannot watch a socket: {e}")))
        });
        match connected {
            Ok(fd) => {
                let (talk, to) = (Box::new(Conversation::new(fd)), Some((peer, address)));
                self.list.push(Connection { id, talk, stage: Stage::Reaching, to });
                self.reach(self.list.len() - 1, step);
            }
            Err(Setback { trouble, why }) => {
                step.opening.failed(id, trouble, why, step.now_ms, step.network);
            }
        }
    }

    fn say<N: Network<Handover = H>>(&mut self, id: Id, message: &Control<'_>, step: &mut Step<'_, N>) {
        if let Some(at) = self.find(id)
            && let Err(e) = self.list[at].talk.say(message)
        {
            self.end(at, e, step);
        }
    }

    fn finish<N: Network<Handover = H>>(
        &mut self,
        id: Id,
        is_attempt: bool,
        step: &mut Step<'_, N>,
        outcome: &mut Vec<Outcome<H>>,
    ) {
        let Some(at) = self.find(id) else { return };
        match step.network.hand_over(self.list[at].talk.socket(), is_attempt) {
            Ok(handover) => {
                self.list[at].stage = Stage::HandingOver(handover);
                self.hand_over(at, step, outcome);
            }
            Err(Setback { trouble, why }) => {
                self.list.swap_remove(at);
                step.opening.failed(id, trouble, why, step.now_ms, step.network);
            }
        }
    }
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
