//! Orders that were sent on a link and may have to be sent again.
//!
//! Every packet and chunk has a number. An entry stays until the rail has let go of it and, where it has
//! to be kept (several rails, or a lossy one), until the peer has acknowledged it. The same entries serve
//! for sending again on a lossy link and for replaying what a dead link held.

use crate::clock::Instant;
use crate::memory::Segments;
use crate::packet::{Key, Packet, RegionId, RequestId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Part of a large message, by which it can be sent again.
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
    /// None while the rail has it.
    Packet(Option<Packet>),
    Chunk(ChunkCargo),
}

#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) number: u32,
    pub(crate) cargo: Cargo,
    /// Bytes on the wire.
    pub(crate) len: u64,
    /// Requests whose memory the packet refers to.
    pub(crate) in_place: Vec<RequestId>,
    pub(crate) at_rail: bool,
    pub(crate) acked: bool,
    pub(crate) sent_at: Instant,
    /// The first time.
    pub(crate) first_at: Instant,
    pub(crate) resent: u32,
}

/// What a rail has let go of.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// A buffer for reuse.
    pub(crate) packet: Option<Packet>,
    pub(crate) in_place: Vec<RequestId>,
    /// The chunk's request, receive region and length.
    pub(crate) chunk: Option<(RequestId, RegionId, u64)>,
}

/// What an acknowledgement brought.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Something was not acknowledged before.
    pub(crate) any: bool,
    /// When the newest of it had left, if it was sent only once.
    pub(crate) sample: Option<Instant>,
    /// When the newest of what was sent again had left, the first and the last time.
    pub(crate) again: Option<(Instant, Instant)>,
    /// What the peer is now known to have, and was sent only once.
    pub(crate) served: Option<Served>,
}

/// Packets and chunks that a link has carried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served {
    pub(crate) len: u64,
    pub(crate) count: u64,
    /// When the first of them had left.
    pub(crate) first: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Retention {
    next: u32,
    /// Bytes that the peer is not known to have.
    pending: u64,
    entries: VecDeque<InFlight>,
    at_rail: usize,
    bytes_at_rail: u64,
    /// When the oldest entry left that the rail has sent and the peer has not acknowledged.
    oldest: Option<Instant>,
    /// Entries that were acknowledged before earlier ones.
    ahead: usize,
}

impl Retention {
    /// The number that the next packet or chunk gets.
    #[inline]
    pub(crate) fn next_number(&self) -> u32 {
        self.next
    }

    /// Orders that the rail holds.
    #[inline]
    pub(crate) fn at_rail(&self) -> usize {
        self.at_rail
    }

    /// Bytes of them.
    pub(crate) fn bytes_at_rail(&self) -> u64 {
        self.bytes_at_rail
    }

    /// Entries that are not finished.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Numbers a packet of which nothing is kept. There must be no entry: their numbers follow each other.
    #[inline]
    pub(crate) fn skip(&mut self) {
        debug_assert!(self.entries.is_empty());
        self.next = self.next.wrapping_add(1);
    }

    /// Numbers an order that goes to the rail now.
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

    /// The rail has sent an order, and gives back its packet. With `keep` it stays until acknowledged.
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
                // The rail has it, so that this copy delays nothing; the sender's memory is free after it.
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

    /// Drops finished entries from the front; `acked` marks those that need no more keeping.
    #[inline]
    fn trim(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.acked && !entry.at_rail) {
            self.entries.pop_front();
            self.ahead -= 1;
        }
    }

    /// The peer has everything below `below`, and the numbers whose bits are set in `beyond`. Gives buffers
    /// back for reuse and tells what was new in it.
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

    /// Takes everything that the peer may not have, when the link is dead.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = InFlight> {
        self.at_rail = 0;
        self.pending = 0;
        self.bytes_at_rail = 0;
        (self.oldest, self.ahead) = (None, 0);
        core::mem::take(&mut self.entries).into_iter().filter(|entry| !entry.acked || entry.at_rail)
    }

    /// Whether the peer may have everything up to a number that it acknowledges.
    pub(crate) fn is_plausible(&self, ack: u32) -> bool {
        self.next.wrapping_sub(ack) < 1 << 31
    }

    /// When the oldest entry that the rail has sent and the peer has not acknowledged left.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.oldest
    }

    fn look_for_oldest(&mut self) {
        self.oldest = self.waiting().map(|entry| entry.sent_at).min();
    }

    /// The first entry that the peer is not known to have.
    pub(crate) fn first(&self) -> Option<&InFlight> {
        self.entries.iter().find(|entry| !entry.acked)
    }

    /// Its number.
    pub(crate) fn oldest_number(&self) -> Option<u32> {
        self.waiting().min_by_key(|entry| entry.sent_at).map(|entry| entry.number)
    }

    /// An entry that at least `count` later ones have overtaken, if `patient` says of its time that it
    /// should have arrived.
    pub(crate) fn overtaken(&self, count: usize, patient: impl Fn(Instant) -> bool) -> Option<u32> {
        let mut acked = self.ahead;
        for entry in &self.entries {
            if acked < count {
                return None;
            }
            acked -= usize::from(entry.acked);
            if !entry.acked && !entry.at_rail && patient(entry.sent_at) {
                return Some(entry.number);
            }
        }
        None
    }

    /// Whether at least `count` were acknowledged before earlier ones.
    pub(crate) fn has_overtaken(&self, count: usize) -> bool {
        self.ahead >= count
    }

    /// Bytes that the peer is not known to have.
    pub(crate) fn pending(&self) -> u64 {
        self.pending
    }

    fn waiting(&self) -> impl Iterator<Item = &InFlight> {
        self.entries.iter().filter(|entry| !entry.acked && !entry.at_rail)
    }

    /// An order goes to the rail again.
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
