//! Parser of the stream of one peer: turns it into packets and bytes in receive regions. This module has no
//! socket.

use super::padding;
use super::scratch::{Kept, Scratch};
use crate::regions::Regions;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::Event;
use nmad_wire::{ChunkHeader, Control, Header, Kind, Malformed};

/// Spare buffers for partial packets that a rail keeps.
pub const POOLED: usize = 8;

/// The state of the packet or chunk in progress.
#[derive(Debug, Default)]
pub enum Stream {
    /// No byte of the next packet has arrived.
    #[default]
    Between,
    /// The first bytes of a packet or of the headers and padding before a chunk's data; never all of them.
    Partial(Vec<u8>),
    /// A chunk of which this number of bytes has arrived; never all of them.
    Chunk(ChunkHeader, u32),
    /// A pushed chunk whose receive region is not known yet.
    Held(Held),
    /// Bytes that were read together with the end of a chunk, for the next poll.
    Kept(Kept),
}

/// A pushed chunk, and the bytes that arrived behind its header.
#[derive(Debug)]
pub struct Held {
    header: ChunkHeader,
    behind: Kept,
    accepted: bool,
}

/// The parts of the rail that a stream uses.
pub struct Place<'a> {
    /// The peer of the stream.
    pub peer: PeerId,
    /// Destinations of chunks.
    pub regions: &'a Regions,
    /// Spare buffers for partial packets, so that an idle link holds none.
    pub pool: &'a mut Vec<Vec<u8>>,
    /// Longest packet in bytes.
    pub longest: usize,
}

/// Reason for which the content of a stream ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The peer violated the format.
    Malformed(Malformed),
    /// A record of an encrypted link has a wrong tag: the peer did not send it.
    Forged,
    /// The peer closed the link, with a reason.
    Refused(String),
}

impl From<Malformed> for Broken {
    fn from(malformed: Malformed) -> Self {
        Broken::Malformed(malformed)
    }
}

impl Stream {
    /// Parses the next bytes: reports complete packets and chunks, stores a partial one. Returns the number
    /// of bytes taken. It stops behind the header of a held pushed chunk and behind the end of a chunk; the
    /// caller [keeps](Stream::keep) the rest for the next poll. An application may wait for the end of the
    /// chunk and then post the receive for the next message, so that it needs no temporary memory.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, Broken> {
        let mut left = bytes;
        while !left.is_empty() {
            left = match self {
                Stream::Between => self.begin(left, place, report)?,
                Stream::Partial(_) => self.complete(left, place, report)?,
                Stream::Chunk(..) => {
                    left = self.fill(left, place, report)?;
                    break;
                }
                Stream::Held(_) | Stream::Kept(_) => break,
            };
        }
        Ok(bytes.len() - left.len())
    }

    /// Keeps the bytes that [`Stream::feed`] has not taken.
    pub fn keep(&mut self, left: Kept) {
        match self {
            Stream::Held(held) => held.behind = left,
            _ => *self = Stream::Kept(left),
        }
    }

    /// Returns whether the stream can continue without a read.
    pub fn has_kept(&self) -> bool {
        matches!(self, Stream::Kept(_))
    }

    /// Assigns a receive region to the held chunk.
    pub fn accept(&mut self, region: RegionId, key: Key) {
        if let Stream::Held(held) = self {
            (held.header.region, held.header.key, held.accepted) = (region.0, key.0, true);
        }
    }

    /// Continues with kept bytes, or with a pushed chunk that was accepted. False: the chunk is still held,
    /// and the caller must not read.
    pub fn resume(
        &mut self,
        scratch: &mut Scratch,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, Broken> {
        let mut kept = match std::mem::take(self) {
            Stream::Held(Held { header, behind, accepted: true }) => {
                self.land(header, place, report)?;
                behind
            }
            Stream::Kept(kept) => kept,
            other => {
                *self = other;
                return Ok(!matches!(self, Stream::Held(_)));
            }
        };
        let taken = self.feed(kept.bytes(), place, report)?;
        if taken < kept.bytes().len() {
            kept.advance(taken);
            self.keep(kept);
        } else {
            scratch.give_back(kept);
        }
        Ok(!matches!(self, Stream::Held(_)))
    }

    /// The memory for the rest of the chunk in progress; none if there is no chunk, or its receive region
    /// is not open. Looked up for each read, since a receive region may be closed in between.
    pub fn target(&self, place: &Place<'_>) -> Result<Option<Segments>, Malformed> {
        match self {
            Stream::Chunk(header, done) => rest(header, *done, place),
            _ => Ok(None),
        }
    }

    /// Records bytes that were read directly into the chunk's memory.
    pub fn filled(&mut self, len: u32, place: &Place<'_>, report: &mut dyn FnMut(Event<'_>)) {
        let Stream::Chunk(header, done) = self else { return };
        *done += len;
        if *done < header.len {
            return;
        }
        let header = *header;
        let kept = matches!(rest(&header, 0, place), Ok(Some(_)));
        *self = Stream::Between;
        report(Event::Landed {
            from: place.peer,
            number: header.number,
            ack: header.ack,
            region: RegionId(header.region),
            offset: header.offset,
            len: u64::from(header.len),
            kept,
        });
    }

    /// The partial packet and the number of its missing bytes, as far as known.
    pub fn partial(&mut self, longest: usize) -> Result<Option<(&mut Vec<u8>, usize)>, Malformed> {
        let Stream::Partial(partial) = self else { return Ok(None) };
        let whole = whole(partial, longest)?.map_or(Header::LEN, |(_, len)| len);
        let missing = whole - partial.len();
        Ok(Some((partial, missing)))
    }

    /// Continues after bytes were appended to the partial packet.
    pub fn grown(&mut self, place: &mut Place<'_>, report: &mut dyn FnMut(Event<'_>)) -> Result<(), Broken> {
        let Stream::Partial(partial) = self else { return Ok(()) };
        match whole(partial, place.longest)? {
            Some((header, len)) if len == partial.len() => {
                let mut packet = std::mem::take(partial);
                *self = Stream::Between;
                let taken = self.take(header, &packet, place, report);
                if place.pool.len() < POOLED {
                    packet.clear();
                    place.pool.push(packet);
                }
                taken
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn begin<'b>(
        &mut self,
        bytes: &'b [u8],
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<&'b [u8], Broken> {
        match whole(bytes, place.longest)? {
            Some((header, len)) if len <= bytes.len() => {
                let (packet, rest) = bytes.split_at(len);
                self.take(header, packet, place, report)?;
                Ok(rest)
            }
            _ => {
                let mut partial = place.pool.pop().unwrap_or_default();
                partial.extend_from_slice(bytes);
                *self = Stream::Partial(partial);
                Ok(&[])
            }
        }
    }

    fn complete<'b>(
        &mut self,
        bytes: &'b [u8],
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<&'b [u8], Broken> {
        let Some((partial, missing)) = self.partial(place.longest)? else { return Ok(bytes) };
        let (head, rest) = bytes.split_at(missing.min(bytes.len()));
        partial.extend_from_slice(head);
        self.grown(place, report)?;
        Ok(rest)
    }

    fn fill<'b>(
        &mut self,
        bytes: &'b [u8],
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<&'b [u8], Broken> {
        let Stream::Chunk(header, done) = self else { return Ok(bytes) };
        let (head, tail) = bytes.split_at(((header.len - *done) as usize).min(bytes.len()));
        if let Some(into) = rest(header, *done, place)? {
            into.write(0, head);
        }
        self.filled(head.len() as u32, place, report);
        Ok(tail)
    }

    /// Begins the data of a chunk whose header is complete and whose receive region is known.
    fn land(
        &mut self,
        chunk: ChunkHeader,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Malformed> {
        rest(&chunk, 0, place)?;
        *self = Stream::Chunk(chunk, 0);
        self.filled(0, place, report);
        Ok(())
    }

    /// Handles a whole packet, or the whole header of a chunk.
    #[inline]
    fn take(
        &mut self,
        header: Header,
        packet: &[u8],
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Broken> {
        match header.kind {
            Kind::Packet | Kind::Notice => report(Event::Arrived { from: place.peer, packet }),
            Kind::Chunk => {
                let chunk = ChunkHeader::decode(header, packet)?;
                if chunk.key == Key::PUSH.0 {
                    *self = Stream::Held(Held { header: chunk, behind: Kept::default(), accepted: false });
                    let (request, len) = (chunk.region, u64::from(chunk.len));
                    report(Event::Pushed { from: place.peer, request, len });
                } else {
                    self.land(chunk, place, report)?;
                }
            }
            Kind::Control => match Control::decode(packet)? {
                Control::Refuse(refusal) => return Err(Broken::Refused(refusal.text.into())),
                _ => return Err(Malformed("opening message on an open link").into()),
            },
        }
        Ok(())
    }
}

/// The header at the beginning of `bytes`, and the number of bytes that must arrive together; none: unknown
/// so far.
#[inline]
fn whole(bytes: &[u8], longest: usize) -> Result<Option<(Header, usize)>, Malformed> {
    if bytes.len() < Header::LEN {
        return Ok(None);
    }
    let header = Header::decode(bytes)?;
    match header.kind {
        Kind::Chunk => {
            let len = header.len.saturating_sub(ChunkHeader::LEN as u32);
            Ok(Some((header, padding::ahead(len))))
        }
        _ if header.len as usize > longest => Err(Malformed("packet longer than this rail takes")),
        _ => Ok(Some((header, header.len as usize))),
    }
}

/// Returns whether these bytes are exactly one packet.
#[inline]
pub fn is_packet(bytes: &[u8]) -> bool {
    let alone = |header: Header| header.kind == Kind::Packet && header.len as usize == bytes.len();
    bytes.len() >= Header::LEN && Header::decode(bytes).is_ok_and(alone)
}

fn rest(chunk: &ChunkHeader, done: u32, place: &Place<'_>) -> Result<Option<Segments>, Malformed> {
    let (region, key) = (RegionId(chunk.region), Key(chunk.key));
    let (offset, left) = (chunk.offset + u64::from(done), u64::from(chunk.len - done));
    place
        .regions
        .find(place.peer, region, key, offset, left)
        .map_err(|_| Malformed("chunk past the end of its region"))
}

#[cfg(test)]
mod tests {
    use super::super::padding;
    use super::*;
    use crate::conformance::memory::Memory;
    use nmad_wire::Refusal;
    use nmad_wire::RefusalCode;

    const PEER: PeerId = PeerId(4);

    fn packet(number: u32, len: usize) -> Vec<u8> {
        let header = Header { kind: Kind::Packet, len: len as u32, number, ack: 0 };
        let mut bytes = header.encode().to_vec();
        bytes.resize(len, number as u8);
        bytes
    }

    fn chunk(number: u32, key: Key, offset: u64, data: &[u8]) -> Vec<u8> {
        let len = data.len() as u32;
        let header = ChunkHeader { number, ack: 3, region: 9, key: key.0, offset, len };
        [&header.encode()[..], padding::bytes(len), data].concat()
    }

    /// Feeds the pieces one after the other; returns a summary of each event.
    fn feed(regions: &Regions, pieces: &[&[u8]]) -> Result<Vec<String>, Broken> {
        let mut seen = Vec::new();
        let (mut stream, mut pool) = (Stream::default(), Vec::new());
        let mut place = Place { peer: PEER, regions, pool: &mut pool, longest: 1000 };
        for piece in pieces {
            let mut left = *piece;
            while !left.is_empty() {
                let taken = stream.feed(left, &mut place, &mut |event| seen.push(told(&event)))?;
                left = &left[taken..];
                let ended = seen.last().is_some_and(|last| last.starts_with("chunk"));
                assert!(left.is_empty() || ended, "only the end of a chunk stops it");
            }
        }
        Ok(seen)
    }

    fn told(event: &Event<'_>) -> String {
        match event {
            Event::Arrived { packet, .. } => {
                let number = Header::decode(packet).expect("a header").number;
                assert!(packet[Header::LEN..].iter().all(|byte| *byte == number as u8), "intact");
                format!("packet {number} {}", packet.len())
            }
            Event::Landed { number, len, kept, .. } => format!("chunk {number} {len} {kept}"),
            other => panic!("not expected: {other:?}"),
        }
    }

    #[test]
    fn bytes_behind_a_chunk_wait_for_the_next_poll() {
        let (regions, mut scratch, mut pool) = (Regions::default(), Scratch::default(), Vec::new());
        let mut place = Place { peer: PEER, regions: &regions, pool: &mut pool, longest: 1000 };
        let pushed = chunk(1, Key::PUSH, 0, &[7; 100]);
        let (mut stream, mut polls) = (Stream::default(), Vec::new());
        let bytes = [&pushed[..], &packet(2, 20), &pushed, &packet(3, 30)].concat();
        let events = std::cell::RefCell::new(Vec::new());
        let mut report = |event: Event<'_>| {
            let pushed = matches!(event, Event::Pushed { .. });
            events.borrow_mut().push(if pushed { "pushed".into() } else { told(&event) });
        };
        scratch[..bytes.len()].copy_from_slice(&bytes);
        let taken = stream.feed(&bytes, &mut place, &mut report).expect("well formed");
        stream.keep(scratch.detach(taken..bytes.len()));
        polls.push(events.take());
        for _ in 0..4 {
            stream.accept(RegionId(9), Key(77));
            stream.resume(&mut scratch, &mut place, &mut report).expect("well formed");
            polls.push(events.take());
        }
        let expected: [&[&str]; 5] = [
            &["pushed"],
            &["chunk 1 100 false"],
            &["packet 2 20", "pushed"],
            &["chunk 1 100 false"],
            &["packet 3 30"],
        ];
        assert_eq!(polls, expected);
    }

    #[test]
    fn a_stream_means_the_same_wherever_it_is_cut() {
        let data = Memory::pattern(200, 1);
        for first in 0..600 {
            let target = Memory::zeroed(300);
            let mut regions = Regions::default();
            let key = regions.open(RegionId(9), PEER, target.segments());
            let whole = [
                packet(1, 16),
                packet(2, 100),
                chunk(3, key, 50, data.bytes()),
                packet(4, 17),
                chunk(5, Key(77), 0, data.bytes()),
                chunk(6, key, 300, &[]),
                packet(7, 30),
            ]
            .concat();
            let (head, tail) = whole.split_at(first.min(whole.len()));
            let (middle, tail) = tail.split_at((1 + first % 7).min(tail.len()));
            let seen = feed(&regions, &[head, middle, tail]).expect("well formed");
            let expected = [
                "packet 1 16",
                "packet 2 100",
                "chunk 3 200 true",
                "packet 4 17",
                "chunk 5 200 false",
                "chunk 6 0 true",
                "packet 7 30",
            ];
            assert_eq!(seen, expected, "cut at {first}");
            assert!(&target.bytes()[50..250] == data.bytes(), "cut at {first}");
        }
    }

    #[test]
    fn padding_is_not_data() {
        let data = Memory::pattern(20_000, 2);
        let target = Memory::zeroed(20_000);
        let mut regions = Regions::default();
        let key = regions.open(RegionId(9), PEER, target.segments());
        let whole = [chunk(1, key, 0, data.bytes()), packet(2, 20)].concat();
        for cut in [1, 20, 39, 40, 41, 100, 127, 128, 129, 5000] {
            let seen = feed(&regions, &[&whole[..cut], &whole[cut..]]).expect("well formed");
            assert_eq!(seen, ["chunk 1 20000 true", "packet 2 20"], "cut at {cut}");
            assert!(target.bytes() == data.bytes(), "cut at {cut}");
        }
    }

    #[test]
    fn invalid_content_ends_the_stream() {
        let target = Memory::zeroed(100);
        let mut regions = Regions::default();
        let key = regions.open(RegionId(9), PEER, target.segments());
        let refusal = Control::Refuse(Refusal { code: RefusalCode::Rank, text: "go away" }).encode();
        let broken = |bytes: &[u8]| feed(&regions, &[bytes]).expect_err("malformed");
        assert_eq!(broken(&refusal), Broken::Refused("go away".into()));
        for (bytes, what) in [
            (chunk(1, key, 1, &[0; 100]), "past the end"),
            (packet(1, 1001), "longer than"),
            (b"GET / HTTP/1.1\r\n".to_vec(), "unknown kind"),
        ] {
            let Broken::Malformed(Malformed(why)) = broken(&bytes) else { panic!("malformed") };
            assert!(why.contains(what), "{why}");
        }
        assert!(target.bytes().iter().all(|byte| *byte == 0), "nothing was touched");
    }
}
