//! Sending: orders as trains of datagrams, straight from where the bytes lie.

use super::datagram::{Datagram, LEN, SHORTENED_MAX, index};
use super::seal::Seal;
use super::socket::TRAIN_MAX;
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::Order;
use nmad_wire::ChunkHeader;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Longest send: what an IP packet may hold, since the kernel makes one of it first.
const SEND_MAX: usize = 65_507;
/// Pieces that the kernel takes for one datagram (IOV_MAX of Linux).
pub(crate) const PIECES: usize = 1024;
/// Datagrams are not made shorter than this, in bytes: IPv4 promises more (RFC 791), and Linux believes no
/// message that the path takes less than 552 B with all headers.
pub(crate) const LEAST: usize = 512;

/// Orders of one link that the kernel has not taken yet.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: VecDeque<Order>,
    /// Bytes of the first order that have left.
    begun: usize,
    /// A short datagram in one piece.
    staging: Vec<u8>,
    heads: Vec<[u8; LEN]>,
}

/// How a link cuts what it sends.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Bytes that a datagram carries behind its header.
    pub part: usize,
    /// Datagrams that leave with one call.
    pub train: usize,
    /// How often the parts were shortened.
    pub shortened: u8,
}

impl Cut {
    /// For datagrams of `datagram` bytes; the kernel does the cutting if it `can`.
    pub fn new(datagram: usize, can: bool) -> Self {
        let train = if can { (SEND_MAX / datagram).clamp(1, TRAIN_MAX) } else { 1 };
        Cut { part: datagram - LEN, train, shortened: 0 }
    }

    /// Parts of shorter datagrams than before; none if these are not, or are too short. Whether the
    /// kernel `can` cut them is asked.
    pub fn shorter(self, datagram: usize, can: impl Fn(usize) -> bool) -> Option<Self> {
        let shorter = (LEAST..self.part + LEN).contains(&datagram) && self.shortened < SHORTENED_MAX;
        shorter.then(|| Cut { shortened: self.shortened + 1, ..Cut::new(datagram, can(datagram)) })
    }
}

impl Outbox {
    /// Takes an order.
    #[inline]
    pub fn push(&mut self, order: Order) {
        self.queue.push_back(order);
    }

    /// Whether everything has left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// From now on orders are cut otherwise: one that has left in part leaves again.
    pub fn begin_again(&mut self) {
        self.begun = 0;
    }

    /// What has not left.
    pub fn take_unsent(&mut self) -> Vec<Order> {
        self.queue.drain(..).collect()
    }

    /// Gives the kernel what it takes; orders that have left go to `sent`.
    ///
    /// # Errors
    /// The system says that the peer cannot be reached.
    #[inline]
    pub fn write(
        &mut self,
        fd: &OwnedFd,
        seal: &mut Seal,
        cut: Cut,
        sent: &mut Vec<Order>,
    ) -> Result<(), Errno> {
        while let Some(order) = self.queue.front() {
            let done = match len(order) {
                len if len <= cut.part => send_short(&mut self.staging, fd, seal, order),
                len => send_train(&mut self.heads, &mut self.begun, fd, seal, cut, order, len),
            };
            match done {
                Ok(true) => {
                    self.begun = 0;
                    sent.extend(self.queue.pop_front());
                }
                Ok(false) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sends a packet in one datagram if nothing waits before it; false: it was not sent.
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
        send_staged(&mut self.staging, fd, seal, number).is_ok()
    }
}

/// Bytes of an order on the wire, without the headers of its datagrams.
pub(crate) fn len(order: &Order) -> usize {
    match order {
        Order::Packet { packet, .. } => packet.len(),
        Order::Chunk { from, .. } => ChunkHeader::LEN + from.len() as usize,
        Order::Connect { .. } | Order::Close { .. } => 0,
    }
}

/// Calls `part` with each contiguous part of an order, in the order of the wire.
#[inline]
pub(crate) fn parts<'a>(order: &'a Order, head: &'a [u8], mut part: impl FnMut(&'a [u8])) {
    match order {
        Order::Packet { packet, .. } => packet.parts(part),
        Order::Chunk { from, .. } => {
            part(head);
            from.slices().for_each(part);
        }
        Order::Connect { .. } | Order::Close { .. } => {}
    }
}

pub(crate) fn chunk_head(order: &Order) -> [u8; ChunkHeader::LEN] {
    let Order::Chunk { number, ack, landing, key, offset, from, .. } = order else {
        return [0; ChunkHeader::LEN];
    };
    let (landing, key, len) = (landing.0, key.0, from.len() as u32);
    ChunkHeader { number: *number, ack: *ack, landing, key, offset: *offset, len }.encode()
}

pub(crate) fn number(order: &Order) -> u32 {
    match order {
        Order::Packet { number, .. } | Order::Chunk { number, .. } => *number,
        Order::Connect { .. } | Order::Close { .. } => 0,
    }
}

#[inline]
fn send_short(staging: &mut Vec<u8>, fd: &OwnedFd, seal: &mut Seal, order: &Order) -> Result<bool, Errno> {
    staging.clear();
    staging.resize(LEN, 0);
    match order {
        Order::Packet { packet, .. } if packet.in_place.is_empty() => {
            staging.extend_from_slice(&packet.bytes)
        }
        _ => parts(order, &chunk_head(order), |part| staging.extend_from_slice(part)),
    }
    send_staged(staging, fd, seal, number(order)).map(|()| true)
}

/// Seals and sends the datagram that is staged.
#[inline]
fn send_staged(staging: &mut [u8], fd: &OwnedFd, seal: &mut Seal, number: u32) -> Result<(), Errno> {
    let datagram = Datagram::part(seal.next() as u32, number, 0, staging.len() - LEN);
    let tag = seal.tag(&datagram);
    staging[..LEN].copy_from_slice(&datagram.encode(tag));
    taken(net::send(fd, staging, SendFlags::NOSIGNAL))
}

/// Sends as many datagrams of an order as one call takes; true: that was the last of them.
fn send_train(
    heads: &mut Vec<[u8; LEN]>,
    begun: &mut usize,
    fd: &OwnedFd,
    seal: &mut Seal,
    cut: Cut,
    order: &Order,
    len: usize,
) -> Result<bool, Errno> {
    let rest = len - *begun;
    let count = rest.div_ceil(cut.part).min(cut.train);
    let (first, sequence) = (*begun / cut.part, seal.next() as u32);
    let mut datagrams = [Datagram::part(0, 0, 0, 0); TRAIN_MAX];
    for (place, datagram) in datagrams.iter_mut().enumerate().take(count) {
        let len = (rest - place * cut.part).min(cut.part);
        let sequence = sequence.wrapping_add(place as u32);
        let index = index(cut.shortened, first + place);
        *datagram = Datagram::part(sequence, number(order), index, len);
    }
    let datagrams = &datagrams[..count];
    let tags = seal.tags(datagrams);
    heads.clear();
    heads.extend(datagrams.iter().zip(tags).map(|(datagram, tag)| datagram.encode(tag)));
    let leaving = (count * cut.part).min(rest);
    let head = chunk_head(order);
    let mut list = Vec::with_capacity(3 * count);
    let (mut skip, mut left, mut room) = (*begun, leaving, 0);
    let mut next = heads.iter();
    parts(order, &head, |mut part| {
        let skipped = skip.min(part.len());
        skip -= skipped;
        part = &part[skipped..];
        while !part.is_empty() && left > 0 {
            if room == 0 {
                list.extend(next.next().map(|head| IoSlice::new(head)));
                room = cut.part;
            }
            let (now, later) = part.split_at(part.len().min(room).min(left));
            list.push(IoSlice::new(now));
            room -= now.len();
            left -= now.len();
            part = later;
        }
    });
    send_list(fd, &list)?;
    *begun += leaving;
    Ok(*begun == len)
}

/// Data in smaller pieces than the kernel takes is copied together.
fn send_list(fd: &OwnedFd, list: &[IoSlice<'_>]) -> Result<(), Errno> {
    if list.len() > PIECES {
        return taken(net::send(fd, &joined(list), SendFlags::NOSIGNAL));
    }
    let mut nothing = SendAncillaryBuffer::default();
    taken(net::sendmsg(fd.as_fd(), list, &mut nothing, SendFlags::NOSIGNAL))
}

/// Pieces in one.
pub(crate) fn joined(pieces: &[IoSlice<'_>]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.iter().copied()).collect()
}

/// A queue of the system that is full loses what it does not take, as the network does.
#[inline]
fn taken(result: Result<usize, Errno>) -> Result<(), Errno> {
    match result {
        Ok(_) | Err(Errno::NOBUFS) => Ok(()),
        Err(e) => Err(e),
    }
}
