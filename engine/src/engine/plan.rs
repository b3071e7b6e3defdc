//! How a message goes: the protocol and the rail, decided here and nowhere else, without side effects.
//!
//! A message that finds its rail idle leaves in the call that submits it ([`Peer::at_once`]); any other waits
//! in the window ([`Peer::queued`]), from where a rail takes it when it asks.

use super::Engine;
use super::lane::Lane;
use super::parallel::Cores;
use super::peer::Peer;
use crate::clock::Instant;
use crate::collect::request::{Context, Hints, Outgoing, Tag};
use crate::packet::{PeerId, RailId};
use crate::profile::sample::Method;
use crate::transfer::driver::How;
use crate::transfer::link::Link;
use crate::transfer::rail::Rail;

/// Messages like the last one for which there shall be credit: an answer takes no longer than them.
const SPARE: u64 = 3;

/// The ways of a message from memory to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The driver copies it before the call returns, without a system call.
    Inject,
    /// In a packet, copied.
    Eager,
    /// In a packet, from where it lies.
    EagerZcopy,
    /// Without asking although it is longer than a packet: in parts, each in a packet.
    EagerParts,
    /// In parts, each in a packet over a rail of its own that another core posts.
    EagerParallel,
    /// The receiver copies it, straight from the sender's memory.
    SingleCopy,
    /// Its first part, or all of it, follows its request to send without waiting for an answer.
    Push,
    /// The receiver is asked first (Rts, Cts).
    Rendezvous,
    /// The receiver has invited it: chunks follow the request to send at once.
    Rtr,
}

impl Protocol {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Inject => "inject",
            Protocol::Eager => "eager",
            Protocol::EagerZcopy => "eager-zcopy",
            Protocol::EagerParts => "eager-parts",
            Protocol::EagerParallel => "eager-parallel",
            Protocol::SingleCopy => "single-copy",
            Protocol::Push => "push",
            Protocol::Rendezvous => "rendezvous",
            Protocol::Rtr => "rtr",
        }
    }

    /// Whether the message goes in one packet.
    pub fn is_eager(self) -> bool {
        matches!(self, Protocol::Inject | Protocol::Eager | Protocol::EagerZcopy | Protocol::SingleCopy)
    }

    /// What a driver is asked to do with a message of this protocol that leaves at once.
    #[inline]
    pub(crate) fn how(self) -> How {
        match self {
            Protocol::Inject => How::Inject,
            Protocol::SingleCopy => How::SingleCopy,
            _ => How::Send,
        }
    }
}

/// What somebody who submits a message does then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Goes on: its next message may share a packet with this one.
    GoesOn,
    /// Waits for several things of which this is one.
    Steps,
    /// Waits for nothing else.
    Waits,
    /// The same, and has just looked at the rails: there is no more credit to be found.
    Looked,
}

impl Caller {
    #[inline(always)]
    fn waits(self) -> bool {
        matches!(self, Caller::Waits | Caller::Looked)
    }
}

/// How a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The protocol.
    pub protocol: Protocol,
    /// The rail, if it leaves at once; otherwise the strategy chooses when a rail asks.
    pub rail: Option<RailId>,
    /// Place of the rail's link among those of the peer.
    pub(super) place: u8,
}

impl Plan {
    #[inline]
    fn at_once(protocol: Protocol, rail: RailId, place: usize) -> Option<Plan> {
        Some(Plan { protocol, rail: Some(rail), place: place as u8 })
    }
}

/// The figures of a message that decide, and what was tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) len: u64,
    pub(super) hints: Hints,
    pub(super) caller: Caller,
    /// The rail has refused this; something else is to be found.
    pub(super) refused: Option<Protocol>,
}

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
            if is_alone && peer.parallel(&self.rails, (now, len), self.cores.ready()).is_some() {
                protocol = Protocol::EagerParallel;
            }
            Plan { protocol, rail: peer.wished(hints.rail), place: 0 }
        }))
    }
}

impl Outgoing {
    /// The protocol of a large message.
    pub(super) fn protocol(&self) -> Protocol {
        match self {
            Outgoing { invited: true, .. } => Protocol::Rtr,
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
    pub(super) fn at_once(
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
        let Some(Lane { rail, place, below, injects, single_copy }) = self.lane else {
            return self.over_one_of_several((rails, cores), wanted, clock);
        };
        let (link, at) = (&self.links[place], &rails[rail.index()]);
        if link.rx.beyond() > 0 || at.prepared.is_some() {
            return None;
        }
        let clear = link.tx.len() == 0;
        let may_copy = caller.waits() && single_copy.0 <= len && len < single_copy.1;
        if may_copy && clear && refused.is_none() {
            return Plan::at_once(Protocol::SingleCopy, rail, place);
        }
        if !matches!(refused, None | Some(Protocol::SingleCopy)) {
            return None;
        }
        if len >= below {
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
    pub(super) fn goes_eager(&self, len: u64, hints: Hints) -> bool {
        let small = match hints.probe {
            None if len as usize > self.longest_eager() => self.goes_in_parts(len),
            None => len as usize <= self.eager_max || self.goes_unasked(len, false),
            Some(Method::Rendezvous | Method::Pushed) => false,
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
    pub(super) fn queued(
        &self,
        rails: &[Rail],
        chunk: u64,
        (context, tag): (Context, Tag),
        len: u64,
        hints: Hints,
    ) -> Protocol {
        let invited = !hints.unordered && self.has_rtr(context.0, tag.0);
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
