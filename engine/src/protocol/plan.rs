//! The choice of a protocol, made only here and without side effects.
//!
//! A message uses the cheapest protocol that fits ([`Peer::cheapest`]). If its rail is idle and no other
//! message is before it, it is sent in the call that submits it ([`Peer::at_once`]); any other waits in the
//! window until an idle rail takes it.

use crate::clock::Instant;
use crate::collect::request::Hints;
use crate::engine::peer::Peer;
use crate::engine::way::Lane;
use crate::engine::{Engine, Inspect};
use crate::packet::PeerId;
use crate::profile::sample::Method;
use crate::protocol::leaving::To;
use crate::protocol::rules::{Cost, Family, Message, Rules};
use crate::protocol::table::PROTOCOLS;
use crate::protocol::{Caller, OtherCores, Plan, Protocol, Wanted, eager, rendezvous};
use crate::transfer::rail::Rail;
use alloc::vec::Vec;

/// Number of messages of the same length for which credit must remain: an answer with new credit arrives
/// within their time.
const SPARE: u64 = 3;

/// Predicted cost of a message of some length with one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote {
    /// The protocol.
    pub protocol: Protocol,
    /// Predicted time from submission to arrival, in nanoseconds, with a posted receive and idle rails.
    pub predicted_ns: u64,
    /// The length is in the range in which the protocol was measured to be the fastest.
    pub is_within: bool,
}

impl Engine {
    fn message(&self, peer: &Peer, to: To, len: u64, hints: Hints) -> Message {
        let is_invited = !hints.unordered && peer.states.invitations.has(to.1.0, to.2.0);
        Message { len, hints, has_address: true, is_invited, chunk: self.config.chunk }
    }
}

impl Inspect<'_> {
    /// Returns the plan that a message would get now; `None`: the peer is unknown or lost.
    pub fn plan(self, to: To, len: u64, hints: Hints, caller: Caller, now: Instant) -> Option<Plan> {
        let wanted = Wanted { len, hints, caller };
        self.with_peer(to.0, |peer| (!peer.is_gone()).then(|| self.plan_for(peer, to, wanted, now)))?
    }

    fn plan_for(self, peer: &Peer, to: To, wanted: Wanted, now: Instant) -> Plan {
        let Wanted { len, hints, .. } = wanted;
        let nodes = (&self.0.rails[..], &self.0.other_cores);
        if let Some((plan, _)) = peer.at_once(nodes, self.0.config.chunk, wanted, &mut || now) {
            return plan;
        }
        let message = self.0.message(peer, to, len, hints);
        let mut protocol = peer.cheapest(&message).protocol;
        if protocol == Protocol::Eager {
            let is_alone = hints.are_plain() && peer.window.is_empty();
            if is_alone && peer.parallel(&self.0.rails, (now, len), &self.0.other_cores).is_some() {
                protocol = Protocol::EagerParallel;
            } else if eager::stays_in_place(peer, &self.0.rails, len) {
                protocol = Protocol::EagerZcopy;
            }
        }
        Plan { protocol, rail: peer.wished(hints.rail), place: 0 }
    }

    /// Returns the cost of a message with each protocol that fits, the cheapest first.
    pub fn quotes(self, to: To, len: u64, hints: Hints) -> Vec<Quote> {
        let quote = |(Cost { is_beyond, ns }, rules): (Cost, &Rules)| Quote {
            protocol: rules.protocol,
            predicted_ns: ns,
            is_within: !is_beyond,
        };
        let quotes = |peer: &Peer| {
            let message = self.0.message(peer, to, len, hints);
            let mut costs: Vec<_> = peer.costs(&message).collect();
            costs.sort_by_key(|(cost, _)| *cost);
            costs.into_iter().map(quote).collect()
        };
        self.with_peer(to.0, |peer| (!peer.is_gone()).then(|| quotes(peer))).flatten().unwrap_or_default()
    }

    /// Whether it pays to poll the rails before a message is sent: it could be pushed now, but credit is
    /// running out.
    #[inline]
    pub fn needs_credit(self, to: PeerId, len: u64) -> bool {
        let Some(peer) = self.0.peer(to) else { return false };
        peer.is_one_push(len, self.0.config.chunk) && !peer.credit.has_for_push(len, SPARE)
    }
}

impl Peer {
    /// Returns the fastest kind of protocol for a message, assuming there is credit.
    fn fastest(&self, message: &Message) -> Family {
        let Message { len, hints, has_address, is_invited, .. } = *message;
        match hints.probe {
            Some(Method::Read) => Family::Read,
            Some(method) if method.is_large() => Family::Rendezvous,
            Some(_) => Family::Eager,
            None if has_address && !is_invited && self.reads(len) && !self.times_large(hints) => Family::Read,
            None if is_invited && self.follows_rtr(len) => Family::Rendezvous,
            None if len as usize <= self.way.eager_max || self.is_better_eager(len, false) => Family::Eager,
            None => Family::Rendezvous,
        }
    }

    /// Returns the protocols that fit a message and their costs.
    fn costs<'a>(&'a self, message: &'a Message) -> impl Iterator<Item = (Cost, &'static Rules)> + 'a {
        let fastest = self.fastest(message);
        let fitting = PROTOCOLS.iter().filter(move |rules| (rules.fits)(message, self));
        fitting.map(move |rules| {
            (Cost { is_beyond: rules.family != fastest, ns: (rules.cost)(message, self) }, rules)
        })
    }

    /// Returns the cheapest protocol that fits.
    #[inline]
    pub(crate) fn cheapest(&self, message: &Message) -> &'static Rules {
        // Most messages are short, and eager is always the fastest for those.
        let is_short = message.len < self.way.at_once_below && !message.is_invited;
        if is_short && message.hints.probe.is_none() && self.credit.has(message.len) {
            return &eager::RULES;
        }
        self.cheapest_of_all(message)
    }

    #[inline(never)]
    fn cheapest_of_all(&self, message: &Message) -> &'static Rules {
        let cheapest = self.costs(message).min_by_key(|(cost, _)| *cost);
        cheapest.map_or(&rendezvous::RULES, |(_, rules)| rules)
    }

    /// Returns the plan of a message that is sent at once, and when it was made, if that matters, otherwise
    /// zero. `None`: the message has to wait in the window because other data or control frames are pending,
    /// or the strategy has to choose.
    #[inline(always)]
    pub(crate) fn at_once(
        &self,
        nodes: (&[Rail], &OtherCores),
        chunk: u64,
        wanted: Wanted,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<(Plan, Instant)> {
        let Wanted { len, hints, caller } = wanted;
        if !hints.are_plain() || !self.is_idle() || !self.may_bypass_window() {
            return None;
        }
        let Some(Lane { rail, place }) = self.way.lane else {
            return self.over_one_of_several(nodes, wanted, clock);
        };
        let (link, at) = (&self.links[place], &nodes.0[rail.index()]);
        if link.rx.beyond() > 0 || at.prepared.is_some() {
            return None;
        }
        let (clear, injects) = (link.tx.len() == 0, self.way.injects);
        let protocol = if len >= self.way.at_once_below {
            if !clear || self.way.at_once_below == 0 {
                return None;
            }
            self.large_at_once(Message { len, hints, has_address: true, is_invited: false, chunk }, caller)?
        } else if !self.can_spend(len) {
            return None;
        } else if injects {
            clear.then_some(Protocol::Inject)?
        } else {
            // A packet that is kept is copied anyway, and may queue behind others; otherwise packets only
            // get a number and the link must have none in flight.
            let is_ready = if self.way.keeps { link.accepts(at.limits.depth) } else { clear };
            (caller != Caller::GoesOn && is_ready).then_some(Protocol::Eager)?
        };
        Some((Plan { protocol, rail: Some(rail), place: place as u8 }, Instant::default()))
    }

    /// Returns the protocol of a message that is too long to be sent in a packet at once, if it is sent at
    /// once.
    fn large_at_once(&self, message: Message, caller: Caller) -> Option<Protocol> {
        let protocol = self.cheapest(&message).protocol;
        let may = match protocol {
            Protocol::Read => self.way.injects && !self.credit.owes_limit(),
            Protocol::Push => {
                // A waiting caller polls for new credit before it uses the last of it.
                let spare = if caller == Caller::Waits { SPARE } else { 0 };
                let may = caller.waits() || (self.way.injects && caller == Caller::GoesOn);
                may && self.pushes_whole(message.len, message.chunk, spare)
            }
            _ => false,
        };
        may.then_some(protocol)
    }

    /// Returns the plan of a message that is sent at once over one of several rails, which the strategy
    /// chooses, and when.
    #[inline]
    fn over_one_of_several(
        &self,
        (rails, others): (&[Rail], &OtherCores),
        wanted: Wanted,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<(Plan, Instant)> {
        let Wanted { len, caller, .. } = wanted;
        if len >= self.way.at_once_below {
            return self.over_one_in_time((rails, others), wanted, clock);
        }
        if caller == Caller::GoesOn || !self.way.has_several || !self.can_spend(len) {
            return None;
        }
        // Other cores may post a part of it, over rails that are idle by now.
        if len >= others.shortest(&self.way) {
            clock();
            return None;
        }
        let now = clock();
        Some((self.plan_over(rails, self.choose(rails, now, len)?)?, now))
    }

    /// Returns the plan of a message above the eager limit that does not ask its receiver since that is late,
    /// and which one of several rails carries in a packet in time.
    #[cold]
    #[inline(never)]
    fn over_one_in_time(
        &self,
        (rails, others): (&[Rail], &OtherCores),
        Wanted { len, caller, .. }: Wanted,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<(Plan, Instant)> {
        let may = caller != Caller::GoesOn && self.way.has_several && self.way.at_once_below > 0;
        let fits = len <= self.longest_eager() as u64 && len < others.shortest(&self.way);
        if !may || !fits || !self.can_spend(len) || !self.is_better_eager(len, false) {
            return None;
        }
        let now = clock();
        Some((self.plan_over(rails, self.choose_in_time(rails, now, len)?)?, now))
    }

    /// Returns the plan of an eager message over the link at this index, if the link takes it now.
    #[inline(always)]
    fn plan_over(&self, rails: &[Rail], place: usize) -> Option<Plan> {
        let link = &self.links[place];
        let at = &rails[link.rail.index()];
        let is_ready = link.rx.beyond() == 0 && at.prepared.is_none() && link.accepts(at.limits.depth);
        is_ready.then_some(Plan { protocol: Protocol::Eager, rail: Some(link.rail), place: place as u8 })
    }

    /// Whether there is credit for an eager message, and no new limit to send to the peer.
    #[inline(always)]
    fn can_spend(&self, len: u64) -> bool {
        self.credit.has(len) && !self.credit.owes_limit()
    }
}
