//! Read (`Protocol::Read`; RGET elsewhere): the receiver copies a message from the sender's memory, between
//! processes of one node whose drivers can copy from process to process.
//!
//! The request to send contains the address of the message (`SendState::Readable`). When a receive has
//! matched it, the receiver's rail copies it ([`Reading`]), and a Fin tells the sender that its memory is
//! free. The sender waits for no answer before the copy, no message is copied twice, not even an unexpected
//! one, and the link is free for other messages meanwhile. If the receiver's rail cannot read, the receiver
//! answers with a Cts, and the sender then offers no more messages for reading. A receiver that is late to
//! read gets eager or pushed messages ([`crate::observe::late`]). When the peer is lost, both sides end
//! with [`crate::Error::PeerLost`].

use crate::clock::Instant;
use crate::collect::matching::Comes;
use crate::collect::request::{Envelope, Hints};
use crate::engine::Engine;
use crate::engine::depart::{Load, book};
use crate::engine::peer::Peer;
use crate::memory::Segments;
use crate::packet::{Key, PeerId, RequestId};
use crate::profile::sample::Method;
use crate::protocol::leaving::{Leaving, Submitted, To};
use crate::protocol::rendezvous::{LargeSend, SendState};
use crate::protocol::rules::{Family, Message, Rules, Submission};
use crate::protocol::{Protocol, Request};
use crate::transfer::access::{Access, Act, Came, RemoteAccess};
use crate::transfer::driver::Reads;
use crate::transfer::link::Link;
use alloc::boxed::Box;

/// Largest number of messages that a peer has still to read. The peer copies them alone, and a sender that
/// is so far ahead has time to copy the next ones, in packets or pushed. Two cores of a Xeon with AMX,
/// windows of 64: 64 KiB take 9.4 us without a bound, 16 KiB 1.7. With a quarter of this windows of 16 mix
/// both ways, and take 1.2 to 1.3 times as long.
const UNREAD_MAX: u32 = 32;

pub(crate) const RULES: Rules = Rules { protocol: Protocol::Read, family: Family::Read, fits, cost, begin };

/// State of a matched message that is being read from its sender's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) envelope: Envelope,
    /// The receive.
    pub(crate) recv: RequestId,
    /// The sender's request.
    pub(crate) theirs: u64,
    /// See [`nmad_wire::Fin::prompt`].
    prompt: bool,
}

fn fits(message: &Message, peer: &Peer) -> bool {
    let may = peer.way.read.is_some() && message.has_address && !message.is_invited;
    may && matches!(message.hints.probe, None | Some(Method::Read))
}

/// The time of the request to send, the copy, and the Fin.
fn cost(message: &Message, peer: &Peer) -> u64 {
    let of = |link: &Link| {
        let profile = link.forecast.profile();
        let copy_ns =
            profile.memcpy().map_or(link.forecast.body_ns(message.len), |curve| curve.ns(message.len));
        profile.eager().start_ns().saturating_add(copy_ns)
    };
    peer.used().map(|(_, link)| of(link)).min().unwrap_or(0)
}

fn begin(engine: &mut Engine, submission: Submission) -> RequestId {
    let address = submission.data.address().unwrap_or(0);
    engine.begin_large(submission, Protocol::Read, SendState::Readable { address })
}

impl Peer {
    /// Whether a message of `len` bytes is read by its receiver: the length is in the range in which
    /// reading was measured to be the fastest, and the receiver is neither late nor behind.
    #[inline(always)]
    pub(crate) fn reads(&self, len: u64) -> bool {
        self.is_readable(len) && !self.is_behind() && !self.is_late_to_read(len)
    }

    /// Whether the receiver has enough messages to read. If nothing can be pushed the machine is
    /// oversubscribed, and the sender has no time to copy for it.
    fn is_behind(&self) -> bool {
        self.way.push.is_some() && self.lateness.unread >= UNREAD_MAX
    }

    /// Whether a message of `len` bytes would be read if the receiver were neither late nor behind.
    #[inline]
    pub(crate) fn is_readable(&self, len: u64) -> bool {
        self.way.read_lens.0 <= len && len < self.way.read_lens.1
    }

    /// Returns the lengths of messages that are read, from the first number to below the second.
    pub(crate) fn lens_to_read(&self) -> (u64, u64) {
        let measured = self.lone().and_then(|(_, link)| link.forecast.profile().thresholds());
        let (from, below) = match (self.way.read, measured) {
            (Some(Reads::From(len)), _) => (len, u64::MAX),
            (Some(Reads::Measured), Some(measured)) => (measured.read_min, measured.read_max),
            _ => (u64::MAX, 0),
        };
        (from.max(self.fixed.eager_max.map_or(0, |unasked| unasked as u64 + 1)), below)
    }
}

impl Engine {
    /// Books the request to send of a message that its receiver reads.
    pub(crate) fn read_departed(
        &mut self,
        leaving: &Leaving,
        to: To,
        (data, hints): (&Segments, Hints),
        until: Instant,
    ) -> Submitted {
        let Engine { peers, rails, requests, .. } = self;
        let request = leaving.request;
        let envelope = Envelope { peer: to.0, context: to.1, tag: to.2, len: data.len(), seq: leaving.seq };
        let address = data.address().unwrap_or(0);
        let state = SendState::Readable { address };
        let mut send = LargeSend::new(Protocol::Read, state, envelope, data.clone(), hints);
        (send.wants_fin, send.timing.asked_at) = (true, Some(until));
        if let Some(place) = requests.get_mut(request.0) {
            *place = Request::Large(Box::new(send));
        }
        // No other thread has used the engine since the message was planned: the peer still exists.
        let Some(peer) = peers.get_mut(to.0) else {
            return Submitted::Request(request);
        };
        peer.flows.requested += 1;
        peer.lateness.offers_to_read();
        let link = &mut peer.links[usize::from(leaving.plan.place)];
        let at = &mut rails[link.rail.index()];
        let len = leaving.read(&to, data.len(), address).len() as u64 * 8;
        book(until, to.0, link, at, Load { entries: Some(1), len, busy: 0, kept: None });
        Submitted::Request(request)
    }

    /// Begins to read a matched message from its sender's memory, as much as the receive has space for.
    pub(crate) fn read(&mut self, request: RequestId, envelope: Envelope, theirs: u64, at: u64) {
        let from = envelope.peer;
        let reads = |link: &&Link| {
            link.is_up() && self.rails[link.rail.index()].limits.remote == RemoteAccess::Copies
        };
        let rail = self.peer(from).and_then(|peer| Some(peer.links.iter().find(reads)?.rail));
        let Some(rail) = rail else { return self.request_by_cts(request, envelope, theirs) };
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return };
        let (into, len) = recv.body(envelope.len);
        let here = into.slice(0, len.min(into.len()));
        if let Some(invited) = recv.region.take() {
            self.close_region(invited);
        }
        let reading = Reading { envelope, recv: request, theirs, prompt: self.is_waiting };
        let request = RequestId(self.requests.insert(Request::Reading(reading)));
        let access = Access { to: from, request, act: Act::Get, at, key: Key(0), here };
        self.rails[rail.index()].accesses.push(access);
        self.has_errands = true;
    }

    /// Requests a message that cannot be read from its sender by Cts.
    fn request_by_cts(&mut self, request: RequestId, envelope: Envelope, theirs: u64) {
        self.grant_region(request, envelope, theirs, true, Comes::Asked);
    }

    /// Handles the result of reading a message.
    pub(crate) fn on_read(&mut self, request: RequestId, came: Came) {
        let Some(Request::Reading(Reading { envelope, recv, theirs, prompt })) =
            self.requests.remove(request.0)
        else {
            return;
        };
        if came != Came::Done {
            return self.request_by_cts(recv, envelope, theirs);
        }
        self.send_fin_as(envelope.peer, theirs, prompt);
        self.end_recv(recv, envelope);
    }

    /// Records that the peer cannot read this process's memory.
    #[cold]
    pub(crate) fn no_more_reads(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else {
            return;
        };
        (peer.lateness.declines_reads, peer.lateness.unread) = (true, 0);
        peer.derive_way(&self.rails);
    }
}
