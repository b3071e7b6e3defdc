//! Sending: orders as trains of frames, straight from where the bytes lie.

use super::digest::Digest;
use super::frame::HEAD;
use super::sys::Socket;
use crate::udp::datagram::{Datagram, LEN, index};
use crate::udp::seal::{AT_ONCE, Seal};
use crate::udp::write::{Cut, PIECES, chunk_head, joined, len, number, parts};
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::Order;
use rustix::io::Errno;
use rustix::net::{self, MMsgHdr, SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

/// Everything before the data of a frame.
const FRONT: usize = HEAD + LEN;

/// Orders of one link that the kernel has not taken yet.
#[derive(Debug)]
pub struct Outbox {
    queue: VecDeque<Order>,
    /// Bytes of the first order that have left.
    begun: usize,
    /// Ethernet header and ports.
    head: [u8; HEAD],
    /// How orders are cut.
    cut: Cut,
    /// A short frame in one piece, of which the head stays.
    staging: Vec<u8>,
}

impl Outbox {
    /// For frames that begin with `head` and carry orders that are `cut`.
    pub fn new(head: [u8; HEAD], cut: Cut) -> Self {
        let staging = [&head[..], &[0; LEN]].concat();
        Outbox { queue: VecDeque::new(), begun: 0, head, cut, staging }
    }

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

    /// The interface takes no more than `datagram` bytes behind the head now: cuts shorter, and what has left
    /// in part leaves again. False: it is cut as short already, or cannot be so short.
    pub fn shorten(&mut self, datagram: usize) -> bool {
        let Some(cut) = self.cut.shorter(datagram, |_| false) else { return false };
        (self.cut, self.begun) = (cut, 0);
        true
    }

    /// What has not left.
    pub fn take_unsent(&mut self) -> Vec<Order> {
        self.queue.drain(..).collect()
    }

    /// Gives the kernel what it takes; orders that have left go to `sent`.
    ///
    /// # Errors
    /// The system says that nothing can be sent.
    #[inline]
    pub fn write(
        &mut self,
        socket: &Socket,
        seal: (&mut Seal, &Digest),
        sent: &mut Vec<Order>,
    ) -> Result<(), Errno> {
        let (seal, digest) = seal;
        while let Some(order) = self.queue.front() {
            let total = len(order);
            let left = match total <= self.cut.part {
                true => send_short(&mut self.staging, socket, (seal, digest), order).map(|()| total),
                false => send_train(self.begun, &self.head, self.cut, socket, (seal, digest), order),
            };
            match left {
                Ok(bytes) => self.begun += bytes,
                // A queue of the system that is full loses what it does not take, as the network does.
                Err(Errno::NOBUFS) => self.begun = total,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(e),
            }
            if self.begun >= total {
                self.begun = 0;
                sent.extend(self.queue.pop_front());
            }
        }
        Ok(())
    }

    /// Sends a packet in one frame if nothing waits before it; false: it was not sent.
    #[inline]
    pub fn send_now(
        &mut self,
        socket: &Socket,
        sealing: (&mut Seal, &Digest),
        number: u32,
        (head, data): (&[u64], &Segments),
    ) -> bool {
        if !self.queue.is_empty() || size_of_val(head) + data.len() as usize > self.cut.part {
            return false;
        }
        self.staging.truncate(FRONT);
        data.append_behind(head, &mut self.staging);
        // A queue of the system that is full loses what it does not take, as the network does.
        matches!(send_staged(&mut self.staging, socket, sealing, number), Ok(()) | Err(Errno::NOBUFS))
    }
}

#[inline]
fn send_short(
    staging: &mut Vec<u8>,
    socket: &Socket,
    sealing: (&mut Seal, &Digest),
    order: &Order,
) -> Result<(), Errno> {
    staging.truncate(FRONT);
    match order {
        Order::Packet { packet, .. } if packet.in_place.is_empty() => {
            staging.extend_from_slice(&packet.bytes);
        }
        _ => parts(order, &chunk_head(order), |part| staging.extend_from_slice(part)),
    }
    send_staged(staging, socket, sealing, number(order))
}

/// Seals and sends the frame that is staged.
#[inline]
fn send_staged(
    staging: &mut [u8],
    socket: &Socket,
    (seal, digest): (&mut Seal, &Digest),
    number: u32,
) -> Result<(), Errno> {
    let datagram = Datagram::part(seal.next() as u32, number, 0, staging.len() - FRONT);
    let tag = seal.tag(&datagram).wrapping_add(digest.of(&staging[FRONT..]));
    staging[HEAD..FRONT].copy_from_slice(&datagram.encode(tag));
    net::send(socket, staging, SendFlags::empty()).map(drop)
}

/// Sends as many frames of an order as one call takes; how many bytes of it that were.
fn send_train(
    begun: usize,
    head: &[u8; HEAD],
    cut: Cut,
    socket: &Socket,
    (seal, digest): (&mut Seal, &Digest),
    order: &Order,
) -> Result<usize, Errno> {
    let part = cut.part;
    let rest = len(order) - begun;
    let count = rest.div_ceil(part).min(AT_ONCE);
    let (first, sequence) = (begun / part, seal.next() as u32);
    let mut datagrams = [Datagram::part(0, 0, 0, 0); AT_ONCE];
    for (place, datagram) in datagrams.iter_mut().enumerate().take(count) {
        let len = (rest - place * part).min(part);
        let sequence = sequence.wrapping_add(place as u32);
        *datagram = Datagram::part(sequence, number(order), index(cut.shortened, first + place), len);
    }
    let mut tags = seal.tags(&datagrams[..count]);
    let chunk_head = chunk_head(order);
    cover(&mut tags[..count], digest, order, &chunk_head, begun, part);
    let mut fronts = [[0; FRONT]; AT_ONCE];
    for ((front, datagram), tag) in fronts.iter_mut().zip(&datagrams[..count]).zip(tags) {
        front[..HEAD].copy_from_slice(head);
        front[HEAD..].copy_from_slice(&datagram.encode(tag));
    }
    let (list, ends) = pieces(order, &chunk_head, &fronts[..count], begun, part);
    let copies = copies(&list, &ends);
    let (list, ends) = match copies.len() {
        0 => (list, ends),
        count => (copies.iter().map(|frame| IoSlice::new(frame)).collect(), (1..=count).collect()),
    };
    let mut nothing: [SendAncillaryBuffer<'_, '_, '_>; AT_ONCE] = std::array::from_fn(|_| Default::default());
    let messages = frames(&ends).zip(&mut nothing);
    let mut messages: Vec<MMsgHdr<'_>> =
        messages.map(|(frame, nothing)| MMsgHdr::new(&list[frame], nothing)).collect();
    let sent = net::sendmmsg(socket, &mut messages, SendFlags::empty())?;
    Ok((sent * part).min(rest))
}

/// Has the tags of several frames cover their data.
fn cover(tags: &mut [u64], digest: &Digest, order: &Order, chunk_head: &[u8], begun: usize, part: usize) {
    let (mut skip, mut room, mut sum) = (begun, part, digest.begin());
    let mut tags = tags.iter_mut();
    parts(order, chunk_head, |mut bytes| {
        let skipped = skip.min(bytes.len());
        skip -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(room));
            sum.add(now);
            room -= now.len();
            bytes = later;
            if room == 0 {
                let Some(tag) = tags.next() else { return };
                *tag = tag.wrapping_add(std::mem::replace(&mut sum, digest.begin()).finish());
                room = part;
            }
        }
    });
    if let Some(tag) = tags.next().filter(|_| room < part) {
        *tag = tag.wrapping_add(sum.finish());
    }
}

/// Where in a list the pieces of each frame are.
fn frames(ends: &[usize]) -> impl Iterator<Item = Range<usize>> {
    std::iter::once(0).chain(ends.iter().copied()).zip(ends).map(|(start, end)| start..*end)
}

/// The frames in one piece each, if one of them has more pieces than the kernel takes.
fn copies(list: &[IoSlice<'_>], ends: &[usize]) -> Vec<Vec<u8>> {
    match frames(ends).any(|frame| frame.len() > PIECES) {
        true => frames(ends).map(|frame| joined(&list[frame])).collect(),
        false => Vec::new(),
    }
}

/// The pieces of memory of several frames, and where in the list those of each end.
fn pieces<'a>(
    order: &'a Order,
    chunk_head: &'a [u8],
    fronts: &'a [[u8; FRONT]],
    begun: usize,
    part: usize,
) -> (Vec<IoSlice<'a>>, Vec<usize>) {
    let (mut list, mut ends) = (Vec::with_capacity(3 * fronts.len()), Vec::with_capacity(fronts.len()));
    let (mut skip, mut room) = (begun, 0);
    let mut next = fronts.iter();
    parts(order, chunk_head, |mut bytes| {
        let skipped = skip.min(bytes.len());
        skip -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            if room == 0 {
                let Some(front) = next.next() else { return };
                if !list.is_empty() {
                    ends.push(list.len());
                }
                list.push(IoSlice::new(front));
                room = part;
            }
            let (now, later) = bytes.split_at(bytes.len().min(room));
            list.push(IoSlice::new(now));
            room -= now.len();
            bytes = later;
        }
    });
    ends.push(list.len());
    (list, ends)
}
