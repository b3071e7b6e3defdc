//! Blocks of a large message that travel with its request to send (P1 section 5.3).
//!
//! A message of pieces that lie apart is a series of blocks. Those below the block threshold of the links
//! are copied into the packet with the request to send, in the order of the message; the larger blocks
//! follow in place by any protocol of large messages, as if they were the whole message
//! ([`LargeSend::data`]). The receiver scatters the blocks when the message is matched, and takes the same
//! ranges out of the memory of the receive ([`Recv::rest`]). So chunks, their split over rails, and what
//! becomes of them when a link is lost do not depend on blocks.
//!
//! Blocks of a message that matches no receive yet are stored, within the credit. A request to send that is
//! replayed over another link still contains its blocks, and is dropped if it has arrived before. When the
//! peer is lost, its stored blocks are dropped with their messages.

use crate::collect::request::Envelope;
use crate::engine::Engine;
use crate::engine::arrive::Wrong;
use crate::engine::peer::Peer;
use crate::memory::Segments;
use crate::packet::{PeerId, RequestId};
use crate::protocol::carried::{Carried, Rest};
use crate::protocol::rendezvous::{LargeSend, SendState};
use crate::protocol::rules::{Message, Submission};
use crate::protocol::{Protocol, Recv, Request};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use nmad_wire::{Block, Blocks, Header, Rts};

/// Messages of more pieces are not cut: the list of what is left would have as many entries, for the few
/// blocks that a packet holds.
const PIECES_MAX: usize = 1024;
/// Largest number of blocks that travel with a request to send.
const BLOCKS_MAX: usize = 64;
/// Bytes of a packet that are reserved for the request to send, and for an Ack and a Credit (10 B each).
const HEADS: usize = Header::LEN + Rts::MAX_LEN + Blocks::COUNT_LEN + 32;

/// The blocks of a message that travel with its request to send, and the rest.
#[derive(Debug)]
struct Cut {
    carried: Carried,
    rest: Segments,
}

impl Peer {
    /// Returns the smallest block threshold of the links in use: a shorter block would be copied on each.
    fn block_min(&self) -> u64 {
        self.used().map(|(_, link)| link.block_min).min().unwrap_or(0) as u64
    }

    /// Whether a message has blocks on both sides of the threshold, so that the small ones travel with the
    /// request to send.
    pub(crate) fn cuts(&self, data: &Segments) -> bool {
        if data.is_even() || data.count() > PIECES_MAX {
            return false;
        }
        let block_min = self.block_min();
        let is_small = |len: usize| (len as u64) < block_min;
        let (mut has_small, mut has_large) = (false, false);
        for piece in data.iter() {
            (has_small, has_large) = (has_small | is_small(piece.len), has_large | !is_small(piece.len));
            if has_small && has_large {
                return true;
            }
        }
        false
    }

    /// Whether copying these blocks on both sides, into the packet and out of it, is predicted to take less
    /// time than what leaving them in place takes for each block; their bytes cross the network either way.
    /// On links without measured costs of blocks the threshold alone decides.
    fn carrying_pays(&self, count: u64, bytes: u64) -> bool {
        self.used().all(|(_, link)| {
            let profile = link.forecast.profile();
            let Some((costs, memcpy)) = profile.blocks().zip(profile.memcpy()) else { return true };
            ((2 * memcpy.ns(bytes)) as f64) < costs.gathered.block_ns * count as f64
        })
    }

    /// Takes the blocks out of a message that travel with its request to send, as many as one packet and the
    /// credit hold, and charges them.
    fn cut(&mut self, data: &Segments) -> Option<Cut> {
        if !self.cuts(data) {
            return None;
        }
        let block_min = self.block_min();
        let mut room = self.way.packet_max.checked_sub(HEADS)?;
        let (mut places, mut bytes, mut count, mut offset) = (Vec::<Block>::new(), 0, 0, 0);
        for piece in data.iter() {
            let start = offset;
            offset += piece.len as u64;
            if piece.len as u64 >= block_min {
                continue;
            }
            let is_full = places.len() == BLOCKS_MAX;
            let last = places.last_mut().filter(|last| last.offset + u64::from(last.len) == start);
            let place = if last.is_some() { 0 } else { Block::LEN };
            let fits = room >= place + piece.len && self.credit.has(bytes + piece.len as u64);
            match last {
                _ if !fits => break,
                Some(last) => last.len += piece.len as u32,
                None if is_full => break,
                None => places.push(Block { offset: start, len: piece.len as u32 }),
            }
            (room, bytes) = (room - place - piece.len, bytes + piece.len as u64);
            count += 1;
        }
        if places.is_empty() || !self.carrying_pays(count, bytes) {
            return None;
        }
        let ranges = || places.iter().map(|block| (block.offset, u64::from(block.len)));
        let (rest, own) = (data.without(ranges()), data.only(ranges()));
        self.credit.spend_known(bytes);
        Some(Cut { carried: Carried::new(places, own), rest })
    }
}

impl Engine {
    /// Begins a large message whose small blocks travel with its request to send.
    ///
    /// # Errors
    /// It goes whole: its blocks are all small or all large, it has too many pieces, there is no room or
    /// credit for a block, or copying does not pay; or it waits for an invitation, for which the receiver has
    /// opened memory for all of it.
    pub(crate) fn begin_cut(&mut self, submission: Submission) -> Result<RequestId, Submission> {
        if submission.data.is_even() || self.expects_rtr(&submission) {
            return Err(submission);
        }
        let (Envelope { peer: to, .. }, hints, chunk) =
            (submission.envelope, submission.hints, self.config.chunk);
        let Some(peer) = self.peer_mut(to) else { return Err(submission) };
        let Some(Cut { carried, rest }) = peer.cut(&submission.data) else { return Err(submission) };
        let address = rest.address().filter(|_| peer.way.read.is_some());
        let message =
            Message { len: rest.len(), hints, has_address: address.is_some(), is_invited: false, chunk };
        let protocol = peer.cheapest(&message).protocol;
        let pushes = protocol == Protocol::Push;
        let pushed =
            if pushes { self.spend_push(&Envelope { len: rest.len(), ..submission.envelope }) } else { 0 };
        let (protocol, state) = match (protocol, address) {
            (Protocol::Read, Some(address)) => (Protocol::Read, SendState::Readable { address }),
            _ if pushed > 0 => (Protocol::Push, SendState::Ahead { len: pushed }),
            _ => (Protocol::Rendezvous, SendState::Asked),
        };
        let request = self.enter_large(Submission { data: rest, ..submission }, protocol, state);
        if let Some(Request::Large(send)) = self.requests.get_mut(request.0) {
            send.carried = Some(Box::new(carried));
        }
        self.request_to_send(request, None);
        Ok(request)
    }

    /// Takes the blocks out of a message for which no invitation came in time.
    pub(crate) fn cut_held(&mut self, request: RequestId) {
        let Engine { requests, peers, .. } = self;
        let Some(Request::Large(send)) = requests.get_mut(request.0) else { return };
        let held = matches!(send.state, SendState::Held) && !send.kept.is_here();
        let Some(peer) = peers.get_mut(send.envelope.peer).filter(|_| held) else { return };
        if let Some(Cut { carried, rest }) = peer.cut(&send.data) {
            (send.data, send.carried) = (rest, Some(Box::new(carried)));
        }
    }

    /// Whether the small blocks of a message to this peer travel with its request to send.
    #[cold]
    pub(crate) fn cuts(&self, to: PeerId, data: &Segments) -> bool {
        self.peer(to).is_some_and(|peer| peer.cuts(data))
    }

    /// Checks and charges the blocks that have arrived with a request to send.
    pub(crate) fn charge_blocks(
        &mut self,
        from: PeerId,
        theirs: u64,
        blocks: Blocks<'_>,
    ) -> Result<(), Wrong> {
        let Some(peer) = self.peer_mut(from) else { return Ok(()) };
        if !peer.credit.received(blocks.data().len() as u64) {
            return Err("more blocks with a request to send than it was granted");
        }
        match self.receives.blocks.len_of(from, theirs) {
            0 => Ok(()),
            _ => Err("two messages with blocks under one request"),
        }
    }

    /// Drops the stored blocks of a lost peer, except those of messages that can still be received.
    pub(crate) fn forget_blocks(&mut self, from: PeerId) {
        let claimed = self.receives.claimed.iter();
        let claimed = claimed.map(|(_, message)| (message.envelope.peer, message.request));
        let mut kept: BTreeSet<(PeerId, u64)> = claimed.collect();
        kept.extend(self.receives.matching.bodies_mut().map(|(peer, theirs, _)| (peer, theirs)));
        self.receives.blocks.retain(from, |theirs| kept.contains(&(from, theirs)));
    }

    /// Stores the blocks of a message that matches no receive yet.
    pub(crate) fn store_blocks(&mut self, from: PeerId, theirs: u64, blocks: Blocks<'_>) {
        if !blocks.is_empty() {
            self.receives.blocks.store(from, theirs, blocks);
        }
    }

    /// Scatters the stored blocks of a message, if there are any, to the receive that has matched it.
    pub(crate) fn place_stored(&mut self, request: RequestId, envelope: &Envelope, theirs: u64) {
        if self.receives.blocks.is_empty() {
            return;
        }
        if let Some((places, data)) = self.receives.blocks.take(envelope.peer, theirs) {
            self.place_blocks(request, envelope, Blocks::new(&places, &data));
        }
    }

    /// Scatters the blocks of a message to the receive that has matched it: the rest comes to the memory
    /// between them.
    pub(crate) fn place_blocks(&mut self, request: RequestId, envelope: &Envelope, blocks: Blocks<'_>) {
        if blocks.is_empty() {
            return;
        }
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return };
        for (offset, data) in blocks.iter() {
            recv.into.write(offset, data);
        }
        let ranges = blocks.places().map(|block| (block.offset, u64::from(block.len)));
        let bytes = blocks.data().len() as u64;
        let rest = Rest { into: recv.into.without(ranges), len: envelope.len - bytes };
        recv.rest = Some(Box::new(rest));
        // An invited region was opened for the whole message; the rest gets its own.
        if let Some(invited) = recv.region.take() {
            self.close_region(invited);
        }
        if let Some(peer) = self.peer_mut(envelope.peer) {
            peer.credit.consume(bytes);
        }
    }
}

impl Recv {
    /// Returns the memory for the body of a message of `len` bytes, and the length of that body: both are
    /// less if blocks have come with its request to send.
    #[inline]
    pub(crate) fn body(&self, len: u64) -> (&Segments, u64) {
        self.rest.as_ref().map_or((&self.into, len), |rest| (&rest.into, rest.len))
    }
}

impl LargeSend {
    /// Returns the number of blocks that travel with its request to send, and their bytes.
    pub(crate) fn blocks(&self) -> (u64, u64) {
        self.carried.as_ref().map_or((0, 0), |carried| (carried.count(), carried.len()))
    }

    /// Whether blocks travel with its request to send and the receiver may read the rest.
    pub(crate) fn is_read_beside_blocks(&self) -> bool {
        self.carried.is_some() && matches!(self.state, SendState::Readable { .. })
    }

    /// Whether its request to send is in the window with blocks in the memory of the program.
    pub(crate) fn has_blocks_in_window(&self) -> bool {
        self.carried.as_ref().is_some_and(|carried| carried.is_in_window)
    }
}
