//! Messages that are packed and unpacked piece by piece ([`crate::collect::message`]).

use crate::collect::message::{self, Packing, Unpacked, Unpacking};
use crate::collect::request::{Context, Envelope, Error, Hints, Source, Tag, TagMatch};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::{PeerId, RequestId};
use crate::protocol::{Recv, Request};

impl Packing {
    /// Begins a message that is packed piece by piece.
    pub fn new(to: PeerId, context: Context, tag: Tag) -> Packing {
        Packing { to, context, tag, first: None, next_piece: 1 }
    }

    /// Adds a piece, which may be sent at once. There is no final call: the message is complete when the
    /// requests of all pieces are.
    pub fn pack(&mut self, engine: &mut Engine, data: Segments, hints: Hints) -> RequestId {
        let Packing { to, context, tag, .. } = *self;
        let Some(first) = self.first else {
            engine.meet(to);
            self.first = engine.peer_mut(to).map(|peer| peer.flows.of(context.0).send_next);
            return engine.send(to, context, tag, data, Hints { unordered: false, ..hints });
        };
        let piece = message::piece_tag(first, self.next_piece);
        self.next_piece += 1;
        engine.send(to, message::piece_context(context), piece, data, message::piece_hints(hints))
    }
}

impl Unpacking {
    /// Begins to unpack a message.
    pub fn new(engine: &mut Engine, from: Source, context: Context, tag: TagMatch) -> Unpacking {
        let message = engine.receives.messages.insert(Unpacked::default());
        Unpacking { from, context, tag, message, next_piece: 0 }
    }

    /// Receives the next piece of the message.
    pub fn unpack(&mut self, engine: &mut Engine, into: Segments) -> RequestId {
        let Unpacking { from, context, tag, message, next_piece } = *self;
        self.next_piece += 1;
        let mut recv = Recv::new(into, (from, context, tag));
        if next_piece == 0 {
            recv.message = Some(message);
            return engine.post(recv);
        }
        let request = RequestId(engine.requests.insert(Request::Recv(recv)));
        match engine.receives.messages.get_mut(message) {
            Some(&mut Unpacked { failed: Some(error), .. }) => engine.fail_request(request, error),
            Some(&mut Unpacked { origin: Some((peer, first)), .. }) => {
                engine.post_piece(request, peer, context, first, next_piece);
            }
            Some(Unpacked { waiting, .. }) => waiting.push((request, next_piece)),
            None => engine.fail_request(request, Error::Cancelled),
        }
        request
    }

    /// Ends unpacking: no further piece will be requested.
    pub fn end(self, engine: &mut Engine) {
        if let Some(unpacked) = engine.receives.messages.get_mut(self.message) {
            unpacked.ended = true;
            if self.next_piece == 0 || unpacked.origin.is_some() || unpacked.failed.is_some() {
                engine.receives.messages.remove(self.message);
            }
        }
    }
}

impl Engine {
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
