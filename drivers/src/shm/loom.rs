//! The lock-free parts under loom, which tries every order in which two threads may see each other's stores.

use super::board;
use super::claim::{self, Round, Side, UNIT};
use super::loan::{self, Stage};
use super::ring::{CONTENT, Cells, Consumer, Head, Producer};
use super::word::Word;
use super::{bell, ring};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use nmad_engine::packet::Key;
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

/// Memory that loom watches: whoever writes it while another may read it is found out.
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
        // SAFETY: loom has just checked that nobody else accesses it.
        self.0.with_mut(|place| unsafe { (&mut *place)[at..at + bytes.len()].copy_from_slice(bytes) });
    }

    #[allow(unsafe_code)]
    fn read(&self) -> [u8; CONTENT] {
        // SAFETY: loom has just checked that nobody writes it.
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

/// Every order with at most three switches away from a thread that could go on, which is what it takes to
/// find a mistake in code of this size, and bounded.
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
            consumer.tell(&*cells);
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
            consumer.tell(&*cells);
        }
        writer.join().expect("the writer ends");
    });
}

#[test]
fn who_goes_to_sleep_sees_what_was_left_or_is_woken() {
    check(|| {
        let both = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let theirs = both.clone();
        let leaver = thread::spawn(move || {
            let (asleep, left) = &*theirs;
            left.store(1, Ordering::Release);
            bell::is_asleep(asleep, bell::Fence::Own)
        });
        let (asleep, left) = &*both;
        bell::raise(asleep);
        let sees = left.load(Ordering::Acquire) == 1;
        let woken = leaver.join().expect("it ends");
        assert!(sees || woken, "somebody sleeps, and something is there");
    });
}

#[test]
fn two_copy_a_chunk_every_unit_once() {
    const UNITS: u64 = 24;
    check(|| {
        let round = Round::of(5);
        let shared = Arc::new((AtomicU64::new(0), [(); 6].map(|()| Memory::new())));
        claim::begin(&shared.0, round, UNITS * UNIT, false);
        let work = move |shared: &(AtomicU64, [Memory; 6]), side| {
            let mut units = 0;
            while let Some((from, to)) = claim::claim(&shared.0, round, side, UNITS * UNIT, false) {
                // Loom watches one place for each four units; claims of these lengths begin and end there.
                assert_eq!((from % (4 * UNIT), to % (4 * UNIT)), (0, 0));
                (from / UNIT / 4..to / UNIT / 4).for_each(|place| shared.1[place as usize].write(0, &[1]));
                units += (to - from) / UNIT;
                claim::finish(&shared.0, side);
            }
            units
        };
        let theirs = shared.clone();
        let other = thread::spawn(move || work(&theirs, Side::Push));
        let mine = work(&shared, Side::Pull);
        while !claim::is_complete(&shared.0, round) {
            thread::yield_now();
        }
        // Complete: nobody touches the memory any more, and everything is there.
        shared.1.iter().for_each(|memory| memory.write(0, &[2]));
        assert_eq!(mine + other.join().expect("it ends"), UNITS);
    });
}

#[test]
fn what_one_side_cannot_copy_is_there_before_the_chunk_is_complete() {
    const UNITS: u64 = 24;
    check(|| {
        let round = Round::of(5);
        let word = Arc::new(AtomicU64::new(0));
        claim::begin(&*word, round, UNITS * UNIT, false);
        let theirs = word.clone();
        let sender = thread::spawn(move || {
            if let Some(failed) = claim::claim(&*theirs, round, Side::Push, UNITS * UNIT, false) {
                claim::give_back(&*theirs, round, Side::Push, failed);
            }
        });
        let mut copied = 0;
        while !claim::is_complete(&*word, round) {
            match claim::claim(&*word, round, Side::Pull, UNITS * UNIT, false) {
                Some((from, to)) => {
                    copied += (to - from) / UNIT;
                    claim::finish(&*word, Side::Pull);
                }
                None => thread::yield_now(),
            }
        }
        assert_eq!(copied, UNITS);
        sender.join().expect("it ends");
    });
}

#[test]
fn nobody_pushes_into_a_landing_that_is_closed() {
    check(|| {
        let key = 7;
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(key), Memory::new()));
        let theirs = shared.clone();
        let sender = thread::spawn(move || {
            let (aim, board, landing) = &*theirs;
            for _ in 0..2 {
                if board::raise(aim, board, key) {
                    landing.write(0, &[1]);
                }
                board::lower(aim);
            }
        });
        let (aim, board, landing) = &*shared;
        board::take_down(board, key);
        while board::is_aimed_at(aim, Some(Key(key))) {
            thread::yield_now();
        }
        landing.write(0, &[2]);
        sender.join().expect("it ends");
        assert_eq!(landing.read()[0], 2);
    });
}

#[test]
fn nobody_reads_the_memory_of_a_chunk_that_was_given_up() {
    check(|| {
        let round = Round::of(1);
        let shared = Arc::new((AtomicU64::new(0), Memory::new()));
        claim::begin(&shared.0, round, 100 * UNIT, false);
        let theirs = shared.clone();
        let receiver = thread::spawn(move || {
            let (word, source) = &*theirs;
            for _ in 0..2 {
                if claim::claim(word, round, Side::Pull, 100 * UNIT, false).is_some() {
                    source.read();
                    claim::finish(word, Side::Pull);
                }
            }
            claim::is_complete(word, round)
        });
        let (word, source) = &*shared;
        claim::abandon(word, round);
        while claim::is_copying(word, round, Side::Pull) {
            thread::yield_now();
        }
        source.write(0, &[2]);
        assert!(!receiver.join().expect("it ends"), "it does not count as arrived");
    });
}

#[test]
fn what_is_lent_is_not_written_while_it_is_read_and_not_read_after_it_is_over() {
    check(|| {
        let shared = Arc::new((AtomicU64::new(0), Memory::new()));
        let (word, source) = &*shared;
        source.write(0, &[1]);
        loan::offer(word, 1);
        let theirs = shared.clone();
        let receiver = thread::spawn(move || {
            let (word, source) = &*theirs;
            let taken = loan::take(word, 1);
            if taken {
                assert_eq!(source.read()[0], 1);
                loan::give_back(word, 1);
            }
            taken
        });
        let revoked = loan::revoke(word, 1);
        while !matches!(loan::stage(word, 1), Stage::Returned | Stage::Over) {
            thread::yield_now();
        }
        source.write(0, &[2]);
        assert_eq!(receiver.join().expect("it ends"), !revoked, "one of both");
    });
}

#[test]
fn what_is_lent_and_shared_is_copied_once_and_by_nobody_after_it_is_over() {
    check(|| {
        let shared = Arc::new((AtomicU64::new(0), [Memory::new(), Memory::new()]));
        loan::offer(&shared.0, 1);
        let theirs = shared.clone();
        let receiver = thread::spawn(move || {
            let (word, targets) = &*theirs;
            assert!(loan::share(word, 1));
            targets[0].write(0, &[1]);
            let rest = loop {
                match loan::stage(word, 1) {
                    Stage::Pushed => break 0,
                    Stage::Shared if loan::take_rest(word, 1) => break 1,
                    _ => thread::yield_now(),
                }
            };
            (0..rest).for_each(|_| targets[1].write(0, &[1]));
            loan::give_back(word, 1);
            assert!(targets.iter().all(|target| target.read()[0] == 1), "all is there");
            rest
        });
        let (word, targets) = &*shared;
        let mut helped = 0;
        while loan::stage(word, 1) != Stage::Returned {
            if loan::help(word, 1) {
                targets[1].write(0, &[1]);
                loan::helped(word, 1, true);
                helped += 1;
            }
            thread::yield_now();
        }
        assert_eq!(helped + receiver.join().expect("it ends"), 1, "one of both");
    });
}
