//! Requests to send that arrive: order and match, and what becomes of their bodies without a receive.

use crate::collect::matching::{Arrived, Comes};
use crate::collect::request::{Context, Envelope, Tag};
use crate::collect::sequence::{Early, Place};
use crate::engine::Engine;
use crate::engine::arrive::Wrong;
use crate::packet::{PeerId, RegionId};
use nmad_wire::{Blocks, Rts, flags};

impl Engine {
    pub(crate) fn on_rts(&mut self, from: PeerId, rts: Rts, blocks: Blocks<'_>) -> Result<(), Wrong> {
        let (context, tag) = (Context(rts.context), Tag(rts.tag));
        let envelope = Envelope { peer: from, context, tag, len: rts.len, seq: rts.seq };
        let mut body = match rts {
            Rts { flags, .. } if flags & flags::PARTS != 0 => self.name_parts(from, &rts)?,
            Rts { pushed: 1.., .. } => Comes::Pushed(rts.pushed),
            Rts { flags, .. } if flags & flags::INVITED != 0 => Comes::Invited(RegionId(rts.region)),
            Rts { flags, .. } if flags & flags::READ != 0 => Comes::Read(rts.address),
            _ => Comes::Asked,
        };
        let fin = rts.flags & flags::FIN != 0;
        let Some(peer) = self.peer_mut(from) else { return Ok(()) };
        if rts.pushed > 0 && !peer.credit.received(rts.pushed) {
            return Err("more pushed than it was granted");
        }
        if !blocks.is_empty() {
            self.charge_blocks(from, rts.request, blocks)?;
        }
        let Some(peer) = self.peer_mut(from) else { return Ok(()) };
        if rts.flags & flags::UNORDERED == 0 {
            let flow = peer.flows.of(rts.context);
            match flow.place(rts.seq) {
                Place::Next => flow.recv_next = flow.recv_next.wrapping_add(1),
                Place::Past => return Err("sequence number of an earlier message"),
                Place::Early => {
                    self.store_blocks(from, rts.request, blocks);
                    body = self.stored(from, body, rts.request);
                    return self.park(Early {
                        envelope,
                        body: Arrived::Rts { fin, body },
                        request: rts.request,
                    });
                }
            }
        }
        let arrived = Early { envelope, body: Arrived::Rts { fin, body }, request: rts.request };
        self.match_with(arrived, blocks);
        self.continue_flow(from, rts.context);
        Ok(())
    }

    /// Matches the messages that waited for earlier ones of their flow.
    #[inline]
    pub(crate) fn continue_flow(&mut self, from: PeerId, context: u32) {
        while let Some(peer) = self.peer_mut(from)
            && let flow = peer.flows.of(context)
            && let Some(early) = flow.next_early()
        {
            flow.recv_next = flow.recv_next.wrapping_add(1);
            self.match_parked(early);
        }
    }

    fn match_parked(&mut self, early: Early) {
        self.match_with(early, Blocks::NONE);
    }

    /// Matches a message; its blocks have arrived just now, or are stored.
    fn match_with(&mut self, early: Early, blocks: Blocks<'_>) {
        self.post_expected_for(&early.envelope);
        let Early { envelope, body, request: theirs } = early;
        let Some(request) = self.receives.matching.arrive(&envelope) else {
            self.store_blocks(envelope.peer, theirs, blocks);
            let body = self.without_receive(envelope.peer, body, theirs);
            return self.receives.matching.keep(envelope, body, theirs);
        };
        self.place_blocks(request, &envelope, blocks);
        self.deliver_body(request, envelope, body, theirs);
    }

    /// Stores a message until the earlier ones of its flow have arrived.
    pub(crate) fn park(&mut self, early: Early) -> Result<(), Wrong> {
        let Some(peer) = self.peer_mut(early.envelope.peer) else { return Ok(()) };
        let is_first = peer.flows.of(early.envelope.context.0).park(early);
        if is_first { Ok(()) } else { Err("sequence number used twice") }
    }

    /// Returns the body of a message that matches no receive yet.
    fn without_receive(&mut self, from: PeerId, body: Arrived, theirs: u64) -> Arrived {
        match body {
            Arrived::Rts { fin, body: body @ (Comes::Pushed(_) | Comes::Parts(_)) } => {
                Arrived::Rts { fin, body: self.stored(from, body, theirs) }
            }
            // Its Rtr was of a receive that no longer exists: the sender gets another receive region.
            Arrived::Rts { fin, body: Comes::Invited(_) } => Arrived::Rts { fin, body: Comes::Asked },
            other => other,
        }
    }

    /// Provides a buffer of the engine for a body that arrives before its receive is posted.
    fn stored(&mut self, from: PeerId, body: Comes, theirs: u64) -> Comes {
        match body {
            Comes::Pushed(len) => Comes::Stored(self.store_push(from, theirs, len)),
            Comes::Parts(len) => Comes::Stored(self.store_parts(from, theirs, len, true)),
            other => other,
        }
    }
}
