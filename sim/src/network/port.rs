//! The port of one host on one fabric: arrived cargo, and the receive regions that are open on it.

use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key as PushKey, Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::Order;
use std::collections::{BTreeMap, VecDeque};

/// What a port holds for its driver to report.
#[derive(Debug)]
pub enum Inbound {
    /// The link is open.
    Up {
        /// To whom.
        peer: usize,
        /// Number of the rail at the peer's side.
        remote: u8,
    },
    /// A packet.
    Packet {
        /// Who sent it.
        from: usize,
        /// Header and frames.
        bytes: Vec<u8>,
    },
    /// A chunk; its bytes are still here unless the interface wrote them to the receive region itself.
    Chunk {
        /// Who sent it.
        from: usize,
        /// Everything but the bytes.
        head: ChunkHead,
        /// The bytes, until they are in the receive region.
        bytes: Vec<u8>,
        /// They were written on arrival, and whether a receive region took them.
        written: Option<bool>,
    },
    /// An order has left.
    Sent {
        /// To whom.
        to: usize,
        /// Its number.
        number: u32,
        /// The packet, given back.
        packet: Option<Packet>,
    },
    /// The interface carries nothing any more, or carries again.
    Carrier {
        /// To whom.
        peer: usize,
        /// What a driver would say; none: it carries.
        lost: Option<String>,
    },
    /// Part of something has arrived.
    Moved {
        /// Its sender.
        from: usize,
    },
    /// The link is gone.
    Lost {
        /// To whom.
        peer: usize,
        /// What a driver would say.
        why: String,
        /// Orders that had not left.
        unsent: Vec<Order>,
    },
}

/// What a chunk carries besides its bytes.
#[derive(Debug, Clone, Copy)]
pub struct ChunkHead {
    /// Number on the link.
    pub number: u32,
    /// Acknowledgement of the other direction.
    pub ack: u32,
    /// The receiver's receive region.
    pub region: RegionId,
    /// Its key on this rail.
    pub key: u64,
    /// Where in the receive region.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

#[derive(Debug)]
struct Region {
    key: u64,
    from: usize,
    into: Segments,
}

#[derive(Debug)]
pub(super) struct Port {
    /// Number of this rail on its host.
    pub(super) number: u8,
    pub(super) inbox: VecDeque<Inbound>,
    /// When the sending and the receiving half are free.
    pub(super) tx_free: u64,
    pub(super) rx_free: u64,
    /// Where machines have a bus: flights that are to leave one after the other, and when each is ready.
    pub(super) queue: VecDeque<(u64, u64)>,
    /// When each chunk was at the disposal of this host, and its bytes.
    pub(super) landed: Vec<(u64, u64)>,
    /// Orders posted and not yet reported as sent, over all links.
    pub(super) outstanding: usize,
    regions: BTreeMap<RegionId, Region>,
}

impl Port {
    pub(super) fn new(number: u8) -> Port {
        Port {
            number,
            inbox: VecDeque::new(),
            tx_free: 0,
            rx_free: 0,
            landed: Vec::new(),
            queue: VecDeque::new(),
            outstanding: 0,
            regions: BTreeMap::new(),
        }
    }
}

impl super::Network {
    /// Makes memory reachable on a port; `None` if that receive region is already open there.
    pub fn open(
        &mut self,
        (fabric, host): (usize, usize),
        region: RegionId,
        from: PeerId,
        into: Segments,
    ) -> Option<u64> {
        let key = self.next_key;
        self.next_key += 1;
        let entry = Region { key, from: from.0 as usize, into };
        self.port(fabric, host).regions.insert(region, entry).is_none().then_some(key)
    }

    /// Forgets a receive region; says whether it was open.
    pub fn close(&mut self, fabric: usize, host: usize, region: RegionId) -> bool {
        self.port(fabric, host).regions.remove(&region).is_some()
    }

    /// Bytes of chunks that landed at a host since `start`, and when the last of them had.
    pub fn landed_since(&mut self, fabric: usize, host: usize, start: u64) -> (u64, u64) {
        let since = self.port(fabric, host).landed.iter().filter(|(at, _)| *at >= start);
        since.fold((0, start), |(bytes, last), &(at, len)| (bytes + len, last.max(at)))
    }

    /// Receive regions that are open anywhere on living hosts: fabric, host, receive region.
    pub fn open_regions(&self) -> impl Iterator<Item = (usize, usize, RegionId)> + '_ {
        let living = self.ports().filter(|&(_, host, _)| !self.doing[host].dead);
        living.flat_map(|(fabric, host, port)| port.regions.keys().map(move |&id| (fabric, host, id)))
    }

    /// The next thing that a port has to report. Bytes of chunks are in their receive region afterwards.
    pub fn next_inbound(&mut self, fabric: usize, host: usize) -> Option<Inbound> {
        let mut next = self.port(fabric, host).inbox.pop_front()?;
        if let Inbound::Chunk { from, head, bytes, written } = &mut next
            && written.is_none()
            && head.key != PushKey::PUSH.0
        {
            *written = Some(self.write_chunk(fabric, host, *from, head, bytes));
        }
        Some(next)
    }

    /// What a port has to report next, if it is a packet of this sender.
    pub fn next_packet(&mut self, fabric: usize, host: usize, from: usize) -> Option<Vec<u8>> {
        match self.port(fabric, host).inbox.front() {
            Some(Inbound::Packet { from: sender, bytes }) if *sender == from => Some(bytes.clone()),
            _ => None,
        }
    }

    /// A pushed chunk goes to this receive region, and all that was held behind it follows.
    pub fn release(&mut self, fabric: usize, host: usize, region: RegionId, mut held: VecDeque<Inbound>) {
        let key = self.port(fabric, host).regions.get(&region).map_or(0, |region| region.key);
        if let Some(Inbound::Chunk { head, .. }) = held.front_mut() {
            (head.region, head.key) = (region, key);
        }
        let inbox = &mut self.port(fabric, host).inbox;
        held.append(inbox);
        *inbox = held;
        let now = self.local_ns(host);
        self.wake(host, now);
    }

    /// Things that a port has to report.
    pub fn inbound(&mut self, fabric: usize, host: usize) -> usize {
        self.port(fabric, host).inbox.len()
    }

    pub(super) fn write_chunk(
        &mut self,
        fabric: usize,
        host: usize,
        from: usize,
        head: &ChunkHead,
        bytes: &[u8],
    ) -> bool {
        let Some(region) = self.port(fabric, host).regions.get(&head.region) else { return false };
        if region.key != head.key || region.from != from {
            let text = format!(
                "chunk of h{from} for region {:#x} of h{host} has key {}, the region is h{}'s with key {}",
                head.region.0, head.key, region.from, region.key
            );
            self.oracle.object(text);
            return false;
        }
        let room = region.into.len();
        if region.into.write(head.offset, bytes) < bytes.len() {
            let text = format!(
                "chunk of {} B at {} of h{from} reaches beyond region {:#x} of h{host} ({room} B)",
                bytes.len(),
                head.offset,
                head.region.0
            );
            self.oracle.object(text);
        }
        true
    }
}
