//! Reassembly of packets and chunks from datagrams.
//!
//! A train that loses some of its datagrams is sent again as a whole, with the same number. Parts that
//! arrived the first time count, so the second time only the missing ones have to arrive. Parts of a chunk
//! are written into its receive region at once. The first part has the header of the whole order: without
//! it, other parts are dropped.

use super::header::Datagram;
use super::strays::Stray;
use super::{CHUNK, PACKET};
use crate::regions::Regions;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::Event;
use nmad_wire::{ChunkHeader, Header, Kind};

/// Incomplete orders at once; the engine has no more in flight on a lossy link.
const SLOTS: usize = 64;
/// Words of the bitmap of an order's parts.
const WORDS: usize = 4;

/// The incomplete orders of one link.
#[derive(Debug)]
pub struct Assemblies {
    /// Slots, indexed by the number of the order.
    slots: Vec<Option<Assembly>>,
    buffers: Vec<Vec<u8>>,
    /// Slots in use.
    expecting: usize,
}

#[derive(Debug)]
struct Assembly {
    number: u32,
    total: usize,
    /// Bytes of each part except the last, and how often the sender had shortened its parts.
    part: usize,
    shortened: u8,
    /// Bitmap of the parts that have arrived.
    have: [u64; WORDS],
    missing: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    Packet(Vec<u8>),
    Chunk(ChunkHeader),
}

/// Destination of parts, for the duration of one read.
pub struct Place<'a> {
    /// The sender.
    pub peer: PeerId,
    /// The rail's receive regions.
    pub regions: &'a Regions,
    /// Number and memory of the last chunk.
    pub last: Option<(u32, Option<Segments>)>,
}

impl Place<'_> {
    /// The memory of a chunk; none: its receive region is not open.
    fn memory(&mut self, chunk: &ChunkHeader) -> Result<Option<&Segments>, Stray> {
        if self.last.as_ref().is_none_or(|(number, _)| *number != chunk.number) {
            let (region, key) = (RegionId(chunk.region), Key(chunk.key));
            let found = self.regions.find(self.peer, region, key, chunk.offset, u64::from(chunk.len));
            self.last = Some((chunk.number, found.map_err(|_| Stray::Malformed)?));
        }
        Ok(self.last.as_ref().and_then(|(_, memory)| memory.as_ref()))
    }
}

impl Default for Assemblies {
    fn default() -> Self {
        Assemblies { slots: (0..SLOTS).map(|_| None).collect(), buffers: Vec::new(), expecting: 0 }
    }
}

impl Assemblies {
    /// Takes part `datagram.index` of an order, and reports the order if it is complete then.
    ///
    /// # Errors
    /// The part belongs to no order that this rail could receive.
    #[inline]
    pub fn take(
        &mut self,
        datagram: &Datagram,
        data: &[u8],
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stray> {
        if datagram.place() == 0 {
            let header = Header::decode(data).map_err(|_| Stray::Malformed)?;
            if header.number != datagram.number {
                return Err(Stray::Malformed);
            }
            if header.len as usize == data.len() {
                return self.whole(header, data, place, report);
            }
            self.begin(header, data, datagram.shortened())?;
        }
        let Some(assembly) = self.slots[datagram.number as usize % SLOTS].as_mut() else { return Ok(()) };
        if assembly.number != datagram.number || assembly.shortened != datagram.shortened() {
            return Ok(());
        }
        assembly.fill(datagram.place(), data, place)?;
        if assembly.missing == 0 {
            self.finish(datagram.number, place, report)?;
        }
        Ok(())
    }

    /// Returns whether any order is incomplete.
    #[inline]
    pub fn is_expecting(&self) -> bool {
        self.expecting > 0
    }

    /// Handles an order that fits into one datagram.
    #[inline]
    fn whole(
        &mut self,
        header: Header,
        data: &[u8],
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stray> {
        match header.kind {
            Kind::Packet | Kind::Notice => report(Event::Arrived { from: place.peer, packet: data }),
            Kind::Chunk => {
                let chunk = ChunkHeader::decode(header, data).map_err(|_| Stray::Malformed)?;
                // A retransmission without data also completes an order that was received in parts.
                self.forget(chunk.number);
                place.last = None;
                let memory = place.memory(&chunk)?;
                let kept = memory.map(|memory| memory.write(0, &data[ChunkHeader::LEN..])).is_some();
                report(landed(place.peer, &chunk, kept));
            }
            Kind::Control => return Err(Stray::Malformed),
        }
        Ok(())
    }

    /// Handles the first part of an order, which may be repeated. Its length is that of the other parts.
    /// Parts that were cut longer before are dropped.
    fn begin(&mut self, header: Header, data: &[u8], shortened: u8) -> Result<(), Stray> {
        let (number, total, part) = (header.number, header.len as usize, data.len());
        let slot = &self.slots[number as usize % SLOTS];
        let known = |old: &Assembly| old.number == number && old.total == total && old.shortened >= shortened;
        if slot.as_ref().is_some_and(known) {
            return Ok(());
        }
        let count = total.div_ceil(part);
        if count > WORDS * 64 || total <= part {
            return Err(Stray::Malformed);
        }
        let what = match header.kind {
            Kind::Packet if total <= PACKET => {
                let mut buffer = self.buffers.pop().unwrap_or_default();
                buffer.resize(total, 0);
                What::Packet(buffer)
            }
            Kind::Chunk if total <= ChunkHeader::LEN + CHUNK => {
                What::Chunk(ChunkHeader::decode(header, data).map_err(|_| Stray::Malformed)?)
            }
            _ => return Err(Stray::Malformed),
        };
        self.forget_slot(number);
        let assembly = Assembly { number, total, part, shortened, have: [0; WORDS], missing: count, what };
        self.slots[number as usize % SLOTS] = Some(assembly);
        self.expecting += 1;
        Ok(())
    }

    fn finish(
        &mut self,
        number: u32,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stray> {
        let Some(assembly) = self.slots[number as usize % SLOTS].take() else { return Ok(()) };
        self.expecting -= 1;
        match assembly.what {
            What::Packet(buffer) => {
                report(Event::Arrived { from: place.peer, packet: &buffer });
                self.buffers.push(buffer);
            }
            What::Chunk(chunk) => {
                // Keys are never reused: if the region is open now, it was open for all parts.
                let kept = place.memory(&chunk)?.is_some();
                report(landed(place.peer, &chunk, kept));
            }
        }
        Ok(())
    }

    fn forget(&mut self, number: u32) {
        let slot = &self.slots[number as usize % SLOTS];
        if slot.as_ref().is_some_and(|old| old.number == number) {
            self.forget_slot(number);
        }
    }

    fn forget_slot(&mut self, number: u32) {
        let Some(old) = self.slots[number as usize % SLOTS].take() else { return };
        self.expecting -= 1;
        if let What::Packet(buffer) = old.what {
            self.buffers.push(buffer);
        }
    }
}

impl Assembly {
    /// Writes a part to its destination, unless it has arrived before.
    fn fill(&mut self, index: usize, data: &[u8], place: &mut Place<'_>) -> Result<(), Stray> {
        let at = index * self.part;
        if at >= self.total || data.len() != self.part.min(self.total - at) {
            return Err(Stray::Malformed);
        }
        let (word, bit) = (&mut self.have[index / 64], 1u64 << (index % 64));
        if *word & bit != 0 {
            return Ok(());
        }
        match &mut self.what {
            What::Packet(buffer) => buffer[at..at + data.len()].copy_from_slice(data),
            What::Chunk(chunk) => {
                let (at, data) = match at.checked_sub(ChunkHeader::LEN) {
                    Some(at) => (at, data),
                    None => (0, &data[ChunkHeader::LEN..]),
                };
                if let Some(memory) = place.memory(chunk)? {
                    memory.write(at as u64, data);
                }
            }
        }
        *word |= bit;
        self.missing -= 1;
        Ok(())
    }
}

fn landed(from: PeerId, chunk: &ChunkHeader, kept: bool) -> Event<'static> {
    let &ChunkHeader { number, ack, region, offset, len, .. } = chunk;
    Event::Landed { from, number, ack, region: RegionId(region), offset, len: u64::from(len), kept }
}

#[cfg(test)]
mod tests {
    use super::super::header::index;
    use super::*;

    /// Cuts a packet into parts with their headers.
    fn parts(packet: &[u8], part: usize, shortened: u8) -> Vec<(Datagram, &[u8])> {
        let datagram =
            |(place, data): (usize, &[u8])| Datagram::part(0, 9, index(shortened, place), data.len());
        packet.chunks(part).enumerate().map(|(place, data)| (datagram((place, data)), data)).collect()
    }

    #[test]
    fn parts_that_were_cut_longer_do_not_fit_between_shorter_ones() {
        const LEN: usize = 1040;
        let header = Header { kind: Kind::Packet, len: LEN as u32, number: 9, ack: 0 };
        let mut packet = Vec::from(header.encode());
        packet.extend((Header::LEN..LEN).map(|at| (at * 31 / 8) as u8));
        // The last of the long parts is as long as a short one.
        let (long, short) = (parts(&packet, 400, 0), parts(&packet, 240, 1));
        assert_eq!(long[2].1.len(), short[0].1.len());
        let (regions, mut dice) = (Regions::default(), 1_u64);
        for _ in 0..2000 {
            let mut mixed = [&long[..], &short[..]].concat();
            mixed.sort_by_key(|_| {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                dice >> 33
            });
            let (mut assemblies, mut whole) = (Assemblies::default(), 0);
            for (datagram, data) in mixed.iter().chain(&short) {
                let mut place = Place { peer: PeerId(1), regions: &regions, last: None };
                let taken = assemblies.take(datagram, data, &mut place, &mut |event| {
                    assert!(matches!(event, Event::Arrived { packet: found, .. } if found == packet));
                    whole += 1;
                });
                assert_eq!(taken, Ok(()));
            }
            assert!(whole > 0, "it arrives");
        }
    }
}
