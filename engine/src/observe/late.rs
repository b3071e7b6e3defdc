//! Late receivers: how long large messages to a peer wait, and what goes without asking because of that (P5
//! sections 4.1 and 5.2).
//!
//! A receiver that computes answers no request to send, and says of no message that it has arrived. Both
//! waits are measured on the messages themselves, beyond what a handshake and the rails take: from the
//! request to its answer, and from the predicted end of the body to the news of it. Once a message would
//! wait longer than it loses as eager data, it goes so, in a packet or in parts, or pushed as a whole over
//! one reliable rail, as long as that leaves some credit to short ones: credit is the receiver's memory
//! budget, so a flood falls back to rendezvous, and goes on when the receiver has taken something. It loses
//! the copies on both sides and, if it fits into a packet, the other rails. A receive that is posted in time
//! invites the message ([`crate::protocol::rtr`]), which spares the first wait but not the second.
//!
//! The acknowledgements of such a receiver tell when it has looked at its rails, and not how long those took.
//! So what they say of all rails alike is forgotten: otherwise the rail that has carried less would seem to
//! be the slower one, and would carry even less.
//!
//! Eager messages measure nothing, so now and then one asks: after some of them
//! ([`crate::observe::lateness`]), and after twice as many each time that the receiver was late again. A
//! probe costs one wait, so that is what the loss is bounded by.

use crate::clock::{Duration, Instant};
use crate::collect::request::{Envelope, Hints};
use crate::engine::Engine;
use crate::engine::Notice;
use crate::engine::peer::Peer;
use crate::packet::{PeerId, RequestId};
use crate::protocol::Request;
use crate::protocol::rendezvous::SendState;
use crate::transfer::link::Link;
use alloc::format;

impl Peer {
    /// Whether a message above the eager limit goes without asking, because the receiver is late.
    #[cold]
    pub(crate) fn is_better_unasked(&self, len: u64, is_invited: bool) -> bool {
        self.loses_by_asking(len, is_invited) && self.credit.has_for_late(len)
    }

    /// A message goes without asking that would be read, or asked for, if the receiver were not late.
    #[cold]
    pub(crate) fn note_unasked(&mut self, len: u64, hints: Hints) {
        let is_long = len as usize > self.way.eager_max && hints.probe.is_none() && self.way.push.is_none();
        if self.is_readable(len) {
            self.lateness.unasked();
        }
        if is_long {
            self.lateness.unasked();
        }
    }

    /// Whether all of a message goes ahead over the one rail that pushes, because the receiver is late to
    /// answer, and not only as much as keeps the rail busy until a timely answer.
    #[cold]
    pub(crate) fn pushes_all(&self, len: u64) -> bool {
        self.outwaits(false, || self.copies_ns(len)) && self.credit.has_for_late(len)
    }

    /// Whether a message would wait for its receiver longer than it costs to go without asking, and no probe
    /// is due.
    fn outwaits(&self, invited: bool, cost_ns: impl FnOnce() -> u64) -> bool {
        let wait_ns = self.lateness.wait_ns(invited);
        let may = wait_ns > 0 && !self.fixed.has_eager_max() && !self.lateness.is_probe_due();
        may && wait_ns > cost_ns()
    }

    /// Whether the receiver is late to read messages: they are pushed then. Where nothing is pushed there are
    /// more processes than cores, and a wait tells nothing but that another one runs.
    #[inline]
    pub(crate) fn is_late_to_read(&self, len: u64) -> bool {
        self.way.push.is_some() && self.lateness.wait_ns(false) > 0 && self.pushes_all(len)
    }

    /// Whether asking would delay a message more than the extra copies cost.
    fn loses_by_asking(&self, len: u64, invited: bool) -> bool {
        // One reliable rail pushes instead; one that loses packets bounds the bytes in flight.
        let may = || self.way.push.is_none() && self.used().all(|(_, link)| !link.lossy);
        self.outwaits(invited, || self.copies_ns(len) + self.one_rail_ns(len)) && may()
    }

    /// What copying a message takes, into the retransmission buffer here and out of unexpected data
    /// there. Where copying was not measured it takes no longer than the fastest rail.
    fn copies_ns(&self, len: u64) -> u64 {
        let forecasts = || self.used().map(|(_, link)| &link.forecast);
        let measured = forecasts().find_map(|forecast| Some(forecast.profile().memcpy()?.ns(len)));
        let fastest = || forecasts().map(|forecast| forecast.body_ns(len)).min();
        measured.or_else(fastest).unwrap_or(0).saturating_mul(2)
    }

    /// A rail was observed to carry what usually takes this long. Where the receiver may have been late to
    /// acknowledge it, what all rails have in common is forgotten. What delays one of them alone is that
    /// rail's doing and stays known.
    pub(crate) fn consider_hidden(&mut self, usual_ns: u64) {
        let is_hidden = self.lateness.hidden_ns() > usual_ns;
        if is_hidden && self.used().all(|(_, link)| link.forecast.load() > 1.0) {
            self.links.iter_mut().for_each(|link| link.forecast.forgive());
        }
    }

    /// How much longer a message takes that one packet carries than one that all rails share.
    fn one_rail_ns(&self, len: u64) -> u64 {
        if len as usize > self.longest_eager() {
            return 0;
        }
        let forecasts = || self.used().map(|(_, link)| &link.forecast);
        let alone = forecasts().map(|forecast| forecast.busy_ns(len)).min().unwrap_or(0);
        let together = len as f64 / forecasts().map(|forecast| forecast.bandwidth()).sum::<f64>();
        alone.saturating_sub(together as u64)
    }

    /// Whether a message whose receive is posted goes straight to its place: it is above the limit, and the
    /// receiver is not late to say that it has arrived.
    #[cold]
    pub(crate) fn takes_invitation(&self, len: u64) -> bool {
        let is_long = len as usize > self.way.eager_max.min(self.longest_eager());
        is_long && !self.is_better_unasked(len, true)
    }
}

impl Engine {
    /// Notes that the receiver of a message above the eager limit is asked. Where one rail pushes, that is
    /// noted when it is known how much goes ahead.
    pub(crate) fn note_asked(&mut self, envelope: &Envelope, hints: Hints) {
        let (id, len, budget) = (envelope.peer, envelope.len, self.config.credit / 2);
        let is_noted = |peer: &&mut Peer| {
            len as usize > peer.way.eager_max && hints.probe.is_none() && peer.way.push.is_none()
        };
        let Some(peer) = self.peer_mut(id).filter(is_noted) else { return };
        let lacks_credit = peer.loses_by_asking(len, false) && !peer.credit.has_for_late(len);
        peer.lateness.asks();
        if lacks_credit && len <= budget && !peer.lateness.is_told {
            peer.lateness.is_told = true;
            let text = format!(
                "peer {} has received too few of the messages that were sent to it: a message of {len} B waits \
                 until it receives earlier ones (a larger NMAD_CREDIT there lets more wait; this is said once)",
                id.0
            );
            self.notices.push_back(Notice { peer: id, text, is_end: false });
        }
    }

    /// A request to send was answered. What the rails carried for this peer meanwhile would have delayed the
    /// message anyway, so then nothing is learned.
    pub(crate) fn note_answer(&mut self, now: Instant, request: RequestId) {
        let Engine { requests, peers, .. } = self;
        let Some(Request::Large(send)) = requests.get_mut(request.0) else { return };
        let place = send.envelope.peer.0 as usize;
        let peer = peers.get_mut(place).and_then(|peer| peer.as_deref_mut());
        let Some(peer) = peer.filter(|peer| peer.bodies.is_empty()) else { return };
        let Some(asked_at) = send.timing.asked_at else { return };
        let handshake = |link: &Link| link.forecast.profile().handshake_ns();
        // The pushed part arrives before the answer leaves.
        let pushed = send.ahead();
        let ahead = |link: &Link| match &link.learning {
            _ if pushed == 0 => 0,
            Some(learning) => learning.learned.first_ns(pushed),
            None => link.forecast.profile().body().ns(pushed),
        };
        let usual = |link: &Link| handshake(link).saturating_add(ahead(link));
        let usual_ns = peer.used().map(|(_, link)| usual(link)).min().unwrap_or(0);
        let wait_ns = now.since(asked_at).as_ns().saturating_sub(usual_ns);
        send.timing.is_timed &= peer.is_prompt(wait_ns);
        match send.wants_fin {
            true => send.timing.answer_ns = Some(wait_ns),
            // A reliable rail has it when it has left: nothing else is waited for.
            false => peer.lateness.measured(Some(wait_ns), 0),
        }
    }

    /// The receiver has read a message, if it was one to be read: notes how long that took, counted from when
    /// the message before it was read. A sender that did not look meanwhile finds it late without reason, and
    /// pushes the next messages: a copy more, which is little beside what it did instead of looking.
    pub(crate) fn note_read(&mut self, now: Instant, request: RequestId) {
        let Engine { requests, peers, .. } = self;
        let Some(Request::Large(send)) = requests.get(request.0) else { return };
        let Envelope { peer, len, .. } = send.envelope;
        let peer = peers.get_mut(peer.0 as usize).and_then(|peer| peer.as_deref_mut());
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
        let wait_ns = now.since(since).as_ns().saturating_sub(usual_ns);
        peer.lateness.was_read(wait_ns);
    }

    /// The receiver has said that it has a message, which was due at `due`; zero: nobody has predicted it.
    pub(crate) fn note_end(&mut self, now: Instant, from: PeerId, due: Instant, answer_ns: Option<u64>) {
        let Some(peer) = self.peer_mut(from).filter(|_| due != Instant::default()) else { return };
        let back = |link: &Link| link.forecast.profile().eager().start_ns();
        let back_ns = peer.used().map(|(_, link)| back(link)).min().unwrap_or(0);
        peer.lateness.measured(answer_ns, now.since(due + Duration::from_ns(back_ns)).as_ns());
    }
}
