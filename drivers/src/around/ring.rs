//! A lock-free ring of the latest records of a rail, written by one thread at a time and read by any
//! thread.
//!
//! A record consists of words that are stored one by one. The writer publishes a counter before and after
//! each record; a reader reads the records that were complete before it began, and afterwards drops those
//! that have been overwritten.

use nmad_wire::Eager;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a packet that a record holds: all headers of a packet with a single message, without its data.
pub(super) const HEAD: usize = Eager::ALONE_LEN;
/// Words of a record: time, length, peer and number, kind, headers.
const WORDS: usize = 4 + HEAD / 8;

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) ticks: u64,
    pub(super) len: u64,
    pub(super) peer: u32,
    pub(super) number: u32,
    /// The kind of event ([`super::trace::What`]), as a number.
    pub(super) what: u8,
    /// The headers of a packet with a single message; none for anything else.
    pub(super) head: Option<[u64; HEAD / 8]>,
}

/// Additional data of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum More {
    /// Why a link was lost.
    Reason(String),
    /// A packet with several messages.
    Packet(Vec<u8>),
}

/// A ring of fixed size. All its memory is written at the start, because the first access to a page takes
/// longer than a record.
#[derive(Debug)]
pub(super) struct Ring {
    slots: Vec<[AtomicU64; WORDS]>,
    /// Number of records that were begun, and number of complete ones.
    begun: AtomicU64,
    written: AtomicU64,
    /// Additional data with the number of its record, in ascending order.
    more: Mutex<VecDeque<(u64, More)>>,
}

/// The only writer of a ring, with its position.
#[derive(Debug, Default)]
pub(super) struct Writer {
    place: usize,
    next: u64,
}

impl Ring {
    /// Creates a ring for the latest `most` records.
    pub(super) fn new(most: usize) -> Ring {
        let mut slots = Vec::new();
        slots.resize_with(most, Default::default);
        let (begun, written, more) = Default::default();
        Ring { slots, begun, written, more }
    }

    /// Capacity in records.
    pub(super) fn most(&self) -> usize {
        self.slots.len()
    }

    /// Number of records written so far.
    pub(super) fn count(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Writes a record over the oldest one.
    #[inline(always)]
    pub(super) fn write(&self, writer: &mut Writer, entry: &Entry) {
        let Some([ticks, len, peer, what, head @ ..]) = self.slots.get(writer.place) else { return };
        let number = writer.next + 1;
        (writer.next, writer.place) = (number, writer.place + 1);
        if writer.place == self.slots.len() {
            writer.place = 0;
        }
        self.begun.store(number, Ordering::Relaxed);
        fence(Ordering::Release);
        ticks.store(entry.ticks, Ordering::Relaxed);
        len.store(entry.len, Ordering::Relaxed);
        peer.store(u64::from(entry.peer) | u64::from(entry.number) << 32, Ordering::Relaxed);
        what.store(u64::from(entry.what) | u64::from(entry.head.is_some()) << 8, Ordering::Relaxed);
        if let Some([a, b, c, d, e]) = entry.head {
            // Stored one by one, because the compiler does not unroll a loop over atomic words.
            let [first, second, third, fourth, fifth] = head;
            first.store(a, Ordering::Relaxed);
            second.store(b, Ordering::Relaxed);
            third.store(c, Ordering::Relaxed);
            fourth.store(d, Ordering::Relaxed);
            fifth.store(e, Ordering::Relaxed);
        }
        self.written.store(number, Ordering::Release);
    }

    /// Writes a record with additional data.
    #[cold]
    pub(super) fn write_more(&self, writer: &mut Writer, entry: &Entry, more: More) {
        let mut list = self.more();
        while list.front().is_some_and(|(number, _)| number + self.slots.len() as u64 <= writer.next) {
            list.pop_front();
        }
        list.push_back((writer.next, more));
        drop(list);
        self.write(writer, entry);
    }

    /// Reads all valid records, the oldest first, each with its number and additional data.
    pub(super) fn read(&self) -> Vec<(u64, Entry, Option<More>)> {
        let (written, most) = (self.count(), self.slots.len() as u64);
        let read = |number: u64| (number, self.at((number % most) as usize));
        let all: Vec<(u64, Entry)> = (written.saturating_sub(most)..written).map(read).collect();
        fence(Ordering::Acquire);
        let overwritten = self.begun.load(Ordering::Relaxed).saturating_sub(most);
        let list = self.more();
        let more = |number: u64| {
            let place = list.binary_search_by_key(&number, |(number, _)| *number).ok()?;
            list.get(place).map(|(_, more)| more.clone())
        };
        let kept = all.into_iter().filter(|(number, _)| *number >= overwritten);
        kept.map(|(number, entry)| (number, entry, more(number))).collect()
    }

    fn at(&self, place: usize) -> Entry {
        let word = |index: usize| self.slots[place][index].load(Ordering::Relaxed);
        let (peer, what) = (word(2), word(3));
        Entry {
            ticks: word(0),
            len: word(1),
            peer: peer as u32,
            number: (peer >> 32) as u32,
            what: what as u8,
            head: (what >> 8 > 0).then(|| std::array::from_fn(|index| word(4 + index))),
        }
    }

    fn more(&self) -> MutexGuard<'_, VecDeque<(u64, More)>> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32) -> Entry {
        let head = number.is_multiple_of(2).then_some([u64::from(number); HEAD / 8]);
        Entry { ticks: u64::from(number), len: 8, peer: 3, number, what: 2, head }
    }

    #[test]
    fn the_latest_records_are_kept_with_what_they_say_besides() {
        let (ring, mut writer) = (Ring::new(4), Writer::default());
        for number in 0..10 {
            match number {
                1 | 7 => ring.write_more(&mut writer, &entry(number), More::Reason(number.to_string())),
                _ => ring.write(&mut writer, &entry(number)),
            }
        }
        let read = ring.read();
        assert_eq!(read.iter().map(|(_, entry, _)| *entry).collect::<Vec<_>>(), [6, 7, 8, 9].map(entry));
        assert_eq!(read[1].2, Some(More::Reason("7".into())));
        assert!(read.iter().enumerate().all(|(place, (number, ..))| *number == 6 + place as u64));
        assert_eq!(ring.more().len(), 1);
    }

    #[test]
    fn a_reader_beside_the_writer_sees_whole_records_only() {
        let (ring, mut writer) = (Ring::new(8), Writer::default());
        std::thread::scope(|scope| {
            scope.spawn(|| (0..20_000).for_each(|number| ring.write(&mut writer, &entry(number))));
            while ring.count() < 20_000 {
                for (number, read, _) in ring.read() {
                    assert_eq!(read, entry(number as u32));
                }
            }
        });
        let none = Ring::new(0);
        none.write(&mut Writer::default(), &entry(1));
        assert!(none.read().is_empty());
    }
}
