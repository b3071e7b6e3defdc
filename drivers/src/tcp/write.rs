//! Sending: writes the queue of one peer to its socket in as few system calls as possible.

use super::outgoing::{Outgoing, copied, header};
use super::padding;
use super::records::Sealing;
use super::staging::Staging;
use arrayvec::ArrayVec;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Packet, PeerId};
use nmad_engine::transfer::driver::{Order, Sent};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{self, SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

/// Parts passed to the kernel at once.
const PARTS: usize = 64;
/// Bytes copied into one buffer at once.
const STAGED: usize = 64 << 10;

/// Orders to one peer that are not entirely in the kernel's send buffer yet.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: VecDeque<Outgoing>,
    /// Bytes of the first order that the kernel has taken or, on an encrypted link, that were encrypted.
    written: u64,
    /// Encrypts the queue, if the link is encrypted.
    sealing: Option<Box<Sealing>>,
}

/// The parts of one send call.
struct Parts<'a, 's> {
    list: ArrayVec<Part<'a>, PARTS>,
    staging: &'s mut Staging,
    offered: usize,
}

/// A range of the staging buffer, or bytes at their original place.
enum Part<'a> {
    Staged(Range<usize>),
    InPlace(&'a [u8]),
}

impl Outbox {
    /// Creates an empty queue; `sealing` encrypts it, if the link is encrypted.
    pub fn new(sealing: Option<Sealing>) -> Outbox {
        Outbox { queue: VecDeque::new(), written: 0, sealing: sealing.map(Box::new) }
    }

    /// Queues a packet or chunk.
    #[inline]
    pub fn push(&mut self, order: Order) {
        self.queue.push_back(Outgoing::new(order));
    }

    /// Sends a packet at once, if the queue is empty.
    #[inline]
    pub fn send_now(
        &mut self,
        fd: BorrowedFd<'_>,
        staging: &mut Staging,
        (to, number): (PeerId, u32),
        (head, data): (&[u64], &Segments),
    ) -> Sent {
        if !self.is_empty() {
            return Sent::Retry;
        }
        if let Some(sealing) = &mut self.sealing {
            return sealing.send_now(fd, &mut staging.bytes, (to, number), (head, data));
        }
        let len = size_of_val(head) + data.len() as usize;
        let taken = match data.len() < staging.message_min {
            true => {
                let bytes = &mut staging.bytes;
                bytes.clear();
                data.append_behind(head, bytes);
                send(fd, bytes)
            }
            false => send_in_place(fd, staging, head, data),
        };
        match taken {
            Ok(taken) if taken == len => Sent::Done,
            Ok(taken) if taken > 0 => {
                self.push(copied((to, number), (head, data)));
                self.written = taken as u64;
                Sent::Posted
            }
            // An error recurs when the packet is posted, and is reported then.
            Ok(_) | Err(_) => Sent::Retry,
        }
    }

    /// Sends a packet and the chunk behind it at once, if the queue is empty and the chunk is contiguous.
    #[inline]
    pub fn push_now(
        &mut self,
        fd: BorrowedFd<'_>,
        staging: &mut Staging,
        packet: &[u8],
        chunk: Order,
        sent: &mut Vec<Order>,
    ) -> Sent {
        let Order::Chunk { to, number, ref from, .. } = chunk else { return Sent::Retry };
        if self.sealing.is_some() {
            // Posted orders are encrypted when the caller flushes.
            return Sent::Retry;
        }
        let (Some(header), Some(data), true) = (header(&chunk), from.contiguous(), self.is_empty()) else {
            return Sent::Retry;
        };
        let staging = &mut staging.bytes;
        staging.clear();
        for part in [packet, &header, padding::bytes(data.len() as u32)] {
            staging.extend_from_slice(part);
        }
        let slices = [IoSlice::new(staging), IoSlice::new(data)];
        match net::sendmsg(fd, &slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(taken) if taken == staging.len() + data.len() => Sent::Done,
            Ok(taken) if taken > 0 => {
                let packet = Packet { bytes: packet.to_vec(), in_place: Vec::new() };
                self.push(Order::Packet { to, number: number.wrapping_sub(1), packet });
                self.push(chunk);
                self.advance(taken as u64, sent);
                Sent::Posted
            }
            // An error recurs when the orders are posted, and is reported then.
            Ok(_) | Err(_) => Sent::Retry,
        }
    }

    /// Returns whether the kernel has taken everything.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.sealing.as_ref().is_none_or(|sealing| sealing.is_empty())
    }

    /// A measure of progress, which nearly always changes with a write: number of orders left, and bytes
    /// written of the first.
    pub fn written(&self) -> (usize, u64) {
        let (orders, bytes) = self.sealing.as_ref().map_or((0, 0), |sealing| sealing.written());
        (self.queue.len() + orders, self.written + bytes)
    }

    /// Writes as much as the kernel takes; orders that it has taken entirely go to `sent`.
    #[inline]
    pub fn write(
        &mut self,
        fd: BorrowedFd<'_>,
        staging: &mut Staging,
        sent: &mut Vec<Order>,
    ) -> Result<(), Errno> {
        if self.sealing.is_some() {
            return self.write_sealed(fd, staging, sent);
        }
        while !self.queue.is_empty() {
            let (offered, taken) = match self.contiguous() {
                Some(bytes) => (bytes.len(), send(fd, bytes)),
                None => self.gather(fd, staging),
            };
            let taken = match taken {
                Ok(taken) => taken,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e),
            };
            self.advance(taken as u64, sent);
            if taken < offered {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Encrypts and writes the queue, as much as the kernel takes.
    fn write_sealed(
        &mut self,
        fd: BorrowedFd<'_>,
        staging: &mut Staging,
        sent: &mut Vec<Order>,
    ) -> Result<(), Errno> {
        let Outbox { queue, written, sealing: Some(sealing) } = self else { return Ok(()) };
        while !(queue.is_empty() && sealing.is_empty()) {
            if !sealing.write(fd, &mut staging.bytes, (queue, written), sent)? {
                break;
            }
        }
        Ok(())
    }

    /// Removes and returns all orders that were not sent entirely.
    pub fn take_unsent(&mut self) -> Vec<Order> {
        self.written = 0;
        let sealed = self.sealing.iter_mut().flat_map(|sealing| sealing.take_unsent());
        sealed.chain(self.queue.drain(..).map(|outgoing| outgoing.order)).collect()
    }

    /// The rest of the queue, if it is one packet without segments in user memory: a small message.
    #[inline]
    fn contiguous(&self) -> Option<&[u8]> {
        let front = self.queue.front()?;
        match &front.order {
            Order::Packet { packet, .. } if self.queue.len() == 1 && packet.in_place.is_empty() => {
                Some(&packet.bytes[self.written as usize..])
            }
            _ => None,
        }
    }

    /// Sends as many parts of the queue as fit into one call.
    fn gather(&self, fd: BorrowedFd<'_>, staging: &mut Staging) -> (usize, Result<usize, Errno>) {
        let mut parts = Parts::new(staging);
        let mut skip = self.written;
        for outgoing in &self.queue {
            parts.add_order(outgoing, skip);
            skip = skip.saturating_sub(outgoing.len);
            if parts.is_full() {
                break;
            }
        }
        (parts.offered, parts.send(fd))
    }

    fn advance(&mut self, taken: u64, sent: &mut Vec<Order>) {
        self.written += taken;
        while self.queue.front().is_some_and(|front| front.len <= self.written) {
            if let Some(front) = self.queue.pop_front() {
                self.written -= front.len;
                sent.push(front.order);
            }
        }
    }
}

impl<'a> Part<'a> {
    #[inline]
    fn slice<'s>(&self, staging: &'s [u8]) -> IoSlice<'s>
    where
        'a: 's,
    {
        match self {
            Part::Staged(range) => IoSlice::new(&staging[range.clone()]),
            Part::InPlace(bytes) => IoSlice::new(bytes),
        }
    }
}

impl<'a, 's> Parts<'a, 's> {
    fn new(staging: &'s mut Staging) -> Self {
        staging.bytes.clear();
        Parts { list: ArrayVec::new(), staging, offered: 0 }
    }

    /// Starts with the words of a header.
    fn behind(head: &[u64], staging: &'s mut Staging) -> Self {
        staging.bytes.clear();
        staging.bytes.extend(head.iter().flat_map(|word| word.to_ne_bytes()));
        let offered = staging.bytes.len();
        Parts { list: ArrayVec::from_iter([Part::Staged(0..offered)]), offered, staging }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.list.is_full() || self.staging.bytes.len() >= STAGED
    }

    /// Adds a part entirely or, without enough room, not at all, and then none of those behind it.
    fn add(&mut self, part: &'a [u8]) {
        if part.is_empty() || self.is_full() {
            return;
        }
        self.offered += part.len();
        let Staging { bytes, block_min, .. } = &mut *self.staging;
        if part.len() as u64 >= *block_min {
            return self.list.push(Part::InPlace(part));
        }
        let start = bytes.len();
        bytes.extend_from_slice(part);
        self.staged(start);
    }

    /// Adds the staged bytes from `start` on.
    fn staged(&mut self, start: usize) {
        let end = self.staging.bytes.len();
        match self.list.last_mut() {
            Some(Part::Staged(range)) => range.end = end,
            _ => self.list.push(Part::Staged(start..end)),
        }
    }

    /// Adds the bytes of user memory from `skip` on, as far as there is room. It may have a million pieces:
    /// each call visits only those that it adds, and short ones are copied together.
    fn add_memory(&mut self, memory: &'a Segments, skip: u64) {
        if memory.is_all_finer_than(self.staging.block_min) {
            let start = self.staging.bytes.len();
            if !self.is_full() && skip < memory.len() {
                memory.slice(skip, (STAGED - start) as u64).append_to(&mut self.staging.bytes);
                self.offered += self.staging.bytes.len() - start;
                self.staged(start);
            }
            return;
        }
        for part in memory.slices_from(skip) {
            if self.is_full() {
                break;
            }
            self.add(part);
        }
    }

    /// Adds the bytes of an order behind the first `skip` on the wire, as far as there is room.
    fn add_order(&mut self, outgoing: &'a Outgoing, mut skip: u64) {
        let mut add = |part: &'a [u8]| {
            let skipped = skip.min(part.len() as u64);
            skip -= skipped;
            self.add(&part[skipped as usize..]);
        };
        match &outgoing.order {
            Order::Packet { packet, .. } => packet.parts(add),
            Order::Chunk { from, .. } => {
                outgoing.header.iter().for_each(|header| add(header));
                add(padding::bytes(from.len() as u32));
                self.add_memory(from, skip);
            }
            Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => {}
        }
    }

    /// Sends all parts with one call; returns the number of bytes that the kernel has taken.
    fn send(&self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        if let [Part::Staged(all)] = &self.list[..] {
            return send(fd, &self.staging.bytes[all.clone()]);
        }
        let slices: ArrayVec<_, PARTS> =
            self.list.iter().map(|part| part.slice(&self.staging.bytes)).collect();
        net::sendmsg(fd, &slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
    }
}

/// Sends a packet directly from its segments; fails if it has more parts than one call takes.
fn send_in_place(
    fd: BorrowedFd<'_>,
    staging: &mut Staging,
    head: &[u64],
    data: &Segments,
) -> Result<usize, Errno> {
    let mut parts = Parts::behind(head, staging);
    parts.add_memory(data, 0);
    match parts.offered == size_of_val(head) + data.len() as usize {
        true => parts.send(fd),
        false => Ok(0),
    }
}

#[inline]
fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    net::send(fd, bytes, SendFlags::NOSIGNAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::{AsFd, OwnedFd};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    const COPY: usize = 1024;

    #[test]
    fn a_partly_sent_packet_continues_like_a_posted_one() {
        let (here, mut there) = UnixStream::pair().expect("two sockets");
        [&here, &there].into_iter().for_each(|end| end.set_nonblocking(true).expect("it is permitted"));
        let here = OwnedFd::from(here);
        let mut memory = crate::conformance::memory::Memory::zeroed(1 << 20);
        memory.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7 % 251) as u8);
        let (head, data) = ([u64::MAX; 5], memory.pieces(&[0..1 << 19, 1 << 19..1 << 20]));
        let (mut out, mut staging, mut sent) = (Outbox::default(), Staging::default(), Vec::new());
        let mut send =
            |out: &mut Outbox| out.send_now(here.as_fd(), &mut staging, (PeerId(1), 7), (&head, &data));
        assert_eq!(send(&mut out), Sent::Posted);
        assert_eq!(send(&mut out), Sent::Retry, "something waits before it");
        let mut arrived = Vec::new();
        while sent.is_empty() {
            let _ = there.read_to_end(&mut arrived);
            out.write(here.as_fd(), &mut Staging::default(), &mut sent).expect("it is written");
        }
        let _ = there.read_to_end(&mut arrived);
        assert!(arrived[..40] == [255; 40] && arrived[40..] == *memory.bytes(), "all of it, in order");
        assert!(matches!(sent[..], [Order::Packet { number: 7, .. }]));
    }

    #[test]
    fn a_packet_leaves_from_where_its_data_lies_if_one_call_takes_all_pieces() {
        let (here, mut there) = UnixStream::pair().expect("two sockets");
        there.set_nonblocking(true).expect("it is permitted");
        let here = OwnedFd::from(here);
        let memory = crate::conformance::memory::Memory::pattern(8 * COPY * PARTS, 3);
        let every_other = |count: usize, len: usize| -> Vec<Range<usize>> {
            (0..count).map(|piece| 2 * piece * len..2 * piece * len + len).collect()
        };
        let (head, mut out) = ([7; 5], Outbox::default());
        let mut staging =
            Staging { message_min: 2 * COPY as u64, block_min: COPY as u64, ..Staging::default() };
        for (count, len, how) in [
            (1, COPY - 1, Sent::Done),
            (1, 16 * COPY, Sent::Done),
            (PARTS, COPY - 1, Sent::Done),
            (PARTS - 1, COPY, Sent::Done),
            (PARTS, COPY, Sent::Retry),
        ] {
            let ranges = every_other(count, len);
            let data = memory.pieces(&ranges);
            let sent = out.send_now(here.as_fd(), &mut staging, (PeerId(1), 7), (&head, &data));
            assert_eq!(sent, how, "{count} pieces of {len} B");
            let mut arrived = Vec::new();
            let _ = there.read_to_end(&mut arrived);
            let mut expected = Vec::new();
            if how == Sent::Done {
                data.append_behind(&head, &mut expected);
            }
            assert!(arrived == expected, "{count} pieces of {len} B");
        }
    }
}
