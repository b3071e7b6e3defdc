//! Sending: orders as trains of datagrams.
//!
//! A train is assembled in a staging buffer of the rail, each part behind its header, before the kernel
//! takes it. The kernel could also gather headers and parts from their places, but copies such short pieces
//! slower than one long one: a bare sender reaches .84 of its bandwidth that way and .88 staged (Zen 3),
//! and half of it if the sender's core is far from the receiver's (Zen 5: 3.7 GB/s instead of 7).

use super::datagram::{Datagram, LEN, SHORTENED_MAX, index};
use super::seal::Seal;
use super::socket::TRAIN_MAX;
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::Order;
use nmad_wire::ChunkHeader;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};
use std::collections::VecDeque;
use std::ops::Range;

/// Longest send: the size of an IP packet, since the kernel first builds one.
const SEND_MAX: usize = 65_507;
/// Shortest datagrams, in bytes: IPv4 guarantees more (RFC 791), and Linux ignores messages that report a
/// path MTU below 552 B with all headers.
pub(crate) const LEAST: usize = 512;

/// Orders of one link that the kernel has not taken yet.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: VecDeque<Order>,
    /// Bytes of the first order that were sent.
    begun: usize,
    /// The bytes of the next send call.
    staging: Vec<u8>,
    /// Bytes of the first order that are staged: the kernel has refused them so far.
    staged: usize,
}

/// How a link cuts orders into datagrams.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Data bytes of a datagram, without its header.
    pub part: usize,
    /// Datagrams per send call.
    pub train: usize,
    /// How often the parts were shortened.
    pub shortened: u8,
}

impl Cut {
    /// For datagrams of `datagram` bytes; `can`: the kernel cuts trains.
    pub fn new(datagram: usize, can: bool) -> Self {
        let train = if can { (SEND_MAX / datagram).clamp(1, TRAIN_MAX) } else { 1 };
        Cut { part: datagram - LEN, train, shortened: 0 }
    }

    /// Cuts shorter datagrams than before; none if `datagram` is not shorter, or too short. `can` tests
    /// whether the kernel cuts trains of that length.
    pub fn shorter(self, datagram: usize, can: impl Fn(usize) -> bool) -> Option<Self> {
        let shorter = (LEAST..self.part + LEN).contains(&datagram) && self.shortened < SHORTENED_MAX;
        shorter.then(|| Cut { shortened: self.shortened + 1, ..Cut::new(datagram, can(datagram)) })
    }
}

impl Outbox {
    /// Queues an order.
    #[inline]
    pub fn push(&mut self, order: Order) {
        self.queue.push_back(order);
    }

    /// Returns whether everything was sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Restarts an order that was sent in part, after the length of parts has changed.
    pub fn restart(&mut self) {
        self.begun = 0;
        self.staged = 0;
    }

    /// Removes and returns the orders that were not sent.
    pub fn take_unsent(&mut self) -> Vec<Order> {
        self.restart();
        self.queue.drain(..).collect()
    }

    /// Sends as much as the kernel takes; orders that were sent go to `sent`.
    ///
    /// # Errors
    /// The system reports that the peer cannot be reached.
    #[inline]
    pub fn write(
        &mut self,
        fd: &OwnedFd,
        seal: &mut Seal,
        cut: Cut,
        sent: &mut Vec<Order>,
    ) -> Result<(), Errno> {
        while let Some(order) = self.queue.front() {
            let len = len(order);
            if self.staged == 0 {
                self.staged = match len <= cut.part {
                    true => stage_short(&mut self.staging, seal, order),
                    false => stage_train(&mut self.staging, seal, cut, order, self.begun),
                };
            }
            match taken(net::send(fd, &self.staging, SendFlags::NOSIGNAL)) {
                Ok(()) => self.begun += std::mem::take(&mut self.staged),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(e),
            }
            if self.begun >= len {
                self.begun = 0;
                sent.extend(self.queue.pop_front());
            }
        }
        Ok(())
    }

    /// Sends a packet in one datagram if the queue is empty; false: it was not sent.
    #[inline]
    pub fn send_now(
        &mut self,
        fd: &OwnedFd,
        seal: &mut Seal,
        cut: Cut,
        number: u32,
        (head, data): (&[u64], &Segments),
    ) -> bool {
        if !self.queue.is_empty() || size_of_val(head) + data.len() as usize > cut.part {
            return false;
        }
        self.staging.clear();
        self.staging.resize(LEN, 0);
        data.append_behind(head, &mut self.staging);
        seal_short(&mut self.staging, seal, number);
        taken(net::send(fd, &self.staging, SendFlags::NOSIGNAL)).is_ok()
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
pub(crate) fn parts(order: &Order, head: &[u8], range: Range<usize>, mut part: impl FnMut(&[u8])) {
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

pub(crate) fn chunk_head(order: &Order) -> [u8; ChunkHeader::LEN] {
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

/// Stages an order that fits into one datagram; returns its number of bytes.
#[inline]
fn stage_short(staging: &mut Vec<u8>, seal: &mut Seal, order: &Order) -> usize {
    staging.clear();
    staging.resize(LEN, 0);
    match order {
        Order::Packet { packet, .. } if packet.in_place.is_empty() => {
            staging.extend_from_slice(&packet.bytes)
        }
        _ => parts(order, &chunk_head(order), 0..usize::MAX, |part| staging.extend_from_slice(part)),
    }
    seal_short(staging, seal, number(order));
    staging.len() - LEN
}

/// Writes the header of the only datagram that is staged.
#[inline]
fn seal_short(staging: &mut [u8], seal: &mut Seal, number: u32) {
    let datagram = Datagram::part(seal.next() as u32, number, 0, staging.len() - LEN);
    let tag = seal.tag(&datagram);
    staging[..LEN].copy_from_slice(&datagram.encode(tag));
}

/// Stages the datagrams of the next send call, from the byte `begun` of an order on; returns the number of
/// bytes.
fn stage_train(staging: &mut Vec<u8>, seal: &mut Seal, cut: Cut, order: &Order, begun: usize) -> usize {
    let leaving = (cut.train * cut.part).min(len(order) - begun);
    stage(staging, order, (begun, leaving), (LEN, cut.part));
    seal_train(staging, seal, cut, (number(order), begun / cut.part), 0, |_| 0);
    leaving
}

/// Copies `leaving` bytes of an order into `staging`, from the byte `begun` on, in parts of `part` bytes
/// with room for `front` bytes before each.
pub(crate) fn stage(
    staging: &mut Vec<u8>,
    order: &Order,
    (begun, leaving): (usize, usize),
    (front, part): (usize, usize),
) {
    let head = chunk_head(order);
    let mut room = 0;
    staging.clear();
    parts(order, &head, begun..begun + leaving, |mut piece| {
        while !piece.is_empty() {
            if room == 0 {
                staging.resize(staging.len() + front, 0);
                room = part;
            }
            let (now, later) = piece.split_at(piece.len().min(room));
            staging.extend_from_slice(now);
            room -= now.len();
            piece = later;
        }
    });
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
    let (front, sequence) = (before + LEN, seal.next() as u32);
    let mut datagrams = [Datagram::part(0, 0, 0, 0); TRAIN_MAX];
    let mut count = 0;
    for (datagram, staged) in datagrams.iter_mut().zip(staging.chunks(front + cut.part)) {
        let place = index(cut.shortened, first + count);
        *datagram = Datagram::part(sequence.wrapping_add(count as u32), number, place, staged.len() - front);
        count += 1;
    }
    let datagrams = &datagrams[..count];
    let tags = seal.tags(datagrams);
    for ((datagram, tag), staged) in datagrams.iter().zip(tags).zip(staging.chunks_mut(front + cut.part)) {
        let tag = tag.wrapping_add(more(&staged[front..]));
        staged[before..front].copy_from_slice(&datagram.encode(tag));
    }
}

/// Treats a full queue of the system as a loss, as in the network.
#[inline]
fn taken(result: Result<usize, Errno>) -> Result<(), Errno> {
    match result {
        Ok(_) | Err(Errno::NOBUFS) => Ok(()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::Ends;
    use nmad_engine::packet::{Packet, PeerId};
    use nmad_wire::Hello;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

    const PART: usize = 700;

    fn order(number: u32, len: usize) -> Order {
        let bytes = (0..len).map(|at| (at * 31 / 7 + number as usize) as u8).collect();
        Order::Packet { to: PeerId(1), number, packet: Packet { bytes, in_place: Vec::new() } }
    }

    #[test]
    fn refused_datagrams_are_sent_later_and_once() {
        let flags = SocketFlags::NONBLOCK;
        let (ours, theirs) =
            net::socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None).expect("a pair of sockets");
        sockopt::set_socket_send_buffer_size(&ours, 1).expect("the least buffer");
        let ends = Ends {
            hello: Hello { from: 0, to: 1, rail: 0, nonce: [1; 32], mac: [0; 32] },
            rail: 0,
            nonce: [2; 32],
        };
        let mut seal = Seal::new(&ends, &[3; 32], true);
        let cut = Cut::new(PART + LEN, false);
        let (mut out, mut sent, mut refused) = (Outbox::default(), Vec::new(), 0);
        let lens = [4000, 20, 9001, 700, 701];
        lens.iter().enumerate().for_each(|(number, len)| out.push(order(number as u32, *len)));
        let (mut got, mut next) = (vec![Vec::new(); lens.len()], 0);
        while !out.is_empty() || got.iter().zip(lens).any(|(got, len)| got.len() < len) {
            out.write(&ours, &mut seal, cut, &mut sent).expect("no error");
            refused += usize::from(!out.is_empty());
            let mut buffer = [0; 2 * PART];
            let (_, len) = net::recv(&theirs, &mut buffer, RecvFlags::empty()).expect("something has left");
            let (_, datagram) = Datagram::decode(&buffer[..len]).expect("a datagram");
            assert_eq!(datagram.sequence, next, "each number once, also that of what was refused");
            next += 1;
            let order = &mut got[datagram.number as usize];
            assert_eq!(order.len(), datagram.place() * PART);
            order.extend_from_slice(&buffer[LEN..len]);
        }
        assert!(refused > 5, "the kernel has refused something, often");
        assert_eq!(sent.len(), lens.len());
        for (number, (got, len)) in got.iter().zip(lens).enumerate() {
            let Order::Packet { packet, .. } = order(number as u32, len) else { unreachable!() };
            assert_eq!(*got, packet.bytes);
        }
    }
}
