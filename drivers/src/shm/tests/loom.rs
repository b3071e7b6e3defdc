//! Tests of the lock-free parts under loom, which tries every order in which two threads may see each
//! other's stores.

use crate::node::claim::{self, Round, Side, UNIT};
use crate::node::word::Word;
use crate::shm::cma::regions;
use crate::shm::ring::{self, CONTENT, Cells, Consumer, Head, Producer};
use crate::shm::wakeup;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use std::sync::atomic::Ordering;

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::swap(self, value, order)
    }

    fn fetch_and(&self, mask: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_and(self, mask, order)
    }

    fn replace(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn full_fence() {
        fence(Ordering::SeqCst);
    }
}

/// Memory checked by loom, which detects a write that is concurrent with another access.
struct Memory(UnsafeCell<[u8; CONTENT]>);

#[allow(unsafe_code)]
// SAFETY: loom fails the test if two threads access it at once and one of them writes.
unsafe impl Sync for Memory {}

impl Memory {
    fn new() -> Memory {
        Memory(UnsafeCell::new([0; CONTENT]))
    }

    #[allow(unsafe_code)]
    fn write(&self, at: usize, bytes: &[u8]) {
        // SAFETY: loom has just checked that no other thread accesses it.
        self.0.with_mut(|place| unsafe { (&mut *place)[at..at + bytes.len()].copy_from_slice(bytes) });
    }

    #[allow(unsafe_code)]
    fn read(&self) -> [u8; CONTENT] {
        // SAFETY: loom has just checked that no other thread writes it.
        self.0.with(|place| unsafe { *place })
    }
}

/// A ring of two cells.
struct Two {
    cells: [(AtomicU64, Memory); 2],
    taken: AtomicU64,
}

impl Two {
    fn new() -> Two {
        let cell = || (AtomicU64::new(0), Memory::new());
        Two { cells: [cell(), cell()], taken: AtomicU64::new(0) }
    }
}

impl Cells for Two {
    type Word = AtomicU64;

    fn count(&self) -> u64 {
        2
    }

    fn word(&self, cell: u64) -> &AtomicU64 {
        &self.cells[cell as usize].0
    }

    fn put(&self, cell: u64, at: usize, part: &[u8]) {
        self.cells[cell as usize].1.write(at, part);
    }

    fn get(&self, cell: u64, content: &mut [u8; CONTENT]) {
        *content = self.cells[cell as usize].1.read();
    }

    fn taken(&self) -> &AtomicU64 {
        &self.taken
    }
}

/// Runs a test in every order with at most three preemptions: enough to find an error in code of this size,
/// and bounded.
fn check(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(test);
}

fn wait_for_room(producer: &mut Producer, cells: &Two, count: u64) {
    while producer.room(cells) < count {
        thread::yield_now();
        assert!(producer.ask(cells));
    }
}

fn wait_for_cell(consumer: &Consumer, cells: &Two) -> Head {
    loop {
        match consumer.peek(cells) {
            Some(head) => return head,
            None => thread::yield_now(),
        }
    }
}

#[test]
fn cells_arrive_in_order_and_are_not_overwritten_before_they_are_taken() {
    check(|| {
        let cells = Arc::new(Two::new());
        let theirs = cells.clone();
        let writer = thread::spawn(move || {
            let mut producer = Producer::default();
            for number in 1..=4u8 {
                wait_for_room(&mut producer, &theirs, 1);
                let head = Head { kind: 1, value: u32::from(number), taken: 0 };
                producer.push(&*theirs, head, &[number; CONTENT]);
            }
        });
        let mut consumer = Consumer::default();
        for number in 1..=4u8 {
            let head = wait_for_cell(&consumer, &cells);
            let mut content = [0; ring::CONTENT];
            consumer.content(&*cells, 0, &mut content);
            assert_eq!((head.value, content), (u32::from(number), [number; CONTENT]));
            consumer.take(1);
            consumer.report_taken(&*cells);
        }
        writer.join().expect("the writer ends");
        assert!(consumer.peek(&*cells).is_none());
    });
}

#[test]
fn a_row_is_there_as_a_whole() {
    check(|| {
        let cells = Arc::new(Two::new());
        let theirs = cells.clone();
        let writer = thread::spawn(move || {
            let mut producer = Producer::default();
            for number in 1..=2u8 {
                wait_for_room(&mut producer, &theirs, 2);
                let head = Head { kind: 1, value: u32::from(number), taken: 0 };
                producer.push_row(&*theirs, head, 2, |cell, place| {
                    theirs.put(cell, 0, &[number + 10 * place as u8; CONTENT]);
                });
            }
        });
        let mut consumer = Consumer::default();
        for number in 1..=2u8 {
            wait_for_cell(&consumer, &cells);
            assert!(consumer.has_row(&*cells, 2));
            for place in 0..2 {
                let mut content = [0; CONTENT];
                consumer.content(&*cells, place, &mut content);
                assert_eq!(content, [number + 10 * place as u8; CONTENT]);
            }
            consumer.take(2);
            consumer.report_taken(&*cells);
        }
        writer.join().expect("the writer ends");
    });
}

#[test]
fn a_sleeper_sees_the_data_or_is_woken() {
    check(|| {
        let both = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let theirs = both.clone();
        let leaver = thread::spawn(move || {
            let (asleep, left) = &*theirs;
            left.store(1, Ordering::Release);
            wakeup::is_asleep(asleep, wakeup::Fence::Own)
        });
        let (asleep, left) = &*both;
        wakeup::raise(asleep);
        let sees = left.load(Ordering::Acquire) == 1;
        let woken = leaver.join().expect("it ends");
        assert!(sees || woken, "asleep although there is data");
    });
}

/// Shared work: its claim word, the word that names its region, the key of the region in its table, and its
/// memory.
struct Work {
    word: AtomicU64,
    named: AtomicU64,
    key: AtomicU64,
    memory: [Memory; 6],
}

const ROUND: u64 = 5;
const UNITS: u64 = 24;
const KEY: u64 = 7;

impl Work {
    fn new() -> Arc<Work> {
        let memory = [(); 6].map(|()| Memory::new());
        let work =
            Work { word: AtomicU64::new(0), named: AtomicU64::new(0), key: AtomicU64::new(KEY), memory };
        Arc::new(work)
    }

    /// Starts work of the sender for a region with this key.
    fn begun() -> (Arc<Work>, Round) {
        let (work, round) = (Work::new(), Round::of(ROUND));
        work.named.store(KEY, Ordering::Relaxed);
        claim::begin(&work.word, round, UNITS * UNIT, false);
        (work, round)
    }

    fn claim(&self, round: Round, side: Side) -> Option<(u64, u64)> {
        claim::claim(&self.word, round, side, UNITS * UNIT, false)
    }

    /// Copies the claimed units; returns their number.
    fn copy(&self, round: Round, side: Side, (from, to): (u64, u64)) -> u64 {
        // One cell of loom memory stands for four units, so claims must begin and end at multiples of that.
        assert_eq!((from % (4 * UNIT), to % (4 * UNIT)), (0, 0));
        (from / UNIT / 4..to / UNIT / 4).for_each(|place| self.memory[place as usize].write(0, &[1]));
        claim::end(&self.word, round, side, (from, to), true);
        (to - from) / UNIT
    }

    /// Copies everything that this side can claim; returns the number of units.
    fn copy_all(&self, round: Round, side: Side) -> u64 {
        std::iter::from_fn(|| self.claim(round, side)).map(|range| self.copy(round, side, range)).sum()
    }

    /// Writes the whole memory, which no other thread may access any more.
    fn own(&self) {
        self.memory.iter().for_each(|memory| memory.write(0, &[2]));
    }

    fn wait_for_end(&self, round: Round) {
        while !claim::is_complete(&self.word, round) {
            thread::yield_now();
        }
    }

    fn wait_for(&self, round: Round, side: Side) {
        while claim::is_copying(&self.word, round, side) {
            thread::yield_now();
        }
    }
}

#[test]
fn two_sides_copy_each_unit_of_a_chunk_once() {
    check(|| {
        let (work, round) = Work::begun();
        let theirs = work.clone();
        let other = thread::spawn(move || theirs.copy_all(round, Side::Push));
        let mine = work.copy_all(round, Side::Pull);
        work.wait_for_end(round);
        // The work is complete: no other thread accesses the memory, and all data is visible.
        work.own();
        assert_eq!(mine + other.join().expect("it ends"), UNITS);
    });
}

#[test]
fn a_piece_that_one_side_cannot_copy_is_there_before_the_chunk_is_complete() {
    check(|| {
        let (work, round) = Work::begun();
        let theirs = work.clone();
        let sender = thread::spawn(move || {
            if let Some(failed) = theirs.claim(round, Side::Push) {
                claim::end(&theirs.word, round, Side::Push, failed, false);
            }
        });
        let mut copied = 0;
        while !claim::is_complete(&work.word, round) {
            copied += work.copy_all(round, Side::Pull);
            thread::yield_now();
        }
        assert_eq!(copied, UNITS);
        sender.join().expect("it ends");
    });
}

#[test]
fn a_closed_region_is_not_pushed_into() {
    check(|| {
        let work = Work::new();
        let theirs = work.clone();
        let sender = thread::spawn(move || {
            let round = Round::of(ROUND);
            theirs.named.store(KEY, Ordering::Relaxed);
            claim::begin(&theirs.word, round, UNITS * UNIT, false);
            let is_open = regions::holds_key(&theirs.key, KEY);
            (0..2).filter(|_| is_open).filter_map(|_| theirs.claim(round, Side::Push)).for_each(|range| {
                theirs.copy(round, Side::Push, range);
            });
        });
        regions::remove_key(&work.key, KEY);
        if let Some(round) = regions::revoke_named(&work.word, &work.named, Some(KEY)) {
            work.wait_for(round, Side::Push);
        }
        work.own();
        sender.join().expect("it ends");
        assert!(work.memory.iter().all(|memory| memory.read()[0] == 2));
    });
}

#[test]
fn a_piece_that_fails_is_not_pushed_into_a_closed_region_again() {
    check(|| {
        let (work, round) = Work::begun();
        let theirs = work.clone();
        let sender = thread::spawn(move || {
            if let Some(failed) = theirs.claim(round, Side::Push) {
                claim::end(&theirs.word, round, Side::Push, failed, false);
            }
            theirs.copy_all(round, Side::Push);
        });
        regions::remove_key(&work.key, KEY);
        regions::revoke_named(&work.word, &work.named, Some(KEY)).expect("it is named");
        work.wait_for(round, Side::Push);
        work.own();
        sender.join().expect("it ends");
        assert!(claim::is_complete(&work.word, round), "the sender's memory is free");
    });
}

#[test]
fn the_memory_of_a_cancelled_chunk_is_not_read() {
    check(|| {
        let (work, round) = Work::begun();
        let theirs = work.clone();
        let receiver = thread::spawn(move || {
            // At most half of it.
            if let Some(range) = theirs.claim(round, Side::Pull) {
                theirs.copy(round, Side::Pull, range);
            }
            claim::is_complete(&theirs.word, round)
        });
        claim::revoke(&work.word, round, Side::Push);
        work.wait_for(round, Side::Pull);
        work.own();
        assert!(!receiver.join().expect("it ends"), "it does not count as arrived");
    });
}

#[test]
fn joint_work_is_copied_once_and_not_accessed_after_its_end() {
    check(|| {
        let (work, round) = Work::begun();
        let theirs = work.clone();
        let receiver = thread::spawn(move || {
            let mut units = 0;
            while let Some(range) = theirs.claim(round, Side::Pull) {
                units += theirs.copy(round, Side::Pull, range);
            }
            theirs.wait_for_end(round);
            assert!(theirs.memory.iter().all(|memory| memory.read()[0] == 1), "all is there");
            units
        });
        let mut units = 0;
        while !claim::is_complete(&work.word, round) {
            units += work.copy_all(round, Side::Push);
            thread::yield_now();
        }
        assert_eq!(units + receiver.join().expect("it ends"), UNITS);
    });
}

#[test]
fn declined_work_is_not_touched_after_both_have_ended() {
    check(|| {
        let (work, round) = Work::begun();
        let theirs = work.clone();
        let receiver = thread::spawn(move || {
            if theirs.claim(round, Side::Pull).is_some() {
                claim::decline(&theirs.word, round);
                theirs.wait_for(round, Side::Push);
                theirs.own();
            }
        });
        while !claim::is_abandoned(&work.word, round) {
            if claim::is_copying(&work.word, round, Side::Pull)
                && let Some(range) = work.claim(round, Side::Push)
            {
                work.copy(round, Side::Push, range);
            }
            thread::yield_now();
        }
        assert!(!claim::is_complete(&work.word, round), "it leaves in another way");
        receiver.join().expect("it ends");
    });
}
