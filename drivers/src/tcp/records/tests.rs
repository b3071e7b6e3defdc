//! Both sides of an encrypted link, whose stream is cut and changed.

use super::{LONGEST, Sealing, Unsealing};
use crate::conformance::memory::Memory;
use crate::opening::Opened;
use crate::regions::Regions;
use crate::tcp::outgoing::Outgoing;
use crate::tcp::read::{Ended, ReadResult};
use crate::tcp::scratch::Scratch;
use crate::tcp::stream::{Place, Stream};
use nmad_engine::memory::Segments;
use nmad_engine::memory::together::{self, Helpers, install};
use nmad_engine::packet::{Key, Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::{Event, Order, Sent};
use nmad_seal::{EPOCH, Sealer, Unsealer};
use nmad_wire::{Header, Kind};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::os::unix::net::UnixStream;

/// Length of the data of the chunk.
const LEN: usize = 50_000;
const REGION: RegionId = RegionId(9);

/// The two ends of one direction of a link, the same in each call.
fn directions() -> (Sealer, Unsealer) {
    let [connecting, answering] = Opened::encrypted([4, 5]).map(|side| side.directions());
    (connecting.expect("it is encrypted").0, answering.expect("it is encrypted").1)
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
    sent_with(directions().0, source, key)
}

fn sent_with(sealer: Sealer, source: &Memory, key: Key) -> Vec<u8> {
    let from = source.segments();
    let chunk = Order::Chunk { to: PeerId(1), number: 3, ack: 0, region: REGION, key, offset: 0, from };
    let orders = [packet(1, 16), packet(2, 40_000), Outgoing::new(chunk), packet(4, 30), packet(5, 300)];
    let (here, mut there) = UnixStream::pair().expect("two sockets");
    [&here, &there].into_iter().for_each(|end| end.set_nonblocking(true).expect("it is permitted"));
    let (here, mut queue, mut begun) = (OwnedFd::from(here), VecDeque::from(orders), 0);
    let mut sealing = Sealing::new(sealer);
    let (mut staging, mut sent, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    while sent.len() < 5 {
        sealing.write(here.as_fd(), &mut staging, (&mut queue, &mut begun), &mut sent).expect("it is sent");
        let _ = there.read_to_end(&mut bytes);
    }
    bytes
}

/// The receiving side.
struct Receiver {
    here: UnixStream,
    there: OwnedFd,
    unsealing: Unsealing,
    stream: Stream,
    scratch: Scratch,
    pool: Vec<Vec<u8>>,
    /// Numbers of the packets and chunks that have arrived.
    seen: Vec<u32>,
}

impl Receiver {
    fn new() -> Receiver {
        let (here, there) = UnixStream::pair().expect("two sockets");
        there.set_nonblocking(true).expect("it is permitted");
        Receiver {
            here,
            there: OwnedFd::from(there),
            unsealing: Unsealing::new(directions().1),
            stream: Stream::default(),
            scratch: Scratch::default(),
            pool: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Receives these bytes; an empty slice is the end of the stream.
    fn feed(&mut self, bytes: &[u8], regions: &Regions) -> Result<(), Ended> {
        match bytes.is_empty() {
            true => self.here.shutdown(Shutdown::Write).expect("it is open"),
            false => self.here.write_all(bytes).expect("it is taken"),
        }
        let Receiver { there, unsealing, stream, scratch, pool, seen, .. } = self;
        let mut place = Place { peer: PeerId(0), regions, pool, longest: 72 << 10 };
        let mut report = |event: Event<'_>| match event {
            Event::Arrived { packet, .. } => {
                let number = Header::decode(packet).expect("a header").number;
                assert!(packet[Header::LEN..].iter().all(|byte| *byte == number as u8), "unchanged");
                seen.push(number);
            }
            Event::Landed { number, .. } => seen.push(number),
            other => panic!("not expected: {other:?}"),
        };
        while unsealing.read(there.as_fd(), stream, scratch, &mut place, &mut report)? != ReadResult::Nothing
        {
        }
        Ok(())
    }

    /// Closes the receive region, as its rail does.
    fn close(&mut self, regions: &mut Regions) {
        let Receiver { unsealing, stream, pool, .. } = self;
        let place = &mut Place { peer: PeerId(0), regions, pool, longest: 72 << 10 };
        unsealing.leave(REGION, stream, place);
        regions.close(REGION);
    }
}

/// Receives `bytes`: `first` of them, then `step` in each piece. Returns the numbers of the packets and
/// chunks that arrived, and why the stream ended.
fn received(bytes: &[u8], (first, step): (usize, usize), regions: &Regions) -> (Vec<u32>, Ended) {
    let mut receiver = Receiver::new();
    let (head, tail) = bytes.split_at(first);
    let mut pieces = head.chunks(first.max(1)).chain(tail.chunks(step));
    loop {
        if let Err(why) = receiver.feed(pieces.next().unwrap_or_default(), regions) {
            return (receiver.seen, why);
        }
    }
}

/// The words of the header of packet 2, whose data is 2 everywhere, as that of [`packet`].
fn head(len: usize) -> [u64; 2] {
    let header = Header { kind: Kind::Packet, len: (Header::LEN + len) as u32, number: 2, ack: 0 }.encode();
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| header[at + byte]));
    [word(0), word(8)]
}

#[test]
fn a_packet_that_the_kernel_takes_in_part_arrives_whole_and_is_reported_as_sent() {
    let (here, mut there) = UnixStream::pair().expect("two sockets");
    [&here, &there].into_iter().for_each(|end| end.set_nonblocking(true).expect("it is permitted"));
    let (here, len) = (OwnedFd::from(here), LONGEST - Header::LEN);
    let mut memory = Memory::zeroed(LONGEST);
    memory.bytes_mut().fill(2);
    let (mut sealing, mut staging) = (Sealing::new(directions().0), Vec::new());
    let mut send = |sealing: &mut Sealing, len: usize| {
        let data = memory.segments().slice(0, len as u64);
        sealing.send_now(here.as_fd(), &mut staging, (PeerId(1), 2), (&head(len), &data))
    };
    assert_eq!(send(&mut sealing, len + 1), Sent::Retry, "it needs two records");
    let mut count = 1;
    while send(&mut sealing, len) == Sent::Done {
        count += 1;
    }
    assert!(!sealing.is_empty(), "the last one is left in part");
    let (mut bytes, mut sent, mut none) = (Vec::new(), Vec::new(), VecDeque::new());
    while sent.is_empty() {
        let _ = there.read_to_end(&mut bytes);
        sealing.write(here.as_fd(), &mut Vec::new(), (&mut none, &mut 0), &mut sent).expect("it is sent");
    }
    let _ = there.read_to_end(&mut bytes);
    assert!(matches!(&sent[..], [Order::Packet { number: 2, packet, .. }] if packet.len() == LONGEST));
    let (seen, why) = received(&bytes, (0, 60_000), &Regions::default());
    assert_eq!((seen, why), (vec![2; count], Ended::Closed));
}

/// Returns a receive region, in one piece or in two.
fn region(target: &Memory, are_two: bool) -> (Regions, Key) {
    let mut regions = Regions::default();
    let pieces: Segments = if are_two { target.pieces(&[0..20_000, 20_000..LEN]) } else { target.segments() };
    let key = regions.open(REGION, PeerId(0), pieces);
    (regions, key)
}

#[test]
fn a_stream_means_the_same_wherever_it_is_cut_and_nothing_of_it_is_in_the_clear() {
    let source = Memory::pattern(LEN, 3);
    for (step, are_two) in [1, 3, 64, 999, 16_404, 60_000, 1 << 20].map(|s| [(s, false), (s, true)]).concat()
    {
        let target = Memory::zeroed(LEN);
        let (regions, key) = region(&target, are_two);
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
    let source = Memory::pattern(LEN, 3);
    let target = Memory::zeroed(LEN);
    let (regions, key) = region(&target, false);
    for (regions, key) in [(&regions, key), (&Regions::default(), Key(77))] {
        let bytes = sent(&source, key);
        for first in (0..60).chain(16_390..16_440).chain(40_000..40_240).chain(56_580..56_620) {
            let (seen, why) = received(&bytes, (first, 1 << 20), regions);
            assert_eq!((&seen[..], why), (&[1, 2, 3, 4, 5][..], Ended::Closed), "cut at {first}");
        }
    }
    assert!(target.bytes() == source.bytes());
}

/// Nothing is written into the memory of the region after it was closed, and what follows arrives.
#[test]
fn a_region_can_be_closed_in_the_middle_of_a_record() {
    let source = Memory::pattern(LEN, 3);
    for cut in (40_000..90_000).step_by(997).chain(40_210..40_240).chain(56_590..56_620) {
        let target = Memory::zeroed(LEN);
        let (mut regions, key) = region(&target, false);
        let bytes = sent(&source, key);
        let mut receiver = Receiver::new();
        let (before, rest) = bytes.split_at(cut);
        receiver.feed(before, &regions).expect("nothing is changed");
        receiver.close(&mut regions);
        let closed = target.bytes().to_vec();
        receiver.feed(rest, &regions).expect("nothing is changed");
        assert_eq!(receiver.seen, [1, 2, 3, 4, 5], "closed at {cut}");
        assert!(target.bytes() == closed, "closed at {cut}");
    }
}

/// Another thread that does the first half of the work, like an idle core.
struct Two;

impl Helpers for Two {
    fn share(&self, _: together::Kind, units: u64, _: u64, work: &(dyn Fn(Range<u64>) + Sync)) {
        std::thread::scope(|scope| {
            scope.spawn(|| work(0..units / 2));
            work(units / 2..units);
        });
    }
}

/// Several records are encrypted or decrypted at once, some with a key and some with the next one.
#[test]
fn a_key_may_change_in_the_middle_of_a_chunk_whoever_encrypts_its_records() {
    static TWO: &dyn Helpers = &Two;
    install(&TWO);
    let len = 20 * LONGEST + 7;
    let source = Memory::pattern(len, 3);
    for left in 0..24 {
        let used = (EPOCH - left) as usize;
        let (mut sealer, mut unsealer) = directions();
        assert_eq!([sealer.numbers(used).count(), unsealer.numbers(used).count()], [used; 2]);
        let target = Memory::zeroed(len);
        let mut regions = Regions::default();
        let key = regions.open(REGION, PeerId(0), target.segments());
        let mut bytes = sent_with(sealer, &source, key);
        let mut receiver = Receiver { unsealing: Unsealing::new(unsealer), ..Receiver::new() };
        // The last record but two is of the chunk.
        let changed = bytes.len() - 5 * LONGEST;
        for piece in bytes.chunks(150_000) {
            receiver.feed(piece, &regions).expect("nothing is changed");
        }
        assert_eq!(receiver.seen, [1, 2, 3, 4, 5], "{left} records before the key changes");
        assert!(target.bytes() == source.bytes());
        let (_, mut unsealer) = directions();
        assert_eq!(unsealer.numbers(used).count(), used);
        let mut receiver = Receiver { unsealing: Unsealing::new(unsealer), ..Receiver::new() };
        bytes[changed] ^= 1;
        let fed = bytes.chunks(150_000).map(|piece| receiver.feed(piece, &regions)).find(Result::is_err);
        assert!(fed.is_some() && receiver.seen == [1, 2], "{:?}", receiver.seen);
    }
}

#[test]
fn a_changed_stream_is_unchanged_up_to_its_end() {
    let (source, mut state) = (Memory::pattern(LEN, 3), 1_u64);
    let mut dice = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..2_000 {
        let target = Memory::zeroed(LEN);
        let (regions, key) = region(&target, false);
        let mut bytes = sent(&source, key);
        let at = dice(bytes.len());
        match dice(4) {
            0 => bytes.truncate(at),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, dice(256) as u8),
            _ => bytes[at] ^= 1 << dice(8),
        }
        let step = [1 << 20, 20_000, 5_000][dice(3)];
        let (seen, _) = received(&bytes, (0, step), &regions);
        assert!([1, 2, 3, 4, 5].starts_with(&seen) && seen.len() < 5, "{seen:?}");
    }
}
