//! Records: the stream of an encrypted link, in encrypted and authenticated pieces.
//!
//! A record is the length of its data (4 B), the encrypted data, and a tag that covers both. The numbers of
//! records are not sent, since a stream keeps their order. If records are repeated, left out, reordered or
//! sent back to their sender, the receiver expects another number, so the tag is wrong and the link ends. A
//! record ends behind the header of a chunk, and another one behind its data: so the bytes behind a chunk can
//! stay encrypted until the next poll.

use super::outgoing::Outgoing;
use super::read::{AHEAD, Ended, PacketPoll, ReadResult, nothing, poll_once};
use super::scratch::{Kept, Scratch};
use super::stream::{Broken, Place, Stream, is_packet};
use super::sys;
use nmad_engine::transfer::driver::{Event, Order};
use nmad_seal::{Sealer, TAG, Unsealer};
use nmad_wire::Malformed;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Bytes before the data of a record.
pub const HEAD: usize = 4;
/// Longest data of a record in bytes, as in TLS. A record costs some 100 ns beside the 4 us for its data, and
/// the incomplete one at the end of a read, 8 KiB on average, is copied once more.
pub const LONGEST: usize = 16 << 10;
/// Bytes that are encrypted before a system call sends them: few enough to stay in the caches.
const AT_ONCE: usize = 4 * (HEAD + LONGEST + TAG);

/// Stands for the end of an order whose last record is not complete.
const UNKNOWN: usize = usize::MAX;

/// Encrypts the stream that one side sends.
#[derive(Debug)]
pub struct Sealing {
    sealer: Sealer,
    /// Records that the kernel has not taken entirely.
    bytes: Vec<u8>,
    /// Number of bytes of these records that the kernel has taken.
    written: usize,
    /// Orders whose last byte is in these records, each with the end of its last record.
    orders: VecDeque<(usize, Order)>,
}

impl Sealing {
    /// Creates the sending side of a new link.
    pub fn new(sealer: Sealer) -> Sealing {
        Sealing { sealer, bytes: Vec::new(), written: 0, orders: VecDeque::new() }
    }

    /// Returns whether the kernel has taken all records.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns a measure of progress: it changes with each successful write.
    pub fn written(&self) -> (usize, u64) {
        (self.orders.len(), self.written as u64)
    }

    /// Removes and returns the orders that the kernel has not taken entirely.
    pub fn take_unsent(&mut self) -> impl Iterator<Item = Order> {
        self.bytes.clear();
        self.written = 0;
        std::mem::take(&mut self.orders).into_iter().map(|(_, order)| order)
    }

    /// Writes the records that are left, or else encrypts the beginning of the queue and writes that, as much
    /// as the kernel takes. Of the first order in the queue `begun` bytes were encrypted before. `staging` is
    /// the rail's buffer. Returns whether the kernel has taken all records.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(
        &mut self,
        fd: BorrowedFd<'_>,
        staging: &mut Vec<u8>,
        (queue, begun): (&mut VecDeque<Outgoing>, &mut u64),
        sent: &mut Vec<Order>,
    ) -> Result<bool, Errno> {
        if self.is_empty() {
            staging.clear();
            std::mem::swap(&mut self.bytes, staging);
            self.fill(queue, begun)?;
        }
        while self.written < self.bytes.len() {
            match net::send(fd, &self.bytes[self.written..], SendFlags::NOSIGNAL) {
                Ok(taken) => self.written += taken,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(e) => return Err(e),
            }
        }
        while self.orders.front().is_some_and(|(end, _)| *end <= self.written) {
            sent.extend(self.orders.pop_front().map(|(_, order)| order));
        }
        let is_done = self.written == self.bytes.len();
        if is_done {
            self.bytes.clear();
            self.written = 0;
            std::mem::swap(&mut self.bytes, staging);
        }
        Ok(is_done)
    }

    /// Encrypts the beginning of the queue.
    fn fill(&mut self, queue: &mut VecDeque<Outgoing>, begun: &mut u64) -> Result<(), Errno> {
        let mut record = None;
        while let Some(first) = queue.front()
            && self.bytes.len() < AT_ONCE
        {
            let start = *record.get_or_insert_with(|| begin(&mut self.bytes));
            let room = (LONGEST - (self.bytes.len() - start - HEAD)) as u64;
            let piece = first.piece(*begun);
            let len = piece.len.min(room);
            first.append(*begun, len, &mut self.bytes);
            *begun += len;
            if *begun == first.len
                && let Some(first) = queue.pop_front()
            {
                *begun = 0;
                self.orders.push_back((UNKNOWN, first.order));
            }
            if len == room || piece.ends_record && len == piece.len {
                self.end(start)?;
                record = None;
            }
        }
        record.map_or(Ok(()), |start| self.end(start))
    }

    /// Encrypts the record that begins at `start`.
    fn end(&mut self, start: usize) -> Result<(), Errno> {
        let (head, data) = self.bytes[start..].split_at_mut(HEAD);
        head.copy_from_slice(&(data.len() as u32).to_le_bytes());
        // A direction ends after 2^64 records.
        let tag = self.sealer.seal(head, data).map_err(|_| Errno::OVERFLOW)?;
        self.bytes.extend_from_slice(&tag);
        // The receiver can use a record only when it is complete.
        let whole = self.bytes.len();
        self.orders.iter_mut().rev().take_while(|(end, _)| *end == UNKNOWN).for_each(|(end, _)| *end = whole);
        Ok(())
    }
}

/// Begins a record and returns its offset.
fn begin(bytes: &mut Vec<u8>) -> usize {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEAD]);
    start
}

/// Decrypts the stream that one side receives.
#[derive(Debug)]
pub struct Unsealing {
    unsealer: Unsealer,
    /// Number of the next record.
    number: u64,
    /// An incomplete record.
    partial: Vec<u8>,
    /// Bytes that were read together with the end of a chunk, for the next poll.
    behind: Kept,
}

impl Unsealing {
    /// Creates the receiving side of a new link.
    pub fn new(unsealer: Unsealer) -> Unsealing {
        Unsealing { unsealer, number: 0, partial: Vec::new(), behind: Kept::default() }
    }

    /// Returns whether bytes are stored for the next poll, still encrypted.
    pub fn has_kept(&self) -> bool {
        !self.behind.bytes().is_empty()
    }

    /// Reads once and reports completed packets and chunks.
    ///
    /// # Errors
    /// The stream has ended.
    pub fn read(
        &mut self,
        fd: BorrowedFd<'_>,
        stream: &mut Stream,
        scratch: &mut Scratch,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<ReadResult, Ended> {
        if matches!(stream, Stream::Held(_) | Stream::Kept(_)) {
            let goes_on = stream.resume(scratch, place, report)?;
            return Ok(if goes_on { self.kept() } else { ReadResult::Nothing });
        }
        if self.has_kept() {
            let mut kept = std::mem::take(&mut self.behind);
            let taken = self.take_all(kept.bytes_mut(), stream, place, report)?;
            kept.advance(taken);
            match kept.bytes().is_empty() {
                true => scratch.give_back(kept),
                false => self.behind = kept,
            }
            return Ok(self.kept());
        }
        let missing = self.missing()?;
        // Until the head is complete, it is unknown where the next record begins.
        let ahead = if matches!(self.partial.len(), 1..HEAD) { 0 } else { AHEAD };
        let read = match missing {
            0 => net::recv(fd, &mut scratch[..ahead], RecvFlags::empty()).map(|(_, got)| (0, got)),
            _ => sys::read_onto(fd, &mut self.partial, missing, &mut scratch[..ahead])
                .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO)),
        };
        let (onto, more) = match read {
            Ok((0, 0)) => return Err(Ended::Closed),
            Ok(got) => got,
            Err(e) => return nothing(e),
        };
        let stops = onto > 0 && self.complete(stream, place, report)?;
        let taken = if stops { 0 } else { self.take_all(&mut scratch[..more], stream, place, report)? };
        if taken < more {
            self.behind = scratch.detach(taken..more);
        }
        Ok(if onto + more == missing + ahead { ReadResult::Full } else { ReadResult::All })
    }

    /// Reads once, for a thread that waits for one packet.
    ///
    /// # Errors
    /// The stream has ended.
    pub fn read_packet(
        &mut self,
        fd: BorrowedFd<'_>,
        stream: &mut Stream,
        scratch: &mut Scratch,
    ) -> Result<PacketPoll, Ended> {
        if !matches!(stream, Stream::Between) || self.has_kept() || !self.partial.is_empty() {
            return Ok(PacketPoll::Other);
        }
        let got = match poll_once(fd, scratch)? {
            ControlFlow::Continue(got) => got,
            ControlFlow::Break(poll) => return Ok(poll),
        };
        if whole(&scratch[..got])? != Some(got) {
            self.behind = scratch.detach(0..got);
            return Ok(PacketPoll::Other);
        }
        let len = self.open(&mut scratch[..got])?.len();
        let data = HEAD..HEAD + len;
        if is_packet(&scratch[data.clone()]) {
            return Ok(PacketPoll::Packet(data));
        }
        stream.keep(scratch.detach(data));
        Ok(PacketPoll::Other)
    }

    /// Returns the result of a read without a system call.
    fn kept(&self) -> ReadResult {
        if self.has_kept() { ReadResult::Full } else { ReadResult::Kept }
    }

    /// Returns the number of missing bytes of the incomplete record: of its head first, then of the whole.
    fn missing(&self) -> Result<usize, Malformed> {
        match self.partial.len() {
            0 => Ok(0),
            len => Ok(record_len(&self.partial)?.unwrap_or(HEAD) - len),
        }
    }

    /// Handles the incomplete record if it is complete now; returns whether further bytes must wait for the
    /// next poll.
    fn complete(
        &mut self,
        stream: &mut Stream,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, Broken> {
        if whole(&self.partial)?.is_none() {
            return Ok(false);
        }
        let mut record = std::mem::take(&mut self.partial);
        let stops = self.take(&mut record, stream, place, report)?;
        record.clear();
        place.pool.push(record);
        Ok(stops)
    }

    /// Handles complete records, and stores an incomplete one; returns the number of bytes used.
    fn take_all(
        &mut self,
        bytes: &mut [u8],
        stream: &mut Stream,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, Broken> {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &mut bytes[taken..];
            let Some(len) = whole(rest)? else {
                if self.partial.capacity() == 0 {
                    self.partial = place.pool.pop().unwrap_or_default();
                }
                self.partial.extend_from_slice(rest);
                return Ok(bytes.len());
            };
            taken += len;
            if self.take(&mut rest[..len], stream, place, report)? {
                break;
            }
        }
        Ok(taken)
    }

    /// Decrypts a record and passes its data to the stream; returns whether further bytes must wait for the
    /// next poll.
    fn take(
        &mut self,
        record: &mut [u8],
        stream: &mut Stream,
        place: &mut Place<'_>,
        report: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, Broken> {
        let data = self.open(record)?;
        let was_in_chunk = matches!(stream, Stream::Chunk(..));
        if stream.feed(data, place, report)? < data.len() {
            return Err(Malformed("record continues behind a chunk").into());
        }
        let has_ended = was_in_chunk && matches!(stream, Stream::Between);
        Ok(has_ended || matches!(stream, Stream::Held(_)))
    }

    /// Decrypts a whole record; returns its data.
    fn open<'r>(&mut self, record: &'r mut [u8]) -> Result<&'r mut [u8], Broken> {
        let (head, sealed) = record.split_at_mut(HEAD);
        let opened = self.unsealer.open(self.number, head, sealed);
        self.number += 1;
        opened.ok_or(Broken::Forged)
    }
}

/// Returns the length of the record at the beginning of `bytes`; `None` if its head is incomplete.
fn record_len(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
    match u32::from_le_bytes(*head) as usize {
        len @ 1..=LONGEST => Ok(Some(HEAD + len + TAG)),
        _ => Err(Malformed("record of an invalid length (does the peer encrypt the link?)")),
    }
}

/// Returns the length of the record at the beginning of `bytes`; `None` if it is incomplete.
#[inline]
fn whole(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    Ok(record_len(bytes)?.filter(|len| *len <= bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::memory::Memory;
    use crate::handshake::Ends;
    use crate::regions::Regions;
    use nmad_engine::packet::{Key, Packet, PeerId, RegionId};
    use nmad_seal::exchange::Scalar;
    use nmad_wire::{Cipher, Header, Hello, Kind, Offer};
    use rustix::fd::{AsFd, OwnedFd};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// The two ends of one direction of a link, the same in each call.
    fn directions() -> (Sealer, Unsealer) {
        let scalars = [4, 5].map(|byte| Scalar::new([byte; 32]));
        let [ours, theirs] =
            scalars.each_ref().map(|one| Offer { cipher: Cipher::Aes256Gcm, key: one.public() });
        let hello = Hello { from: 0, to: 1, rail: 0, nonce: [1; 32], offer: Some(ours), mac: [0; 32] };
        let ends = Ends { hello, rail: 0, nonce: [2; 32], offer: Some(theirs) };
        let keys = |one: &Scalar, key| ends.keys(&[3; 32], one, key).expect("a valid key");
        let ((sealer, _), (_, unsealer)) =
            (keys(&scalars[0], &theirs.key).directions(true), keys(&scalars[1], &ours.key).directions(false));
        (sealer, unsealer)
    }

    fn packet(number: u32, len: usize) -> Outgoing {
        let header = Header { kind: Kind::Packet, len: len as u32, number, ack: 0 };
        let mut bytes = header.encode().to_vec();
        bytes.resize(len, number as u8);
        let packet = Packet { bytes, in_place: Vec::new() };
        Outgoing::new(Order::Packet { to: PeerId(1), number, packet })
    }

    /// Sends `source` as a chunk between packets, over an encrypted link; returns the bytes of its stream.
    fn sent(source: &Memory, key: Key) -> Vec<u8> {
        let (region, from) = (RegionId(9), source.segments());
        let chunk = Order::Chunk { to: PeerId(1), number: 3, ack: 0, region, key, offset: 0, from };
        let orders = [packet(1, 16), packet(2, 40_000), Outgoing::new(chunk), packet(4, 30), packet(5, 300)];
        let (here, mut there) = UnixStream::pair().expect("two sockets");
        [&here, &there].into_iter().for_each(|end| end.set_nonblocking(true).expect("it is permitted"));
        let (here, mut queue, mut begun) = (OwnedFd::from(here), VecDeque::from(orders), 0);
        let mut sealing = Sealing::new(directions().0);
        let (mut staging, mut sent, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        while sent.len() < 5 {
            sealing
                .write(here.as_fd(), &mut staging, (&mut queue, &mut begun), &mut sent)
                .expect("it is sent");
            let _ = there.read_to_end(&mut bytes);
        }
        bytes
    }

    /// Receives `bytes`: `first` of them, then `step` in each piece. Returns the numbers of the packets and
    /// chunks that arrived, and why the stream ended.
    fn received(bytes: &[u8], (first, step): (usize, usize), regions: &Regions) -> (Vec<u32>, Ended) {
        let (mut here, there) = UnixStream::pair().expect("two sockets");
        there.set_nonblocking(true).expect("it is permitted");
        let there = OwnedFd::from(there);
        let (mut unsealing, mut stream) = (Unsealing::new(directions().1), Stream::default());
        let (mut scratch, mut pool, mut seen) = (Scratch::default(), Vec::new(), Vec::new());
        let (head, tail) = bytes.split_at(first);
        let mut pieces = head.chunks(first.max(1)).chain(tail.chunks(step));
        loop {
            match pieces.next() {
                Some(piece) => here.write_all(piece).expect("it is taken"),
                None => here.shutdown(std::net::Shutdown::Write).expect("it is open"),
            }
            let mut place = Place { peer: PeerId(0), regions, pool: &mut pool, longest: 72 << 10 };
            let mut report = |event: Event<'_>| match event {
                Event::Arrived { packet, .. } => {
                    let number = Header::decode(packet).expect("a header").number;
                    assert!(packet[Header::LEN..].iter().all(|byte| *byte == number as u8), "unchanged");
                    seen.push(number);
                }
                Event::Landed { number, .. } => seen.push(number),
                other => panic!("not expected: {other:?}"),
            };
            loop {
                match unsealing.read(there.as_fd(), &mut stream, &mut scratch, &mut place, &mut report) {
                    Ok(ReadResult::Nothing) => break,
                    Ok(_) => {}
                    Err(why) => return (seen, why),
                }
            }
        }
    }

    #[test]
    fn a_stream_means_the_same_wherever_it_is_cut_and_nothing_of_it_is_in_the_clear() {
        let source = Memory::pattern(50_000, 3);
        for step in [1, 3, 64, 999, 16_404, 60_000, 1 << 20] {
            let (target, mut regions) = (Memory::zeroed(50_000), Regions::default());
            let key = regions.open(RegionId(9), PeerId(0), target.segments());
            let bytes = sent(&source, key);
            for clear in [&[2; 8][..], &source.bytes()[1000..1008]] {
                assert!(!bytes.windows(8).any(|window| window == clear));
            }
            // One byte at a time only as far as it is quick.
            let len = if step < 64 { 45_000 } else { bytes.len() };
            let (seen, why) = received(&bytes[..len], (0, step), &regions);
            assert_eq!(why, Ended::Closed);
            if len == bytes.len() {
                assert_eq!(seen, [1, 2, 3, 4, 5], "{step} B at once");
                assert!(target.bytes() == source.bytes(), "{step} B at once");
            } else {
                assert_eq!(seen, [1, 2], "{step} B at once");
            }
        }
    }

    #[test]
    fn a_record_whose_head_arrives_in_two_pieces_is_whole() {
        let source = Memory::pattern(50_000, 3);
        let regions = Regions::default();
        let bytes = sent(&source, Key(77));
        for first in (0..60).chain(16_390..16_440).chain(40_000..40_200) {
            let (seen, why) = received(&bytes, (first, 1 << 20), &regions);
            assert_eq!((&seen[..], why), (&[1, 2, 3, 4, 5][..], Ended::Closed), "cut at {first}");
        }
    }

    #[test]
    fn a_changed_stream_is_unchanged_up_to_its_end() {
        let (source, mut state) = (Memory::pattern(50_000, 3), 1_u64);
        let mut dice = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..2_000 {
            let (target, mut regions) = (Memory::zeroed(50_000), Regions::default());
            let key = regions.open(RegionId(9), PeerId(0), target.segments());
            let mut bytes = sent(&source, key);
            let at = dice(bytes.len());
            match dice(4) {
                0 => bytes.truncate(at),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, dice(256) as u8),
                _ => bytes[at] ^= 1 << dice(8),
            }
            let (seen, _) = received(&bytes, (0, 1 << 20), &regions);
            assert!([1, 2, 3, 4, 5].starts_with(&seen) && seen.len() < 5, "{seen:?}");
        }
    }
}
