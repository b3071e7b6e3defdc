//! Messages that are packed and unpacked piece by piece ([`crate::collect::message`]).

use crate::collect::message::{self, Packing, Unpacked, Unpacking};
use crate::collect::request::{Context, Envelope, Error, Hints, Source, Tag, TagMatch};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::{PeerId, RequestId};
use crate::protocol::{Recv, Request};

impl Engine {
    /// Begins a message that is packed piece by piece.
    pub fn begin_packing(&mut self, to: PeerId, context: Context, tag: Tag) -> Packing {
        Packing { to, context, tag, first: None, next_piece: 1 }
    }

    /// Adds a piece, which may be sent at once. There is no final call: the message is complete when the
    /// requests of all pieces are.
    pub fn pack(&mut self, packing: &mut Packing, data: Segments, hints: Hints) -> RequestId {
        let Packing { to, context, tag, .. } = *packing;
        let Some(first) = packing.first else {
            packing.first = self.peer_mut(to).map(|peer| peer.flows.of(context.0).send_next);
            return self.send(to, context, tag, data, Hints { unordered: false, ..hints });
        };
        let piece = message::piece_tag(first, packing.next_piece);
        packing.next_piece += 1;
        self.send(to, message::piece_context(context), piece, data, message::piece_hints(hints))
    }

    /// Begins to unpack a message.
    pub fn begin_unpacking(&mut self, from: Source, context: Context, tag: TagMatch) -> Unpacking {
        let message = self.receives.messages.insert(Unpacked::default());
        Unpacking { from, context, tag, message, next_piece: 0 }
    }

    /// Receives the next piece of the message.
    pub fn unpack(&mut self, unpacking: &mut Unpacking, into: Segments) -> RequestId {
        let Unpacking { from, context, tag, message, next_piece } = *unpacking;
        unpacking.next_piece += 1;
        let mut recv = Recv::new(into, (from, context, tag));
        if next_piece == 0 {
            recv.message = Some(message);
            return self.post(recv);
        }
        let request = RequestId(self.requests.insert(Request::Recv(recv)));
        match self.receives.messages.get_mut(message) {
            Some(&mut Unpacked { failed: Some(error), .. }) => self.fail_request(request, error),
            Some(&mut Unpacked { origin: Some((peer, first)), .. }) => {
                self.post_piece(request, peer, context, first, next_piece);
            }
            Some(Unpacked { waiting, .. }) => waiting.push((request, next_piece)),
            None => self.fail_request(request, Error::Cancelled),
        }
        request
    }

    /// Ends unpacking: no further piece will be requested.
    pub fn end_unpacking(&mut self, unpacking: Unpacking) {
        if let Some(unpacked) = self.receives.messages.get_mut(unpacking.message) {
            unpacked.ended = true;
            if unpacking.next_piece == 0 || unpacked.origin.is_some() || unpacked.failed.is_some() {
                self.receives.messages.remove(unpacking.message);
            }
        }
    }

    fn post_piece(&mut self, request: RequestId, peer: PeerId, context: Context, first: u32, piece: u32) {
        let (context, tag) = (message::piece_context(context), message::piece_tag(first, piece));
        if let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) {
            (recv.from, recv.context, recv.tag) = (Source::Peer(peer), context, TagMatch::Exact(tag));
        }
        self.post_as(request, Source::Peer(peer), context, TagMatch::Exact(tag));
    }

    /// Posts the receives of the other pieces once the first piece is matched, which determines their tags.
    #[cold]
    pub(crate) fn first_piece_matched(&mut self, message: u64, envelope: &Envelope) {
        let Some(unpacked) = self.receives.messages.get_mut(message) else { return };
        unpacked.origin = Some((envelope.peer, envelope.seq));
        let (waiting, ended) = (core::mem::take(&mut unpacked.waiting), unpacked.ended);
        for (request, piece) in waiting {
            self.post_piece(request, envelope.peer, envelope.context, envelope.seq, piece);
        }
        if ended {
            self.receives.messages.remove(message);
        }
    }

    /// Fails the receives of the other pieces after the first piece has failed.
    pub(crate) fn first_piece_failed(&mut self, message: u64, error: Error) {
        let Some(unpacked) = self.receives.messages.get_mut(message) else { return };
        unpacked.failed = Some(error);
        let (waiting, ended) = (core::mem::take(&mut unpacked.waiting), unpacked.ended);
        for (request, _) in waiting {
            self.fail_request(request, error);
        }
        if ended {
            self.receives.messages.remove(message);
        }
    }
}
