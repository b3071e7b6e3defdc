//! The packet builder: entries in, header and frames out.

use crate::collect::window::{Entry, Head};
use crate::packet::Packet;
use crate::packet::RequestId;
use crate::profile::sample::Method;
use alloc::vec::Vec;
use nmad_wire::{Header, Kind};

/// What one packet may hold; from the rail's limits and the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes, header included.
    pub len: usize,
    /// Data of at least this many bytes stays in place instead of being copied (the iovec threshold of P4).
    pub in_place_min: usize,
    /// Of two things that share a packet, the smaller has at most this many bytes (the aggregation threshold
    /// of P4).
    pub aggregate_max: usize,
    /// Pieces of user memory that may stay in place; zero when the packet has to be kept for replay.
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
    /// Requests whose data is copied: complete as soon as the packet is built.
    pub(crate) staged: Vec<RequestId>,
    /// Requests whose memory the packet refers to: complete when the rail has sent it.
    pub(crate) in_place: Vec<RequestId>,
}

impl PacketBuilder {
    /// Starts a packet in `buffer`, whose capacity is reused.
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
            staged,
            in_place: Vec::new(),
        }
    }

    /// Bytes so far, header included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was put in yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == Header::LEN
    }

    /// Whether the entry fits into what is left, and is better off in this packet than in one of its own. One
    /// alone always is: rails take what they must.
    #[inline]
    pub fn fits(&self, entry: &Entry) -> bool {
        let len = entry.len();
        self.is_empty()
            || (self.len + len <= self.bounds.len && self.len.min(len) <= self.aggregate_max(entry.probe))
    }

    #[inline]
    fn aggregate_max(&self, probe: Option<Method>) -> usize {
        match probe {
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

    /// Puts an entry in. Whether it fits is the strategy's business for all but the first entry, which
    /// always fits an empty packet.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        self.len += entry.len();
        self.entries += 1;
        match &entry.head {
            Head::Eager(eager) => eager.encode(&mut self.packet.bytes),
            Head::Frame(frame) => self.packet.bytes.extend_from_slice(frame),
        }
        let request = entry.request;
        if entry.data.len() as usize >= self.in_place_min(entry.probe) && self.gathers(&entry) {
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

/// A finished packet without its header, and the requests whose data it carries.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) packet: Packet,
    pub(crate) staged: Vec<RequestId>,
    pub(crate) in_place: Vec<RequestId>,
    /// Entries in it.
    pub(crate) entries: u32,
}

/// Writes the header, when the packet's number is known.
#[inline]
pub(crate) fn seal(packet: &mut Packet, kind: Kind, number: u32, ack: u32) {
    let header = Header { kind, len: packet.len() as u32, number, ack };
    packet.bytes[..Header::LEN].copy_from_slice(&header.encode());
}
