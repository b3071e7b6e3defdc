//! The orders in the queue of one peer, and their bytes in its stream.

use super::padding;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Packet, PeerId};
use nmad_engine::transfer::driver::Order;
use nmad_wire::ChunkHeader;

/// A packet or chunk of the queue.
#[derive(Debug)]
pub struct Outgoing {
    /// The packet or chunk.
    pub order: Order,
    /// Header before the padding and data of a chunk.
    pub header: Option<[u8; ChunkHeader::LEN]>,
    /// Length on the wire in bytes.
    pub len: u64,
}

/// Consecutive bytes of an order that may be in one record of an encrypted link.
pub struct Piece {
    /// Number of bytes.
    pub len: u64,
    /// Whether the record ends with these bytes.
    pub ends_record: bool,
}

impl Outgoing {
    /// Prepares an order for sending.
    #[inline]
    pub fn new(order: Order) -> Self {
        let header = header(&order);
        let len = match &order {
            Order::Packet { packet, .. } => packet.len() as u64,
            Order::Chunk { from, .. } => padding::ahead(from.len() as u32) as u64 + from.len(),
            Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => 0,
        };
        Outgoing { order, header, len }
    }

    /// Returns the piece behind the first `begun` bytes on the wire: the rest of a packet; of a chunk the
    /// rest of its header and padding, then the rest of its data.
    pub fn piece(&self, begun: u64) -> Piece {
        let Order::Chunk { from, .. } = &self.order else {
            return Piece { len: self.len - begun, ends_record: false };
        };
        let ahead = padding::ahead(from.len() as u32) as u64;
        Piece { len: if begun < ahead { ahead } else { self.len } - begun, ends_record: true }
    }

    /// Appends the `len` bytes behind the first `begun` on the wire; all are of one piece.
    pub fn append(&self, begun: u64, len: u64, out: &mut Vec<u8>) {
        let (mut skip, end) = (begun, out.len() + len as usize);
        let mut add = |part: &[u8]| {
            let skipped = skip.min(part.len() as u64);
            skip -= skipped;
            let part = &part[skipped as usize..];
            out.extend_from_slice(&part[..part.len().min(end - out.len())]);
        };
        match &self.order {
            Order::Packet { packet, .. } => packet.parts(add),
            Order::Chunk { from, .. } => {
                let ahead = padding::ahead(from.len() as u32) as u64;
                if begun >= ahead {
                    return from.slice(begun - ahead, len).append_to(out);
                }
                self.header.iter().for_each(|header| add(header));
                add(padding::bytes(from.len() as u32));
            }
            Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => {}
        }
    }
}

/// Returns the header of a chunk, which precedes its padding and data; `None` for other orders.
#[inline]
pub fn header(order: &Order) -> Option<[u8; ChunkHeader::LEN]> {
    let Order::Chunk { number, ack, region, key, offset, ref from, .. } = *order else { return None };
    let len = from.len() as u32;
    Some(ChunkHeader { number, ack, region: region.0, key: key.0, offset, len }.encode())
}

/// Returns a packet of a copy of this data.
pub fn copied((to, number): (PeerId, u32), (head, data): (&[u64], &Segments)) -> Order {
    let mut bytes = Vec::with_capacity(size_of_val(head) + data.len() as usize);
    data.append_behind(head, &mut bytes);
    Order::Packet { to, number, packet: Packet { bytes, in_place: Vec::new() } }
}
