//! Tests of shared work on a simulated machine: {0 1} {2 3} | {4 5} {6 7}.

use super::*;
use crate::standby::Done;
use crate::topology::example;
use nmad_engine::Pair;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Time limit of a test.
const LONG: Duration = Duration::from_secs(20);

fn standby() -> Arc<Standby> {
    let standby = Arc::new(Standby::new(Arc::default()));
    standby.arrange(example());
    standby
}

/// Waits until the condition is true.
fn wait_for(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < LONG, "the condition stays false");
        thread::yield_now();
    }
}

/// Calls `run` while a thread stands by on `core`; also returns the first work of that thread.
fn beside<R>(standby: &Standby, core: usize, run: impl FnOnce() -> R) -> (R, Option<Done>) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let helper = scope.spawn(|| {
            let standing = standby.enter(core);
            let mut first = None;
            while !over.load(Ordering::Acquire) {
                let done = catch_unwind(AssertUnwindSafe(|| standing.run_one())).unwrap_or(None);
                first = first.or(done);
                thread::yield_now();
            }
            first
        });
        wait_for(|| standby.is_ready());
        let answer = run();
        over.store(true, Ordering::Release);
        (answer, helper.join().expect("it catches panics"))
    })
}

#[test]
fn another_thread_does_a_part_and_each_unit_is_done_once() {
    let standby = standby();
    let units: Vec<Mutex<Vec<ThreadId>>> = (0..100).map(|_| Mutex::default()).collect();
    let (helped, me) = (AtomicBool::new(false), thread::current().id());
    let work = |range: Range<u64>| {
        let worker = thread::current().id();
        // The caller waits, since it could finish before the other thread begins.
        if worker == me {
            wait_for(|| helped.load(Ordering::Acquire));
        }
        range.for_each(|unit| units[unit as usize].lock().unwrap().push(worker));
        helped.fetch_or(worker != me, Ordering::Release);
    };
    let (shared, done) = beside(&standby, 3, || share(&standby, (100, 7, 1), &work, pause));
    assert!(shared && matches!(done, Some(Done::Shared(1..))), "{done:?}");
    let workers: Vec<ThreadId> = units.iter().flat_map(|unit| unit.lock().unwrap().clone()).collect();
    assert_eq!(workers.len(), 100, "each once");
    assert!(workers.contains(&me) && workers.iter().any(|worker| *worker != me));
    assert!(!standby.has_offers());
}

#[test]
fn without_other_cores_the_caller_does_all_of_it() {
    let standby = standby();
    let sum = AtomicU64::new(0);
    let work = |range: Range<u64>| {
        sum.fetch_add(range.end - range.start, Ordering::Relaxed);
    };
    assert!(!share(&standby, (100, 7, 1), &work, pause), "nobody stands by");
    let late = standby.enter(3);
    assert!(!share(&standby, (100, 7, 2), &work, pause), "the other one is late");
    assert_eq!((sum.into_inner(), late.run_one()), (200, None), "nothing is left to it");
}

#[test]
fn a_piece_that_panics_on_another_core_panics_in_the_caller_after_all_others() {
    let standby = standby();
    let (me, broken) = (thread::current().id(), AtomicBool::new(false));
    let work = |_: Range<u64>| match thread::current().id() == me {
        true => wait_for(|| broken.load(Ordering::Acquire)),
        false => {
            broken.store(true, Ordering::Release);
            panic!("a test's");
        }
    };
    let run = || catch_unwind(AssertUnwindSafe(|| share(&standby, (10, 1, 1), &work, pause)));
    assert!(beside(&standby, 3, run).0.is_err());
    assert!(!standby.has_offers());
}

#[test]
fn a_caller_that_panics_waits_for_those_that_still_work() {
    let standby = standby();
    let me = thread::current().id();
    let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let work = |_: Range<u64>| match thread::current().id() == me {
        true => {
            wait_for(|| begun.load(Ordering::Acquire));
            panic!("a test's");
        }
        false => {
            begun.store(true, Ordering::Release);
            thread::sleep(Duration::from_millis(20));
            ended.store(true, Ordering::Release);
        }
    };
    let run = || {
        let result = catch_unwind(AssertUnwindSafe(|| share(&standby, (2, 1, 1), &work, pause)));
        (result.is_err(), ended.load(Ordering::Acquire))
    };
    assert_eq!(beside(&standby, 3, run).0, (true, true));
}

#[test]
fn equation_one_decides_the_number_of_cores() {
    let decide = |alone_ns: u64, hand_offs: &[u64]| {
        let speed = Speed::new();
        assert_eq!(speed.decide(1_000_000, hand_offs), None, "nothing was measured");
        speed.record_alone(1_000_000, alone_ns);
        speed.decide(1_000_000, hand_offs)
    };
    assert_eq!(decide(100_000, &[]), None, "no core stands by");
    assert_eq!(decide(100_000, &[1_000]), Some((1, 51_000)));
    assert_eq!(decide(100_000, &[1_000, 1_000, 1_000]), Some((3, 26_000)));
    assert_eq!(decide(100_000, &[1_000, 1_000, 40_000]), Some((2, 34_333)), "the third one is too far away");
    assert_eq!(decide(2_000, &[1_000]), None, "no gain");
    assert_eq!(decide(1_000, &[200]), Some((1, 700)));
}

#[test]
fn sharing_without_gain_is_only_tried_now_and_then() {
    let speed = Speed::new();
    speed.record_alone(1_000_000, 100_000);
    (0..20).for_each(|_| speed.record_shared(51_000, 120_000));
    let shared = (0..2 * TRIAL).filter(|_| speed.decide(1_000_000, &[1_000]).is_some()).count();
    assert_eq!(shared, 2, "two cores were slower than one");
    (0..20).for_each(|_| speed.record_shared(51_000, 60_000));
    let shared = (0..2 * TRIAL).filter(|_| speed.decide(1_000_000, &[1_000]).is_some()).count();
    assert_eq!(shared, 2 * TRIAL as usize - 2, "and are not any more");
}

#[test]
fn hand_offs_are_chosen_by_pair_of_cores() {
    let standby = standby();
    let _standing = [6, 3, 0].map(|core| standby.enter(core));
    assert_eq!(standby.hand_offs_ns(2), [], "not measured");
    standby.set_hand_offs([Some(200), Some(300), Some(900), None, Some(9_000)]);
    assert_eq!(standby.hand_offs_ns(2), [200, 300, 900]);
    assert_eq!(standby.hand_offs_ns(7), [200, 900, 900]);
    assert_eq!(standby.hand_offs_ns(99), [], "pairs of which nothing is known");
    assert_eq!(Pair::ALL.map(|pair| pair as usize), [0, 1, 2, 3, 4]);
}

#[test]
fn classes_of_length_are_powers_of_four() {
    let classes = [64 << 10, 255 << 10, 256 << 10, 1 << 20, 4 << 20, 1 << 40].map(class);
    assert_eq!(classes, [0, 0, 1, 2, 3, CLASSES - 1]);
}
