//! The state machine that opens links, shared by all drivers whose peers have to find and authenticate each
//! other.
//!
//! It performs no I/O and reads no clock. A driver reports events: a link is wanted, a connection was
//! accepted or has ended, a message arrived, time has passed. The machine answers with [`Action`]s, which
//! the driver carries out. [`Medium`] has the differences between networks; through [`Facts`] the driver
//! supplies its own facts (addresses, open links, messages about its network).
//!
//! A link opens by hello, welcome and proof ([`crate::handshake`]). Each handshake is a *conversation* with
//! an [`Id`] of this machine: either an *attempt*, which this side began, or with a *stranger*, a process
//! that has connected to us and has not proved yet that it knows the secret of the job. Already the hello
//! has a MAC with that secret, so each stranger that occupies a place either knows the secret or has sent
//! nothing.
//!
//! If both sides send a hello at once, the link of the lower rank stays. The lower rank does not accept the
//! other hello while its own attempt is under way. The higher rank accepts, begins no conversation of its
//! own meanwhile, and drops its attempt as soon as the other side has proved itself.

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

use crate::handshake::{Ends, Fresh};
use attempt::Attempt;
use nmad_engine::packet::PeerId;
use nmad_seal::{Keys, Policy, Sealer, TAG, Unsealer};
use nmad_wire::{Cipher, Control, Malformed, RefusalCode, VERSION};
use notices::Notices;
use spent::Spent;
use std::collections::VecDeque;
use std::time::Duration;
use stranger::Stranger;

/// Identifies a conversation; unique on one rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Id {
    /// Its number, for lists of a driver.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Identity and parameters of this side.
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
    /// Time limit for opening a link, and for a stranger's hello.
    pub bound: Duration,
    /// Which links are encrypted.
    pub encrypt: Policy,
    /// Links stay within this host, so no network can be at fault.
    pub within_host: bool,
}

/// An instruction to the driver. Actions for a conversation that has ended meanwhile are skipped.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this conversation with the given address of the peer; the driver answers with
    /// [`Opening::reached`] or [`Opening::failed`].
    Reach {
        /// The conversation.
        id: Id,
        /// The peer.
        peer: PeerId,
        /// Index of the address in the peer's list, see [`Facts::remotes`].
        address: usize,
    },
    /// Send a message.
    Send {
        /// The conversation.
        id: Id,
        /// Hello, welcome or proof.
        message: Control<'static>,
        /// Datagrams only: for a hello or welcome the length to pad to, for a proof the length that passes.
        len: usize,
    },
    /// Send the reason for which there will be no link, and end the conversation such that it still
    /// arrives.
    Refuse {
        /// The conversation.
        id: Id,
        /// Kind of reason.
        code: RefusalCode,
        /// Text for the user on the other side.
        text: String,
    },
    /// Both sides have proved themselves: run the driver's own exchange; the driver answers with
    /// [`Opening::finished`] or [`Opening::failed`].
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
    /// Report that a link which this side wanted cannot be opened.
    Failed {
        /// The peer.
        peer: PeerId,
        /// Cause and remedy, printed behind the name of the peer.
        why: String,
    },
}

/// A link whose handshake is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The peer.
    pub peer: PeerId,
    /// The number of the peer's rail.
    pub remote: u8,
    /// The data that both sides share.
    pub ends: Ends,
    /// The keys of the link, if it is encrypted.
    pub keys: Option<Keys>,
    /// Whether this side began.
    pub is_attempt: bool,
    /// Datagrams only: the longest that passes, in bytes.
    pub len: usize,
}

impl Opened {
    /// Returns the link between these ends.
    pub(crate) fn of(ends: Ends, keys: Option<Keys>, is_attempt: bool) -> Opened {
        let (peer, remote) = match is_attempt {
            true => (ends.hello.to, ends.rail),
            false => (ends.hello.from, ends.hello.rail),
        };
        Opened { peer: PeerId(peer), remote, ends, keys, is_attempt, len: 0 }
    }

    /// Returns the ciphers for sending and for receiving; `None` if the link is not encrypted.
    pub(crate) fn directions(&self) -> Option<(Sealer, Unsealer)> {
        Some(self.keys.as_ref()?.directions(self.is_attempt))
    }

    /// Returns the number of bytes behind the data of each datagram.
    pub(crate) fn behind(&self) -> usize {
        if self.keys.is_some() { TAG } else { 0 }
    }

    /// Returns the name of the link's cipher for the user; `None` if the link is not encrypted.
    pub fn cipher(&self) -> Option<&'static str> {
        Some(match self.keys.as_ref()?.cipher() {
            Cipher::Aes256Gcm => "AES-256-GCM",
            Cipher::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        })
    }
}

#[cfg(test)]
impl Opened {
    /// Returns both sides of an encrypted link, whose private keys consist of these bytes.
    pub(crate) fn encrypted(private: [u8; 2]) -> [Opened; 2] {
        use nmad_seal::exchange::Scalar;
        use nmad_wire::{Hello, Offer};
        let scalars = private.map(|byte| Scalar::new([byte; 32]));
        let [ours, theirs] =
            scalars.each_ref().map(|one| Offer { cipher: Cipher::Aes256Gcm, key: one.public() });
        let hello = Hello { from: 0, to: 1, rail: 0, nonce: [1; 32], offer: Some(ours), mac: [0; 32] };
        let ends = Ends { hello, rail: 0, nonce: [2; 32], offer: Some(theirs) };
        [(&scalars[0], theirs.key, true), (&scalars[1], ours.key, false)]
            .map(|(scalar, key, is_attempt)| Opened::of(ends, ends.keys(&[3; 32], scalar, &key), is_attempt))
    }
}

/// Content received in a conversation.
#[derive(Debug)]
pub enum Content<'a> {
    /// A handshake message.
    Message(Control<'a>),
    /// A message of this other version of the protocol.
    OtherVersion(u8),
    /// Bytes of no version of the protocol.
    Foreign(Malformed),
}

/// Kind of a failure; it decides what is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The peer is alive, but takes no more connections now.
    Busy,
    /// No process could be reached.
    Unreachable,
    /// The other side has closed a conversation that had begun.
    Ended,
    /// Another try would fail as well.
    Permanent,
}

/// The part of an open link on which opening another one depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linked {
    /// The number of the peer's rail.
    pub remote: u8,
    /// The peer may not know yet that the link is open.
    pub is_unproved: bool,
}

/// Facts that the driver supplies.
pub trait Facts {
    /// The number of the peer's rail for each of its addresses, the best address first.
    fn remotes(&self, peer: PeerId) -> Vec<u8>;
    /// The link to a peer, if there is one.
    fn linked(&self, peer: PeerId) -> Option<Linked>;
    /// Returns whether a peer is in another subnet or at a public address, so that packets to it may pass
    /// through networks of strangers.
    fn is_far(&self, peer: PeerId) -> bool;
    /// The message about a peer without any address, to follow the name of the peer.
    fn no_address(&self) -> &'static str;
    /// The message about a peer that has not answered within the bound, with a likely cause.
    fn no_answer(&self, peer: PeerId) -> String;
}

/// The state machine of one rail: all its links that are not open yet.
pub struct Opening {
    local: Local,
    medium: Medium,
    attempts: Vec<Attempt>,
    strangers: Vec<Stranger>,
    actions: VecDeque<Action>,
    begun: u64,
    notices: Notices,
    spent: Spent,
    /// The user has learnt of a peer that is slow to answer.
    has_told_of_slow: bool,
}

impl Opening {
    /// Creates a machine without attempts.
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
            has_told_of_slow: false,
        }
    }

    /// Returns whether this side wants a link, so that frequent steps shorten the wait.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        !self.attempts.is_empty()
    }

    /// Returns whether the machine has nothing to do until a new process connects.
    #[inline]
    pub fn is_idle(&self) -> bool {
        let is_empty = self.attempts.is_empty() && self.strangers.is_empty();
        is_empty && self.actions.is_empty() && self.notices.is_empty()
    }

    /// Identity and parameters of this side.
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// The next action for the driver.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Requests a link, which is started at the next [`Opening::step`], unless there is an attempt already.
    pub fn connect(&mut self, peer: PeerId, now_ms: u64) {
        if self.attempt_to(peer).is_none() {
            self.attempts.push(Attempt::new(peer, now_ms, self.local.bound));
        }
    }

    /// Withdraws the request for a link to this peer.
    pub fn forget(&mut self, peer: PeerId) {
        if let Some(at) = self.attempt_to(peer) {
            let attempt = self.attempts.swap_remove(at);
            self.actions.extend(attempt.id().map(|id| Action::Drop { id }));
        }
    }

    /// Time has passed: strangers expire, attempts continue.
    pub fn step(&mut self, now_ms: u64, facts: &dyn Facts) {
        self.expire(now_ms);
        self.tell(now_ms);
        for at in (0..self.attempts.len()).rev() {
            self.advance(at, now_ms, facts);
        }
    }

    /// Handles a message in a conversation. For datagrams, `len` is the length that has passed: that of the
    /// datagram itself or the length that it names, whichever is less. `fresh` is used if there is an answer.
    pub fn handle_message(
        &mut self,
        id: Id,
        content: Content<'_>,
        len: usize,
        (now_ms, fresh): (u64, Fresh),
        facts: &dyn Facts,
    ) {
        if let Some(at) = self.attempt_in(id) {
            self.handle_answer(at, content, len, now_ms);
        } else if let Some(at) = self.stranger_in(id) {
            self.handle_stranger(at, content, len, (now_ms, fresh), facts);
        }
    }

    /// Handles the end of a conversation, or a failure to start it; the driver has removed it already.
    pub fn failed(&mut self, id: Id, kind: FailureKind, why: String, now_ms: u64, facts: &dyn Facts) {
        if let Some(at) = self.attempt_in(id) {
            self.handle_failure(at, kind, why, now_ms, facts);
        } else if let Some(at) = self.stranger_in(id) {
            let stranger = self.strangers.swap_remove(at);
            self.note_end(&stranger, &why, (now_ms, facts));
        }
    }

    /// The link of a conversation in which both sides have proved themselves.
    pub fn proved(&self, id: Id) -> Option<Opened> {
        match self.attempt_in(id) {
            Some(at) => self.attempts[at].opened(),
            None => self.strangers[self.stranger_in(id)?].opened(),
        }
    }

    /// The driver's own exchange is complete; returns the link, which the driver takes over. None: it is
    /// not wanted any more.
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

    /// Returns whether this side asks for encryption when it opens a link to a peer.
    fn encrypts(&self, peer: PeerId, facts: &dyn Facts) -> bool {
        self.local.encrypt.asks(|| facts.is_far(peer))
    }

    /// Returns the key of the MACs of welcome and proof.
    fn key<'k>(&'k self, keys: &'k Option<Keys>) -> &'k [u8; 32] {
        keys.as_ref().map_or(&self.local.secret, Keys::confirmation)
    }

    fn begin(&mut self) -> Id {
        self.begun += 1;
        Id(self.begun)
    }

    /// Records an event with a stranger for the log.
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
        // The secret is omitted.
        f.debug_struct("Opening")
            .field("medium", &self.medium)
            .field("attempts", &self.attempts)
            .field("strangers", &self.strangers)
            .field("actions", &self.actions)
            .finish_non_exhaustive()
    }
}

/// Message to the user about a job with mixed versions.
fn mixed(one: &str, version: u8, other: &str, another: u8) -> String {
    format!(
        "{one} speaks version {version} of the format, {other} version {another} \
         (start one release everywhere)"
    )
}

/// Text of a refusal for a side with another version.
fn refused_version(theirs: u8) -> String {
    mixed("this side", VERSION, "the other side", theirs)
}
