//! Departures: books everything that a rail is given, whichever part of the engine sends it.
//!
//! A message that is sent in the call that submits it takes three steps: [`Engine::begin`] plans it and
//! assigns its sequence number, the driver sends it, and [`Engine::departed`] books the result. The
//! contents of the window are built into packets and cut into chunks when a rail is idle
//! ([`crate::engine::dispatch`], [`crate::protocol`]), and booked by the same function.

use crate::clock::Instant;
use crate::collect::request::{Envelope, Hints};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::{Packet, PeerId, RequestId};
use crate::protocol::Request;
use crate::protocol::leaving::{Leaving, Submitted, To};
use crate::protocol::{Caller, Protocol, Wanted};
use crate::transfer::driver::Sent;
use crate::transfer::link::Link;
use crate::transfer::rail::Rail;
use crate::transfer::retention::Cargo;
use alloc::vec::Vec;

/// A departure to be booked.
pub(crate) struct Load {
    /// Number of messages and control frames of a packet; `None`: it is a chunk.
    pub(crate) entries: Option<u32>,
    /// Bytes of the packet, or of the chunk's data.
    pub(crate) len: u64,
    /// Bytes that determine how long the rail is predicted to be busy, headers included; zero: no time.
    pub(crate) busy: u64,
    /// Its entry in the retransmission buffer, and the requests that complete when it was sent. `None`: it
    /// was sent completely and is not kept.
    pub(crate) kept: Option<(Cargo, Vec<RequestId>)>,
}

/// Books a departure: number, retransmission, acknowledgement of the other direction, the rail's predicted
/// idle time and its counters.
// Inlined everywhere: most packets are not kept, which is known where they are booked.
#[inline(always)]
pub(crate) fn book(now: Instant, to: PeerId, link: &mut Link, at: &mut Rail, load: Load) {
    let Load { entries, len, busy, kept } = load;
    // A chunk acknowledges only what has arrived in order.
    if entries.is_some() || link.rx.beyond() == 0 {
        link.rx.acknowledged();
    }
    match kept {
        Some((cargo, in_place)) => link.hold(now, cargo, len, in_place),
        None => link.tx.skip(),
    }
    match entries {
        Some(entries) => at.counters.left(entries, len),
        None => {
            at.counters.left_chunk(len);
            at.give_chunk();
        }
    }
    if busy > 0 {
        at.give(now, to, link.forecast.busy_ns(busy));
    }
}

impl Engine {
    /// Plans a message and begins to send it; `None`: it has to be submitted with [`Engine::send_as`].
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        &(to, context, _): &To,
        len: u64,
        hints: Hints,
        caller: Caller,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<Leaving> {
        let Engine { peers, rails, config, observers, requests, other_cores, .. } = self;
        let peer = peers.get_mut(to)?;
        let wanted = Wanted { len, hints, caller };
        let (plan, mut began) = peer.at_once((rails, other_cores), config.chunk, wanted, clock)?;
        if observers.receipts.is_some() && began == Instant::default() {
            began = clock();
        }
        let link = &peer.links[usize::from(plan.place)];
        let (number, ack) = (link.tx.next_number(), link.rx.below());
        let flow = peer.flows.of(context.0);
        let seq = flow.send_next;
        flow.send_next = seq.wrapping_add(1);
        if plan.protocol.spends() {
            peer.credit.spend_known(len);
        }
        let request = match plan.protocol {
            Protocol::Push | Protocol::Read => {
                RequestId(requests.insert(Request::Ended(Err(crate::Error::Cancelled))))
            }
            _ => RequestId(0),
        };
        Some(Leaving { plan, seq, number, ack, request, began })
    }

    /// Books the result of sending; `None`: the rail has refused the message, which is still to be sent.
    #[inline]
    pub(crate) fn departed(
        &mut self,
        leaving: &Leaving,
        sent: Sent,
        to: &To,
        data: &Segments,
        hints: Hints,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<Submitted> {
        if sent == Sent::Retry {
            self.take_back(leaving, to.0, data.len());
            return None;
        }
        let until = clock();
        let submitted = match leaving.plan.protocol {
            Protocol::Push => self.push_departed(leaving, sent, *to, (data, hints), until),
            Protocol::Read => self.read_departed(leaving, *to, (data, hints), until),
            Protocol::Inject => {
                self.injected(leaving, to.0, data.len());
                Submitted::Ended(leaving.seq)
            }
            _ => self.eager_departed(leaving, sent, to, data, until),
        };
        if self.observers.receipts.is_some() {
            self.note_departure(
                leaving.plan,
                submitted,
                *to,
                (data.len(), leaving.seq),
                (leaving.began, until),
            );
        }
        Some(submitted)
    }

    /// Undoes all reservations but the sequence number after a rail has refused a message.
    fn take_back(&mut self, leaving: &Leaving, to: PeerId, len: u64) {
        if matches!(leaving.plan.protocol, Protocol::Push | Protocol::Read) {
            self.requests.remove(leaving.request.0);
        }
        if leaving.plan.protocol.spends()
            && let Some(peer) = self.peer_mut(to)
        {
            peer.credit.give_back(len);
        }
    }

    /// Makes a request for a message that was sent completely. Since no caller can wait for it yet,
    /// [`Engine::next_completion`] does not report it.
    #[inline]
    pub fn ended(&mut self, envelope: Envelope) -> RequestId {
        self.untold += 1;
        RequestId(self.requests.insert(Request::Ended(Ok(envelope))))
    }
}

/// Makes the load of a packet that was built from the window.
pub(crate) fn packet_load(packet: &Packet, entries: u32, in_place: Vec<RequestId>) -> Load {
    let len = packet.len() as u64;
    Load { entries: Some(entries), len, busy: len, kept: Some((Cargo::Packet(None), in_place)) }
}
