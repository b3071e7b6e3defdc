//! Application to window: assigns a message its sequence number, chooses its protocol, and begins the
//! protocol.

use crate::collect::request::{Context, Envelope, Error, Hints, Tag};
use crate::engine::Engine;
use crate::engine::peer::Peer;
use crate::memory::Segments;
use crate::packet::{PeerId, RequestId};
use crate::protocol::eager::EagerSend;
use crate::protocol::leaving::{Refused, To};
use crate::protocol::rules::{Message, Submission};
use crate::protocol::{Protocol, Request};

impl Engine {
    /// Submits a message. It is sent when a rail is idle; its memory is in use until the request ends.
    ///
    /// The request ends with the envelope when the memory may be reused (with [`Hints::synchronous`]: when
    /// the receiver has matched it), or with [`Error::PeerLost`].
    #[inline]
    pub fn send(
        &mut self,
        to: PeerId,
        context: Context,
        tag: Tag,
        data: Segments,
        hints: Hints,
    ) -> RequestId {
        self.send_as((to, context, tag), data, hints, None)
    }

    /// Submits a message that a rail may have refused ([`crate::pump::send_at_once`]); it then already has
    /// its sequence number.
    #[inline]
    pub fn send_as(
        &mut self,
        (to, context, tag): To,
        data: Segments,
        hints: Hints,
        refused: Option<Refused>,
    ) -> RequestId {
        let len = data.len();
        let mut envelope = Envelope { peer: to, context, tag, len, seq: 0 };
        let Engine { peers, config, rails, observers, .. } = self;
        let peer = peers.get_mut(to);
        let Some(peer) = peer.filter(|peer| !peer.is_gone()) else {
            return self.send_first((to, context, tag), data, hints, refused);
        };
        if let Some(chosen) = hints.strategy {
            peer.strategies.add(to, chosen, &config.registry);
        }
        let hints = match peer.learning.is_active {
            true => peer.choose_probe(rails, &mut observers.watched, len, hints),
            false => hints,
        };
        if hints.depends && peer.states.invitations.holds() {
            // Send the requests of the messages that this one depends on now, instead of waiting for an
            // Rtr.
            self.ask_all_held(to);
            return self.send_as((to, context, tag), data, hints, refused);
        }
        if hints.depends {
            peer.submit_names();
        }
        let hints = peer.number(&mut envelope, hints, refused);
        let invitations = &mut peer.states.invitations;
        let is_invited = !invitations.is_empty() && !hints.unordered && invitations.has(context.0, tag.0);
        let has_address = peer.way.read.is_some() && data.address().is_some();
        let message = Message { len, hints, has_address, is_invited, chunk: config.chunk };
        let rules = peer.cheapest(&message);
        if is_invited && rules.protocol != Protocol::Rtr {
            // The invitation is for this message and none after it.
            peer.states.invitations.take(context.0, tag.0);
        }
        (rules.begin)(self, Submission { envelope, data, hints })
    }

    /// Submits the first message to a peer that is made now, or fails one to a peer that is lost.
    #[cold]
    fn send_first(&mut self, to: To, data: Segments, hints: Hints, refused: Option<Refused>) -> RequestId {
        if self.meet(to.0) {
            return self.send_as(to, data, hints, refused);
        }
        self.refuse(Envelope { peer: to.0, context: to.1, tag: to.2, len: data.len(), seq: 0 })
    }

    /// Fails a request to a peer that is lost or unknown.
    #[cold]
    fn refuse(&mut self, envelope: Envelope) -> RequestId {
        let request = RequestId(self.requests.insert(Request::Eager(EagerSend::new(envelope, false))));
        self.complete(request, Err(Error::PeerLost(envelope.peer)));
        request
    }
}

impl Peer {
    /// Assigns a message its sequence number in its flow, or records that the flow has unordered messages;
    /// returns the hints to use.
    #[inline(always)]
    fn number(&mut self, envelope: &mut Envelope, hints: Hints, refused: Option<Refused>) -> Hints {
        let flow = self.flows.of(envelope.context.0);
        // Ordering is kept in flows with Rtrs, which rely on it; the hint only permits reordering.
        let hints = Hints { unordered: hints.unordered && !flow.invited, ..hints };
        if hints.unordered {
            flow.has_unordered = true;
        } else if let Some(refused) = refused {
            envelope.seq = refused.seq;
        } else {
            envelope.seq = flow.send_next;
            flow.send_next = flow.send_next.wrapping_add(1);
        }
        hints
    }
}
