//! The driver interface: the orders that the transfer layer gives to a rail, and the events that the rail
//! reports.
//!
//! A driver sees bytes and orders, never frames or requests. None of its methods blocks. `docs/driver.md`
//! shows how to write one.

use super::access::{Access, Came, RemoteAccess};
use crate::memory::Segments;
use crate::packet::{Key, Packet, PeerId, RegionId, RequestId};
use crate::profile::threshold::InPlace;
use alloc::string::String;
use alloc::vec::Vec;

/// Limits and capabilities of a rail; constant for its life. The default fits every network that loses
/// nothing: packets of [`Limits::PACKET_MIN`] bytes, copied into a buffer, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest packet in bytes, header included; at least [`Limits::PACKET_MIN`].
    pub packet: usize,
    /// Longest chunk in bytes of data.
    pub chunk: u64,
    /// Pieces of user memory that one packet may send in place; zero: all data is copied into the packet.
    pub gather: usize,
    /// Orders that one link takes before the first of them is reported as sent; at least one.
    pub depth: usize,
    /// Packets may be lost, repeated or reordered; the engine then acknowledges eagerly and retransmits.
    pub lossy: bool,
    /// Longest message in bytes that is worth sending partly as a chunk with [`Key::PUSH`]; zero: such
    /// chunks may not be sent. Such a chunk, and all that follows it on the link, waits until
    /// [`Order::Accept`] names its receive region. Only for rails that are not lossy.
    pub push: u64,
    /// The rail supports [`How::Inject`]: sending a packet costs no more than a copy.
    pub inject: bool,
    /// Messages that the receiver reads from the sender's memory. Only with [`RemoteAccess::Copies`].
    pub reads: Reads,
    /// How the rail accesses memory of a peer without code running on the peer.
    pub remote: RemoteAccess,
    /// [`Scope::Peer`] is cheaper than [`Scope::All`].
    pub looks: bool,
    /// A lost link may be opened again with [`Order::Connect`].
    pub returns: bool,
    /// The driver chooses between copying a block of non-contiguous data and leaving it in place, by the
    /// lengths of [`Driver::leave_in_place`].
    pub blocks: bool,
    /// Whether the policy of this side encrypts the links; such rails have separate profiles.
    pub encrypts: bool,
    /// Nominal bandwidth in bytes per second, zero if unknown.
    pub bandwidth: u64,
    /// Nominal latency in nanoseconds, zero if unknown.
    pub latency_ns: u64,
}

/// Messages whose data the receiver reads from the sender's memory ([`Driver::access`]) after a receive has
/// matched the request to send, instead of answering with a Cts. Such a message is copied once, expected or
/// not, and delays no other message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// None.
    Never,
    /// Those for which reading was measured to be fastest
    /// ([`Thresholds::read_min`](crate::profile::threshold::Thresholds::read_min)).
    Measured,
    /// All messages of at least this many bytes, whatever was measured.
    From(u64),
}

impl Limits {
    /// Packet length that every rail supports: the longest control frame fits, replayed as often as rails
    /// may die.
    pub const PACKET_MIN: usize = 512;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            packet: Limits::PACKET_MIN,
            chunk: u64::MAX,
            gather: 0,
            depth: 1,
            lossy: false,
            push: 0,
            inject: false,
            reads: Reads::Never,
            remote: RemoteAccess::None,
            looks: false,
            returns: false,
            blocks: false,
            encrypts: false,
            bandwidth: 0,
            latency_ns: 0,
        }
    }
}

/// An order for a rail.
#[derive(Debug)]
pub enum Order {
    /// Begin to open the link to a peer; answered by [`Event::Up`] or [`Event::Lost`]. Accepted even if
    /// [`Driver::room`] is zero.
    Connect {
        /// The peer to reach.
        to: PeerId,
    },
    /// Send a packet. Packets and chunks to one peer leave in the order of posting.
    Packet {
        /// Receiver.
        to: PeerId,
        /// Sequence number on the link, which is also in the packet's header.
        number: u32,
        /// Header and frames.
        packet: Packet,
    },
    /// Put part of a large message into a receive region of the peer.
    Chunk {
        /// Receiver.
        to: PeerId,
        /// Sequence number on the link.
        number: u32,
        /// Acknowledgement of the other direction, sent along with the chunk.
        ack: u32,
        /// Receive region of the receiver; with [`Key::PUSH`] the sender's request.
        region: RegionId,
        /// Key that the receiver's rail gave for the region, or [`Key::PUSH`].
        key: Key,
        /// Offset in the receive region.
        offset: u64,
        /// The data, in user memory. Empty if a lossy link retransmits a number whose message has ended.
        from: Segments,
    },
    /// Put the pushed chunk that `from` has announced ([`Event::Pushed`]) at the beginning of this open
    /// receive region, and go on receiving on the link. If the region was closed meanwhile, discard the
    /// bytes. Accepted even if [`Driver::room`] is zero.
    Accept {
        /// Sender of the chunk.
        from: PeerId,
        /// Its receive region.
        region: RegionId,
    },
    /// Close the link: the peer violated the protocol, died, or left, or its side closed the link. When
    /// [`Driver::send`] returns, the rail no longer touches memory of the link's orders or receive regions.
    /// Answered by [`Event::Lost`] at the next poll, with the orders that were not sent. Accepted even if
    /// [`Driver::room`] is zero.
    Close {
        /// The peer.
        to: PeerId,
    },
}

/// How a message that is alone in its packet is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The message is copied before the call returns, without a system call. Used only with
    /// [`Limits::inject`].
    Inject,
    /// The message is sent with its own system call, for a caller that waits.
    Send,
}

/// Data that a rail is given to send ([`Driver::send`]), after everything given before.
#[derive(Debug)]
pub enum Departure<'a> {
    /// An order that the rail keeps until it reports [`Event::Sent`]; always accepted while
    /// [`Driver::room`] is not zero.
    Order(Order),
    /// A packet with one message, sent in place: `head` (the bytes of the wire, eight per word) followed by
    /// `data`.
    Message {
        /// Receiver.
        to: PeerId,
        /// Sequence number on the link.
        number: u32,
        /// The bytes before the data.
        head: &'a [u64],
        /// The data.
        data: &'a Segments,
        /// How it is sent.
        how: How,
    },
    /// A packet, header included, followed directly by a chunk with [`Key::PUSH`] ([`Order::Chunk`]), in
    /// one call. The packet has the number before the chunk's. Used only if [`Limits::push`] is not zero.
    Pushed {
        /// The packet.
        packet: &'a [u8],
        /// The chunk.
        chunk: Order,
    },
}

/// Result of sending a [`Departure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// All of it was sent and its memory is free; no event is reported.
    Done,
    /// The rail holds it and reports [`Event::Sent`] when it was sent. Until then the memory of a message's
    /// data or of a pushed chunk is in use; the memory of the head or packet is free at once.
    Posted,
    /// Nothing was done; the engine must send it again later or in another way. Never returned for
    /// [`Departure::Order`].
    Retry,
}

impl From<bool> for Sent {
    /// Result for a rail that sends a packet whole or not at all: `left` says whether it was sent.
    #[inline]
    fn from(left: bool) -> Sent {
        if left { Sent::Done } else { Sent::Retry }
    }
}

/// The part of a rail that [`Driver::poll`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    All,
    /// Only the next packet of one peer, for a thread that waits for it: cheaper. The engine still polls
    /// everything now and then. Used only with [`Limits::looks`].
    Peer(PeerId),
}

/// Events for which a sleeping thread wants to be woken ([`Driver::wakeup`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// All events that [`Driver::poll`] reports. The engine asks for it before each sleep, so that a driver
    /// can prepare, and again if another thread has polled meanwhile, since polling ends the preparation.
    Traffic,
    /// A peer that connects; the next poll finds out which. For a long sleep while nothing is in flight.
    /// Needs no preparation: connected peers are not asked to send wakeups.
    Links,
}

/// Counters of a rail and values that it has measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Input that was discarded: from strangers, with a wrong tag, repeated, or truncated.
    pub dropped: u64,
    /// Values that the driver has measured for its own choices and that differ from those it was opened
    /// with, one per line; the first word is the name. They are stored with the profile of the rail and
    /// given to the driver when the next job opens such a rail.
    pub learnt: Vec<String>,
}

/// An event that a rail reports from [`Driver::poll`].
#[derive(Debug)]
pub enum Event<'a> {
    /// The link to a peer is open; either side may have opened it. The rail accepts orders for it from now
    /// on.
    Up {
        /// The peer.
        peer: PeerId,
        /// Number of this rail on the peer's side.
        remote: u8,
    },
    /// A whole packet has arrived, header included.
    Arrived {
        /// Sender.
        from: PeerId,
        /// Header and frames.
        packet: &'a [u8],
    },
    /// A chunk with [`Key::PUSH`] has begun to arrive; the link stops until [`Order::Accept`]. When the
    /// chunk has arrived, [`Event::Landed`] is reported as for any other chunk.
    Pushed {
        /// Sender.
        from: PeerId,
        /// The sender's request, which the chunk carries in the field of the receive region.
        request: u64,
        /// Length in bytes.
        len: u64,
    },
    /// A chunk has arrived in its receive region. Also reported, with `len` as sent, for a chunk whose
    /// receive region is not open: its bytes are discarded, but its number counts as received.
    Landed {
        /// Sender.
        from: PeerId,
        /// Sequence number on the link.
        number: u32,
        /// Acknowledgement that the chunk carried.
        ack: u32,
        /// The receive region.
        region: RegionId,
        /// Offset in the receive region.
        offset: u64,
        /// Length in bytes.
        len: u64,
        /// False if the receive region was not open and the bytes were discarded.
        kept: bool,
    },
    /// An order was sent: the rail no longer uses its user memory or packet.
    Sent {
        /// Receiver.
        to: PeerId,
        /// Number of the packet or chunk.
        number: u32,
        /// The packet, returned for reuse; `None` for a chunk.
        packet: Option<Packet>,
    },
    /// An access has ended ([`Driver::access`]). For a lost link this is reported before the loss.
    Accessed {
        /// The peer whose memory was accessed.
        to: PeerId,
        /// Identifier of the access.
        request: RequestId,
        /// Result of the access.
        came: Came,
    },
    /// Bytes were sent to or received from a peer, but no packet or chunk is complete. A hint for a waiting
    /// thread to poll again at once; nothing else depends on it.
    Moved {
        /// The peer.
        peer: PeerId,
    },
    /// According to the system, the interface has lost or regained its carrier. The rail keeps the orders
    /// of the link.
    Carrier {
        /// The peer, with or without a link.
        peer: PeerId,
        /// Why the interface carries nothing; `None`: it carries again.
        lost: Option<String>,
    },
    /// The peer's side of a lossy link buffers this many bytes; more bytes in flight would be lost.
    Buffers {
        /// The peer.
        peer: PeerId,
        /// Bytes of packets and chunks.
        len: u64,
    },
    /// The link to a peer is lost, or could not be opened within the rail's time limit. Reported again for
    /// each order that is posted to a lost link before the engine knows of the loss.
    Lost {
        /// The peer.
        peer: PeerId,
        /// Cause and remedy, for the user.
        why: String,
        /// Orders that were not reported as sent, returned to the engine.
        unsent: Vec<Order>,
    },
}

/// A rail: one interface in use, whatever its network.
pub trait Driver: Send {
    /// Name for the user: kind of network and interface, for example `tcp/eth1`.
    fn name(&self) -> &str;
    /// Returns the limits and capabilities.
    fn limits(&self) -> Limits;
    /// Returns the address of this rail for the peers, as text without spaces; empty: none is needed.
    fn address(&self) -> String {
        String::new()
    }
    /// Passes the address of a peer's rail, as returned by its [`Driver::address`]; false: this rail cannot
    /// reach that address. Called once for each rail of the peer.
    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let _ = (peer, rail, address);
        false
    }
    /// Opens a receive region: chunks from `from` for this region are written to the memory `into`.
    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key;
    /// Closes a receive region. The rail does not touch its memory after this call and discards chunks for
    /// it.
    fn close(&mut self, region: RegionId);
    /// Exposes memory to one-sided accesses of every peer on this rail; `None`: the rail has none
    /// ([`Limits::remote`]), or the system refuses. The memory stays valid until [`Driver::conceal`].
    fn expose(&mut self, memory: Segments) -> Option<Key> {
        let _ = memory;
        None
    }
    /// Ends [`Driver::expose`]: no peer reaches the memory after this call.
    fn conceal(&mut self, key: Key) {
        let _ = key;
    }
    /// Begins an access, which may wait for [`Driver::flush`]. It is accepted even if [`Driver::room`] is
    /// zero, and is not ordered with packets and chunks. Returns the result if the access has already
    /// ended; otherwise [`Event::Accessed`] reports it. With [`RemoteAccess::Copies`] only gets are
    /// requested, from any memory of the peer; they have no key.
    fn access(&mut self, access: Access) -> Option<Came> {
        let _ = access;
        Some(Came::Undone)
    }
    /// Returns the number of orders that the rail accepts now; zero: busy.
    fn room(&self) -> usize;
    /// Sends a departure. The work of an [`Order`] may be put off until [`Driver::flush`]; the other
    /// departures need no flush.
    fn send(&mut self, departure: Departure<'_>) -> Sent;
    /// Starts sending every order given so far; called once after a series.
    fn flush(&mut self) {}
    /// Polls the network once and reports events. Does not wait. False: [`Scope::Peer`] cannot see events
    /// of this peer; only [`Scope::All`] can.
    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool;
    /// Returns a file descriptor that becomes readable on events of this interest, for threads that sleep;
    /// negative: this rail never has events that were not ordered; `None`: events are found by polling
    /// only.
    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        let _ = interest;
        None
    }
    /// Returns the counters and the measured values.
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
    /// Passes the lengths from which this rail leaves data in place, as its profile says: when the profile
    /// becomes known or is corrected, and while it is measured. `None`: the nominal ones again, with which a
    /// rail begins. Only for rails with [`Limits::blocks`].
    fn leave_in_place(&mut self, from: Option<InPlace>) {
        let _ = from;
    }
    /// Returns the name of the cipher of the open link to a peer, or without a peer of the latest encrypted
    /// link; `None` if it is not encrypted, or there is no such link.
    fn cipher(&self, peer: Option<PeerId>) -> Option<&'static str> {
        let _ = peer;
        None
    }
}
