//! Sending: orders as trains of frames.

use super::digest::Digest;
use super::frame::HEAD;
use super::sys::Socket;
use crate::datagram::cut::{Cut, append, len, number, seal_train, stage};
use crate::datagram::header::{Datagram, LEN};
use crate::datagram::queue::Queue;
use crate::datagram::seal::{AT_ONCE, Seal};
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::Order;
use rustix::io::Errno;
use rustix::net::{self, MMsgHdr, SendAncillaryBuffer, SendFlags};
use std::io::IoSlice;

/// Bytes in front of the data of a frame.
const FRONT: usize = HEAD + LEN;

/// The frames of the next send call of one link.
#[derive(Debug)]
pub struct Outbox {
    /// Length of the parts into which orders are cut.
    pub cut: Cut,
    /// The staged frames; the Ethernet header and ports of the first one are kept.
    staging: Vec<u8>,
}

impl Outbox {
    /// For frames that begin with `head`, with orders cut by `cut`.
    pub fn new(head: [u8; HEAD], cut: Cut) -> Self {
        Outbox { cut, staging: [&head[..], &[0; LEN]].concat() }
    }

    /// Sends as much as the kernel takes; orders that were sent go to `sent`.
    ///
    /// # Errors
    /// The system reports that nothing can be sent.
    #[inline]
    pub fn write(
        &mut self,
        queue: &mut Queue,
        socket: &Socket,
        (seal, digest): (&mut Seal, &Digest),
        sent: &mut Vec<Order>,
    ) -> Result<(), Errno> {
        while let Some((order, begun)) = queue.first() {
            let total = len(order);
            let left = match total <= self.cut.part {
                true => send_short(&mut self.staging, socket, (seal, digest), order).map(|()| total),
                false => send_train(&mut self.staging, begun, self.cut, socket, (seal, digest), order),
            };
            match left {
                Ok(bytes) => queue.left(bytes, sent),
                // A full queue of the system loses the frame, as the network might.
                Err(Errno::NOBUFS) => queue.left(total, sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sends a packet in one frame, if it fits; false: it was not sent.
    #[inline]
    pub fn send_now(
        &mut self,
        socket: &Socket,
        sealing: (&mut Seal, &Digest),
        number: u32,
        (head, data): (&[u64], &Segments),
    ) -> bool {
        if size_of_val(head) + data.len() as usize > self.cut.part {
            return false;
        }
        self.staging.truncate(FRONT);
        data.append_behind(head, &mut self.staging);
        // A full queue of the system loses the frame, as the network might.
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
    append(staging, order);
    send_staged(staging, socket, sealing, number(order))
}

/// Writes the tag of the staged frame, or encrypts the frame if the link is encrypted, and sends it.
#[inline]
fn send_staged(
    staging: &mut Vec<u8>,
    socket: &Socket,
    (seal, digest): (&mut Seal, &Digest),
    number: u32,
) -> Result<(), Errno> {
    if seal.is_encrypted() {
        staging.resize(staging.len() + seal.behind(), 0);
        let datagram = Datagram::part(seal.next() as u32, number, 0, staging.len() - FRONT);
        seal.encrypt(&datagram, &mut staging[HEAD..]);
        return net::send(socket, staging, SendFlags::empty()).map(drop);
    }
    let datagram = Datagram::part(seal.next() as u32, number, 0, staging.len() - FRONT);
    let tag = seal.tag(&datagram).wrapping_add(digest.of(&staging[FRONT..]));
    staging[HEAD..FRONT].copy_from_slice(&datagram.encode(tag));
    net::send(socket, staging, SendFlags::empty()).map(drop)
}

/// Sends as many frames of an order as one call takes; returns the number of bytes of the order.
fn send_train(
    staging: &mut Vec<u8>,
    begun: usize,
    cut: Cut,
    socket: &Socket,
    (seal, digest): (&mut Seal, &Digest),
    order: &Order,
) -> Result<usize, Errno> {
    let leaving = (len(order) - begun).min(AT_ONCE * cut.part);
    let (head, frame) = (head_of(staging), FRONT + cut.part + cut.behind);
    stage(staging, order, (begun, leaving), (FRONT, cut));
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

/// The head of the staged frame.
fn head_of(staging: &[u8]) -> [u8; HEAD] {
    std::array::from_fn(|at| staging[at])
}
