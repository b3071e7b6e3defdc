//! The interface of a network: what the transfer layer asks of a rail and what the rail reports.
//!
//! A driver sees bytes and orders, never frames or requests. None of its verbs blocks. `docs/driver.md`
//! shows how to write one.

use super::access::{Access, Came, RemoteAccess};
use crate::memory::Segments;
use crate::packet::{Key, Packet, PeerId, RegionId, RequestId};
use alloc::string::String;
use alloc::vec::Vec;

/// What a rail can do. Constant for the life of the rail.
/// The default is what every network can do that loses nothing: packets of [`Limits::PACKET_MIN`] bytes,
/// staged, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest packet in bytes, header included; at least [`Limits::PACKET_MIN`].
    pub packet: usize,
    /// Longest chunk in bytes of data.
    pub chunk: u64,
    /// Pieces of user memory that one packet may leave in place; zero: everything is staged.
    pub gather: usize,
    /// Orders that one link takes before the first of them was reported as sent; at least one.
    pub depth: usize,
    /// Packets may be lost, repeated or reordered; the engine then acknowledges eagerly and sends again.
    pub lossy: bool,
    /// Longest message of which it pays to send a chunk with [`Key::PUSH`], in bytes; zero: none may be sent.
    /// Such a chunk is held back until [`Order::Accept`] says where it goes, and so is all that follows it
    /// on the link. Only for rails that are not lossy.
    pub push: u64,
    /// [`How::Inject`] is possible: taking a packet costs no more than a copy.
    pub inject: bool,
    /// Which messages peers read from their sender's memory. Only with [`RemoteAccess::Copies`].
    pub reads: Reads,
    /// What can be done to memory of a peer without the peer's help.
    pub remote: RemoteAccess,
    /// [`Scope::Peer`] is cheaper than [`Scope::All`].
    pub looks: bool,
    /// A link that was lost may be opened again with [`Order::Connect`].
    pub returns: bool,
    /// Nominal bandwidth in bytes per second, zero if unknown.
    pub bandwidth: u64,
    /// Nominal latency in nanoseconds, zero if unknown.
    pub latency_ns: u64,
}

/// Which messages a peer reads from their sender's memory ([`Driver::access`]), once a receive has matched
/// their requests to send, instead of asking for them. Such a message is copied once, expected or not, and
/// nothing else waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// None.
    Never,
    /// Those for which that was measured to be fastest
    /// ([`Thresholds::read_min`](crate::profile::threshold::Thresholds::read_min)).
    Measured,
    /// All from this length on, whatever was measured.
    From(u64),
}

impl Limits {
    /// Every rail carries packets of this many bytes: the longest control frame, replayed as often as rails
    /// may die, fits.
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
            bandwidth: 0,
            latency_ns: 0,
        }
    }
}

/// One thing for a rail to do.
#[derive(Debug)]
pub enum Order {
    /// Begin to open the link to a peer; answered by [`Event::Up`] or [`Event::Lost`]. Taken even without
    /// room.
    Connect {
        /// The peer to reach.
        to: PeerId,
    },
    /// Send a packet. Packets and chunks to one peer leave in the order of posting.
    Packet {
        /// Receiver.
        to: PeerId,
        /// Its number on the link, which is also in its header.
        number: u32,
        /// Header and frames.
        packet: Packet,
    },
    /// Put part of a large message into a receive region of the peer.
    Chunk {
        /// Receiver.
        to: PeerId,
        /// Its number on the link.
        number: u32,
        /// Acknowledgement of the other direction to carry along.
        ack: u32,
        /// The receiver's receive region; with [`Key::PUSH`] the sender's request.
        region: RegionId,
        /// The key that the receiver's rail gave for it, or [`Key::PUSH`].
        key: Key,
        /// Where in the receive region.
        offset: u64,
        /// The bytes, in user memory. None when a lossy link sends again a number whose message has ended.
        from: Segments,
    },
    /// The pushed chunk that `from` has announced ([`Event::Pushed`]) goes to the beginning of this receive
    /// region, which is open; the link goes on. If the receive region has been closed meanwhile, its bytes
    /// are discarded. Taken even without room.
    Accept {
        /// Who pushes.
        from: PeerId,
        /// Where it goes.
        region: RegionId,
    },
    /// Give up the link: the peer broke the protocol, died, or left, or the other side gave it up. When
    /// [`Driver::send`] returns, no memory of its orders or receive regions is touched any more. Answered by
    /// [`Event::Lost`] at the next poll, with the orders that were not sent. Taken even without room.
    Close {
        /// The peer.
        to: PeerId,
    },
}

/// How a message that is alone in its packet goes to its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is copied before the call returns, without a system call. Only asked with [`Limits::inject`].
    Inject,
    /// It leaves with a system call of its own, for a caller that waits.
    Send,
}

/// What a rail is given to send ([`Driver::send`]). It goes behind what was given before.
#[derive(Debug)]
pub enum Departure<'a> {
    /// Something that the rail keeps until it reports [`Event::Sent`]; always taken where
    /// [`Driver::room`] said so.
    Order(Order),
    /// A packet of one message, from where that lies: `head` (the bytes of the wire, eight in each word) and
    /// then `data` are all of it.
    Message {
        /// Receiver.
        to: PeerId,
        /// Its number on the link.
        number: u32,
        /// The bytes before the data.
        head: &'a [u64],
        /// The data.
        data: &'a Segments,
        /// How.
        how: How,
    },
    /// A packet, header included, and right behind it a chunk with [`Key::PUSH`] ([`Order::Chunk`]), in one
    /// call. The packet's number is the one before the chunk's. Only asked where [`Limits::push`] is not
    /// zero.
    Pushed {
        /// The packet.
        packet: &'a [u8],
        /// The chunk.
        chunk: Order,
    },
}

/// What became of a [`Departure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// All of it has left, its memory is free, and that is not reported.
    Done,
    /// The rail has it; [`Event::Sent`] tells when it has left. Of a message or a pushed chunk its memory is
    /// in use until then, the memory before it is free.
    Posted,
    /// Nothing was done: it is to be given again later, or in another way. Never said of
    /// [`Departure::Order`].
    Retry,
}

impl From<bool> for Sent {
    /// Of a rail that sends all of a packet or nothing: whether it has left.
    #[inline]
    fn from(left: bool) -> Sent {
        if left { Sent::Done } else { Sent::Retry }
    }
}

/// What [`Driver::poll`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    All,
    /// The next packet of one peer and nothing else, for a thread that waits for it: cheaper, and
    /// everything is looked at now and then all the same. Only asked with [`Limits::looks`].
    Peer(PeerId),
}

/// Events for which a sleeping thread wants to be woken ([`Driver::wakeup`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Whatever [`Driver::poll`] would report. Asked for before each sleep, so that a driver can prepare for
    /// it; and again if somebody else has polled meanwhile, which ends what was prepared.
    Traffic,
    /// A peer that wants a link; the next poll looks who it is. For a long sleep while nothing is in flight.
    /// Prepares nothing: peers that have a link are not asked to wake anybody.
    Links,
}

/// What a rail has counted and learnt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Input that was not taken: from strangers, with a wrong tag, twice, cut short.
    pub dropped: u64,
    /// What the driver has measured for its own choices, where that differs from what it was opened with: a
    /// line each, of which the first word is the name. They are kept with the profile of the rail, and given
    /// to the driver when the next job opens such a rail.
    pub learnt: Vec<String>,
}

/// What a rail reports from [`Driver::poll`].
#[derive(Debug)]
pub enum Event<'a> {
    /// The link to a peer is open, by whichever side. Orders for it are accepted from now on.
    Up {
        /// The peer.
        peer: PeerId,
        /// Number of this rail at the peer's side.
        remote: u8,
    },
    /// A whole packet has arrived, header included.
    Arrived {
        /// Who sent it.
        from: PeerId,
        /// Header and frames.
        packet: &'a [u8],
    },
    /// A chunk with [`Key::PUSH`] has begun to arrive; the link stands still until [`Order::Accept`].
    /// Its arrival is reported as [`Event::Landed`] like that of any other.
    Pushed {
        /// Who sent it.
        from: PeerId,
        /// The sender's request, from the place of the receive region.
        request: u64,
        /// Bytes.
        len: u64,
    },
    /// A chunk lies in its receive region. Also reported, with `len` as sent, for a chunk whose receive
    /// region is not open (any more): its bytes are discarded, its number counts.
    Landed {
        /// Who sent it.
        from: PeerId,
        /// Its number on the link.
        number: u32,
        /// Acknowledgement that it carried.
        ack: u32,
        /// Which receive region.
        region: RegionId,
        /// Where in it.
        offset: u64,
        /// Bytes.
        len: u64,
        /// False if the receive region was not open and the bytes were discarded.
        kept: bool,
    },
    /// An order has left: user memory and the packet are no longer in use by the rail.
    Sent {
        /// Receiver.
        to: PeerId,
        /// Number of the packet or chunk.
        number: u32,
        /// The packet, given back; none for a chunk.
        packet: Option<Packet>,
    },
    /// An access has ended ([`Driver::access`]). Of a link that is lost this is reported before the loss.
    Accessed {
        /// Whose memory it was.
        to: PeerId,
        /// The access.
        request: RequestId,
        /// What came of it.
        came: Came,
    },
    /// Bytes went to or came from a peer without anything being complete. Tells who waits that it is worth
    /// looking again at once; nothing else depends on it.
    Moved {
        /// The peer.
        peer: PeerId,
    },
    /// The interface carries nothing any more as far as the system tells, or carries again. Nothing that
    /// the link holds is given back for that.
    Carrier {
        /// The peer, whether there is a link to it or not.
        peer: PeerId,
        /// Why it carries nothing; none: it carries.
        lost: Option<String>,
    },
    /// The peer's side of a lossy link buffers this number of bytes: more in flight is lost.
    Buffers {
        /// The peer.
        peer: PeerId,
        /// Bytes of packets and chunks.
        len: u64,
    },
    /// The link to a peer is gone, or could not be opened within the rail's bound. Reported again with each
    /// order that is posted to a link that is gone: the engine could not know yet.
    Lost {
        /// The peer.
        peer: PeerId,
        /// Cause and remedy, for the user.
        why: String,
        /// Orders that were not yet reported as sent, given back.
        unsent: Vec<Order>,
    },
}

/// A rail: one interface in use, whatever its network.
pub trait Driver: Send {
    /// Name for the user: kind of network and interface, for example `tcp/eth1`.
    fn name(&self) -> &str;
    /// Its limits and capabilities.
    fn limits(&self) -> Limits;
    /// The address of this rail for the peers, as text without spaces; empty: none is needed.
    fn address(&self) -> String {
        String::new()
    }
    /// Tells the address of a peer as its rail's [`Driver::address`] said it; false: this rail cannot
    /// reach that address. One peer may be told several times, with the addresses of its rails.
    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let _ = (peer, rail, address);
        false
    }
    /// Makes user memory reachable: chunks from `from` for this receive region are put there.
    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key;
    /// Forgets a receive region. Its memory is not touched after this call; chunks for it are discarded.
    fn close(&mut self, region: RegionId);
    /// Exposes memory to accesses of every peer on this rail; none: the rail has none
    /// ([`Limits::remote`]), or the system refuses. The memory stays until [`Driver::conceal`].
    fn expose(&mut self, memory: Segments) -> Option<Key> {
        let _ = memory;
        None
    }
    /// Ends what [`Driver::expose`] began: no peer reaches the memory after this call.
    fn conceal(&mut self, key: Key) {
        let _ = key;
    }
    /// Begins an access, which may wait for [`Driver::flush`]. It is taken even without room, in no order
    /// with packets and chunks. Its result, if it has ended already; otherwise [`Event::Accessed`] tells it.
    /// With [`RemoteAccess::Copies`] only gets are asked for, of any memory of the peer: they have no key.
    fn access(&mut self, access: Access) -> Option<Came> {
        let _ = access;
        Some(Came::Undone)
    }
    /// Orders that it takes now; zero: busy.
    fn room(&self) -> usize;
    /// Takes something to send. What an [`Order`] costs may be put off until [`Driver::flush`]; the others
    /// need none.
    fn send(&mut self, departure: Departure<'_>) -> Sent;
    /// Every order so far shall leave; called once after a series.
    fn flush(&mut self) {}
    /// Looks at the network once and reports what happened. Does not wait. False: of this peer only a look
    /// at everything can tell.
    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool;
    /// A file descriptor that becomes readable when there is something of this interest, for threads that
    /// want to sleep; negative: nothing ever happens here that was not ordered; none: only polling helps.
    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        let _ = interest;
        None
    }
    /// Its counts so far, and what it has learnt.
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
