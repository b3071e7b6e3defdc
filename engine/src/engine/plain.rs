//! The short way in: a packet that holds one message and nothing else, next in the order of its peer and of
//! its link. Most packets do, so what takes many steps otherwise is decided at once.

use super::Engine;
use crate::clock::Instant;
use crate::collect::matching::{Arrived, Matching};
use crate::collect::request::{Context, Envelope, Recv, Request, Source, Tag, TagMatch};
use crate::collect::sequence::Place;
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId};
use crate::slab::Slab;
use crate::transfer::credit::Credit;
use crate::transfer::driver::Remote;
use alloc::vec::Vec;
use nmad_wire::{Eager, Header};

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

    /// Where what is expected goes.
    #[inline]
    fn memory(&self) -> Option<&Segments> {
        if let Expected::Message(.., into) = self { Some(into) } else { None }
    }

    /// The message that is expected.
    #[inline]
    fn meet(&mut self, envelope: Envelope, data: &impl Body) {
        if let Expected::Message(.., into) = self
            && !data.write_whole(into)
        {
            into.write(0, data.bytes());
        }
        *self = Expected::Met(envelope);
    }
}

/// The data of a packet, wherever that is.
trait Body {
    /// It is not here, and somebody waits for it: nothing is charged for it, since nobody has to keep it.
    const IS_LENT: bool;
    /// Bytes.
    fn len(&self) -> u64;
    /// Asked before anything is done: whether the packet can be taken. What is lent has to be fetched for
    /// that to where it belongs, and cannot be taken if nobody waits for it.
    fn comes<'a>(&mut self, into: impl FnOnce() -> Option<&'a Segments>) -> bool;
    /// Writes it where it belongs, if it is not there yet and goes into one piece; whether it is there.
    fn write_whole(&self, into: &Segments) -> bool;
    /// The bytes of what is not lent.
    fn bytes(&self) -> &[u8];
}

/// It is here.
impl Body for &[u8] {
    const IS_LENT: bool = false;

    #[inline(always)]
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    #[inline(always)]
    fn comes<'a>(&mut self, _: impl FnOnce() -> Option<&'a Segments>) -> bool {
        true
    }

    #[inline(always)]
    fn write_whole(&self, into: &Segments) -> bool {
        into.write_whole(self)
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// It is still in its sender's memory.
struct Lent<'a> {
    len: u64,
    fetch: &'a mut (dyn FnMut(&Segments) -> bool + Send),
}

impl Body for Lent<'_> {
    const IS_LENT: bool = true;

    fn len(&self) -> u64 {
        self.len
    }

    fn comes<'a>(&mut self, into: impl FnOnce() -> Option<&'a Segments>) -> bool {
        into().is_some_and(|into| self.len <= into.len() && (self.fetch)(&into.slice(0, self.len)))
    }

    fn write_whole(&self, _: &Segments) -> bool {
        true
    }

    fn bytes(&self) -> &[u8] {
        &[]
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
    /// Expects a message for a thread that waits and keeps all others from the engine meanwhile: a receive
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
        // Receives that were posted before come first.
        if self.matching.has_any() {
            return None;
        }
        let peer = self.peers.get_mut(from.0 as usize)?.as_deref_mut()?;
        // A large one may pay to open its memory early, and that needs a name.
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
            Some(Request::Recv(Recv { from: Source::Peer(from), region: None, .. })) => Some(*from),
            _ => None,
        }
    }

    /// A thread is about to sleep until this request ends; none: until any does. If it receives from a
    /// peer to which no link was asked for, the links are opened now: a peer that has left before it ever
    /// heard from us cannot say so, and only an attempt to reach it tells. True: there are such links.
    #[cold]
    pub fn sleeps_for(&mut self, request: Option<RequestId>) -> bool {
        let all = || self.requests.iter().map(|(name, _)| RequestId(name));
        let awaited = request.into_iter().chain(all().filter(|_| request.is_none()));
        let is_unmet = |from: &PeerId| self.peer(*from).is_some_and(|peer| !peer.is_met && !peer.is_gone());
        let unmet: Vec<_> = awaited.filter_map(|name| self.awaited_from(name)).filter(is_unmet).collect();
        unmet.iter().for_each(|from| self.meet(*from));
        !unmet.is_empty()
    }

    /// On which rail a message from this peer is best looked for alone ([`crate::transfer::driver::Scope`]);
    /// none: only a look at all of them tells.
    #[inline]
    pub fn looks_on(&self, from: PeerId) -> Option<RailId> {
        let rail = self.peer(from)?.awaited_on()?;
        self.rails[rail.index()].limits.looks.then_some(rail)
    }

    /// Takes a message whose data is still in its sender's memory, if somebody waits for it: the data is
    /// copied to where it belongs.
    pub(super) fn on_remote(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        message: Remote<'_>,
    ) -> Result<(), &'static str> {
        let Remote { head, len, fetch, taken } = message;
        let head = head.try_into().ok().and_then(|head| Eager::alone_behind(head, len as usize));
        if let Some(head) = head {
            *taken = self.on_short(now, rail, from, head, Lent { len, fetch })?;
        }
        Ok(())
    }

    /// The state of the expected receive; a message or request is reported once.
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
    // Inlined into both callers: the look for one packet, and the handling of a rail's events.
    #[inline(always)]
    pub(super) fn on_plain(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        packet: &[u8],
    ) -> Result<bool, &'static str> {
        match Eager::alone(packet) {
            Some((header, frame, data)) => self.on_short(now, rail, from, (header, frame), data),
            None => Ok(false),
        }
    }

    #[inline(always)]
    fn on_short<B: Body>(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        (header, frame): (Header, Eager),
        mut data: B,
    ) -> Result<bool, &'static str> {
        let Engine { peers, rails, matching, requests, expected, ended, untold, unheard, .. } = self;
        let Some(peer) = peers.get_mut(from.0 as usize).and_then(|peer| peer.as_deref_mut()) else {
            return Ok(false);
        };
        let Some(place) = peer.short_way(rail) else { return Ok(false) };
        let link = &mut peer.links[place];
        // What may have to be sent again is kept; anything else that waits is long, or left in part.
        let (lossy, waits) = (link.lossy, link.tx.len() > 0);
        if (waits && !peer.keeps) || !link.rx.is_next(header.number) {
            return Ok(false);
        }
        let flow = peer.flows.of(frame.context);
        if flow.place(frame.seq) != Place::Next || flow.has_early() {
            return Ok(false);
        }
        let (context, tag, len) = (Context(frame.context), Tag(frame.tag), data.len());
        let Some(meets) = expected.meets((from, context, tag), len) else { return Ok(false) };
        let envelope = Envelope { peer: from, context, tag, len, seq: frame.seq };
        if !data.comes(|| awaited(expected.memory().filter(|_| meets), (matching, requests), &envelope)) {
            return Ok(false);
        }
        if !B::IS_LENT && !peer.credit.received(len) {
            return Err("more eager data than it was granted");
        }
        flow.large = false;
        flow.recv_next = flow.recv_next.wrapping_add(1);
        rails[rail.index()].counters.packets_in += 1;
        if peer.several.is_some() {
            // The sender wants to know how long each rail takes.
            link.rx.note(u64::from(header.len));
            peer.heard.note(place);
        }
        link.rx.accept_next(now);
        // On a lossy one the timers see to it.
        let (due, short) = (!lossy && link.ack_is_due(now), peer.credit.is_short());
        let hears = waits && !meets;
        if meets {
            expected.meet(envelope, &data);
            consume::<B>(&mut peer.credit, len);
            *unheard = waits.then_some((now, rail, from, header.ack));
        } else {
            let receive = matching.arrive(&envelope);
            if let Some(request) = receive
                && fill(requests.get_mut(request.0), envelope, &data)
            {
                consume::<B>(&mut peer.credit, len);
                *untold += 1;
                ended.push(request);
            } else {
                self.place(receive, envelope, data.bytes());
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
            None => self.matching.keep(envelope, Arrived::store(data, &mut self.spare), 0),
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

/// A message is no longer kept.
#[inline(always)]
fn consume<B: Body>(credit: &mut Credit, len: u64) {
    if !B::IS_LENT {
        credit.consume(len);
    }
}

/// Where a message goes: to the expected receive, or to the posted one that takes it.
fn awaited<'a>(
    expected: Option<&'a Segments>,
    (matching, requests): (&Matching, &'a Slab<Request>),
    envelope: &Envelope,
) -> Option<&'a Segments> {
    expected.or_else(|| usual(requests.get(matching.next(envelope)?.0)).map(|recv| &recv.into))
}

/// A receive that nothing else belongs to.
#[inline(always)]
fn usual(request: Option<&Request>) -> Option<&Recv> {
    match request {
        Some(Request::Recv(recv)) if recv.region.is_none() && recv.message.is_none() => Some(recv),
        _ => None,
    }
}

/// Gives the message to a receive of one piece that nothing else belongs to; false: it is another one.
#[inline(always)]
fn fill(request: Option<&mut Request>, envelope: Envelope, data: &impl Body) -> bool {
    let Some(request) = request else { return false };
    if !usual(Some(request)).is_some_and(|recv| data.write_whole(&recv.into)) {
        return false;
    }
    // There is nothing in it that would have to be dropped.
    core::mem::forget(core::mem::replace(request, Request::Ended(Ok(envelope))));
    true
}
