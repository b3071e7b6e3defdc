//! The packet builder: makes a packet of header and frames from entries of the window.

use crate::collect::window::{Entry, Head, Scope, Window};
use crate::packet::Packet;
use crate::packet::RequestId;
use crate::profile::sample::Method;
use alloc::vec::Vec;
use nmad_wire::{Header, Kind};

/// Fruitless searches per packet after which a strategy is considered to loop.
const FRUITLESS_MAX: u32 = 10_000;

/// Limits of one packet, from the rail's limits and the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Length in bytes, header included.
    pub len: usize,
    /// Data of at least this many bytes is sent in place instead of being copied (the iovec threshold of
    /// P4).
    pub in_place_min: usize,
    /// Non-contiguous data whose blocks have fewer bytes than this, on average, is packed instead (the
    /// block threshold of P1 section 5.3).
    pub block_min: usize,
    /// Two entries share a packet only if the smaller one has at most this many bytes (the aggregation
    /// threshold of P4).
    pub aggregate_max: usize,
    /// Pieces of user memory that may be sent in place; zero for a packet built in advance.
    pub gather: usize,
}

/// A packet that a strategy fills.
#[derive(Debug)]
pub struct PacketBuilder {
    packet: Packet,
    bounds: Bounds,
    len: usize,
    gathered: usize,
    entries: u32,
    /// Searches that found no entry.
    fruitless: u32,
    /// Requests whose data is copied; they complete as soon as the packet is built.
    pub(crate) staged: Vec<RequestId>,
    /// Requests whose memory the packet sends in place; they complete when the rail has sent it.
    pub(crate) in_place: Vec<RequestId>,
}

impl PacketBuilder {
    /// Begins a packet in `buffer`, whose capacity is reused.
    #[inline]
    pub(crate) fn new(mut buffer: Packet, bounds: Bounds, staged: Vec<RequestId>) -> Self {
        buffer.in_place.clear();
        buffer.bytes.clear();
        buffer.bytes.extend_from_slice(&[0; Header::LEN]);
        PacketBuilder {
            packet: buffer,
            bounds,
            len: Header::LEN,
            gathered: 0,
            entries: 0,
            fruitless: 0,
            staged,
            in_place: Vec::new(),
        }
    }

    /// Returns its length so far, header included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == Header::LEN
    }

    /// Whether the entry fits into the packet and sharing the packet pays. True for the first entry of a
    /// packet: it is sent in any case.
    #[inline]
    pub fn fits(&self, entry: &Entry) -> bool {
        let len = entry.len();
        self.is_empty()
            || (self.len + len <= self.bounds.len && self.len.min(len) <= self.aggregate_max(entry))
    }

    #[inline]
    fn aggregate_max(&self, entry: &Entry) -> usize {
        match entry.hints.probe {
            Some(Method::Pair) => 0,
            Some(Method::Aggregate) => usize::MAX,
            _ => self.bounds.aggregate_max,
        }
    }

    #[inline]
    fn in_place_min(&self, probe: Option<Method>) -> usize {
        match probe {
            Some(Method::Copy) => usize::MAX,
            Some(Method::InPlace) => 1,
            _ => self.bounds.in_place_min.max(1),
        }
    }

    /// Takes all entries that fit.
    #[inline]
    pub fn coalesce(&mut self, window: &mut Window, scope: Scope) {
        while self.take(window, scope, PacketBuilder::fits) {}
    }

    /// Takes the first entry of the window that fits into the packet and satisfies `wants`, and adds it;
    /// false: there is none. A strategy has no other way to take entries, so it cannot lose one.
    ///
    /// # Panics
    /// After ten thousand searches without a result for one packet: the strategy loops.
    #[inline]
    pub fn take(&mut self, window: &mut Window, scope: Scope, wants: impl Fn(&Self, &Entry) -> bool) -> bool {
        let room = if self.is_empty() { usize::MAX } else { self.room() };
        let packet = &*self;
        let taken = window.take_first(scope, |entry| entry.len() <= room && wants(packet, entry));
        match taken {
            Some(entry) => self.push(entry),
            None => return self.found_none(),
        }
        true
    }

    /// Returns the bytes that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.bounds.len.saturating_sub(self.len)
    }

    #[inline]
    fn found_none(&mut self) -> bool {
        self.fruitless += 1;
        if self.fruitless > FRUITLESS_MAX {
            // Reset, since another strategy may continue.
            self.fruitless = 0;
            panic!("the strategy asks the window without end");
        }
        false
    }

    /// Adds an entry. The caller checks that it fits, except for the first entry, which always fits.
    #[doc(hidden)]
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        self.len += entry.len();
        self.entries += 1;
        match &entry.head {
            Head::Eager(eager) => eager.encode(&mut self.packet.bytes),
            Head::Request(frame) | Head::Frame(frame) => self.packet.bytes.extend_from_slice(frame),
        }
        let request = Some(entry.request).filter(|request| *request != RequestId::NONE);
        if entry.data.len() as usize >= self.in_place_min(entry.hints.probe) && self.gathers(&entry) {
            self.packet.in_place.push((self.packet.bytes.len(), entry.data));
            self.in_place.extend(request);
        } else {
            entry.data.append_to(&mut self.packet.bytes);
            self.staged.extend(request);
        }
    }

    fn gathers(&mut self, entry: &Entry) -> bool {
        if self.bounds.gather == 0 {
            return false;
        }
        if entry.data.is_finer_than(self.bounds.block_min as u64) {
            return false;
        }
        let count = self.gathered + entry.data.count();
        let fits = count <= self.bounds.gather;
        if fits {
            self.gathered = count;
        }
        fits
    }

    #[inline]
    pub(crate) fn finish(self) -> Built {
        let PacketBuilder { packet, staged, in_place, entries, .. } = self;
        Built { packet, staged, in_place, entries }
    }
}

/// A finished packet without its header, and the requests whose data it contains.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) packet: Packet,
    pub(crate) staged: Vec<RequestId>,
    pub(crate) in_place: Vec<RequestId>,
    /// Number of entries.
    pub(crate) entries: u32,
}

/// Writes the header once the packet's number is known.
#[inline]
pub(crate) fn seal(packet: &mut Packet, kind: Kind, number: u32, ack: u32) {
    let header = Header { kind, len: packet.len() as u32, number, ack };
    packet.bytes[..Header::LEN].copy_from_slice(&header.encode());
}
