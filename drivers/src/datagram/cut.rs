//! How orders are cut into datagrams, and the parts of an order copied behind their headers.

use super::header::{Datagram, LEN, SHORTENED_MAX, index};
use super::seal::Seal;
use nmad_engine::transfer::driver::Order;
use nmad_wire::ChunkHeader;
use std::ops::Range;

/// Datagrams into which the kernel cuts one send, at most (UDP_MAX_SEGMENTS of older kernels).
pub(crate) const TRAIN_MAX: usize = 64;
/// Longest send: the size of an IP packet, since the kernel first builds one.
const SEND_MAX: usize = 65_507;
/// Shortest datagrams, in bytes: IPv4 guarantees more (RFC 791), and Linux ignores messages that report a
/// path MTU below 552 B with all headers.
pub(crate) const LEAST: usize = 512;

/// How a link cuts orders into datagrams.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Data bytes of a datagram, without its header.
    pub part: usize,
    /// Datagrams per send call.
    pub train: usize,
    /// How often the parts were shortened.
    pub shortened: u8,
    /// Bytes behind the data of a datagram, in which an encrypted link has its tag.
    pub behind: usize,
}

impl Cut {
    /// For datagrams of `datagram` bytes, with `behind` bytes behind their data; `can`: the kernel cuts
    /// trains.
    pub fn new(datagram: usize, behind: usize, can: bool) -> Self {
        let train = if can { (SEND_MAX / datagram).clamp(1, TRAIN_MAX) } else { 1 };
        Cut { part: datagram - LEN - behind, train, shortened: 0, behind }
    }

    /// Cuts shorter datagrams than before; none if `datagram` is not shorter, or too short. `can` tests
    /// whether the kernel cuts trains of that length.
    pub fn shorter(self, datagram: usize, can: impl Fn(usize) -> bool) -> Option<Self> {
        let longest = self.part + LEN + self.behind;
        let shorter = (LEAST..longest).contains(&datagram) && self.shortened < SHORTENED_MAX;
        shorter
            .then(|| Cut { shortened: self.shortened + 1, ..Cut::new(datagram, self.behind, can(datagram)) })
    }
}

/// Length of an order on the wire, without the headers of its datagrams.
pub(crate) fn len(order: &Order) -> usize {
    match order {
        Order::Packet { packet, .. } => packet.len(),
        Order::Chunk { from, .. } => ChunkHeader::LEN + from.len() as usize,
        Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => 0,
    }
}

/// Calls `part` with each contiguous part of the bytes in `range` of an order, in wire order. A chunk may
/// have a million pieces, of which only those in the range are visited.
#[inline]
fn parts(order: &Order, head: &[u8], range: Range<usize>, mut part: impl FnMut(&[u8])) {
    let mut at = 0;
    let mut cut = |bytes: &[u8]| {
        let inside = |place: usize| place.clamp(at, at + bytes.len()) - at;
        let bytes_inside = &bytes[inside(range.start)..inside(range.end)];
        at += bytes.len();
        if !bytes_inside.is_empty() {
            part(bytes_inside);
        }
    };
    match order {
        Order::Packet { packet, .. } => packet.parts(cut),
        Order::Chunk { from, .. } => {
            cut(head);
            let behind = |place: usize| place.saturating_sub(head.len()) as u64;
            let (first, end) = (behind(range.start), behind(range.end));
            from.slice(first, end - first).slices().for_each(part);
        }
        Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => {}
    }
}

fn chunk_head(order: &Order) -> [u8; ChunkHeader::LEN] {
    let Order::Chunk { number, ack, region, key, offset, from, .. } = order else {
        return [0; ChunkHeader::LEN];
    };
    let (region, key, len) = (region.0, key.0, from.len() as u32);
    ChunkHeader { number: *number, ack: *ack, region, key, offset: *offset, len }.encode()
}

pub(crate) fn number(order: &Order) -> u32 {
    match order {
        Order::Packet { number, .. } | Order::Chunk { number, .. } => *number,
        Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => 0,
    }
}

/// Appends all bytes of an order.
#[inline]
pub(crate) fn append(staging: &mut Vec<u8>, order: &Order) {
    match order {
        Order::Packet { packet, .. } if packet.in_place.is_empty() => {
            staging.extend_from_slice(&packet.bytes);
        }
        _ => parts(order, &chunk_head(order), 0..usize::MAX, |part| staging.extend_from_slice(part)),
    }
}

/// Copies `leaving` bytes of an order into `staging`, from the byte `begun` on, in parts, each with room for
/// `front` bytes before it and for the tag behind it.
pub(crate) fn stage(
    staging: &mut Vec<u8>,
    order: &Order,
    (begun, leaving): (usize, usize),
    (front, cut): (usize, Cut),
) {
    let (head, Cut { part, behind, .. }) = (chunk_head(order), cut);
    let mut room = 0;
    staging.clear();
    parts(order, &head, begun..begun + leaving, |mut piece| {
        while !piece.is_empty() {
            if room == 0 {
                let between = if staging.is_empty() { front } else { behind + front };
                staging.resize(staging.len() + between, 0);
                room = part;
            }
            let (now, later) = piece.split_at(piece.len().min(room));
            staging.extend_from_slice(now);
            room -= now.len();
            piece = later;
        }
    });
    staging.resize(staging.len() + behind, 0);
}

/// Writes the headers of staged parts of the order `number`, each behind `before` bytes, from part `first`
/// on. `more` is additional input of the tags.
pub(crate) fn seal_train(
    staging: &mut [u8],
    seal: &mut Seal,
    cut: Cut,
    (number, first): (u32, usize),
    before: usize,
    more: impl Fn(&[u8]) -> u64,
) {
    let (front, whole) = (before + LEN, before + LEN + cut.part + cut.behind);
    let sequence = seal.next() as u32;
    if seal.is_encrypted() {
        for (at, staged) in staging.chunks_mut(whole).enumerate() {
            let place = index(cut.shortened, first + at);
            let sequence = sequence.wrapping_add(at as u32);
            let datagram = Datagram::part(sequence, number, place, staged.len() - front);
            seal.encrypt(&datagram, &mut staged[before..]);
        }
        return;
    }
    let mut datagrams = [Datagram::part(0, 0, 0, 0); TRAIN_MAX];
    let mut count = 0;
    for (datagram, staged) in datagrams.iter_mut().zip(staging.chunks(whole)) {
        let place = index(cut.shortened, first + count);
        *datagram = Datagram::part(sequence.wrapping_add(count as u32), number, place, staged.len() - front);
        count += 1;
    }
    let datagrams = &datagrams[..count];
    let tags = seal.tags(datagrams);
    for ((datagram, tag), staged) in datagrams.iter().zip(tags).zip(staging.chunks_mut(whole)) {
        let tag = tag.wrapping_add(more(&staged[front..]));
        staged[before..front].copy_from_slice(&datagram.encode(tag));
    }
}
