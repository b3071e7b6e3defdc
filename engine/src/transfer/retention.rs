//! The retransmission buffer of a link: orders that were sent and may have to be sent again.
//!
//! Every packet and chunk has a number. An entry stays until the rail has released it and, if there are
//! several rails or the rail is lossy, until the peer has acknowledged it. The same entries serve for
//! retransmission on a lossy link and for replay of the orders of a dead link.

use crate::clock::Instant;
use crate::memory::Segments;
use crate::packet::{Key, Packet, RegionId, RequestId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Part of a large message, with the information needed to send it again.
#[derive(Debug, Clone)]
pub(crate) struct ChunkCargo {
    pub(crate) request: RequestId,
    pub(crate) region: RegionId,
    pub(crate) key: Key,
    pub(crate) offset: u64,
    pub(crate) from: Segments,
}

#[derive(Debug)]
pub(crate) enum Cargo {
    /// The packet; `None` while the rail holds it.
    Packet(Option<Packet>),
    Chunk(ChunkCargo),
}

#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) number: u32,
    pub(crate) cargo: Cargo,
    /// Length on the wire, in bytes.
    pub(crate) len: u64,
    /// Requests whose memory the packet sends in place.
    pub(crate) in_place: Vec<RequestId>,
    pub(crate) at_rail: bool,
    pub(crate) acked: bool,
    pub(crate) sent_at: Instant,
    /// Time of the first transmission.
    pub(crate) first_at: Instant,
    pub(crate) resent: u32,
}

/// The resources of an order that a rail has released.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// A buffer for reuse.
    pub(crate) packet: Option<Packet>,
    pub(crate) in_place: Vec<RequestId>,
    /// The chunk's request, receive region and length.
    pub(crate) chunk: Option<(RequestId, RegionId, u64)>,
}

/// Result of an acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// It acknowledged something new.
    pub(crate) any: bool,
    /// When the newest of these orders was sent, if it was sent only once.
    pub(crate) sample: Option<Instant>,
    /// When the newest retransmitted one of these orders was sent for the first and for the last time.
    pub(crate) again: Option<(Instant, Instant)>,
    /// The newly acknowledged orders that were sent only once.
    pub(crate) served: Option<Served>,
}

/// Packets and chunks that a link has carried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    pub(crate) len: u64,
    pub(crate) count: u64,
    /// When the first of them was sent.
    pub(crate) first: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Retention {
    next: u32,
    /// Bytes that are not acknowledged.
    pending: u64,
    entries: VecDeque<InFlight>,
    at_rail: usize,
    bytes_at_rail: u64,
    /// When the oldest entry was sent that the rail has sent and the peer has not acknowledged.
    oldest: Option<Instant>,
    /// Entries that were acknowledged before earlier ones.
    ahead: usize,
}

impl Retention {
    /// Returns the number of the next packet or chunk.
    #[inline]
    pub(crate) fn next_number(&self) -> u32 {
        self.next
    }

    /// Returns the number of orders that the rail holds.
    #[inline]
    pub(crate) fn at_rail(&self) -> usize {
        self.at_rail
    }

    /// Returns the bytes of the orders that the rail holds.
    pub(crate) fn bytes_at_rail(&self) -> u64 {
        self.bytes_at_rail
    }

    /// Returns the number of unfinished entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Assigns a number to a packet that is not kept. The buffer must be empty, since its entries have
    /// consecutive numbers.
    #[inline]
    pub(crate) fn skip(&mut self) {
        debug_assert!(self.entries.is_empty());
        self.next = self.next.wrapping_add(1);
    }

    /// Adds an order that is given to the rail now, under the next number.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, cargo: Cargo, len: u64, in_place: Vec<RequestId>) {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.at_rail += 1;
        self.pending += len;
        self.bytes_at_rail += len;
        let entry = InFlight {
            number,
            cargo,
            len,
            in_place,
            at_rail: true,
            acked: false,
            sent_at: now,
            first_at: now,
            resent: 0,
        };
        self.entries.push_back(entry);
    }

    #[inline]
    pub(crate) fn entry(&mut self, number: u32) -> Option<&mut InFlight> {
        let first = self.entries.front()?.number;
        let index = number.wrapping_sub(first) as usize;
        self.entries.get_mut(index)
    }

    /// Records that the rail has sent an order and returned its packet. With `keep` the entry stays until
    /// it is acknowledged.
    #[inline]
    pub(crate) fn sent(&mut self, number: u32, packet: Option<Packet>, keep: bool) -> Released {
        let Some(entry) = self.entry(number).filter(|entry| entry.at_rail) else {
            return Released::default();
        };
        entry.at_rail = false;
        let done = entry.acked || !keep;
        let mut released = Released { in_place: core::mem::take(&mut entry.in_place), ..Released::default() };
        match &mut entry.cargo {
            Cargo::Packet(place) if !done => {
                *place = packet;
                // Copy the user data that the packet sent in place, so that the sender's memory is free.
                // The rail has sent the packet already, so the copy delays nothing.
                place.iter_mut().filter(|packet| !packet.in_place.is_empty()).for_each(Packet::gather);
            }
            Cargo::Packet(_) => released.packet = packet,
            Cargo::Chunk(chunk) => released.chunk = Some((chunk.request, chunk.region, chunk.from.len())),
        }
        let len = entry.len;
        let arrived = if done && !entry.acked { entry.len } else { 0 };
        let (sent_at, newly) = (entry.sent_at, done && !entry.acked);
        entry.acked = done;
        self.ahead += usize::from(newly);
        if !done {
            self.oldest = Some(self.oldest.map_or(sent_at, |oldest| oldest.min(sent_at)));
        }
        self.at_rail -= 1;
        self.pending -= arrived;
        self.bytes_at_rail -= len;
        self.trim();
        released
    }

    /// Drops entries from the front that are acknowledged, or need no acknowledgement, and that the rail
    /// has released.
    #[inline]
    fn trim(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.acked && !entry.at_rail) {
            self.entries.pop_front();
            self.ahead -= 1;
        }
    }

    /// Records that the peer has everything below `below` and the numbers whose bits are set in `beyond`.
    /// Returns buffers for reuse by `free`, and what was newly acknowledged.
    #[inline]
    pub(crate) fn acknowledge(&mut self, below: u32, beyond: u64, free: &mut impl FnMut(Packet)) -> News {
        let mut news = News::default();
        for entry in &mut self.entries {
            let ahead = entry.number.wrapping_sub(below);
            let has = ahead >= 1 << 31 || ((1..=64).contains(&ahead) && beyond & 1 << (ahead - 1) != 0);
            if !has && beyond == 0 {
                break;
            }
            if has && !entry.acked {
                entry.acked = true;
                self.ahead += 1;
                self.pending -= entry.len;
                news.any = true;
                if entry.resent == 0 {
                    let served = news.served.get_or_insert(Served { len: 0, count: 0, first: entry.sent_at });
                    served.len += entry.len;
                    served.count += 1;
                }
                match entry.resent {
                    0 => news.sample = Some(entry.sent_at),
                    _ => news.again = Some((entry.first_at, entry.sent_at)),
                }
                if let Cargo::Packet(packet) = &mut entry.cargo {
                    packet.take().map(&mut *free);
                }
            }
        }
        self.trim();
        if news.any {
            self.look_for_oldest();
        }
        news
    }

    /// Takes all orders that the peer may not have, when the link is dead.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = InFlight> {
        self.at_rail = 0;
        self.pending = 0;
        self.bytes_at_rail = 0;
        (self.oldest, self.ahead) = (None, 0);
        core::mem::take(&mut self.entries).into_iter().filter(|entry| !entry.acked || entry.at_rail)
    }

    /// Whether an acknowledged number was already assigned.
    pub(crate) fn is_plausible(&self, ack: u32) -> bool {
        self.next.wrapping_sub(ack) < 1 << 31
    }

    /// Returns when the oldest entry was sent that the rail has sent and the peer has not acknowledged.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.oldest
    }

    fn look_for_oldest(&mut self) {
        self.oldest = self.waiting().map(|entry| entry.sent_at).min();
    }

    /// The clock went back: no entry was sent later than now.
    pub(crate) fn restart_timers(&mut self, now: Instant) {
        for entry in &mut self.entries {
            entry.sent_at = entry.sent_at.min(now);
            entry.first_at = entry.first_at.min(now);
        }
        self.look_for_oldest();
    }

    /// Returns the first entry that is not acknowledged.
    pub(crate) fn first(&self) -> Option<&InFlight> {
        self.entries.iter().find(|entry| !entry.acked)
    }

    /// Returns the number of the entry that was sent longest ago and is not acknowledged.
    pub(crate) fn oldest_number(&self) -> Option<u32> {
        self.waiting().min_by_key(|entry| entry.sent_at).map(|entry| entry.number)
    }

    /// Returns an entry that at least `count` later ones have overtaken and whose send time satisfies
    /// `is_overdue`: it should have arrived.
    pub(crate) fn overtaken(&self, count: usize, is_overdue: impl Fn(Instant) -> bool) -> Option<u32> {
        let mut acked = self.ahead;
        for entry in &self.entries {
            if acked < count {
                return None;
            }
            acked -= usize::from(entry.acked);
            if !entry.acked && !entry.at_rail && is_overdue(entry.sent_at) {
                return Some(entry.number);
            }
        }
        None
    }

    /// Whether at least `count` entries were acknowledged before earlier ones.
    pub(crate) fn has_overtaken(&self, count: usize) -> bool {
        self.ahead >= count
    }

    /// Returns the bytes that are not acknowledged.
    pub(crate) fn pending(&self) -> u64 {
        self.pending
    }

    fn waiting(&self) -> impl Iterator<Item = &InFlight> {
        self.entries.iter().filter(|entry| !entry.acked && !entry.at_rail)
    }

    /// Records that an order is given to the rail again.
    pub(crate) fn resend(&mut self, number: u32, now: Instant) {
        if let Some(entry) = self.entry(number) {
            entry.at_rail = true;
            entry.resent += 1;
            entry.sent_at = now;
            let len = entry.len;
            self.bytes_at_rail += len;
            self.at_rail += 1;
            self.look_for_oldest();
        }
    }
}
