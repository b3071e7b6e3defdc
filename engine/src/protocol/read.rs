//! Messages that their receivers read from the sender's memory (`Protocol::Read`; RGET elsewhere): between
//! processes of one node, whose drivers copy from process to process.
//!
//! The request to send tells where the message lies. When a receive has matched it, the receiver's rail
//! copies it, and a Fin tells the sender that its memory is free. The sender waits for no answer before the
//! copy, no message is copied twice, unexpected ones neither, and the link is free for other messages
//! meanwhile. A receiver whose rail cannot read asks with a Cts, and the sender offers it no more messages
//! to read then. A receiver that is late to read gets messages without being asked, as in [`crate::observe::late`].

use crate::collect::matching::Comes;
use crate::collect::request::{Envelope, Hints, Reading, Request};
use crate::engine::Engine;
use crate::engine::peer::{NO_READS, Peer};
use crate::packet::{Key, PeerId, RequestId};
use crate::profile::sample::Method;
use crate::transfer::access::{Access, Act, Came, RemoteAccess};
use crate::transfer::driver::Reads;
use crate::transfer::link::Link;

/// Messages that a peer may have to read. It copies them alone, and a sender that is so far ahead has time to
/// copy the next ones, in packets or pushed. Two cores of a Xeon with AMX, windows of 64: 64 KiB take 9.4 us
/// without a bound, 16 KiB 1.7. With a quarter of this windows of 16 mix both ways, and take 1.2 to 1.3 times
/// as long.
const UNREAD_MAX: u32 = 32;

impl Engine {
    /// A receive has matched a message that lies in its sender's memory: a rail reads it, as much as the
    /// receive has room for.
    pub(crate) fn read(&mut self, request: RequestId, envelope: Envelope, theirs: u64, at: u64) {
        let from = envelope.peer;
        let reads = |link: &&Link| {
            link.is_up() && self.rails[link.rail.index()].limits.remote == RemoteAccess::Copies
        };
        let rail = self.peer(from).and_then(|peer| Some(peer.links.iter().find(reads)?.rail));
        let Some(rail) = rail else { return self.ask_instead(request, envelope, theirs) };
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return };
        let here = recv.into.slice(0, envelope.len.min(recv.into.len()));
        if let Some(invited) = recv.region.take() {
            self.close_region(invited);
        }
        let reading = Reading { envelope, recv: request, theirs };
        let request = RequestId(self.requests.insert(Request::Reading(reading)));
        let access = Access { to: from, request, act: Act::Get, at, key: Key(0), here };
        self.rails[rail.index()].accesses.push(access);
        self.has_errands = true;
    }

    /// A message cannot be read: its sender is asked for it.
    fn ask_instead(&mut self, request: RequestId, envelope: Envelope, theirs: u64) {
        self.grant_region(request, envelope, theirs, true, Comes::Asked);
    }

    /// A rail has read a message, or could not.
    pub(crate) fn on_read(&mut self, request: RequestId, came: Came) {
        let Some(Request::Reading(Reading { envelope, recv, theirs })) = self.requests.remove(request.0)
        else {
            return;
        };
        if came != Came::Done {
            return self.ask_instead(recv, envelope, theirs);
        }
        self.send_fin(envelope.peer, theirs);
        self.end_recv(recv, envelope);
    }

    /// The peer cannot read messages here.
    #[cold]
    pub(crate) fn no_more_reads(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(|peer| peer.as_deref_mut()) else {
            return;
        };
        (peer.declines_reads, peer.unread) = (true, 0);
        peer.topology_changed(&self.rails);
    }
}

impl Peer {
    /// Whether a message of `len` bytes is read by its receiver.
    #[inline(always)]
    pub(crate) fn reads(&self, len: u64) -> bool {
        self.is_readable(len) && !self.is_behind() && !self.is_late_to_read(len)
    }

    /// Whether the receiver has enough to read. With more processes than cores, where nothing is pushed, its
    /// sender has no time to spare.
    fn is_behind(&self) -> bool {
        self.may_push.is_some() && self.unread >= UNREAD_MAX
    }

    /// A message was offered to be read.
    pub(crate) fn offers_to_read(&mut self) {
        self.unread += 1;
        self.lateness.asks();
    }

    /// Whether it would be, if the receiver were not late or behind.
    #[inline]
    pub(crate) fn is_readable(&self, len: u64) -> bool {
        self.reads.0 <= len && len < self.reads.1
    }

    /// The same of one that may have been told to go in a certain way.
    #[inline(always)]
    pub(crate) fn would_read(&self, len: u64, hints: Hints) -> bool {
        match hints.probe {
            None => self.reads(len),
            Some(method) => method == Method::Read && self.may_read.is_some(),
        }
    }

    /// Derives which messages are read.
    pub(crate) fn derive_reads(&mut self) {
        let measured = self.lone().and_then(|(_, link)| link.forecast.profile().thresholds());
        self.reads = match (self.may_read, measured) {
            (Some(Reads::From(len)), _) => (len, u64::MAX),
            (Some(Reads::Measured), Some(measured)) => (measured.read_min, measured.read_max),
            _ => NO_READS,
        };
        if let Some(unasked) = self.fixed.eager_max {
            self.reads.0 = self.reads.0.max(unasked as u64 + 1);
        }
    }
}
