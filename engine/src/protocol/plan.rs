//! How a message goes: the protocol and the rail, decided here and nowhere else, without side effects.
//!
//! A message that finds its rail idle leaves in the call that submits it ([`Peer::at_once`]); any other waits
//! in the window ([`Peer::queued`]), from where a rail takes it when it asks.

use crate::clock::Instant;
use crate::collect::request::{Context, Hints, Outgoing, Tag};
use crate::engine::Engine;
use crate::engine::lane::Lane;
use crate::engine::peer::Peer;
use crate::packet::PeerId;
use crate::profile::sample::Method;
use crate::protocol::parallel::Cores;
use crate::protocol::{Caller, Plan, Protocol, Wanted};
use crate::transfer::link::Link;
use crate::transfer::rail::Rail;

/// Messages like the last one for which there shall be credit: an answer takes no longer than them.
const SPARE: u64 = 3;

impl Engine {
    /// How a message would go now; none: the peer is not known, or gone.
    pub fn plan(
        &self,
        (to, context, tag): (PeerId, Context, Tag),
        len: u64,
        hints: Hints,
        caller: Caller,
        now: Instant,
    ) -> Option<Plan> {
        let peer = self.peer(to).filter(|peer| !peer.is_gone())?;
        let wanted = Wanted { len, hints, caller, refused: None };
        let at_once = peer.at_once((&self.rails, &self.cores), self.config.chunk, wanted, &mut || now);
        Some(at_once.unwrap_or_else(|| {
            let mut protocol = peer.queued(&self.rails, self.config.chunk, (context, tag), len, hints);
            let is_alone = protocol.is_eager() && hints.are_plain() && peer.window.is_empty();
            let cores = (self.cores.ready(), &self.beside);
            if is_alone && peer.parallel(&self.rails, (now, len), cores).is_some() {
                protocol = Protocol::EagerParallel;
            }
            Plan { protocol, rail: peer.wished(hints.rail), place: 0 }
        }))
    }
}

impl Outgoing {
    /// The protocol of a large message.
    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Outgoing { invited: true, .. } => Protocol::Rtr,
            Outgoing { grant: None, address: 1.., .. } => Protocol::Read,
            Outgoing { pushed: 1.., .. } => Protocol::Push,
            _ => Protocol::Rendezvous,
        }
    }
}

impl Engine {
    /// Whether it pays to look at the rails before a message is sent: it could be pushed, but not for long.
    #[inline]
    pub fn needs_credit(&self, to: PeerId, len: u64) -> bool {
        let Some(peer) = self.peer(to) else { return false };
        peer.is_one_push(len, self.config.chunk) && !peer.credit.has_for_push(len, SPARE)
    }
}

impl Peer {
    /// How a message leaves at once; none: it waits in the window, since something else is there, or has to
    /// be told, or the strategy wants to see it.
    #[inline(always)]
    pub(crate) fn at_once(
        &self,
        (rails, cores): (&[Rail], &Cores),
        chunk: u64,
        wanted: Wanted,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<Plan> {
        let Wanted { len, hints, caller, refused } = wanted;
        if !hints.are_plain() || !self.is_idle() {
            return None;
        }
        let Some(Lane { rail, place, below, injects }) = self.lane else {
            return self.over_one_of_several((rails, cores), wanted, clock);
        };
        let (link, at) = (&self.links[place], &rails[rail.index()]);
        if link.rx.beyond() > 0 || at.prepared.is_some() {
            return None;
        }
        let clear = link.tx.len() == 0;
        if refused.is_some() {
            return None;
        }
        if len >= below {
            if self.reads(len) {
                let may = injects && clear && !self.credit.owes_limit();
                return if may { Plan::at_once(Protocol::Read, rail, place) } else { None };
            }
            // A caller that waits looks for credit before it is spent.
            let spare = if caller == Caller::Waits { SPARE } else { 0 };
            let may = caller.waits() || (injects && caller == Caller::GoesOn);
            let pushes = may && clear && self.pushes_whole(len, chunk, spare);
            return if pushes { Plan::at_once(Protocol::Push, rail, place) } else { None };
        }
        if !self.may_spend(len) {
            return None;
        }
        if injects {
            return if clear { Plan::at_once(Protocol::Inject, rail, place) } else { None };
        }
        // A packet that is kept is copied anyway, and behind others; the rest is only numbered.
        let ready = if self.keeps { link.accepts(at.limits.depth) } else { clear };
        if caller != Caller::GoesOn && ready { Plan::at_once(Protocol::Eager, rail, place) } else { None }
    }

    /// The same where several rails are left, of which the strategy names one.
    #[inline]
    fn over_one_of_several(
        &self,
        (rails, cores): (&[Rail], &Cores),
        Wanted { len, caller, refused, .. }: Wanted,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<Plan> {
        let below = self.several?;
        if caller == Caller::GoesOn || refused.is_some() || len >= below || !self.may_spend(len) {
            return None;
        }
        // Other cores may post a part of it, over rails that are idle by now.
        if len >= self.parallel_min && cores.ready() > 0 {
            clock();
            return None;
        }
        let place = self.choose(rails, clock(), len)?;
        let link = &self.links[place];
        let at = &rails[link.rail.index()];
        let ready = link.rx.beyond() == 0 && at.prepared.is_none() && link.accepts(at.limits.depth);
        if ready { Plan::at_once(Protocol::Eager, link.rail, place) } else { None }
    }

    /// Whether there is credit for an eager message, and nothing to be told of the other direction's.
    #[inline(always)]
    fn may_spend(&self, len: u64) -> bool {
        self.credit.has(len) && !self.credit.owes_limit()
    }

    /// Whether a message that waits in the window goes without asking, in a packet or in parts. Where a rail
    /// takes what is longer than a packet in one call ([`Protocol::Push`]), that does not ask either, and
    /// copies less.
    #[inline(always)]
    pub(crate) fn goes_eager(&self, len: u64, hints: Hints) -> bool {
        let small = match hints.probe {
            None if len as usize > self.longest_eager() => self.goes_in_parts(len),
            None => len as usize <= self.eager_max || self.goes_unasked(len, false),
            Some(Method::Rendezvous | Method::Pushed | Method::Read) => false,
            Some(_) => len as usize <= self.longest_eager(),
        };
        small && self.credit.has(len)
    }

    /// Whether a message that is longer than a packet goes without asking, in parts.
    #[cold]
    fn goes_in_parts(&self, len: u64) -> bool {
        self.may_push.is_none() && (len as usize <= self.eager_max || self.goes_unasked(len, false))
    }

    /// The protocol of a message that waits in the window.
    pub(crate) fn queued(
        &self,
        rails: &[Rail],
        chunk: u64,
        (context, tag): (Context, Tag),
        len: u64,
        hints: Hints,
    ) -> Protocol {
        let invited = !hints.unordered && self.has_rtr(context.0, tag.0);
        if !invited && self.would_read(len, hints) {
            return Protocol::Read;
        }
        if self.goes_eager(len, hints) && !(invited && self.takes_invitation(len)) {
            if len as usize > self.longest_eager() {
                return Protocol::EagerParts;
            }
            let gathers =
                |link: &Link| rails[link.rail.index()].limits.gather > 0 && len as usize >= link.in_place_min;
            let in_place = self.used().any(|(_, link)| gathers(link));
            return if in_place { Protocol::EagerZcopy } else { Protocol::Eager };
        }
        if invited {
            return Protocol::Rtr;
        }
        let asks = hints.probe == Some(Method::Rendezvous);
        if !asks && self.pushes_part(len, chunk) { Protocol::Push } else { Protocol::Rendezvous }
    }
}
