//! The short ways over a lossy rail: a message that is alone leaves at once, and what has to be remembered of
//! it is remembered while it is under way; timers are looked at when one of them may be due.

use super::Engine;
use super::lane::{Lane, alone_head};
use super::plain::Expected;
use crate::clock::Instant;
use crate::collect::request::{Context, Hints, Tag};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId};
use crate::transfer::retention::Cargo;
use alloc::vec::Vec;
use nmad_wire::Eager;

impl Engine {
    /// Has a message leave at once over the only rail, if that is a lossy one and the message would be alone
    /// in its packet: `send` is given the rail, the packet's number, and the bytes that go before the data
    /// ([`crate::Driver::send_now`]), and answers when it has left. The message has ended then for its
    /// sender, and this is its number in its flow. None: nothing was done.
    #[inline]
    pub(crate) fn send_now(
        &mut self,
        (to, context, tag): (PeerId, Context, Tag),
        data: &Segments,
        hints: Hints,
        send: impl FnOnce(RailId, u32, &[u64]) -> Option<Instant>,
    ) -> Option<u32> {
        let Engine { peers, rails, receipts, buffers, rests_until, .. } = self;
        let peer = peers.get_mut(to.0 as usize)?.as_deref_mut()?;
        let (Lane { rail, place, below }, len) = (peer.lane?, data.len());
        if len >= below || !peer.passes(len, hints) || receipts.is_some() || peer.credit.owes_limit() {
            return None;
        }
        let (link, at) = (&mut peer.links[place], &mut rails[rail.index()]);
        if !link.lossy || !link.accepts(at.limits.depth) {
            return None;
        }
        if link.rx.beyond() > 0 || at.prepared.is_some() {
            return None;
        }
        let flow = peer.flows.of(context.0);
        let (seq, size, number) = (flow.send_next, Eager::ALONE_LEN as u64 + len, link.tx.next_number());
        let head = alone_head(link, (context, tag), seq, len);
        let left_at = send(rail, number, &head)?;
        flow.send_next = seq.wrapping_add(1);
        peer.credit.spend(len);
        link.rx.acknowledged();
        let mut packet = buffers.pop().unwrap_or_default();
        packet.in_place.clear();
        packet.bytes.clear();
        packet.bytes.extend(head.iter().flat_map(|word| word.to_ne_bytes()));
        data.append_to(&mut packet.bytes);
        link.hold(left_at, Cargo::Packet(None), size, Vec::new());
        link.tx.sent(number, Some(packet), true);
        link.stir();
        *rests_until = Instant::default();
        at.give(left_at, to, link.forecast.busy_ns(size));
        at.posted(None, left_at);
        at.counters.left(1, size);
        Some(seq)
    }

    /// Whether somebody expects a message that has come, and nothing waits for a rail.
    #[inline]
    pub(crate) fn is_met(&self) -> bool {
        matches!(self.expected, Expected::Met(_)) && self.ready.is_empty()
    }

    /// Something happens: timers are to be looked at anew.
    #[inline]
    pub(super) fn stir(&mut self) {
        self.rests_until = Instant::default();
    }

    /// Whether no lossy link needs anything now; until when, is remembered.
    pub(super) fn timers_rest(&mut self, now: Instant) -> bool {
        let mut until = Instant::from_ns(u64::MAX);
        for &(peer, rail) in &self.timed {
            let link = self.peer(peer).and_then(|peer| peer.link(rail)).filter(|link| link.is_up());
            let Some(link) = link else { continue };
            let Some(rests) = link.rests_until(now) else { return false };
            until = until.min(rests);
        }
        self.rests_until = until;
        true
    }
}
