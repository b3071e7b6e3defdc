//! Sending: orders as trains of datagrams.
//!
//! A train is assembled in a staging buffer of the rail, each part behind its header, before the kernel
//! takes it. The kernel could also gather headers and parts from their places, but copies such short pieces
//! slower than one long one: a bare sender reaches .84 of its bandwidth that way and .88 staged (Zen 3),
//! and half of it if the sender's core is far from the receiver's (Zen 5: 3.7 GB/s instead of 7).

use crate::datagram::cut::{Cut, append, len, number, seal_train, stage};
use crate::datagram::header::{Datagram, LEN};
use crate::datagram::queue::Queue;
use crate::datagram::seal::Seal;
use nmad_engine::memory::Segments;
use nmad_engine::transfer::driver::Order;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SendFlags};

/// The bytes of the next send call of one link.
#[derive(Debug)]
pub struct Outbox {
    /// Length of the parts into which orders are cut.
    pub cut: Cut,
    staging: Vec<u8>,
    /// Bytes of the first order that are staged: the kernel has refused them so far.
    staged: usize,
}

impl Outbox {
    /// For orders that are cut like this.
    pub fn new(cut: Cut) -> Outbox {
        Outbox { cut, staging: Vec::new(), staged: 0 }
    }

    /// Cuts in another way from now on; nothing stays staged.
    pub fn cut_anew(&mut self, cut: Cut) {
        (self.cut, self.staged) = (cut, 0);
    }

    /// Sends as much as the kernel takes; orders that were sent go to `sent`.
    ///
    /// # Errors
    /// The system reports that the peer cannot be reached.
    #[inline]
    pub fn write(
        &mut self,
        queue: &mut Queue,
        fd: &OwnedFd,
        seal: &mut Seal,
        sent: &mut Vec<Order>,
    ) -> Result<(), Errno> {
        while let Some((order, begun)) = queue.first() {
            if self.staged == 0 {
                self.staged = match len(order) <= self.cut.part {
                    true => stage_short(&mut self.staging, seal, order),
                    false => stage_train(&mut self.staging, seal, self.cut, order, begun),
                };
            }
            match taken(net::send(fd, &self.staging, SendFlags::NOSIGNAL)) {
                Ok(()) => queue.left(std::mem::take(&mut self.staged), sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sends a packet in one datagram, if it fits; false: it was not sent. Nothing may be staged.
    #[inline]
    pub fn send_now(
        &mut self,
        fd: &OwnedFd,
        seal: &mut Seal,
        number: u32,
        (head, data): (&[u64], &Segments),
    ) -> bool {
        if size_of_val(head) + data.len() as usize > self.cut.part {
            return false;
        }
        self.staging.clear();
        self.staging.resize(LEN, 0);
        data.append_behind(head, &mut self.staging);
        seal_short(&mut self.staging, seal, number);
        taken(net::send(fd, &self.staging, SendFlags::NOSIGNAL)).is_ok()
    }
}

/// Stages an order that fits into one datagram; returns its number of bytes.
#[inline]
fn stage_short(staging: &mut Vec<u8>, seal: &mut Seal, order: &Order) -> usize {
    staging.clear();
    staging.resize(LEN, 0);
    append(staging, order);
    let len = staging.len() - LEN;
    seal_short(staging, seal, number(order));
    len
}

/// Writes the header of the only datagram that is staged, and encrypts it if the link is encrypted.
#[inline]
fn seal_short(staging: &mut Vec<u8>, seal: &mut Seal, number: u32) {
    if seal.is_encrypted() {
        staging.resize(staging.len() + seal.behind(), 0);
        let datagram = Datagram::part(seal.next() as u32, number, 0, staging.len() - LEN);
        return seal.encrypt(&datagram, staging);
    }
    let datagram = Datagram::part(seal.next() as u32, number, 0, staging.len() - LEN);
    let tag = seal.tag(&datagram);
    staging[..LEN].copy_from_slice(&datagram.encode(tag));
}

/// Stages the datagrams of the next send call, from the byte `begun` of an order on; returns the number of
/// bytes.
fn stage_train(staging: &mut Vec<u8>, seal: &mut Seal, cut: Cut, order: &Order, begun: usize) -> usize {
    let leaving = (cut.train * cut.part).min(len(order) - begun);
    stage(staging, order, (begun, leaving), (LEN, cut));
    seal_train(staging, seal, cut, (number(order), begun / cut.part), 0, |_| 0);
    leaving
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
    use crate::opening::Opened;
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
            hello: Hello { from: 0, to: 1, rail: 0, nonce: [1; 32], offer: None, mac: [0; 32] },
            rail: 0,
            nonce: [2; 32],
            offer: None,
        };
        let mut seal = Seal::new(&Opened::of(ends, None, true), &[3; 32]);
        let (mut out, mut queue) = (Outbox::new(Cut::new(PART + LEN, 0, false)), Queue::default());
        let (mut sent, mut refused) = (Vec::new(), 0);
        let lens = [4000, 20, 9001, 700, 701];
        lens.iter().enumerate().for_each(|(number, len)| queue.push(order(number as u32, *len)));
        let (mut got, mut next) = (vec![Vec::new(); lens.len()], 0);
        while !queue.is_empty() || got.iter().zip(lens).any(|(got, len)| got.len() < len) {
            out.write(&mut queue, &ours, &mut seal, &mut sent).expect("no error");
            refused += usize::from(!queue.is_empty());
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
