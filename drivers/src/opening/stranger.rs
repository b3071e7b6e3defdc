//! Strangers: processes that have connected to us and have not proved their identity yet.

use super::{Action, Content, Facts, Id, Medium, Opened, Opening, Origin, refused_version};
use crate::handshake::{self, Ends, Fresh};
use log::Level;
use nmad_engine::packet::PeerId;
use nmad_seal::{Keys, Policy};
use nmad_wire::{Control, Hello, Offer, Proof, RefusalCode};

/// Text of the refusal of a side whose MAC is wrong.
const OTHER_SECRET: &str = "your side has another secret (is it of the same job?)";

/// A process that has connected to us.
#[derive(Debug)]
pub(super) struct Stranger {
    /// Its conversation.
    pub(super) id: Id,
    /// Its origin.
    pub(super) origin: Origin,
    pub(super) since_ms: u64,
    /// When its last message arrived.
    heard_ms: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// It has sent no hello.
    New,
    /// It has sent a valid hello, which was answered by a welcome.
    Welcomed(Ends, Option<Keys>),
    /// It has proved that it knows the secret. The driver's own exchange is in progress.
    Proved(Ends, Option<Keys>, usize),
}

impl Stranger {
    /// Its hello, if a welcome was sent.
    pub(super) fn hello(&self) -> Option<Hello> {
        self.ends().map(|ends| ends.hello)
    }

    /// The peer that it claims to be, if a welcome was sent.
    pub(super) fn claims(&self) -> Option<PeerId> {
        self.ends().map(|ends| PeerId(ends.hello.from))
    }

    /// Creates a stranger that has sent nothing yet.
    pub(super) fn new(id: Id, origin: Origin, now_ms: u64) -> Stranger {
        Stranger { id, origin, since_ms: now_ms, heard_ms: now_ms, stage: Stage::New }
    }

    /// Returns whether it has sent no hello.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.stage, Stage::New)
    }

    /// Returns whether its last message is older than `after_ms`, so that it may have ended.
    pub(super) fn is_stale(&self, now_ms: u64, after_ms: u64) -> bool {
        matches!(self.stage, Stage::Welcomed(..)) && now_ms >= self.heard_ms + after_ms
    }

    /// The link, if only the driver's own exchange is missing.
    pub(super) fn opened(&self) -> Option<Opened> {
        let Stage::Proved(ends, keys, len) = &self.stage else { return None };
        Some(Opened { len: *len, ..Opened::of(*ends, keys.clone(), false) })
    }

    fn ends(&self) -> Option<Ends> {
        match self.stage {
            Stage::New => None,
            Stage::Welcomed(ends, _) | Stage::Proved(ends, ..) => Some(ends),
        }
    }

    fn has_said(&self, hello: &Hello) -> bool {
        self.ends().is_some_and(|ends| ends.hello == *hello)
    }
}

impl Opening {
    /// Drops strangers that have sent no hello in time. Where many ranks share a core, a peer that has sent
    /// one may need longer than any limit for its proof, and takes its link for open when it has sent it. So
    /// it stays: the end of its connection is reported. Over datagrams nothing reports that: the limit holds.
    pub(super) fn expire(&mut self, now_ms: u64) {
        let bound_ms = self.local.bound.as_millis() as u64;
        let (bound, loses) = (self.local.bound, self.medium.loses());
        let mut silent = Vec::new();
        self.drop_strangers(|stranger| {
            let may_be_gone = match stranger.stage {
                Stage::New => true,
                Stage::Welcomed(..) => loses,
                Stage::Proved(..) => false,
            };
            let is_late = may_be_gone && now_ms >= stranger.since_ms + bound_ms;
            silent.extend((is_late && !loses).then(|| stranger.origin.text.clone()));
            is_late
        });
        for from in silent {
            let text = format!("{from} has connected and sent no valid hello within {bound:?}");
            self.note(Level::Warn, text, now_ms);
        }
    }

    /// Logs the end of a stranger's conversation, unless another conversation of its peer has replaced it.
    pub(super) fn note_end(&mut self, stranger: &Stranger, why: &str, (now_ms, facts): (u64, &dyn Facts)) {
        let from = &stranger.origin.text;
        let text = match stranger.claims() {
            Some(peer) if facts.linked(peer).is_some() => return,
            Some(peer) => format!("no link from peer {} at {from}: {why}", peer.0),
            None => format!("stranger at {from}: {why}"),
        };
        self.note(Level::Info, text, now_ms);
    }

    /// Drops the strangers for which `which` returns true.
    pub(super) fn drop_strangers(&mut self, mut which: impl FnMut(&Stranger) -> bool) {
        let actions = &mut self.actions;
        self.strangers.retain(|stranger| {
            let goes = which(stranger);
            actions.extend(goes.then_some(Action::Drop { id: stranger.id }));
            !goes
        });
    }

    /// Handles a message of a stranger.
    pub(super) fn handle_stranger(
        &mut self,
        at: usize,
        content: Content<'_>,
        len: usize,
        (now_ms, fresh): (u64, Fresh),
        facts: &dyn Facts,
    ) {
        let loses = self.medium.loses();
        self.strangers[at].heard_ms = now_ms;
        match (content, self.strangers[at].ends()) {
            (Content::Message(Control::Hello(hello)), None) => {
                self.hello(at, hello, len, (now_ms, fresh), facts)
            }
            (Content::Message(Control::Hello(hello)), Some(ends)) if loses => {
                if ends.hello == hello {
                    self.welcome(at, len);
                }
            }
            (Content::Message(Control::Proof(proof)), Some(ends)) => {
                self.proof(at, ends, &proof, len, now_ms)
            }
            (Content::Message(Control::Refuse(refusal)), _) => {
                let stranger = self.strangers.swap_remove(at);
                self.note_end(&stranger, &format!("it refused: {}", refusal.text), (now_ms, facts));
                self.actions.push_back(Action::Drop { id: stranger.id });
            }
            (Content::Message(_), None) if loses => self.send_away(at),
            (Content::Message(_), _) if loses => {}
            (Content::Message(_), _) => {
                self.refuse(at, RefusalCode::Rank, "that message was out of turn".into(), now_ms);
            }
            (Content::OtherVersion(theirs), _) => {
                self.refuse(at, RefusalCode::Version, refused_version(theirs), now_ms);
            }
            (Content::Foreign(e), _) => self.refuse(at, RefusalCode::Version, e.to_string(), now_ms),
        }
    }

    fn hello(
        &mut self,
        at: usize,
        hello: Hello,
        len: usize,
        (now_ms, fresh): (u64, Fresh),
        facts: &dyn Facts,
    ) {
        let peer = PeerId(hello.from);
        // The MAC is checked first: the steps below trust the hello, and keep a place for its sender.
        if !handshake::is_sealed(&hello, &self.local.secret) {
            return match self.medium {
                Medium::Connections => self.refuse(at, RefusalCode::Secret, OTHER_SECRET.into(), now_ms),
                Medium::Datagrams(_) => self.send_away(at),
            };
        }
        if let Some(same) = self.strangers.iter().position(|stranger| stranger.has_said(&hello))
            && self.medium.loses()
        {
            self.strangers[same].heard_ms = now_ms;
            self.welcome(same, len);
            return self.send_away(at);
        }
        if self.spent.has(&hello) {
            return self.send_away(at);
        }
        if let Some(text) = self.objection(&hello, facts) {
            return self.refuse(at, RefusalCode::Rank, text, now_ms);
        }
        if self.has_precedence(peer, facts) {
            return match self.medium {
                Medium::Connections => {
                    self.refuse(at, RefusalCode::Crossed, "both sides connected at once".into(), now_ms);
                }
                Medium::Datagrams(_) => self.send_away(at),
            };
        }
        if let Some(text) = self.disagreement(&hello, facts) {
            return self.refuse(at, RefusalCode::Encryption, text, now_ms);
        }
        let Some((ends, keys)) = self.answer(hello, &fresh) else {
            return self.refuse(
                at,
                RefusalCode::Encryption,
                "the public key in the hello is invalid".into(),
                now_ms,
            );
        };
        let id = self.strangers[at].id;
        self.strangers[at].stage = Stage::Welcomed(ends, keys);
        if self.medium == Medium::Connections {
            // Each connection has its own hello; over datagrams a hello is repeated until it is answered.
            self.spent.add(&hello);
        }
        self.bound_claims(peer, id);
        if let Some(at) = self.stranger_in(id) {
            self.welcome(at, len);
        }
    }

    /// Answers a hello. Over datagrams, the answer is as long as the hello: a length that comes back has
    /// passed in both directions.
    fn welcome(&mut self, at: usize, len: usize) {
        let Stranger { id, stage: Stage::Welcomed(ends, keys), .. } = &self.strangers[at] else { return };
        let (id, message) = (*id, ends.welcome(self.key(keys)));
        self.actions.push_back(Action::Send { id, message, len });
    }

    fn proof(&mut self, at: usize, ends: Ends, proof: &Proof, len: usize, now_ms: u64) {
        let Stranger { id, stage: Stage::Welcomed(_, keys), .. } = &self.strangers[at] else { return };
        let (id, keys) = (*id, keys.clone());
        match ends.proves(proof, self.key(&keys)) && len >= self.medium.shortest() {
            true => {
                self.strangers[at].stage = Stage::Proved(ends, keys, len);
                self.spent.add(&ends.hello);
                self.actions.push_back(Action::Finish { id, is_attempt: false });
            }
            false if self.medium.loses() => {}
            false => {
                self.refuse(at, RefusalCode::Secret, OTHER_SECRET.into(), now_ms);
            }
        }
    }

    /// Returns the data that both sides share after the welcome to this hello, and the keys of the link if it
    /// is encrypted. `None` if the public key in the hello is invalid.
    fn answer(&self, hello: Hello, fresh: &Fresh) -> Option<(Ends, Option<Keys>)> {
        let ends = Ends { hello, rail: self.local.rail, nonce: fresh.nonce, offer: None };
        let Some(theirs) = hello.offer else { return Some((ends, None)) };
        let cipher = nmad_seal::agreed(theirs.cipher, nmad_seal::preferred());
        let ends = Ends { offer: Some(Offer { cipher, key: fresh.scalar.public() }), ..ends };
        let keys = ends.keys(&self.local.secret, &fresh.scalar, &theirs.key)?;
        Some((ends, Some(keys)))
    }

    /// Returns the text of the refusal if one side encrypts the link and the other does not.
    fn disagreement(&self, hello: &Hello, facts: &dyn Facts) -> Option<String> {
        let (me, peer) = (self.local.rank.0, hello.from);
        let (with, without) = match hello.offer {
            None if self.encrypts(PeerId(peer), facts) => (me, peer),
            Some(_) if self.local.encrypt == Policy::Off => (peer, me),
            _ => return None,
        };
        Some(format!(
            "rank {with} encrypts the link and rank {without} does not (set NMAD_ENCRYPT alike for all ranks)"
        ))
    }

    /// Returns whether a link begun by this side takes precedence: either an attempt is under way, or the
    /// link is open and the peer may not know that yet.
    fn has_precedence(&self, peer: PeerId, facts: &dyn Facts) -> bool {
        let is_under_way = self.attempt_to(peer).is_some_and(|at| self.attempts[at].is_under_way());
        let is_unproved = || facts.linked(peer).is_some_and(|link| link.is_unproved);
        self.local.rank < peer && (is_under_way || is_unproved())
    }

    /// Returns why a hello is refused.
    fn objection(&self, hello: &Hello, facts: &dyn Facts) -> Option<String> {
        let (me, peer) = (self.local.rank.0, PeerId(hello.from));
        if hello.to != me || hello.from == me {
            return Some(format!("rank {me} was reached, not rank {} (is its address right?)", hello.to));
        }
        let under_way = || {
            // Over datagrams, a hello without an answer does not determine which rail will answer.
            let at = self.attempt_to(peer).filter(|_| !self.medium.loses())?;
            self.attempts[at].remote(&facts.remotes(peer))
        };
        let taken = facts.linked(peer).map(|link| link.remote).or_else(under_way)?;
        let text = format!("rail {} of rank {me} is linked to rail {taken} already", self.local.rail);
        (taken != hello.rail).then_some(text)
    }

    fn refuse(&mut self, at: usize, code: RefusalCode, text: String, now_ms: u64) {
        let Stranger { id, origin, .. } = self.strangers.swap_remove(at);
        if code != RefusalCode::Crossed {
            self.note(Level::Warn, format!("refused {}: {text}", origin.text), now_ms);
        }
        self.actions.push_back(Action::Refuse { id, code, text });
    }

    /// Ends a conversation without a message.
    fn send_away(&mut self, at: usize) {
        let Stranger { id, .. } = self.strangers.swap_remove(at);
        self.actions.push_back(Action::Drop { id });
    }
}
