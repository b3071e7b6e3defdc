//! The short ways of a small message: nothing else is in the window, so there is little to decide, and on a
//! reliable rail that is the only one nothing to remember.

use super::Engine;
use super::kept::keep;
use super::lane::{Lane, alone_head};
use super::peer::Peer;
use crate::clock::Instant;
use crate::collect::request::{Context, Envelope, Hints, Request, Tag};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId};
use crate::transfer::driver::{AtOnce, Driver};
use crate::transfer::retention::Cargo;
use alloc::boxed::Box;
use alloc::vec::Vec;
use nmad_wire::Eager;

impl Engine {
    /// Lets a rail take a message at once ([`Driver::pass`]), if nothing more than it has to be told or
    /// remembered. The message has ended then, and this is its number in its flow. None: the rail did not
    /// take it, or was not asked.
    ///
    /// Nothing longer than a register is answered. Memory that is read in other pieces than it was written
    /// in has to reach the cache first, behind the packet, whose line is still with another core.
    #[inline(never)]
    pub(crate) fn pass(
        &mut self,
        drivers: &mut [Box<dyn Driver>],
        to: (PeerId, Context, Tag),
        data: &Segments,
        hints: Hints,
    ) -> Option<u32> {
        self.past_window::<false>(drivers, to, data, hints)
    }

    /// Has a rail lend a message to a peer who waits for it ([`Driver::lend`]), for somebody who waits. As
    /// [`Engine::pass`], but nothing is charged.
    #[inline]
    pub(crate) fn lend(
        &mut self,
        drivers: &mut [Box<dyn Driver>],
        to: (PeerId, Context, Tag),
        data: &Segments,
        hints: Hints,
    ) -> Option<u32> {
        let peer = self.peers.get(to.0.0 as usize)?.as_deref()?;
        let (from, below) = peer.lane?.lends;
        if !(from..below).contains(&data.len()) {
            return None;
        }
        self.lend_long(drivers, to, data, hints)
    }

    #[inline(never)]
    fn lend_long(
        &mut self,
        drivers: &mut [Box<dyn Driver>],
        to: (PeerId, Context, Tag),
        data: &Segments,
        hints: Hints,
    ) -> Option<u32> {
        self.past_window::<true>(drivers, to, data, hints)
    }

    /// A message passes, or is lent.
    #[inline(always)]
    fn past_window<const LENDS: bool>(
        &mut self,
        drivers: &mut [Box<dyn Driver>],
        (to, context, tag): (PeerId, Context, Tag),
        data: &Segments,
        hints: Hints,
    ) -> Option<u32> {
        let Engine { peers, rails, receipts, .. } = self;
        let peer = peers.get_mut(to.0 as usize)?.as_deref_mut()?;
        let (lane, len) = (peer.lane.filter(|lane| LENDS || lane.passes)?, data.len());
        let Lane { rail, place, .. } = lane;
        let may = match LENDS {
            true => hints.are_plain() && peer.is_idle(),
            false => peer.passes(lane.below, len, hints),
        };
        if !may || receipts.is_some() {
            return None;
        }
        let (link, at) = (&mut peer.links[place], &mut rails[rail.index()]);
        if link.tx.len() > 0 || link.rx.beyond() > 0 || at.prepared.is_some() {
            return None;
        }
        let flow = peer.flows.of(context.0);
        let seq = flow.send_next;
        let (driver, head) = (&mut drivers[rail.index()], alone_head(link, (context, tag), seq, len));
        if !(if LENDS { driver.lend(to, &head, data) } else { driver.pass(to, &head, data) }) {
            return None;
        }
        flow.send_next = seq.wrapping_add(1);
        if !LENDS {
            peer.credit.spend_known(len);
        }
        link.tx.skip();
        link.rx.acknowledged();
        at.counters.left(1, Eager::ALONE_LEN as u64 + len);
        Some(seq)
    }

    /// Has a message leave at once, if it would be alone in its packet: `send` is given the rail, the
    /// packet's number, and the bytes that go before the data ([`crate::Driver::send_now`]), and answers how
    /// it went. The message has ended then for its sender, and this is its number in its flow. None: nothing
    /// was done.
    #[inline]
    pub(crate) fn send_now(
        &mut self,
        (to, context, tag): (PeerId, Context, Tag),
        data: &Segments,
        hints: Hints,
        clock: &mut dyn FnMut() -> Instant,
        send: impl FnOnce(RailId, u32, &[u64]) -> AtOnce,
    ) -> Option<u32> {
        let Engine { peers, rails, receipts, .. } = self;
        let peer = peers.get_mut(to.0 as usize)?.as_deref_mut()?;
        let len = data.len();
        let below = peer.lane.map(|lane| lane.below).or(peer.several)?;
        if !peer.passes(below, len, hints) || receipts.is_some() {
            return None;
        }
        // With several rails it is measured how long each takes, from before the call on.
        let (place, from) = match peer.lane {
            Some(lane) => (lane.place, None),
            None => {
                let now = clock();
                (peer.choose(rails, now, len)?, Some(now))
            }
        };
        let link = &peer.links[place];
        let (rail, at) = (link.rail, &rails[link.rail.index()]);
        if link.rx.beyond() > 0 || at.prepared.is_some() {
            return None;
        }
        // What is kept is copied anyway, and behind others; the rest is only numbered.
        let ready = match peer.keeps {
            true => link.accepts(at.limits.depth),
            false => link.tx.len() == 0,
        };
        if !ready {
            return None;
        }
        let seq = peer.flows.of(context.0).send_next;
        let head = alone_head(link, (context, tag), seq, len);
        let how = send(rail, link.tx.next_number(), &head);
        if how == AtOnce::Refused {
            return None;
        }
        self.went_at_once((how, from, clock()), (to, place, context), &head, data);
        Some(seq)
    }

    /// What has to be done for a message that has left at once, while it is under way.
    #[inline(never)]
    fn went_at_once(
        &mut self,
        (how, from, until): (AtOnce, Option<Instant>, Instant),
        (to, place, context): (PeerId, usize, Context),
        head: &[u64],
        data: &Segments,
    ) {
        self.hear();
        let Engine { peers, rails, buffers, rests_until, .. } = self;
        let Some(peer) = peers.get_mut(to.0 as usize).and_then(|peer| peer.as_deref_mut()) else { return };
        let link = &mut peer.links[place];
        let at = &mut rails[link.rail.index()];
        let flow = peer.flows.of(context.0);
        flow.send_next = flow.send_next.wrapping_add(1);
        peer.credit.spend(data.len());
        link.rx.acknowledged();
        let (size, held_at) = (Eager::ALONE_LEN as u64 + data.len(), from.unwrap_or(until));
        if how == AtOnce::Posted {
            link.hold(held_at, Cargo::Packet(None), size, Vec::new());
        } else if peer.keeps {
            keep(link, held_at, buffers.pop().unwrap_or_default(), (head, data));
            *rests_until = Instant::default();
        } else {
            link.tx.skip();
        }
        // What the call took does not count as the cost of posting: the rail would be busy for as long again,
        // and an answer to what comes meanwhile would take another one.
        at.give(until, to, link.forecast.busy_ns(size));
        at.posted(None, until);
        at.counters.left(1, size);
    }

    /// A request for a message that has passed. It has ended, and since nobody can wait for it yet,
    /// [`Engine::next_ended`] does not tell so.
    #[inline]
    pub fn ended(&mut self, envelope: Envelope) -> RequestId {
        self.untold += 1;
        RequestId(self.requests.insert(Request::Ended(Ok(envelope))))
    }
}

impl Peer {
    /// Whether a message with these hints is shorter than `below` and would leave alone and right away, with
    /// nothing else to be told.
    #[inline(always)]
    fn passes(&self, below: u64, len: u64, hints: Hints) -> bool {
        len < below
            && hints.are_plain()
            && self.is_idle()
            && self.credit.has(len)
            && !self.credit.owes_limit()
    }
}
