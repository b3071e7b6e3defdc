//! Bits of the second byte of [`Eager`](super::Eager) and [`Rts`](super::Rts) frames.

/// The sender waits for a [`super::Fin`]: a synchronous send, or one that may have to be replayed.
pub const FIN: u8 = 1;
/// The message is not ordered with the others of its flow and has no sequence number.
pub const UNORDERED: u8 = 2;
/// A rendezvous request that uses an open receive region; the receive region's number follows.
pub const INVITED: u8 = 4;
/// A rendezvous request whose first bytes follow on the same link without having been asked for; their
/// number follows.
pub const PUSHED: u8 = 8;
/// A message that is sent without asking although it is longer than a packet: all of its bytes come in
/// [`super::Part`] frames.
pub const PARTS: u8 = 16;
/// A rendezvous request whose receiver may read the message from the sender's memory; its address follows.
pub const READ: u8 = 32;
/// A rendezvous request with blocks of the message, which follow; no other way transfers them
/// ([`super::Blocks`]).
pub const BLOCKS: u8 = 64;

/// The byte with these bits.
#[inline]
pub const fn of(fin: bool, unordered: bool, invited: bool) -> u8 {
    (fin as u8) * FIN + (unordered as u8) * UNORDERED + (invited as u8) * INVITED
}
