//! Attempts to open a link from this side: the peer's addresses are tried one after the other, until one
//! answers or the time limit is over.

use super::medium::{Medium, RETRY_MS};
use super::{Action, Content, Facts, FailureKind, Id, Opened, Opening, mixed};
use crate::handshake::{self, Ends, Fresh};
use log::Level;
use nmad_engine::packet::PeerId;
use nmad_seal::exchange::Scalar;
use nmad_seal::{Keys, Policy};
use nmad_wire::{Control, Hello, Offer, Refusal, RefusalCode, VERSION, Welcome};
use std::time::Duration;

/// Tries per address after which a peer counts as unreachable.
const TRIES: usize = 3;
/// Connections that a peer may close: a peer to which very many connect at once has to drop some.
const ENDED_MAX: usize = 20;
/// Time limits after which the user gets a message that a peer is slow: a host with many ranks a core has
/// answered by then, a stopped process has not.
const SLOW: u32 = 6;
/// Time to wait for the other side's connection before the next try, in milliseconds.
const CROSSED_MS: u64 = 500;
/// Hellos of one length before a shorter one is tried.
const HELLOS: u32 = 4;
/// Time after the last message of a peer's own handshake for which this side sends no hello, in
/// milliseconds. A live peer repeats its hello every [`RETRY_MS`].
const HELD_MS: u64 = 1000;

/// An attempt to open a link from this side.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The peer to reach.
    pub(super) peer: PeerId,
    /// When the attempt fails; none once the peer is known to be alive.
    until_ms: Option<u64>,
    /// When there is a message that the peer is slow; none: it was printed.
    slow_ms: Option<u64>,
    /// Number of tries over all addresses, repetitions included.
    tried: usize,
    /// Number of tries that reached no process.
    unreached: usize,
    /// Number of conversations that the peer has closed.
    ended: usize,
    /// Whether the hellos of this try ask for an encrypted link.
    encrypts: bool,
    /// The peer has refused a hello without encryption, and the policy of this side permits both.
    is_upgraded: bool,
    stage: Stage,
    /// Why the last try failed.
    last: Option<String>,
}

#[derive(Debug)]
enum Stage {
    /// Pause before the next try.
    Resting { until_ms: u64 },
    /// The driver is connecting.
    Reaching { id: Id, until_ms: u64 },
    /// A hello was sent, no welcome has arrived; at `next_ms` the next thing is tried.
    Greeted { id: Id, hello: Hello, scalar: Scalar, len: usize, hellos: u32, next_ms: u64 },
    /// The peer has proved that it knows the secret; this side has not yet.
    Welcomed { id: Id, ends: Ends, keys: Option<Keys>, len: usize },
    /// Both sides have proved that. The driver's own exchange is in progress.
    Finishing { id: Id, ends: Ends, keys: Option<Keys>, len: usize },
}

impl Attempt {
    pub(super) fn new(peer: PeerId, now_ms: u64, bound: Duration) -> Self {
        let until_ms = Some(now_ms + bound.as_millis() as u64);
        let stage = Stage::Resting { until_ms: now_ms };
        Attempt {
            peer,
            until_ms,
            slow_ms: Some(now_ms + (bound * SLOW).as_millis() as u64),
            tried: 0,
            unreached: 0,
            ended: 0,
            encrypts: false,
            is_upgraded: false,
            stage,
            last: None,
        }
    }

    /// The conversation of the current try.
    pub(super) fn id(&self) -> Option<Id> {
        match self.stage {
            Stage::Resting { .. } => None,
            Stage::Reaching { id, .. }
            | Stage::Greeted { id, .. }
            | Stage::Welcomed { id, .. }
            | Stage::Finishing { id, .. } => Some(id),
        }
    }

    /// Returns whether the peer may know of the attempt.
    pub(super) fn is_under_way(&self) -> bool {
        self.id().is_some()
    }

    /// The number of the peer's rail that this try addresses; `remotes` are the rails of its addresses.
    pub(super) fn remote(&self, remotes: &[u8]) -> Option<u8> {
        match self.stage {
            Stage::Resting { .. } => None,
            Stage::Welcomed { ends, .. } | Stage::Finishing { ends, .. } => Some(ends.rail),
            _ => remotes.get(self.tried.checked_sub(1)? % remotes.len().max(1)).copied(),
        }
    }

    /// The link, if only the driver's own exchange is missing.
    pub(super) fn opened(&self) -> Option<Opened> {
        let Stage::Finishing { ends, keys, len, .. } = &self.stage else { return None };
        Some(Opened { len: *len, ..Opened::of(*ends, keys.clone(), true) })
    }
}

impl Opening {
    /// The conversation of an attempt is established: sends a hello. For datagrams, `longest` is the length
    /// that the interface takes.
    pub fn reached(&mut self, id: Id, longest: usize, now_ms: u64, Fresh { nonce, scalar }: Fresh) {
        let Some(at) = self.attempt_in(id) else { return };
        let (rank, rail, bound_ms) = (self.local.rank.0, self.local.rail, self.bound_ms());
        let attempt = &mut self.attempts[at];
        let offer = || Offer { cipher: nmad_seal::preferred(), key: scalar.public() };
        let offer = attempt.encrypts.then(offer);
        let hello = Hello { from: rank, to: attempt.peer.0, rail, nonce, offer, mac: [0; 32] };
        let hello = handshake::sealed(hello, &self.local.secret);
        let mut next_ms = now_ms + RETRY_MS;
        if self.medium == Medium::Connections {
            attempt.until_ms = None;
            next_ms = now_ms + bound_ms;
        }
        attempt.stage = Stage::Greeted { id, hello, scalar, len: longest, hellos: 1, next_ms };
        self.actions.push_back(Action::Send { id, message: Control::Hello(hello), len: longest });
    }

    /// The last message was longer than the path MTU: the next step sends a shorter hello.
    pub fn too_long(&mut self, id: Id, now_ms: u64) {
        if let Some(at) = self.attempt_in(id)
            && let Stage::Greeted { hellos, next_ms, .. } = &mut self.attempts[at].stage
        {
            (*hellos, *next_ms) = (HELLOS, now_ms);
        }
    }

    fn bound_ms(&self) -> u64 {
        self.local.bound.as_millis() as u64
    }

    /// Returns whether the peer of this attempt has started a handshake itself, which may make the attempt
    /// superfluous.
    fn has_incoming_handshake(&self, at: usize) -> bool {
        self.strangers.iter().any(|stranger| stranger.claims() == Some(self.attempts[at].peer))
    }

    /// Advances the attempt as far as possible now.
    pub(super) fn advance(&mut self, at: usize, now_ms: u64, facts: &dyn Facts) {
        let peer = self.attempts[at].peer;
        let count = facts.remotes(peer).len();
        if count == 0 {
            return self.fail(at, facts.no_address().into());
        }
        if self.attempts[at].until_ms.is_some_and(|until_ms| now_ms >= until_ms) {
            let last =
                self.attempts[at].last.take().map_or(String::new(), |last| format!("; before: {last}"));
            return self.fail(at, facts.no_answer(peer) + &last);
        }
        self.warn_slow(at, now_ms);
        if self.medium.loses() {
            // Over connections, an incoming handshake ends when its connection does.
            self.drop_strangers(|stranger| {
                stranger.claims() == Some(peer) && stranger.is_stale(now_ms, HELD_MS)
            });
        }
        let rival = self.has_incoming_handshake(at);
        match self.attempts[at].stage {
            Stage::Resting { until_ms } if now_ms >= until_ms && !rival => {
                self.attempts[at].encrypts = self.attempts[at].is_upgraded || self.encrypts(peer, facts);
                self.reach(at, count, now_ms)
            }
            Stage::Reaching { id, until_ms } if now_ms >= until_ms => {
                self.actions.push_back(Action::Drop { id });
                self.handle_failure(at, FailureKind::Unreachable, facts.no_answer(peer), now_ms, facts);
            }
            Stage::Greeted { id, next_ms, .. } if now_ms >= next_ms => match self.medium {
                Medium::Connections if count > 1 => self.try_next(at, id, now_ms),
                Medium::Connections => {}
                Medium::Datagrams(_) if rival => {}
                Medium::Datagrams(lengths) => self.greet_again(at, lengths, now_ms),
            },
            Stage::Welcomed { .. } => self.prove(at),
            _ => {}
        }
    }

    fn reach(&mut self, at: usize, count: usize, now_ms: u64) {
        let (id, bound_ms) = (self.begin(), self.bound_ms());
        let attempt = &mut self.attempts[at];
        // Each address that was not tried yet gets an equal share of the remaining time.
        let untried = count.saturating_sub(attempt.tried).max(1) as u64;
        let left_ms = attempt.until_ms.map_or(bound_ms, |until_ms| until_ms - now_ms);
        let (peer, address) = (attempt.peer, attempt.tried % count);
        attempt.tried += 1;
        attempt.stage = Stage::Reaching { id, until_ms: now_ms + left_ms / untried };
        self.actions.push_back(Action::Reach { id, peer, address });
    }

    /// Repeats the hello; after some repetitions in a shorter datagram, and after the shortest to the next
    /// address.
    fn greet_again(&mut self, at: usize, lengths: &[usize], now_ms: u64) {
        let Stage::Greeted { id, hello, len, hellos, next_ms, .. } = &mut self.attempts[at].stage else {
            return;
        };
        if *hellos >= HELLOS {
            match lengths.iter().find(|shorter| **shorter < *len) {
                Some(shorter) => (*len, *hellos) = (*shorter, 0),
                None => {
                    let id = *id;
                    return self.try_next(at, id, now_ms);
                }
            }
        }
        (*hellos, *next_ms) = (*hellos + 1, now_ms + RETRY_MS);
        self.actions.push_back(Action::Send { id: *id, message: Control::Hello(*hello), len: *len });
    }

    fn try_next(&mut self, at: usize, id: Id, now_ms: u64) {
        self.actions.push_back(Action::Drop { id });
        self.attempts[at].stage = Stage::Resting { until_ms: now_ms };
    }

    /// Warns about a peer that is alive but slow. The user learns of the first one, the log of all.
    fn warn_slow(&mut self, at: usize, now_ms: u64) {
        let (limit, name) = (self.local.bound * SLOW, &self.local.name);
        let attempt = &mut self.attempts[at];
        if attempt.slow_ms.is_some_and(|slow_ms| now_ms >= slow_ms) {
            attempt.slow_ms = None;
            let is_told = std::mem::replace(&mut self.has_told_of_slow, true) || self.local.within_host;
            let (peer, level) = (attempt.peer.0, if is_told { Level::Info } else { Level::Warn });
            log::log!(
                level,
                "rail {name}: peer {peer} has not answered within {limit:?}, but it is alive; still waiting"
            );
        }
    }

    /// Handles a message of the peer.
    pub(super) fn handle_answer(&mut self, at: usize, content: Content<'_>, len: usize, now_ms: u64) {
        let loses = self.medium.loses();
        match content {
            Content::Message(Control::Welcome(welcome)) => self.welcomed(at, &welcome, len),
            Content::Message(Control::Refuse(Refusal { code: RefusalCode::Crossed, .. })) => {
                let attempt = &mut self.attempts[at];
                self.actions.extend(attempt.id().map(|id| Action::Drop { id }));
                attempt.stage = Stage::Resting { until_ms: now_ms + CROSSED_MS };
                attempt.last = Some("it was connecting to this side itself".into());
            }
            Content::Message(Control::Refuse(Refusal { code: RefusalCode::Encryption, .. }))
                if self.local.encrypt == Policy::Auto && !self.attempts[at].encrypts =>
            {
                let attempt = &mut self.attempts[at];
                self.actions.extend(attempt.id().map(|id| Action::Drop { id }));
                (attempt.is_upgraded, attempt.stage) = (true, Stage::Resting { until_ms: now_ms });
            }
            Content::Message(Control::Refuse(refusal)) => {
                self.fail(at, format!("refused the link: {}", refusal.text));
            }
            Content::Message(_) if loses => {}
            Content::Message(_) => self.fail(at, "answered a hello out of turn".into()),
            Content::OtherVersion(theirs) => {
                self.fail(at, mixed("", theirs, "this side", VERSION).trim_start().into());
            }
            Content::Foreign(_) if loses => {}
            Content::Foreign(e) => {
                let why = format!("is not at its address, where something else answers: {e}");
                self.fail(at, why);
            }
        }
        if self.attempts.get(at).is_some_and(|attempt| matches!(attempt.stage, Stage::Welcomed { .. })) {
            self.prove(at);
        }
    }

    fn welcomed(&mut self, at: usize, welcome: &Welcome, passed: usize) {
        let loses = self.medium.loses();
        let Stage::Greeted { id, hello, scalar, len, .. } = &self.attempts[at].stage else {
            if !loses {
                self.fail(at, "answered a hello out of turn".into());
            }
            return;
        };
        let (id, hello, len, ends) = (*id, *hello, *len, Ends::new(*hello, welcome));
        let keys = welcome.offer.and_then(|theirs| ends.keys(&self.local.secret, scalar, &theirs.key));
        // A correct peer's welcome has an offer if the hello has one, and otherwise none.
        let is_alike = [welcome.offer.is_some(), keys.is_some()] == [hello.offer.is_some(); 2];
        match is_alike && ends.welcomes(welcome, self.key(&keys)) {
            true if passed < self.medium.shortest().min(len) => {
                self.fail(at, "answered with a datagram that is too short to carry anything".into());
            }
            true => self.attempts[at].stage = Stage::Welcomed { id, ends, keys, len: passed.min(len) },
            false if loses => {}
            false => {
                let text = format!("rank {} has another secret (is it of the same job?)", hello.from);
                self.actions.push_back(Action::Refuse { id, code: RefusalCode::Secret, text });
                self.fail(at, "has another secret (is it of the same job?)".into());
            }
        }
    }

    /// Sends the proof, unless it must be held back until the peer's own connection has ended.
    fn prove(&mut self, at: usize) {
        let Stage::Welcomed { id, ends, keys, len } = &self.attempts[at].stage else { return };
        let (id, ends, keys, len) = (*id, *ends, keys.clone(), *len);
        let waits = self.medium == Medium::Connections
            && ends.hello.from > ends.hello.to
            && self.has_incoming_handshake(at);
        if waits {
            return;
        }
        let message = ends.proof(self.key(&keys));
        self.attempts[at].stage = Stage::Finishing { id, ends, keys, len };
        self.actions.push_back(Action::Send { id, message, len });
        self.actions.push_back(Action::Finish { id, is_attempt: true });
    }

    /// Handles the end of the conversation. The next step depends on the reason.
    pub(super) fn handle_failure(
        &mut self,
        at: usize,
        kind: FailureKind,
        why: String,
        now_ms: u64,
        facts: &dyn Facts,
    ) {
        let rest_ms = self.medium.rest_ms();
        let attempt = &mut self.attempts[at];
        let count = facts.remotes(attempt.peer).len().max(1);
        let is_over = match kind {
            FailureKind::Busy => {
                attempt.until_ms = None;
                false
            }
            FailureKind::Unreachable => {
                attempt.unreached += 1;
                attempt.unreached >= TRIES * count
            }
            FailureKind::Ended => {
                (attempt.ended, attempt.unreached) = (attempt.ended + 1, 0);
                attempt.ended >= ENDED_MAX
            }
            FailureKind::Permanent => true,
        };
        // Try the other addresses at once, then pause.
        let rest_ms = if attempt.tried < count { 0 } else { rest_ms };
        attempt.stage = Stage::Resting { until_ms: now_ms + rest_ms };
        match is_over {
            true => self.fail(at, why),
            false => attempt.last = Some(why),
        }
    }

    fn fail(&mut self, at: usize, why: String) {
        let attempt = self.attempts.swap_remove(at);
        self.actions.extend(attempt.id().map(|id| Action::Drop { id }));
        self.actions.push_back(Action::Failed { peer: attempt.peer, why });
    }
}
