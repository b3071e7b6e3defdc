//! Connecting to a peer: its addresses one after the other, within a bound.
//!
//! The bound is for connections. Where one stands, the peer's system has taken it, and tells when the peer
//! dies; one that does not answer then is busy, or starved by many others on few cores, and is waited for.

use super::config::TcpConfig;
use super::peers::Known;
use super::socket::{self, Exit};
use crate::conversation::{Conversation, Heard};
use crate::handshake::{self, Ends};
use crate::watch::{Token, Watch};
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, RefusalCode, VERSION};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// Tries per address after which the peer counts as not there.
const TRIES: usize = 3;
/// Connections that a peer may end: one to whom very many connect at once sends some away.
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
    /// When it is given up; none once a connection stood.
    until_ms: Option<u64>,
    tries: usize,
    /// Connections that stood and that the peer has ended.
    ended: usize,
    stage: Stage,
    /// Why the last try failed.
    last: Option<String>,
}

#[derive(Debug)]
enum Stage {
    /// Before the next try.
    Resting { until_ms: u64 },
    /// The connection is on its way, the hello not yet said.
    Reaching { talk: Conversation, hello: Hello, to: Known, until_ms: u64 },
    /// Waits for the welcome; after a while another address is tried, if there is one.
    Greeted { talk: Conversation, hello: Hello, to: Known, until_ms: u64 },
    /// The peer has shown that it knows the secret; our proof is held back.
    Welcomed { talk: Conversation, ends: Ends, to: Known },
}

/// How far an attempt has come.
#[derive(Debug)]
pub enum Step {
    /// Further on another time.
    On,
    /// The link is open, to this rail of the peer.
    Open(OwnedFd, u8),
    /// It cannot be opened.
    Failed(String),
}

/// What an attempt needs to know.
pub struct Around<'a> {
    /// The rail's configuration.
    pub config: &'a TcpConfig,
    /// How its sockets leave this machine.
    pub exit: &'a Exit,
    /// Its sockets.
    pub watch: &'a Watch,
    /// Where the peer is.
    pub known: &'a [Known],
    /// The peer's own connection is being opened: it may make this attempt needless.
    pub rival: bool,
    /// Milliseconds.
    pub now_ms: u64,
}

impl Around<'_> {
    fn bound_ms(&self) -> u64 {
        self.config.bound.as_millis() as u64
    }
}

impl Attempt {
    /// Begins at the next step.
    pub fn new(peer: PeerId, config: &TcpConfig, now_ms: u64) -> Self {
        let until_ms = Some(now_ms + config.bound.as_millis() as u64);
        Attempt { peer, until_ms, tries: 0, ended: 0, stage: Stage::Resting { until_ms: 0 }, last: None }
    }

    /// Whether a connection of this side is under way, and to which rail.
    pub fn under_way(&self) -> Option<u8> {
        match &self.stage {
            Stage::Resting { .. } => None,
            Stage::Reaching { to, .. } | Stage::Greeted { to, .. } => Some(to.rail),
            Stage::Welcomed { ends, .. } => Some(ends.rail),
        }
    }

    /// Goes as far as is possible now.
    pub fn step(&mut self, around: &Around<'_>) -> Step {
        if self.until_ms.is_some_and(|until_ms| around.now_ms >= until_ms) {
            return Step::Failed(self.too_late(around));
        }
        let resting = Stage::Resting { until_ms: around.now_ms };
        match std::mem::replace(&mut self.stage, resting) {
            Stage::Resting { until_ms } if around.rival || around.now_ms < until_ms => {
                self.stage = Stage::Resting { until_ms };
                Step::On
            }
            Stage::Resting { .. } => self.reach(around),
            Stage::Reaching { talk, hello, to, until_ms } => self.greet(talk, hello, to, until_ms, around),
            Stage::Greeted { talk, hello, to, until_ms } => self.listen(talk, hello, to, until_ms, around),
            Stage::Welcomed { talk, ends, to } => self.prove(talk, ends, to, around),
        }
    }

    fn reach(&mut self, around: &Around<'_>) -> Step {
        let count = around.known.len();
        if count == 0 {
            return Step::Failed("has no address on the subnet of this rail".into());
        }
        let to = around.known[self.tries % count];
        let config = around.config;
        // Each address that was not tried yet gets the same part of the time that is left.
        let untried = count.saturating_sub(self.tries).max(1) as u64;
        let left_ms = self.until_ms.map_or(around.bound_ms(), |until_ms| until_ms - around.now_ms);
        let until_ms = around.now_ms + left_ms / untried;
        self.tries += 1;
        match socket::connect(config, around.exit, to.address.socket) {
            Ok(fd) => {
                if let Err(e) = around.watch.add(&fd, Token::Opening, true) {
                    return Step::Failed(format!("cannot watch a socket: {e}"));
                }
                let nonce = handshake::nonce();
                let hello = Hello { from: config.rank.0, to: self.peer.0, rail: config.rail, nonce };
                self.greet(Conversation::new(fd), hello, to, until_ms, around)
            }
            Err(e) => self.again(&to, e, around),
        }
    }

    fn greet(
        &mut self,
        talk: Conversation,
        hello: Hello,
        to: Known,
        until_ms: u64,
        around: &Around<'_>,
    ) -> Step {
        match talk.say(&Control::Hello(hello)) {
            Ok(()) => {
                let _ = around.watch.change(talk.as_fd(), Token::Opening, false);
                self.until_ms = None;
                self.listen(talk, hello, to, around.now_ms + around.bound_ms(), around)
            }
            Err(Errno::AGAIN | Errno::NOTCONN) if around.now_ms < until_ms => {
                self.stage = Stage::Reaching { talk, hello, to, until_ms };
                Step::On
            }
            Err(Errno::AGAIN | Errno::NOTCONN) => self.again(&to, Errno::TIMEDOUT, around),
            Err(e) => self.again(&to, e, around),
        }
    }

    fn listen(
        &mut self,
        mut talk: Conversation,
        hello: Hello,
        to: Known,
        until_ms: u64,
        around: &Around<'_>,
    ) -> Step {
        let secret = &around.config.secret;
        let welcome = match talk.hear() {
            Heard::Nothing if around.now_ms >= until_ms && around.known.len() > 1 => return Step::On,
            Heard::Nothing => {
                let until_ms = self.patience(until_ms, around);
                self.stage = Stage::Greeted { talk, hello, to, until_ms };
                return Step::On;
            }
            Heard::Message(Control::Welcome(welcome)) => welcome,
            Heard::Message(Control::Refuse(refusal)) if refusal.code == RefusalCode::Crossed => {
                self.stage = Stage::Resting { until_ms: around.now_ms + CROSSED_MS };
                self.last = Some("it was connecting to us itself".into());
                return Step::On;
            }
            Heard::Message(Control::Refuse(refusal)) => {
                return Step::Failed(format!("refused the link: {}", refusal.text));
            }
            Heard::Message(_) => return Step::Failed("answered a hello out of turn".into()),
            Heard::Ended => return self.again(&to, Errno::CONNRESET, around),
            Heard::Failed(e) => return self.again(&to, e, around),
            Heard::OtherVersion(theirs) => {
                return Step::Failed(mixed("", theirs, "this side", VERSION).trim_start().into());
            }
            Heard::Foreign(e) => {
                return Step::Failed(format!(
                    "is not at {}, where something else answers: {e}",
                    to.address.socket
                ));
            }
        };
        let Some(ends) = Ends::from_welcome(hello, &welcome, secret) else {
            let text = format!("rank {} has another secret (is it of the same job?)", hello.from);
            talk.refuse(RefusalCode::Secret, &text);
            socket::hush(talk.as_fd());
            return Step::Failed("has another secret (is it of the same job?)".into());
        };
        self.prove(talk, ends, to, around)
    }

    /// Says once that a peer is slow.
    fn patience(&self, until_ms: u64, around: &Around<'_>) -> u64 {
        if around.now_ms < until_ms {
            return until_ms;
        }
        let (name, peer, bound) = (around.config.name(), self.peer.0, around.config.bound);
        log::warn!(
            "rail {name}: peer {peer} has not answered within {bound:?}; it is there, and is waited for"
        );
        u64::MAX
    }

    /// The connection of the lower rank stays: the higher one waits for what becomes of that.
    fn prove(&mut self, talk: Conversation, ends: Ends, to: Known, around: &Around<'_>) -> Step {
        if around.rival && ends.hello.from > ends.hello.to {
            self.stage = Stage::Welcomed { talk, ends, to };
            return Step::On;
        }
        match talk.say(&ends.proof(&around.config.secret)) {
            Ok(()) => Step::Open(talk.into_socket(), ends.rail),
            Err(e) => self.again(&to, e, around),
        }
    }

    fn again(&mut self, to: &Known, e: Errno, around: &Around<'_>) -> Step {
        let at = to.address.socket;
        let why = match e {
            Errno::CONNREFUSED => format!("is gone: nobody listens at {at} (has it died?)"),
            e => format!("cannot be reached at {at} from {}: {e}", around.config.address()),
        };
        let has_ended = self.until_ms.is_none() && matches!(e, Errno::CONNRESET | Errno::PIPE);
        self.ended += usize::from(has_ended);
        if self.ended >= ENDED_MAX || !has_ended && self.tries >= TRIES * around.known.len() {
            return Step::Failed(why);
        }
        // The other addresses at once, then a rest.
        let rest = if self.tries < around.known.len() { 0 } else { REST_MS };
        self.stage = Stage::Resting { until_ms: around.now_ms + rest };
        self.last = Some(why);
        Step::On
    }

    fn too_late(&self, around: &Around<'_>) -> String {
        let bound = around.config.bound;
        let here = around.config.address();
        let there = around.known.first().map_or("it".into(), |known| known.address.socket.ip().to_string());
        let hint = format!("did not answer within {bound:?} (is {there} reachable from {here}?)");
        match &self.last {
            Some(last) => format!("{hint}; before: {last}"),
            None => hint,
        }
    }
}

/// A mixed start, in words for the user.
pub fn mixed(one: &str, version: u8, other: &str, another: u8) -> String {
    format!(
        "{one} speaks version {version} of the format, {other} version {another} \
         (start one release everywhere)"
    )
}
