//! Sending: orders as trains of frames.

use super::digest::Digest;
use super::frame::HEAD;
use super::sys::Socket;
use crate::udp::datagram::{Datagram, LEN};
use crate::udp::seal::{AT_ONCE, Seal};
use crate::udp::write::{Cut, chunk_head, len, number, parts, seal_train, stage};
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::Order;
use rustix::io::Errno;
use rustix::net::{self, MMsgHdr, SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Everything before the data of a frame.
const FRONT: usize = HEAD + LEN;

/// Orders of one link that the kernel has not taken yet.
#[derive(Debug)]
pub struct Outbox {
    queue: VecDeque<Order>,
    /// Bytes of the first order that have left.
    begun: usize,
    /// How orders are cut.
    cut: Cut,
    /// Frames in one piece, of which the first one's head stays: Ethernet header and ports.
    staging: Vec<u8>,
}

impl Outbox {
    /// For frames that begin with `head` and carry orders that are `cut`.
    pub fn new(head: [u8; HEAD], cut: Cut) -> Self {
        let staging = [&head[..], &[0; LEN]].concat();
        Outbox { queue: VecDeque::new(), begun: 0, cut, staging }
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

    /// The orders that have not left.
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
                false => send_train(&mut self.staging, self.begun, self.cut, socket, (seal, digest), order),
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
        _ => parts(order, &chunk_head(order), 0..usize::MAX, |part| staging.extend_from_slice(part)),
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
    staging: &mut Vec<u8>,
    begun: usize,
    cut: Cut,
    socket: &Socket,
    (seal, digest): (&mut Seal, &Digest),
    order: &Order,
) -> Result<usize, Errno> {
    let leaving = (len(order) - begun).min(AT_ONCE * cut.part);
    let (head, frame) = (head_of(staging), FRONT + cut.part);
    stage(staging, order, (begun, leaving), (FRONT, cut.part));
    for frame in staging.chunks_mut(frame) {
        frame[..HEAD].copy_from_slice(&head);
    }
    seal_train(staging, seal, cut, (number(order), begun / cut.part), HEAD, |data| digest.of(data));
    let frames: Vec<_> = staging.chunks(frame).map(|frame| [IoSlice::new(frame)]).collect();
    let mut nothing: [SendAncillaryBuffer<'_, '_, '_>; AT_ONCE] = std::array::from_fn(|_| Default::default());
    let mut messages: Vec<MMsgHdr<'_>> =
        frames.iter().zip(&mut nothing).map(|(frame, nothing)| MMsgHdr::new(frame, nothing)).collect();
    let sent = net::sendmmsg(socket, &mut messages, SendFlags::empty())?;
    Ok((sent * cut.part).min(leaving))
}

/// The head of the frame that was staged last, or will be.
fn head_of(staging: &[u8]) -> [u8; HEAD] {
    std::array::from_fn(|at| staging[at])
}
