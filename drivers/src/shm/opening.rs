//! Links that are not open yet: our attempts and the strangers at the door, and which of two stays.
//!
//! When both sides open a link at once that of the lower rank stays: it refuses the other's hello while its
//! own is under way; the higher one gives its own up when it hears the other's.

use super::config::ShmConfig;
use super::connect::{Around, Attempt, Step};
use super::home::Home;
use super::layout::End;
use super::link::{Link, Opened};
use super::offer::{self, Given};
use super::peers::Peers;
use crate::conversation::{Conversation, Heard};
use crate::handshake::{self, Ends};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, RefusalCode, VERSION};
use rustix::fd::{AsFd, OwnedFd};

/// Strangers at once; others wait in the kernel.
const STRANGERS: usize = 128;
/// Age after which one that has said nothing sensible makes room for others, in milliseconds.
const PATIENCE_MS: u64 = 250;

/// Everything about links that are not open yet.
#[derive(Debug, Default)]
pub struct Opening {
    attempts: Vec<Attempt>,
    strangers: Vec<Stranger>,
}

/// A connection that was accepted.
#[derive(Debug)]
struct Stranger {
    stage: Stage,
    since_ms: u64,
}

#[derive(Debug)]
enum Stage {
    /// It has not said who it is, or not proved it.
    Talking(Box<Conversation>, Option<Ends>),
    /// It has proved who it is and shall hand over the memory.
    Proved(OwnedFd, Ends),
}

/// What became of an attempt or a stranger.
#[derive(Debug)]
pub enum Outcome {
    /// A link is open.
    Open(Box<Opened>),
    /// A link that this side wanted cannot be opened.
    Failed(PeerId, String),
}

/// How far a stranger has come.
enum Progress {
    On(Stage),
    Open(Box<Opened>),
    Gone(String),
}

/// The parts of the rail that opening looks at.
pub struct Rail<'a> {
    /// Its configuration.
    pub config: &'a ShmConfig,
    /// Its door and bell.
    pub home: &'a Home,
    /// Its sockets.
    pub watch: &'a Watch,
    /// Its peers and their links.
    pub peers: &'a Peers,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Rail<'_> {
    fn bound_ms(&self) -> u64 {
        self.config.bound.as_millis() as u64
    }
}

impl Stage {
    /// Whether the other side has shown that it belongs to the job.
    fn is_proved(&self) -> bool {
        matches!(self, Stage::Proved(..))
    }

    fn claims(&self) -> Option<PeerId> {
        match self {
            Stage::Talking(_, ends) => ends.as_ref().map(|ends| PeerId(ends.hello.from)),
            Stage::Proved(_, ends) => Some(PeerId(ends.hello.from)),
        }
    }
}

impl Opening {
    /// Whether there is nothing to do but for who knocks next.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.strangers.is_empty()
    }

    /// Begins to open a link, unless that has begun.
    pub fn connect(&mut self, peer: PeerId, config: &ShmConfig, now_ms: u64) {
        if self.attempts.iter().all(|attempt| attempt.peer != peer) {
            self.attempts.push(Attempt::new(peer, config, now_ms));
        }
    }

    /// Wants no link to this peer any more.
    pub fn forget(&mut self, peer: PeerId) {
        self.attempts.retain(|attempt| attempt.peer != peer);
    }

    /// Lets in who waits, listens to everyone, goes on with every attempt.
    pub fn step(&mut self, rail: &Rail<'_>, outcome: &mut Vec<Outcome>) {
        // Before others are let in: whoever has said nothing so far may have to make room.
        self.hear_all(rail, outcome);
        if self.accept(rail) {
            self.hear_all(rail, outcome);
        }
        for at in (0..self.attempts.len()).rev() {
            let peer = self.attempts[at].peer;
            let rival = self.strangers.iter().any(|stranger| stranger.stage.claims() == Some(peer));
            let Rail { config, home, watch, now_ms, .. } = *rail;
            let around = Around { config, home, watch, address: rail.peers.address(peer), rival, now_ms };
            let result = match self.attempts[at].step(&around) {
                Step::On => continue,
                Step::Open(opened) => Outcome::Open(opened),
                Step::Failed(why) => Outcome::Failed(peer, why),
            };
            self.attempts.swap_remove(at);
            outcome.push(result);
        }
    }

    fn hear_all(&mut self, rail: &Rail<'_>, outcome: &mut Vec<Outcome>) {
        for at in (0..self.strangers.len()).rev() {
            self.hear(at, rail, outcome);
        }
    }

    /// Lets in who waits; whether somebody did.
    fn accept(&mut self, rail: &Rail<'_>) -> bool {
        let mut came = false;
        loop {
            if self.strangers.len() >= STRANGERS {
                let old =
                    |s: &Stranger| s.stage.claims().is_none() && rail.now_ms >= s.since_ms + PATIENCE_MS;
                let Some(at) = self.strangers.iter().position(old) else { return came };
                self.strangers.remove(at);
            }
            let Some(fd) = rail.home.accept() else { return came };
            if rail.watch.add(&fd, Token::Opening, false).is_ok() {
                let stage = Stage::Talking(Box::new(Conversation::new(fd)), None);
                self.strangers.push(Stranger { stage, since_ms: rail.now_ms });
                came = true;
            }
        }
    }

    fn hear(&mut self, at: usize, rail: &Rail<'_>, outcome: &mut Vec<Outcome>) {
        let Stranger { stage, since_ms } = self.strangers.swap_remove(at);
        let claims = stage.claims();
        let progress = match stage {
            Stage::Talking(talk, ends) => self.listen(talk, ends, rail),
            Stage::Proved(socket, ends) => receive(socket, ends, rail),
        };
        match progress {
            Progress::On(stage) if stage.is_proved() || rail.now_ms < since_ms + rail.bound_ms() => {
                self.strangers.push(Stranger { stage, since_ms });
                // In the place of the one that was taken out, so that each is heard once.
                let last = self.strangers.len() - 1;
                self.strangers.swap(at, last);
            }
            Progress::On(_) => log::warn!("rail shm: a stranger did not finish its handshake in time"),
            Progress::Open(opened) => {
                self.forget(opened.peer);
                outcome.push(Outcome::Open(opened));
            }
            Progress::Gone(why) => match claims {
                // One that gives way to another connection of the same peer is no news.
                Some(peer) if rail.peers.link(peer).is_some() => {}
                Some(peer) => log::info!("rail shm: no link from peer {}: {why}", peer.0),
                None => log::info!("rail shm: a stranger: {why}"),
            },
        }
    }

    fn listen(&mut self, mut talk: Box<Conversation>, ends: Option<Ends>, rail: &Rail<'_>) -> Progress {
        let secret = &rail.config.secret;
        match (talk.hear(), ends) {
            (Heard::Nothing, ends) => Progress::On(Stage::Talking(talk, ends)),
            (Heard::Message(Control::Hello(hello)), None) => {
                if let Some((code, text)) = self.objection(&hello, rail) {
                    return refuse(&talk, code, text);
                }
                let ends = Ends { hello, rail: rail.config.rail, nonce: handshake::nonce() };
                match talk.say(&ends.welcome(secret)) {
                    Ok(()) => Progress::On(Stage::Talking(talk, Some(ends))),
                    Err(e) => Progress::Gone(e.to_string()),
                }
            }
            (Heard::Message(Control::Proof(proof)), Some(ends)) if ends.proves(&proof, secret) => {
                receive(talk.into_socket(), ends, rail)
            }
            (Heard::Message(Control::Proof(_)), Some(_)) => {
                let text = "your side has another secret (is it of the same job?)".into();
                refuse(&talk, RefusalCode::Secret, text)
            }
            (Heard::Message(Control::Refuse(refusal)), _) => {
                Progress::Gone(format!("it refused: {}", refusal.text))
            }
            (Heard::Ended, _) => Progress::Gone("it closed the connection".into()),
            (Heard::Failed(e), _) => Progress::Gone(e.to_string()),
            (Heard::OtherVersion(theirs), _) => {
                let text = format!("this side speaks version {VERSION} of the format, the other {theirs}");
                refuse(&talk, RefusalCode::Version, text)
            }
            (Heard::Message(_), _) => refuse(&talk, RefusalCode::Rank, "that message was out of turn".into()),
            (Heard::Foreign(e), _) => {
                let text = e.to_string();
                refuse(&talk, RefusalCode::Version, text)
            }
        }
    }

    /// Why a hello is refused.
    fn objection(&mut self, hello: &Hello, rail: &Rail<'_>) -> Option<(RefusalCode, String)> {
        let me = rail.config.rank.0;
        if hello.to != me || hello.from == me {
            let text = format!("rank {me} was reached, not rank {} (is its address right?)", hello.to);
            return Some((RefusalCode::Rank, text));
        }
        let peer = PeerId(hello.from);
        let attempt = self.attempts.iter_mut().find(|attempt| attempt.peer == peer)?;
        if !attempt.is_under_way() {
            return None;
        }
        if me < hello.from {
            return Some((RefusalCode::Crossed, "both sides connected at once".into()));
        }
        attempt.give_way(rail.now_ms);
        None
    }
}

fn refuse(talk: &Conversation, code: RefusalCode, text: String) -> Progress {
    talk.refuse(code, &text);
    if code != RefusalCode::Crossed {
        log::warn!("rail shm: refused a stranger: {text}");
    }
    Progress::Gone(text)
}

/// Takes over the memory that a peer hands over, and gives it our bell.
fn receive(socket: OwnedFd, ends: Ends, rail: &Rail<'_>) -> Progress {
    let fds = match offer::take(&socket, 2) {
        Given::Nothing => return Progress::On(Stage::Proved(socket, ends)),
        Given::All(fds) => fds,
        Given::Ended => return Progress::Gone("it closed the connection".into()),
        Given::Wrong(why) => return Progress::Gone(why),
    };
    let Ok([memory, bell]) = <[OwnedFd; 2]>::try_from(fds) else {
        return Progress::Gone("it handed over something else".into());
    };
    let segment = match rail.home.adopt(memory.as_fd()) {
        Ok(segment) => segment,
        Err(why) => return Progress::Gone(why),
    };
    if let Err(e) = offer::give(&socket, &[rail.home.bell.as_fd()]) {
        return Progress::Gone(e.to_string());
    }
    let (peer, remote) = (PeerId(ends.hello.from), ends.hello.rail);
    Progress::Open(Box::new(rail.home.open_link(peer, remote, (segment, End::Answered), socket, bell)))
}

/// A link, made of what the handshake left.
pub fn link(opened: Opened) -> Box<Link> {
    Box::new(Link::new(opened))
}
