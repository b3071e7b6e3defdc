//! The interface of a network: what the transfer layer asks of a rail and what the rail reports.
//!
//! A driver sees bytes and orders, never frames or requests. None of its verbs blocks. `docs/driver.md`
//! shows how to write one.

use crate::memory::Segments;
use crate::packet::{Key, LandingId, Packet, PeerId};
use alloc::string::String;
use alloc::vec::Vec;

/// What a rail can do. Constant for the life of the rail.
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
    /// Such a chunk is held back until [`Driver::accept`] says where it goes, and so is all that follows it
    /// on the link. Only for rails that are not lossy.
    pub push: u64,
    /// [`Driver::pass`] takes packets.
    pub passes: bool,
    /// [`Driver::lend`] takes data of so many bytes, from the first number on and below the second; twice the
    /// same if it takes none.
    pub lends: (u64, u64),
    /// Nominal bandwidth in bytes per second, zero if unknown.
    pub bandwidth: u64,
    /// Nominal latency in nanoseconds, zero if unknown.
    pub latency_ns: u64,
}

impl Limits {
    /// Every rail carries packets of this many bytes: the longest control frame, replayed as often as rails
    /// may die, fits.
    pub const PACKET_MIN: usize = 512;
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
    /// Put part of a large message into a landing of the peer.
    Chunk {
        /// Receiver.
        to: PeerId,
        /// Its number on the link.
        number: u32,
        /// Acknowledgement of the other direction to carry along.
        ack: u32,
        /// The receiver's landing; with [`Key::PUSH`] the sender's request.
        landing: LandingId,
        /// The key that the receiver's rail gave for it, or [`Key::PUSH`].
        key: Key,
        /// Where in the landing.
        offset: u64,
        /// The bytes, in user memory. None when a lossy link sends again a number whose message has ended.
        from: Segments,
    },
    /// Give up the link: the peer broke the protocol, died, or left, or the other side gave it up. When
    /// [`Driver::post`] returns, no memory of its orders or landings is touched any more. Answered by
    /// [`Event::Lost`] at the next poll, with the orders that were not sent. Taken even without room.
    Close {
        /// The peer.
        to: PeerId,
    },
}

/// What became of a packet that was to leave at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtOnce {
    /// Nothing was done; it is to be posted instead.
    Refused,
    /// All of it has left, and that is not reported.
    Left,
    /// The network took a part; the rest is as if it had been posted, and reported as that.
    Posted,
}

impl From<bool> for AtOnce {
    /// Of a rail that sends all of a packet or nothing: whether it has left.
    #[inline]
    fn from(left: bool) -> AtOnce {
        if left { AtOnce::Left } else { AtOnce::Refused }
    }
}

/// What came of looking for one packet ([`Driver::fetch`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// Nothing has arrived from this peer.
    Nothing,
    /// A packet was taken.
    Packet,
    /// One is here whose data is still in its sender's memory: [`Driver::borrow`].
    Lent,
    /// Only [`Driver::poll`] can tell.
    Elsewhere,
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
    /// A chunk with [`Key::PUSH`] has begun to arrive; the link stands still until [`Driver::accept`].
    /// Its arrival is reported as [`Event::Landed`] like that of any other.
    Pushed {
        /// Who sent it.
        from: PeerId,
        /// The sender's request, from the place of the landing.
        request: u64,
        /// Bytes.
        len: u64,
    },
    /// A chunk lies in its landing. Also reported, with `len` as sent, for a chunk whose landing is not
    /// open (any more): its bytes are discarded, its number counts.
    Landed {
        /// Who sent it.
        from: PeerId,
        /// Its number on the link.
        number: u32,
        /// Acknowledgement that it carried.
        ack: u32,
        /// Which landing.
        landing: LandingId,
        /// Where in it.
        offset: u64,
        /// Bytes.
        len: u64,
        /// False if the landing was not open and the bytes were discarded.
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
    /// Bytes went to or came from a peer without anything being complete. Tells who waits that it is worth
    /// looking again at once; nothing else depends on it.
    Moved {
        /// The peer.
        peer: PeerId,
    },
    /// The peer's side of a lossy link buffers so many bytes: what is in flight beyond that is lost.
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

/// What [`Driver::borrow`] calls: with what goes before the data, the length of that, and what fetches it.
pub type TakeLent<'a> = dyn FnMut(&[u8], u64, &mut dyn FnMut(&Segments) -> bool) -> bool + 'a;

/// A rail: one interface in use, whatever its network.
pub trait Driver: Send {
    /// Name for the user: kind of network and interface, for example `tcp/eth1`.
    fn name(&self) -> &str;
    /// What it can do.
    fn limits(&self) -> Limits;
    /// Makes user memory reachable: chunks from `from` for this landing are put there.
    fn open(&mut self, landing: LandingId, from: PeerId, into: Segments) -> Key;
    /// Forgets a landing. Its memory is not touched after this call; chunks for it are discarded.
    fn close(&mut self, landing: LandingId);
    /// The pushed chunk that `from` has announced goes to the beginning of this landing, which is open; the
    /// link goes on. If the landing has been closed meanwhile, its bytes are discarded.
    fn accept(&mut self, from: PeerId, landing: LandingId) {
        let _ = (from, landing);
    }
    /// Orders that it takes now; zero: busy.
    fn room(&self) -> usize;
    /// Takes a packet at once, if that costs no more than a copy: `head` (the bytes of the wire, eight in
    /// each word) and then `data` are all of it, and both are free when this returns. It goes behind what was
    /// posted before, needs no [`Driver::flush`], and is not reported as sent. False: nothing was done, and
    /// it is to be posted instead. Only asked with [`Limits::passes`].
    fn pass(&mut self, to: PeerId, head: &[u64], data: &Segments) -> bool {
        let _ = (to, head, data);
        false
    }
    /// As [`Driver::pass`], for somebody who does nothing else meanwhile: lends a packet to the peer, if he
    /// waits for it just now and it pays that he fetches the data himself. Neither side charges for what
    /// nobody has to keep, and the packet may be longer than others. Only asked for data of
    /// [`Limits::lends`] bytes.
    fn lend(&mut self, to: PeerId, head: &[u64], data: &Segments) -> bool {
        let _ = (to, head, data);
        false
    }
    /// Sends a packet with a call of its own, for somebody who waits: `head` and `data` as for
    /// [`Driver::pass`], `number` as in [`Order::Packet`]. It goes behind what was posted before.
    fn send_now(&mut self, to: PeerId, number: u32, head: &[u64], data: &Segments) -> AtOnce {
        let _ = (to, number, head, data);
        AtOnce::Refused
    }
    /// Sends a packet, header included, and right behind it a chunk with [`Key::PUSH`] ([`Order::Chunk`]),
    /// with a call of its own, for somebody who waits, or for anybody with [`Limits::passes`]. The packet's
    /// number is the one before the chunk's. It goes behind what was posted before; `packet` is free when
    /// this returns, and so is the chunk's memory unless the network took but a part. Only asked where
    /// [`Limits::push`] is not zero.
    fn push_now(&mut self, packet: &[u8], chunk: Order) -> AtOnce {
        let _ = (packet, chunk);
        AtOnce::Refused
    }
    /// Takes an order. What it costs may be put off until [`Driver::flush`].
    fn post(&mut self, order: Order);
    /// Everything posted so far shall leave; called once after a series of posts.
    fn flush(&mut self) {}
    /// Looks at the network once and reports what happened. Does not wait.
    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>));
    /// Looks for the next packet of one peer and at nothing else, for somebody who waits for it: cheaper than
    /// [`Driver::poll`], which is called now and then all the same. `take` is given header and frames, and
    /// answers whether it takes the packet; one that it does not take is reported by the next poll.
    fn fetch(&mut self, from: PeerId, take: &mut dyn FnMut(&[u8]) -> bool) -> Fetched {
        let _ = (from, take);
        Fetched::Elsewhere
    }
    /// After [`Fetched::Lent`]: lets a packet be taken whose data is still in its sender's memory. `take` is
    /// given what goes before the data, how long that is, and what puts the data into memory of that length
    /// (false: it cannot be had, and nothing has been taken), and answers whether it has taken the packet.
    /// One that it does not take its sender passes or posts. Whether one was taken.
    fn borrow(&mut self, from: PeerId, take: &mut TakeLent<'_>) -> bool {
        let _ = (from, take);
        false
    }
    /// A file descriptor that becomes readable when [`Driver::poll`] has something to do, for those who
    /// want to sleep; negative: nothing ever happens here that was not posted; none: only polling helps.
    /// Asked for before each sleep, so that a driver can prepare for it; and again if somebody else has
    /// called [`Driver::poll`] meanwhile, which ends what was prepared.
    fn descriptor(&self) -> Option<i32> {
        None
    }
    /// A file descriptor that becomes readable when a peer wants a link, for somebody who sleeps long while
    /// nothing is in flight; the next poll looks who it is. Unlike [`Driver::descriptor`] it prepares
    /// nothing: peers that have a link are not asked to wake anybody. None or negative: nobody is woken.
    fn door(&mut self) -> Option<i32> {
        self.descriptor()
    }
    /// What came so far and was not taken: from strangers, with a wrong tag, twice, cut short.
    fn dropped(&self) -> u64 {
        0
    }
    /// How an address of this rail is told to the peers, as text without spaces; empty: none is needed.
    fn address(&self) -> String {
        String::new()
    }
    /// Tells the address of a peer as its rail's [`Driver::address`] said it; false: this rail cannot
    /// reach that address. One peer may be told several times, with the addresses of its rails.
    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let _ = (peer, rail, address);
        false
    }
    /// Told before [`Driver::limits`] is asked for and before the first peer is told: this node has fewer
    /// cores than processes that use this driver. A peer who does nothing just now may be one that has none,
    /// and what this one saves is what others get.
    fn crowd(&mut self) {}
}
