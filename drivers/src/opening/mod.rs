//! The one state machine that opens links, for every driver whose peers have to find and trust each other.
//!
//! It performs no I/O and reads no clock. A driver reports events: a link is wanted, a connection was
//! accepted or has ended, a message came, time has passed. The machine answers with [`Action`]s, which the
//! driver carries out. [`Medium`] has the differences between networks; through [`Around`] the driver
//! supplies the facts that it alone knows (addresses, open links, messages about its network).
//!
//! A link opens by hello, welcome and proof ([`crate::handshake`]). Each exchange is a *conversation* with an
//! [`Id`] of this machine: on an *attempt*, which this side began, or with a *stranger*, a process that has
//! connected to us and has not proved yet that it knows the secret of the job. Already the hello bears a MAC
//! with that secret, so a stranger that keeps a place either knows the secret or has said nothing.
//!
//! If both sides say hello at once, the link of the lower rank stays. The lower rank does not accept the
//! other hello while its own attempt is under way. The higher rank accepts, begins no conversation of its
//! own meanwhile, and forgets its attempt as soon as the other side has proved itself.

mod attempt;
mod medium;
mod notices;
mod origin;
mod room;
mod spent;
mod stranger;
#[cfg(test)]
mod tests;

pub use medium::{Medium, RETRY_MS};
pub use origin::Origin;

use crate::handshake::Ends;
use attempt::Attempt;
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Malformed, RefusalCode, VERSION};
use notices::Notices;
use spent::Spent;
use std::collections::VecDeque;
use std::time::Duration;
use stranger::Stranger;

/// A conversation. No two conversations of one rail have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Id {
    /// Its number, for lists of a driver.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What this side is to the others.
#[derive(Clone)]
pub struct Local {
    /// Name of the rail, for the log.
    pub name: String,
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of the rail in this process.
    pub rail: u8,
    /// Secret of the job.
    pub secret: [u8; 32],
    /// Longest time for a link to open, and for a stranger to prove itself.
    pub bound: Duration,
}

/// What the driver does for the machine. Actions for a conversation that has ended meanwhile are skipped.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Begin this conversation with the address of that place in the list of the peer's; answered by
    /// [`Opening::reached`] or [`Opening::failed`].
    Reach {
        /// The conversation.
        id: Id,
        /// With whom.
        peer: PeerId,
        /// Place of the address in the list, see [`Around::remotes`].
        address: usize,
    },
    /// Say something.
    Say {
        /// In this conversation.
        id: Id,
        /// Hello, welcome or proof.
        message: Control<'static>,
        /// Datagrams only: the length that a hello or welcome is filled up to, or the length that passes.
        len: usize,
    },
    /// Say why there will be no link, and end the conversation such that this still arrives.
    Refuse {
        /// The conversation.
        id: Id,
        /// Kind of reason.
        code: RefusalCode,
        /// For the user on the other side.
        text: String,
    },
    /// Both sides have proved themselves. Do what else is needed; answered by [`Opening::finished`] or
    /// [`Opening::failed`].
    Finish {
        /// The conversation.
        id: Id,
        /// Whether this side began it.
        is_attempt: bool,
    },
    /// End the conversation.
    Drop {
        /// The conversation.
        id: Id,
    },
    /// A link that this side wanted cannot be opened.
    Failed {
        /// To whom.
        peer: PeerId,
        /// Cause and remedy, for the user, as what follows the name of the peer.
        why: String,
    },
}

/// A link that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// To whom.
    pub peer: PeerId,
    /// To which rail of the peer.
    pub remote: u8,
    /// What both sides know.
    pub ends: Ends,
    /// Whether this side began.
    pub is_attempt: bool,
    /// Datagrams only: the longest that passes, in bytes.
    pub len: usize,
}

/// A message that came in a conversation.
#[derive(Debug)]
pub enum Said<'a> {
    /// A message.
    Message(Control<'a>),
    /// Something in this other version of the format.
    OtherVersion(u8),
    /// Something else.
    Foreign(Malformed),
}

/// Why a conversation has failed, as far as it matters for what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The peer is there and takes no more connections now.
    Busy,
    /// Nobody could be reached.
    Unreachable,
    /// The other side has ended a conversation that had begun.
    Ended,
    /// Another try would fail, too.
    Hopeless,
}

/// A link of the rail, as far as opening another one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linked {
    /// The peer's rail.
    pub remote: u8,
    /// The peer may not know yet that the link is open.
    pub is_unproved: bool,
}

/// What the driver knows.
pub trait Around {
    /// The number of the peer's rail for each of its addresses, the best address first.
    fn remotes(&self, peer: PeerId) -> Vec<u8>;
    /// The link to a peer, if there is one.
    fn linked(&self, peer: PeerId) -> Option<Linked>;
    /// The message about a peer without any address, to follow the name of the peer.
    fn homeless(&self) -> &'static str;
    /// The message about a peer that has not answered within the bound, with a likely cause.
    fn silent(&self, peer: PeerId) -> String;
}

/// Everything about the links of a rail that are not open yet.
pub struct Opening {
    local: Local,
    medium: Medium,
    attempts: Vec<Attempt>,
    strangers: Vec<Stranger>,
    actions: VecDeque<Action>,
    begun: u64,
    notices: Notices,
    spent: Spent,
}

impl Opening {
    /// Nothing is to be opened yet.
    pub fn new(local: Local, medium: Medium) -> Self {
        let (attempts, strangers, actions) = (Vec::new(), Vec::new(), VecDeque::new());
        Opening {
            local,
            medium,
            attempts,
            strangers,
            actions,
            begun: 0,
            notices: Notices::default(),
            spent: Spent::default(),
        }
    }

    /// Whether this side wants a link, so that looking after it often shortens the wait.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        !self.attempts.is_empty()
    }

    /// Whether there is nothing to do until somebody new comes.
    #[inline]
    pub fn is_idle(&self) -> bool {
        let is_empty = self.attempts.is_empty() && self.strangers.is_empty();
        is_empty && self.actions.is_empty() && self.notices.is_empty()
    }

    /// The machine's data about this side.
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// What the driver has to do next.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// A link is wanted. It is begun at the next [`Opening::step`], unless that has happened.
    pub fn connect(&mut self, peer: PeerId, now_ms: u64) {
        if self.attempt_to(peer).is_none() {
            self.attempts.push(Attempt::new(peer, now_ms, self.local.bound));
        }
    }

    /// The link to this peer is not wanted any more.
    pub fn forget(&mut self, peer: PeerId) {
        if let Some(at) = self.attempt_to(peer) {
            let attempt = self.attempts.swap_remove(at);
            self.actions.extend(attempt.id().map(|id| Action::Drop { id }));
        }
    }

    /// Time has passed. Strangers expire, attempts go on.
    pub fn step(&mut self, now_ms: u64, around: &dyn Around) {
        self.expire(now_ms);
        self.tell(now_ms);
        for at in (0..self.attempts.len()).rev() {
            self.go_on(at, now_ms, around);
        }
    }

    /// Something was said in a conversation. Of datagrams, `len` is the length that passed: that of the
    /// datagram itself or the length that it names, whichever is less. `nonce` is fresh, for an answer.
    pub fn heard(
        &mut self,
        id: Id,
        said: Said<'_>,
        len: usize,
        (now_ms, nonce): (u64, [u8; 32]),
        around: &dyn Around,
    ) {
        if let Some(at) = self.attempt_in(id) {
            self.heard_answer(at, said, len, now_ms);
        } else if let Some(at) = self.stranger_in(id) {
            self.heard_stranger(at, said, len, (now_ms, nonce), around);
        }
    }

    /// A conversation has ended, or could not be begun; the driver has forgotten it already.
    pub fn failed(&mut self, id: Id, trouble: Trouble, why: String, now_ms: u64, around: &dyn Around) {
        if let Some(at) = self.attempt_in(id) {
            self.setback(at, trouble, why, now_ms, around);
        } else if let Some(at) = self.stranger_in(id) {
            let stranger = self.strangers.swap_remove(at);
            self.note_end(&stranger, &why, (now_ms, around));
        }
    }

    /// The link of a conversation in which both sides have proved themselves.
    pub fn proved(&self, id: Id) -> Option<Opened> {
        match self.attempt_in(id) {
            Some(at) => self.attempts[at].opened(),
            None => self.strangers[self.stranger_in(id)?].opened(),
        }
    }

    /// All is done for the link of this conversation, which the driver takes over. None: it is not wanted any
    /// more.
    pub fn finished(&mut self, id: Id) -> Option<Opened> {
        if let Some(at) = self.attempt_in(id) {
            let opened = self.attempts[at].opened()?;
            self.attempts.swap_remove(at);
            self.drop_strangers(|stranger| stranger.claims() == Some(opened.peer));
            return Some(opened);
        }
        let at = self.stranger_in(id)?;
        let opened = self.strangers[at].opened()?;
        self.strangers.swap_remove(at);
        self.forget(opened.peer);
        Some(opened)
    }

    fn attempt_to(&self, peer: PeerId) -> Option<usize> {
        self.attempts.iter().position(|attempt| attempt.peer == peer)
    }

    fn attempt_in(&self, id: Id) -> Option<usize> {
        self.attempts.iter().position(|attempt| attempt.id() == Some(id))
    }

    fn stranger_in(&self, id: Id) -> Option<usize> {
        self.strangers.iter().position(|stranger| stranger.id == id)
    }

    fn begin(&mut self) -> Id {
        self.begun += 1;
        Id(self.begun)
    }

    /// Notes an event with a stranger for the log.
    fn note(&mut self, level: log::Level, text: String, now_ms: u64) {
        self.notices.note(level, text);
        self.tell(now_ms);
    }

    fn tell(&mut self, now_ms: u64) {
        if let Some((level, text)) = self.notices.take(now_ms) {
            log::log!(level, "rail {}: {text}", self.local.name);
        }
    }
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the secret.
        f.debug_struct("Opening")
            .field("medium", &self.medium)
            .field("attempts", &self.attempts)
            .field("strangers", &self.strangers)
            .field("actions", &self.actions)
            .finish_non_exhaustive()
    }
}

/// A mixed start, in words for the user.
fn mixed(one: &str, version: u8, other: &str, another: u8) -> String {
    format!(
        "{one} speaks version {version} of the format, {other} version {another} \
         (start one release everywhere)"
    )
}

/// What a refusal says whose side speaks another version.
fn refused_version(theirs: u8) -> String {
    mixed("this side", VERSION, "the other side", theirs)
}
