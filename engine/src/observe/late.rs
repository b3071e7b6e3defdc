//! Late receivers: measures how long large messages to a peer wait, and chooses eager or pushed data if
//! waiting costs more (P5 sections 4.1 and 5.2).
//!
//! A receiver that computes does not answer a request to send, nor report that a message has arrived. Both
//! waits are measured on the messages themselves, minus the time of a handshake and of the rails: from the
//! request to its answer, and from the predicted end of the body to the Fin. Cts and Fin have a flag with
//! which the receiver says that it was waiting already. The delay then has another cause, the network or
//! another process on its core, and does not count. If rendezvous would delay a message more than the extra
//! copies cost, it is sent eagerly: in a packet, in parts, or pushed as a whole over a single reliable rail,
//! as long as that leaves some credit for short messages. Credit is the receiver's memory budget, so a flood
//! falls back to rendezvous and continues when the receiver has consumed messages. An eager message costs the
//! copies on both sides. A receive that is posted in time sends an Rtr
//! ([`crate::protocol::rtr`]), which avoids the first wait but not the second.
//!
//! The acknowledgements of a late receiver show when it polled its rails, not how long the rails took. So a
//! load common to all rails is dropped: otherwise the rail that has carried less would seem slower, and
//! would carry even less.
//!
//! Eager messages measure no wait, so now and then one uses rendezvous as a probe: after a number of eager
//! messages ([`crate::observe::lateness`]) that doubles each time the receiver is late again. A probe costs
//! one wait, which bounds the loss.

use crate::clock::{Duration, Instant};
use crate::collect::request::{Envelope, Hints};
use crate::engine::peer::Peer;
use crate::engine::{Engine, Notice, NoticeKind, Setup};
use crate::observe::observation::{Observation, Observed};
use crate::packet::{PeerId, RequestId};
use crate::protocol::Request;
use crate::protocol::rendezvous::{SendState, Timing};
use crate::transfer::link::Link;
use alloc::format;

impl Peer {
    /// Whether a message above the eager limit is sent eagerly, because the receiver is late.
    #[cold]
    pub(crate) fn is_better_eager(&self, len: u64, is_invited: bool) -> bool {
        self.loses_by_rendezvous(len, is_invited) && self.credit.has_for_late(len)
    }

    /// Counts a message that is sent eagerly only because the receiver is late.
    #[cold]
    pub(crate) fn note_eager(&mut self, len: u64, hints: Hints) {
        let is_long = len as usize > self.way.eager_max && hints.probe.is_none() && self.way.push.is_none();
        if self.is_readable(len) {
            self.lateness.sent_eagerly();
        }
        if is_long {
            self.lateness.sent_eagerly();
        }
    }

    /// Whether a message is pushed as a whole over a single rail because the receiver answers late, instead
    /// of only the part that keeps the rail busy until a timely answer.
    #[cold]
    pub(crate) fn pushes_all(&self, len: u64) -> bool {
        self.waits_longer(false, || self.copies_ns(len)) && self.credit.has_for_late(len)
    }

    /// Whether a message would wait for its receiver longer than eager data costs, and no probe is due.
    pub(crate) fn waits_longer(&self, invited: bool, cost_ns: impl FnOnce() -> u64) -> bool {
        self.fixed.eager_max.is_none() && self.lateness.prefers_eager(invited, cost_ns)
    }

    /// Whether messages are pushed because the receiver is late to read them. If nothing can be pushed the
    /// machine is oversubscribed, and a wait only shows that another process runs.
    #[inline]
    pub(crate) fn is_late_to_read(&self, len: u64) -> bool {
        self.way.push.is_some() && self.lateness.wait_ns(false) > 0 && self.pushes_all(len)
    }

    /// Whether rendezvous would delay this message more than the extra copies cost.
    fn loses_by_rendezvous(&self, len: u64, invited: bool) -> bool {
        // A single reliable rail pushes instead; a lossy one bounds the bytes in flight.
        let may = || self.way.push.is_none() && self.used().all(|(_, link)| !link.lossy);
        self.waits_longer(invited, || self.copies_ns(len)) && may()
    }

    /// Returns the nanoseconds of copying a message into the retransmission buffer here and out of
    /// unexpected data there. If copying was not measured, it is assumed to take as long as the fastest
    /// rail.
    pub(crate) fn copies_ns(&self, len: u64) -> u64 {
        let forecasts = || self.used().map(|(_, link)| &link.forecast);
        let measured = forecasts().find_map(|forecast| Some(forecast.profile().memcpy()?.ns(len)));
        let fastest = || forecasts().map(|forecast| forecast.body_ns(len)).min();
        measured.or_else(fastest).unwrap_or(0).saturating_mul(2)
    }

    /// Called after a rail was observed to carry data that usually takes `usual_ns`. If the receiver may
    /// have acknowledged late, the load common to all rails is dropped; a delay of one rail alone is caused
    /// by that rail and is kept.
    pub(crate) fn drop_common_load(&mut self, usual_ns: u64) {
        let is_hidden = self.lateness.hidden_ns() > usual_ns;
        if is_hidden && self.used().all(|(_, link)| link.forecast.load() > 1.0) {
            self.links.iter_mut().for_each(|link| link.forecast.reset_load());
        }
    }

    /// Whether a message whose receive is known to be posted is sent directly to the receive region: it is
    /// above the eager limit, and the receiver is not late to report its arrival.
    #[cold]
    pub(crate) fn follows_rtr(&self, len: u64) -> bool {
        let is_long = len as usize > self.way.eager_max.min(self.longest_eager());
        is_long && !self.is_better_eager(len, true)
    }
}

impl Engine {
    /// Records that a message above the eager limit uses rendezvous. If a single rail pushes, this is
    /// recorded once the pushed length is known.
    pub(crate) fn note_asked(&mut self, envelope: &Envelope, hints: Hints) {
        let (id, len, budget) = (envelope.peer, envelope.len, self.config.credit / 2);
        let is_noted = |peer: &&mut Peer| {
            len as usize > peer.way.eager_max && hints.probe.is_none() && peer.way.push.is_none()
        };
        let Some(peer) = self.peer_mut(id).filter(is_noted) else { return };
        let lacks_credit = peer.loses_by_rendezvous(len, false) && !peer.credit.has_for_late(len);
        peer.lateness.used_rendezvous();
        if lacks_credit && len <= budget && !peer.lateness.is_told {
            peer.lateness.is_told = true;
            let text = format!(
                "peer {} has received too few of the messages that were sent to it: a message of {len} B \
                 waits until it receives earlier ones (a larger NMAD_CREDIT there allows more; reported \
                 once)",
                id.0
            );
            self.notices.push_back(Notice { peer: id, text, kind: NoticeKind::Detail });
        }
    }

    /// Records the answer to a request to send. If the rails carried other data for this peer meanwhile, it
    /// would have delayed the message anyway, so nothing is learnt.
    pub(crate) fn note_answer(&mut self, now: Instant, request: RequestId, prompt: bool) {
        let Engine { requests, peers, .. } = self;
        let Some(Request::Large(send)) = requests.get_mut(request.0) else { return };
        let peer = peers.get_mut(send.envelope.peer);
        let Some(peer) = peer.filter(|peer| peer.bodies.is_empty()) else { return };
        let Some(asked_at) = send.timing.asked_at else { return };
        let handshake = |link: &Link| link.forecast.profile().handshake_ns();
        // The pushed part arrives before the answer is sent.
        let pushed = send.ahead();
        let ahead = |link: &Link| match &link.learning {
            _ if pushed == 0 => 0,
            Some(learning) => learning.learned.first_ns(pushed),
            None => link.forecast.profile().body().ns(pushed),
        };
        let usual = |link: &Link| handshake(link).saturating_add(ahead(link));
        let usual_ns = peer.used().map(|(_, link)| usual(link)).min().unwrap_or(0);
        let late_ns = now.since(asked_at).as_ns().saturating_sub(usual_ns);
        send.timing.is_timed &= peer.is_prompt(late_ns);
        let wait_ns = if prompt { 0 } else { late_ns };
        let (from, len) = (send.envelope.peer, send.envelope.len);
        match send.wants_fin {
            true => send.timing.answer_ns = Some(wait_ns),
            // On a reliable rail the message is complete when it was sent: there is no second wait.
            false => {
                peer.lateness.measured(Some(wait_ns), 0);
                peer.lateness.used_rendezvous();
                self.note_waited(now, from, len, wait_ns);
            }
        }
    }

    /// Records that the receiver has read a message from this process's memory, and how long that took
    /// since the previous message was read. A sender that did not poll meanwhile finds the receiver late
    /// without reason and pushes the next messages: an extra copy, which costs little compared with the
    /// work it did instead of polling.
    pub(crate) fn note_read(&mut self, now: Instant, request: RequestId, prompt: bool) {
        let Engine { requests, peers, .. } = self;
        let Some(Request::Large(send)) = requests.get(request.0) else { return };
        let Envelope { peer, len, .. } = send.envelope;
        let peer = peers.get_mut(peer);
        let Some(peer) = peer.filter(|_| matches!(send.state, SendState::Readable { .. })) else { return };
        let since = send.timing.asked_at.map(|asked_at| asked_at.max(peer.lateness.read_at));
        peer.lateness.read_at = now;
        peer.lateness.unread = peer.lateness.unread.saturating_sub(1);
        let usual = |link: &Link| {
            let profile = link.forecast.profile();
            profile.handshake_ns().saturating_add(profile.body().ns(len))
        };
        let usual_ns = peer.used().map(|(_, link)| usual(link)).min().unwrap_or(0);
        let Some(since) = since else { return };
        let wait_ns = if prompt { 0 } else { now.since(since).as_ns().saturating_sub(usual_ns) };
        peer.lateness.was_read(wait_ns);
        let (from, len) = (send.envelope.peer, send.envelope.len);
        self.note_waited(now, from, len, wait_ns);
    }

    /// Records the receiver's report that it has a message that was due at `due`; zero: not predicted.
    pub(crate) fn note_end(
        &mut self,
        now: Instant,
        from: PeerId,
        timing: Timing,
        (len, prompt): (u64, bool),
    ) {
        let Timing { due, answer_ns, .. } = timing;
        let Some(peer) = self.peer_mut(from).filter(|_| due != Instant::default()) else { return };
        let back = |link: &Link| link.forecast.profile().eager().start_ns();
        let back_ns = peer.used().map(|(_, link)| back(link)).min().unwrap_or(0);
        let late_ns = now.since(due + Duration::from_ns(back_ns)).as_ns();
        let late_ns = if prompt { 0 } else { late_ns };
        peer.lateness.measured(answer_ns, late_ns);
        if let Some(answer_ns) = answer_ns {
            self.note_waited(now, from, len, answer_ns.saturating_add(late_ns));
        }
    }

    /// Adds the wait of a message to the recorded observations.
    fn note_waited(&mut self, now: Instant, from: PeerId, len: u64, ns: u64) {
        if self.observers.observations.is_some() {
            let other_ns = self.peer(from).map_or(0, |peer| peer.copies_ns(len));
            let what = Observed::Waited;
            self.note_observation(from, Observation { at: now, what, which: 0, len, ns, other_ns });
        }
    }
}

impl Setup<'_> {
    /// Sets whether a waiting thread has polled the rails before and polls them again now, with no computing
    /// in between: the events of this poll were not delayed by a program that computes.
    #[inline]
    pub fn waits(&mut self, is_waiting: bool) {
        self.0.is_waiting = is_waiting;
    }
}
