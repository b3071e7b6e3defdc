//! Opening a link to a peer: knock, show and be shown the secret, hand over the shared memory.
//!
//! The system tells when a peer has died: nobody is at its door, or the connection ends. So one that merely
//! does not answer is there and busy, or starved by many others on few cores, and is waited for.

use super::address::Address;
use super::config::ShmConfig;
use super::home::Home;
use super::layout::End;
use super::link::Opened;
use super::offer::{self, Given};
use super::segment::Segment;
use crate::conversation::{Conversation, Heard};
use crate::handshake::{self, Ends};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, RefusalCode, VERSION};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;

/// Tries after which a peer at whose door nobody listens counts as gone.
const TRIES: usize = 3;
/// Connections that a peer may end: one at whose door very many wait sends some away.
const ENDED_MAX: usize = 20;
/// Rest between two tries, in milliseconds.
const REST_MS: u64 = 100;
/// How long the connection of the other side is waited for before trying again, in milliseconds.
const CROSSED_MS: u64 = 500;

/// A link that this side opens.
#[derive(Debug)]
pub struct Attempt {
    /// The peer to reach.
    pub peer: PeerId,
    /// When the user is told that the peer is slow; none: that has been said.
    patient_until_ms: Option<u64>,
    tries: usize,
    /// Connections that the peer has ended.
    ended: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Before the next try.
    Resting { until_ms: u64 },
    /// Waits for the welcome.
    Greeted { talk: Box<Conversation>, hello: Hello },
    /// The memory was handed over; waits for the peer's bell.
    Offered { socket: OwnedFd, segment: Segment, remote: u8 },
}

/// How far an attempt has come.
#[derive(Debug)]
pub enum Step {
    /// Further on another time.
    On,
    /// The link is open.
    Open(Box<Opened>),
    /// It cannot be opened.
    Failed(String),
}

/// What an attempt needs to know.
pub struct Around<'a> {
    /// The rail's configuration.
    pub config: &'a ShmConfig,
    /// Its door and bell.
    pub home: &'a Home,
    /// Its sockets.
    pub watch: &'a Watch,
    /// Where the peer is.
    pub address: Option<&'a Address>,
    /// The peer's own connection is being opened: it may make this attempt needless.
    pub rival: bool,
    /// Milliseconds.
    pub now_ms: u64,
}

/// What the system said, and what helps where a limit of this process is in the way.
fn told(e: impl Into<io::Error>) -> String {
    let e = e.into();
    let remedy = match Errno::from_io_error(&e) {
        Some(Errno::MFILE) => " (this process may open no more files: `ulimit -n` is too low)",
        Some(Errno::FBIG) => " (this process may make no file that long: `ulimit -f` is too low)",
        _ => "",
    };
    format!("{e}{remedy}")
}

impl Attempt {
    /// Begins at the next step.
    pub fn new(peer: PeerId, config: &ShmConfig, now_ms: u64) -> Self {
        let patient_until_ms = Some(now_ms + config.bound.as_millis() as u64);
        Attempt { peer, patient_until_ms, tries: 0, ended: 0, stage: Stage::Resting { until_ms: 0 } }
    }

    /// Whether the peer knows of this attempt.
    pub fn is_under_way(&self) -> bool {
        !matches!(self.stage, Stage::Resting { .. })
    }

    /// Gives way to the connection of the peer.
    pub fn give_way(&mut self, now_ms: u64) {
        self.stage = Stage::Resting { until_ms: now_ms + CROSSED_MS };
    }

    /// Goes as far as is possible now.
    pub fn step(&mut self, around: &Around<'_>) -> Step {
        if self.patient_until_ms.is_some_and(|until_ms| around.now_ms >= until_ms) {
            self.patient_until_ms = None;
            let (peer, bound) = (self.peer.0, around.config.bound);
            log::warn!(
                "rail shm: peer {peer} has not answered within {bound:?}; it lives, and is waited for"
            );
        }
        let resting = Stage::Resting { until_ms: around.now_ms };
        match std::mem::replace(&mut self.stage, resting) {
            Stage::Resting { until_ms } if around.rival || around.now_ms < until_ms => {
                self.stage = Stage::Resting { until_ms };
                Step::On
            }
            Stage::Resting { .. } => self.knock(around),
            Stage::Greeted { talk, hello } => self.listen(talk, hello, around),
            Stage::Offered { socket, segment, remote } => self.finish(socket, segment, remote, around),
        }
    }

    fn knock(&mut self, around: &Around<'_>) -> Step {
        let Some(address) = around.address else { return Step::Failed("is not on this node".into()) };
        self.tries += 1;
        let socket = match around.home.knock(address) {
            Ok(socket) => socket,
            Err(Errno::CONNREFUSED) if self.tries >= TRIES => {
                return Step::Failed("is gone: nobody listens at its socket (has it died?)".into());
            }
            // Too many wait at its door, or it is gone: the next tries tell.
            Err(Errno::AGAIN | Errno::CONNREFUSED) => {
                self.stage = Stage::Resting { until_ms: around.now_ms + REST_MS };
                return Step::On;
            }
            Err(e) => return Step::Failed(format!("cannot be reached: {}", told(e))),
        };
        if let Err(e) = around.watch.add(&socket, Token::Opening, false) {
            return Step::Failed(format!("cannot be reached: cannot watch a socket: {e}"));
        }
        let ShmConfig { rank, rail, .. } = *around.config;
        let hello = Hello { from: rank.0, to: self.peer.0, rail, nonce: handshake::nonce() };
        let talk = Box::new(Conversation::new(socket));
        match talk.say(&Control::Hello(hello)) {
            Ok(()) => self.listen(talk, hello, around),
            Err(Errno::PIPE | Errno::CONNRESET) => self.again(around),
            Err(e) => Step::Failed(format!("cannot be reached: {e}")),
        }
    }

    fn listen(&mut self, mut talk: Box<Conversation>, hello: Hello, around: &Around<'_>) -> Step {
        let secret = &around.config.secret;
        let welcome = match talk.hear() {
            Heard::Nothing => {
                self.stage = Stage::Greeted { talk, hello };
                return Step::On;
            }
            Heard::Message(Control::Welcome(welcome)) => welcome,
            Heard::Message(Control::Refuse(refusal)) if refusal.code == RefusalCode::Crossed => {
                self.give_way(around.now_ms);
                return Step::On;
            }
            Heard::Message(Control::Refuse(refusal)) => {
                return Step::Failed(format!("refused the link: {}", refusal.text));
            }
            Heard::Ended | Heard::Failed(_) => return self.again(around),
            Heard::OtherVersion(theirs) => {
                return Step::Failed(format!(
                    "speaks version {theirs} of the format, this side {VERSION} \
                     (start one release everywhere)"
                ));
            }
            Heard::Message(_) | Heard::Foreign(_) => {
                return Step::Failed("answered a hello with something else".into());
            }
        };
        let Some(ends) = Ends::from_welcome(hello, &welcome, secret) else {
            let text = format!("rank {} has another secret (is it of the same job?)", hello.from);
            talk.refuse(RefusalCode::Secret, &text);
            return Step::Failed("has another secret (is it of the same job?)".into());
        };
        self.offer(talk, ends, around)
    }

    fn offer(&mut self, talk: Box<Conversation>, ends: Ends, around: &Around<'_>) -> Step {
        let (segment, memory) = match around.home.segment() {
            Ok(made) => made,
            Err(e) => {
                return Step::Failed(format!("gets no link: cannot make shared memory: {}", told(e)));
            }
        };
        let given = talk.say(&ends.proof(&around.config.secret)).and_then(|()| {
            let socket = talk.into_socket();
            offer::give(&socket, &[memory.as_fd(), around.home.bell.as_fd()]).map(|()| socket)
        });
        match given {
            Ok(socket) => self.finish(socket, segment, ends.rail, around),
            Err(Errno::PIPE | Errno::CONNRESET) => self.again(around),
            Err(e) => Step::Failed(format!("cannot be handed the shared memory: {e}")),
        }
    }

    fn finish(&mut self, socket: OwnedFd, segment: Segment, remote: u8, around: &Around<'_>) -> Step {
        match offer::take(&socket, 1) {
            Given::Nothing => {
                self.stage = Stage::Offered { socket, segment, remote };
                Step::On
            }
            Given::All(mut fds) => match fds.pop() {
                Some(bell) => {
                    let memory = (segment, End::Opened);
                    let opened = around.home.open_link(self.peer, remote, memory, socket, bell);
                    Step::Open(Box::new(opened))
                }
                None => Step::On,
            },
            Given::Ended => self.again(around),
            Given::Wrong(why) => Step::Failed(format!("broke the handshake: {why}")),
        }
    }

    fn again(&mut self, around: &Around<'_>) -> Step {
        self.ended += 1;
        self.tries = 0;
        if self.ended >= ENDED_MAX {
            return Step::Failed("closed the connection while the link was opened (has it died?)".into());
        }
        self.stage = Stage::Resting { until_ms: around.now_ms + REST_MS };
        Step::On
    }
}
