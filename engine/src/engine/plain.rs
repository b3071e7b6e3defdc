//! The short way in: a packet that holds one message and nothing else, next in the order of its peer and of
//! its link. Most packets do, so what takes many steps otherwise is decided at once.

use super::Engine;
use super::peer::Peer;
use crate::clock::Instant;
use crate::collect::matching::Arrived;
use crate::collect::request::{Context, Envelope, Recv, Request, Source, Tag, TagMatch};
use crate::collect::sequence::Place;
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId};
use crate::transfer::driver::{Driver, Fetched};
use alloc::boxed::Box;
use nmad_wire::Eager;

/// A receive that is in no table: nobody but the one who waits for it may call the engine until it has met
/// its message or was posted.
#[derive(Debug, Default)]
pub(super) enum Expected {
    #[default]
    Nothing,
    /// From whom, of which context and tag, and where it goes.
    Message(PeerId, Context, Tag, Segments),
    /// It is here.
    Met(Envelope),
    /// It has become a request like any other.
    Posted(RequestId),
}

impl Expected {
    /// Whether this message is expected; none: it is, and too long.
    #[inline]
    fn meets(&self, names: (PeerId, Context, Tag), len: u64) -> Option<bool> {
        match self {
            Expected::Message(from, context, tag, into) if (*from, *context, *tag) == names => {
                (len <= into.len()).then_some(true)
            }
            _ => Some(false),
        }
    }

    /// The message that is expected.
    #[inline]
    fn meet(&mut self, envelope: Envelope, data: &[u8]) {
        if let Expected::Message(.., into) = self
            && !into.write_whole(data)
        {
            into.write(0, data);
        }
        *self = Expected::Met(envelope);
    }
}

/// How far an expected receive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// Nothing has come for it.
    Not,
    /// Its message is there.
    Message(Envelope),
    /// It is a request now.
    Request(RequestId),
}

impl Engine {
    /// Expects a message for somebody who waits and keeps everybody else from the engine meanwhile: a receive
    /// without the tables that many receives need. Ask [`Engine::met`] after each turn of the pump, and
    /// [`Engine::post_expected`] before anybody else may call. From whom it comes; none: nothing is expected,
    /// use [`Engine::recv`].
    #[inline]
    pub fn expect(
        &mut self,
        from: Source,
        context: Context,
        tag: TagMatch,
        into: &Segments,
    ) -> Option<PeerId> {
        let (Source::Peer(from), TagMatch::Exact(tag)) = (from, tag) else { return None };
        // Whoever was posted before comes before; and a receipt needs a request to belong to.
        if self.matching.has_any() || self.receipts.is_some() {
            return None;
        }
        let peer = self.peers.get_mut(from.0 as usize)?.as_deref_mut()?;
        // A large one may pay to promise its memory, and that needs a name.
        let large = into.len() as usize > peer.eager_max && peer.flows.of(context.0).large;
        if large || peer.is_gone() {
            return None;
        }
        self.expected = Expected::Message(from, context, tag, into.clone());
        Some(from)
    }

    /// From whom the message of a receive comes that has not come yet; none: nobody knows, or it is large and
    /// has begun to come, or the request is no such receive.
    #[inline]
    pub fn awaited_from(&self, request: RequestId) -> Option<PeerId> {
        match self.requests.get(request.0) {
            Some(Request::Recv(Recv { from: Source::Peer(from), landing: None, .. })) => Some(*from),
            _ => None,
        }
    }

    /// Looks for a packet of a peer on the rail that it probably comes over.
    #[inline]
    pub(crate) fn fetch(&mut self, drivers: &mut [Box<dyn Driver>], now: Instant, from: PeerId) -> Fetched {
        let Some(rail) = self.peer(from).and_then(Peer::awaited_on) else { return Fetched::Elsewhere };
        let take = &mut |packet: &[u8]| self.on_plain(now, rail, from, packet) == Ok(true);
        drivers[rail.index()].fetch(from, take)
    }

    /// How far what is expected is; a message or request is told once.
    #[inline]
    pub fn met(&mut self) -> Met {
        match self.expected {
            Expected::Nothing | Expected::Message(..) => Met::Not,
            Expected::Met(envelope) => {
                self.expected = Expected::Nothing;
                Met::Message(envelope)
            }
            Expected::Posted(request) => {
                self.expected = Expected::Nothing;
                Met::Request(request)
            }
        }
    }

    /// Posts what is expected as a receive like any other, if its message has not come.
    pub fn post_expected(&mut self) {
        if !matches!(self.expected, Expected::Message(..)) {
            return;
        }
        if let Expected::Message(from, context, tag, into) = core::mem::take(&mut self.expected) {
            let request = self.recv(Source::Peer(from), context, TagMatch::Exact(tag), into);
            self.expected = Expected::Posted(request);
        }
    }

    /// Takes a packet that may go the short way; false: it does not, and nothing was done. What is expected
    /// is posted then, since the long way looks among the posted ones.
    // Inlined into both callers: who looks for one packet, and who takes what a rail reports.
    #[inline(always)]
    pub(super) fn on_plain(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        packet: &[u8],
    ) -> Result<bool, &'static str> {
        let Some((header, frame, data)) = Eager::alone(packet) else { return Ok(false) };
        let Engine { peers, rails, matching, requests, expected, ended, untold, receipts, unheard, .. } =
            self;
        let Some(peer) = peers.get_mut(from.0 as usize).and_then(|peer| peer.as_deref_mut()) else {
            return Ok(false);
        };
        let Some(place) = peer.short_way(rail) else { return Ok(false) };
        let link = &mut peer.links[place];
        // What may have to be sent again is kept; anything else that waits is long, or left in part.
        let (lossy, waits) = (link.lossy, link.tx.len() > 0);
        if receipts.is_some() || (waits && !peer.keeps) || !link.rx.is_next(header.number) {
            return Ok(false);
        }
        let flow = peer.flows.of(frame.context);
        if flow.place(frame.seq) != Place::Next || flow.has_early() {
            return Ok(false);
        }
        let (context, tag, len) = (Context(frame.context), Tag(frame.tag), data.len() as u64);
        let Some(meets) = expected.meets((from, context, tag), len) else { return Ok(false) };
        if !peer.credit.received(len) {
            return Err("more eager data than it was granted");
        }
        flow.large = false;
        flow.recv_next = flow.recv_next.wrapping_add(1);
        rails[rail.index()].counters.packets_in += 1;
        if peer.several.is_some() {
            // The sender wants to know how long each rail takes.
            link.rx.note(packet.len() as u64);
            peer.heard.note(place);
        }
        link.rx.accept_next(now);
        // On a lossy one the timers see to it.
        let (due, short) = (!lossy && link.ack_is_due(now), peer.credit.is_short());
        let envelope = Envelope { peer: from, context, tag, len, seq: frame.seq };
        let hears = waits && !meets;
        if meets {
            expected.meet(envelope, data);
            peer.credit.consume(len);
            *unheard = waits.then_some((now, rail, from, header.ack));
        } else {
            let receive = matching.arrive(&envelope);
            if let Some(request) = receive
                && fill(requests.get_mut(request.0), envelope, data)
            {
                peer.credit.consume(len);
                *untold += 1;
                ended.push(request);
            } else {
                self.place(receive, envelope, data);
            }
        }
        if due || short {
            self.follow(from, due, short);
        }
        if hears {
            self.on_ack(now, rail, from, header.ack, 0);
        }
        Ok(true)
    }

    /// Where a message goes that does not just fill a posted receive. Apart, so that the others have all
    /// registers.
    #[inline(never)]
    fn place(&mut self, receive: Option<RequestId>, envelope: Envelope, data: &[u8]) {
        match receive {
            Some(request) => self.deliver(request, envelope, data, 0),
            None => self.matching.keep(envelope, Arrived::copy(data), 0),
        }
    }

    /// What a packet of the short way makes due.
    #[inline(never)]
    fn follow(&mut self, from: PeerId, due: bool, short: bool) {
        if due {
            self.make_ready(from);
        }
        if short {
            self.consider_credit(from);
        }
    }
}

/// Gives the message to a receive of one piece that nothing else belongs to; false: it is another one.
#[inline(always)]
fn fill(request: Option<&mut Request>, envelope: Envelope, data: &[u8]) -> bool {
    let Some(request) = request else { return false };
    let Request::Recv(recv) = request else { return false };
    if recv.landing.is_some() || recv.message.is_some() || !recv.into.write_whole(data) {
        return false;
    }
    // There is nothing in it that would have to be dropped.
    core::mem::forget(core::mem::replace(request, Request::Ended(Ok(envelope))));
    true
}
