//! Processes that have connected to us and have not proved their identity yet.

use super::{Action, Around, Id, Medium, Opened, Opening, Said, refused_version};
use crate::handshake::Ends;
use nmad_engine::packet::PeerId;
use nmad_wire::{Control, Hello, Proof, RefusalCode};

/// Age after which one that has said nothing sensible makes room for others, in milliseconds.
const PATIENCE_MS: u64 = 250;

/// A process that has connected to us.
#[derive(Debug)]
pub(super) struct Stranger {
    /// Its conversation.
    pub(super) id: Id,
    /// From where it comes, for the log.
    from: String,
    since_ms: u64,
    /// When it was heard last.
    heard_ms: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// It has not said hello.
    New,
    /// It claims to be somebody, and was welcomed as that.
    Welcomed(Ends),
    /// It has proved that it knows the secret. The driver does the rest.
    Proved(Ends, usize),
}

impl Stranger {
    /// The peer that it claims to be, if it was welcomed as that.
    pub(super) fn claims(&self) -> Option<PeerId> {
        self.ends().map(|ends| PeerId(ends.hello.from))
    }

    /// Whether it has said nothing for so long, and might have given up.
    pub(super) fn is_stale(&self, now_ms: u64, after_ms: u64) -> bool {
        matches!(self.stage, Stage::Welcomed(_)) && now_ms >= self.heard_ms + after_ms
    }

    /// The link, if there is nothing left but the driver's part.
    pub(super) fn opened(&self) -> Option<Opened> {
        let Stage::Proved(ends, len) = self.stage else { return None };
        let (peer, remote) = (PeerId(ends.hello.from), ends.hello.rail);
        Some(Opened { peer, remote, ends, is_attempt: false, len })
    }

    /// Says that it has gone. One that gives way to another conversation of the same peer is no news.
    pub(super) fn log_end(&self, rail: &str, why: &str, around: &dyn Around) {
        let from = &self.from;
        match self.claims() {
            Some(peer) if around.linked(peer).is_some() => {}
            Some(peer) => log::info!("rail {rail}: no link from peer {} at {from}: {why}", peer.0),
            None => log::info!("rail {rail}: stranger at {from}: {why}"),
        }
    }

    fn ends(&self) -> Option<Ends> {
        match self.stage {
            Stage::New => None,
            Stage::Welcomed(ends) | Stage::Proved(ends, _) => Some(ends),
        }
    }

    fn has_said(&self, hello: &Hello) -> bool {
        self.ends().is_some_and(|ends| ends.hello == *hello)
    }
}

impl Opening {
    /// Whether one more can be let in; of connections, the others wait in the kernel. One that has not even
    /// said hello for a while makes room.
    pub fn has_room(&mut self, now_ms: u64) -> bool {
        if self.strangers.len() < self.medium.strangers_max() {
            return true;
        }
        let old = |s: &Stranger| matches!(s.stage, Stage::New) && now_ms >= s.since_ms + PATIENCE_MS;
        let Some(at) = self.strangers.iter().position(old) else { return false };
        let Stranger { id, from, .. } = self.strangers.remove(at);
        log::warn!("rail {}: dropped silent {from} to make room", self.local.name);
        self.actions.push_back(Action::Drop { id });
        true
    }

    /// Somebody has come, from this place in words.
    pub fn accepted(&mut self, from: String, now_ms: u64) -> Id {
        let id = self.begin();
        self.strangers.push(Stranger { id, from, since_ms: now_ms, heard_ms: now_ms, stage: Stage::New });
        id
    }

    /// Drops those that have not proved themselves in time.
    pub(super) fn expire(&mut self, now_ms: u64) {
        let bound_ms = self.local.bound.as_millis() as u64;
        let (name, bound, loses) = (self.local.name.clone(), self.local.bound, self.medium.loses());
        self.drop_strangers(|stranger| {
            let is_late =
                !matches!(stranger.stage, Stage::Proved(..)) && now_ms >= stranger.since_ms + bound_ms;
            if is_late && !loses {
                log::warn!("rail {name}: {} did not finish its handshake within {bound:?}", stranger.from);
            }
            is_late
        });
    }

    /// Drops strangers.
    pub(super) fn drop_strangers(&mut self, which: impl Fn(&Stranger) -> bool) {
        let actions = &mut self.actions;
        self.strangers.retain(|stranger| {
            let goes = which(stranger);
            actions.extend(goes.then_some(Action::Drop { id: stranger.id }));
            !goes
        });
    }

    /// A stranger has said something.
    pub(super) fn heard_stranger(
        &mut self,
        at: usize,
        said: Said<'_>,
        len: usize,
        (now_ms, nonce): (u64, [u8; 32]),
        around: &dyn Around,
    ) {
        let loses = self.medium.loses();
        self.strangers[at].heard_ms = now_ms;
        match (said, self.strangers[at].ends()) {
            (Said::Message(Control::Hello(hello)), None) => {
                self.hello(at, hello, len, (now_ms, nonce), around)
            }
            (Said::Message(Control::Hello(hello)), Some(ends)) if loses => {
                if ends.hello == hello {
                    self.welcome(at, len);
                }
            }
            (Said::Message(Control::Proof(proof)), Some(ends)) => self.proof(at, ends, &proof, len, now_ms),
            (Said::Message(Control::Refuse(refusal)), _) => {
                let stranger = self.strangers.swap_remove(at);
                stranger.log_end(&self.local.name, &format!("it refused: {}", refusal.text), around);
                self.actions.push_back(Action::Drop { id: stranger.id });
            }
            (Said::Message(_), None) if loses => self.send_away(at),
            (Said::Message(_), _) if loses => {}
            (Said::Message(_), _) => {
                self.refuse(at, RefusalCode::Rank, "that message was out of turn".into(), now_ms);
            }
            (Said::OtherVersion(theirs), _) => {
                self.refuse(at, RefusalCode::Version, refused_version(theirs), now_ms);
            }
            (Said::Foreign(e), _) => self.refuse(at, RefusalCode::Version, e.to_string(), now_ms),
        }
    }

    fn hello(
        &mut self,
        at: usize,
        hello: Hello,
        len: usize,
        (now_ms, nonce): (u64, [u8; 32]),
        around: &dyn Around,
    ) {
        let peer = PeerId(hello.from);
        if let Some(same) = self.strangers.iter().position(|stranger| stranger.has_said(&hello))
            && self.medium.loses()
        {
            self.strangers[same].heard_ms = now_ms;
            self.welcome(same, len);
            return self.send_away(at);
        }
        if let Some(text) = self.objection(&hello, around) {
            return self.refuse(at, RefusalCode::Rank, text, now_ms);
        }
        if self.has_precedence(peer, around) {
            return match self.medium {
                Medium::Connections => {
                    self.refuse(at, RefusalCode::Crossed, "both sides connected at once".into(), now_ms);
                }
                Medium::Datagrams(_) => self.send_away(at),
            };
        }
        let id = self.strangers[at].id;
        self.strangers[at].stage = Stage::Welcomed(Ends { hello, rail: self.local.rail, nonce });
        if self.medium.loses() {
            self.drop_strangers(|stranger| stranger.claims() == Some(peer) && stranger.id != id);
            if self.strangers.len() > self.medium.strangers_max() {
                let oldest = self.strangers.remove(0);
                self.actions.push_back(Action::Drop { id: oldest.id });
            }
        }
        if let Some(at) = self.stranger_in(id) {
            self.welcome(at, len);
        }
    }

    /// Answers a hello. Over datagrams, the answer is as long as the hello: a length that comes back has
    /// passed in both directions.
    fn welcome(&mut self, at: usize, len: usize) {
        let Stranger { id, stage: Stage::Welcomed(ends), .. } = &self.strangers[at] else { return };
        let (id, message) = (*id, ends.welcome(&self.local.secret));
        self.actions.push_back(Action::Say { id, message, len });
    }

    fn proof(&mut self, at: usize, ends: Ends, proof: &Proof, len: usize, now_ms: u64) {
        let id = self.strangers[at].id;
        if matches!(self.strangers[at].stage, Stage::Proved(..)) {
            return;
        }
        match ends.proves(proof, &self.local.secret) && len >= self.medium.shortest() {
            true => {
                self.strangers[at].stage = Stage::Proved(ends, len);
                self.actions.push_back(Action::Finish { id, is_attempt: false });
            }
            false if self.medium.loses() => {}
            false => {
                let text = "your side has another secret (is it of the same job?)".into();
                self.refuse(at, RefusalCode::Secret, text, now_ms);
            }
        }
    }

    /// Whether this side opens a link to the peer, or has opened one of which the peer may not know yet, and
    /// that one shall stay.
    fn has_precedence(&self, peer: PeerId, around: &dyn Around) -> bool {
        let is_under_way = self.attempt_to(peer).is_some_and(|at| self.attempts[at].is_under_way());
        let is_unproved = || around.linked(peer).is_some_and(|link| link.is_unproved);
        self.local.rank < peer && (is_under_way || is_unproved())
    }

    /// Why a hello is refused.
    fn objection(&self, hello: &Hello, around: &dyn Around) -> Option<String> {
        let (me, peer) = (self.local.rank.0, PeerId(hello.from));
        if hello.to != me || hello.from == me {
            return Some(format!("rank {me} was reached, not rank {} (is its address right?)", hello.to));
        }
        let under_way = || {
            // An unanswered datagram says nothing about the rail that will answer.
            let at = self.attempt_to(peer).filter(|_| !self.medium.loses())?;
            self.attempts[at].remote(&around.remotes(peer))
        };
        let taken = around.linked(peer).map(|link| link.remote).or_else(under_way)?;
        let text = format!("rail {} of rank {me} is linked to rail {taken} already", self.local.rail);
        (taken != hello.rail).then_some(text)
    }

    fn refuse(&mut self, at: usize, code: RefusalCode, text: String, now_ms: u64) {
        let Stranger { id, from, .. } = self.strangers.swap_remove(at);
        if code != RefusalCode::Crossed {
            self.warn(now_ms, &from, &text);
        }
        self.actions.push_back(Action::Refuse { id, code, text });
    }

    /// Ends a conversation without a word.
    fn send_away(&mut self, at: usize) {
        let Stranger { id, .. } = self.strangers.swap_remove(at);
        self.actions.push_back(Action::Drop { id });
    }
}
