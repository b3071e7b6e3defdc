//! Measures T_O of P3's equation (1): the time from the decision to hand a task over until another core
//! begins to post it, through the queues, the lock and the loop of polls that tasklets use
//! ([`crate::standby`]).

use crate::change::Vacant;
use crate::clock::Clock;
use crate::cores::go_to;
use crate::slice;
use crate::standby::{Standby, Task};
use crate::topology::CoreId;
use crate::worker::{Tally, poll};
use nmad_engine::{Driver, Duration, RailId};
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// State of the other core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// A thread stands by on it.
    Idle,
    /// A thread computes on it and has to be preempted.
    Computes,
}

/// Polls before the measuring thread yields its core, which another thread may need.
const LOOKS: u32 = 2_000;
/// A hand-off that has not begun by then counts as this long: a thread that computes has kept its core for
/// some time slices.
const LATE: Duration = Duration::from_ms(20);
/// A thread that computes does so for this long between two preemptions, so that it is a running one that is
/// preempted, with its data in the caches.
const COMPUTES: Duration = Duration::from_us(50);
/// Polls of a thread that computes between two signs of life.
const ROUND: u32 = 256;

/// The name of the threads.
const NAME: &str = "nmad-sample";

/// The two sides of a measurement.
struct Bench {
    standby: Standby,
    clock: Clock,
    posted_ns: Arc<AtomicU64>,
    stop: AtomicBool,
    /// Threads of the other core that are on it, and how often the one that computes has been around.
    there: AtomicU64,
    rounds: AtomicU64,
}

/// Ends the threads of the other core, also in a panic.
struct Ends<'b>(&'b Bench, Vec<thread::Thread>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Release);
        self.1.iter().for_each(thread::Thread::unpark);
    }
}

/// Hands a task from one core to another so many times; returns the times in nanoseconds. Empty if there are
/// no such cores, or no threads for them.
pub fn hand_offs([from, to]: [CoreId; 2], other: Other, times: usize) -> Vec<u64> {
    let clock = Clock::start();
    let bench = Bench {
        standby: Standby::new(Arc::default()),
        clock,
        posted_ns: Arc::default(),
        stop: AtomicBool::new(false),
        there: AtomicU64::new(0),
        rounds: AtomicU64::new(0),
    };
    // The measurement has its own threads, so the calling one keeps its mask.
    let measured = thread::scope(|scope| {
        let mut ends = Ends(&bench, Vec::new());
        let mut start = |core: CoreId, work: fn(&Bench, CoreId)| {
            let bench = &bench;
            let run = move || {
                if go_to(&[core]) {
                    work(bench, core);
                }
            };
            let thread = thread::Builder::new().name(NAME.into()).spawn_scoped(scope, run).ok()?;
            ends.1.push(thread.thread().clone());
            Some(())
        };
        let threads = match other {
            Other::Idle => start(to, Bench::stand_by).map(|()| 1),
            Other::Computes => start(to, Bench::compute).and(start(to, Bench::be_on_call)).map(|()| 2),
        }?;
        let bench = &bench;
        let measure =
            move || (go_to(&[from]) && bench.expect(threads)).then(|| bench.measure(from, other, times));
        let measuring = thread::Builder::new().name(NAME.into()).spawn_scoped(scope, measure);
        let measured = measuring.ok().and_then(|thread| thread.join().ok().flatten());
        drop(ends);
        measured
    });
    measured.unwrap_or_default()
}

impl Bench {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn stand_by(&self, core: CoreId) {
        let (standing, tally) = (self.standby.enter(core), Tally::default());
        self.there.fetch_add(1, Ordering::Release);
        while !self.stops() {
            (0..LOOKS / ROUND).for_each(|_| poll(&standing, &self.clock, &tally));
            // Another process may need the core.
            thread::yield_now();
        }
    }

    fn compute(&self, _: CoreId) {
        self.there.fetch_add(1, Ordering::Release);
        while !self.stops() {
            (0..ROUND).for_each(|_| spin_loop());
            self.rounds.fetch_add(1, Ordering::Release);
        }
    }

    fn be_on_call(&self, core: CoreId) {
        slice::preempt();
        self.there.fetch_add(1, Ordering::Release);
        while !self.stops() {
            self.standby.enter_on_call(core);
            thread::park();
            while self.standby.answer(core).is_some() {}
        }
    }

    /// Waits for the threads of the other core; false: they do not come, since the core does not exist or is
    /// not ours.
    fn expect(&self, threads: u64) -> bool {
        self.waits_until(Duration::from_ms(1_000), || self.there.load(Ordering::Acquire) == threads)
    }

    fn waits_until(&self, bound: Duration, is_over: impl Fn() -> bool) -> bool {
        let begun = self.clock.now();
        for look in 0u32.. {
            if is_over() {
                return true;
            }
            match look % LOOKS {
                0 if self.clock.now().since(begun) >= bound => return false,
                0 if look > 0 => thread::yield_now(),
                _ => spin_loop(),
            }
        }
        false
    }

    fn measure(&self, here: CoreId, other: Other, times: usize) -> Vec<u64> {
        let (clock, posted_ns) = (self.clock, self.posted_ns.clone());
        let note = move || posted_ns.store(clock.now().as_ns(), Ordering::Relaxed);
        let mut rail: Box<dyn Driver> = Box::new(Vacant { on_flush: Some(Box::new(note)) });
        let mut measured = Vec::new();
        // The first one finds cold caches.
        for _ in 0..=times {
            if !self.is_ready(here, other) {
                return Vec::new();
            }
            let begun = self.clock.now();
            // As the pump does before it hands over.
            let _ = self.standby.beside(here);
            match self.standby.offer(Task { id: RailId(0), rail, orders: Vec::new() }, here) {
                Ok(()) => {}
                Err(_) => return measured,
            }
            self.waits_until(LATE, || self.standby.has_posted());
            rail = match self.standby.take_back() {
                Some(task) => {
                    measured.push(LATE.as_ns());
                    task.rail
                }
                None => {
                    // Whoever has begun with it has the rail for some moments more.
                    if !self.waits_until(Duration::from_ms(1_000), || self.standby.has_posted()) {
                        return Vec::new();
                    }
                    let posted_ns = self.posted_ns.load(Ordering::Relaxed);
                    measured.push(posted_ns.saturating_sub(begun.as_ns()).max(1));
                    self.standby.reclaim(None).expect("it has been posted on").1
                }
            };
        }
        measured.drain(..1.min(measured.len()));
        measured
    }

    /// Waits until the other core can take the next task, and computes if it is to be preempted.
    fn is_ready(&self, here: CoreId, other: Other) -> bool {
        let is_ready = self.waits_until(Duration::from_ms(1_000), || !self.standby.beside(here).is_empty());
        if other == Other::Idle || !is_ready {
            return is_ready;
        }
        let begun = self.clock.now();
        self.waits_until(Duration::from_ms(1_000), || self.clock.now().since(begun) >= COMPUTES);
        let before = self.rounds.load(Ordering::Acquire);
        self.waits_until(Duration::from_ms(1_000), || self.rounds.load(Ordering::Acquire) != before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::own_cores;
    use rustix::thread::CpuSet;

    /// How long that takes is for the system to say.
    #[test]
    fn all_hand_offs_are_measured_to_a_core_that_stands_by_and_to_one_that_computes() {
        let cores = own_cores();
        let [from, to] = [cores[0], cores[cores.len() - 1]];
        if from == to {
            return;
        }
        for other in [Other::Idle, Other::Computes] {
            // A machine that is busy for a second needs another try.
            let tries = (0..10).map(|_| hand_offs([from, to], other, 40));
            let measured = tries.into_iter().find(|measured| !measured.is_empty()).expect("threads come");
            assert_eq!(measured.len(), 40, "{other:?}");
            // A task that nobody posts counts as late, one that nobody times as 1 ns.
            assert!(measured.iter().all(|&ns| ns > 1), "{other:?}: {measured:?}");
            let posted = measured.iter().filter(|&&ns| ns != LATE.as_ns()).count();
            assert!(posted > 0, "{other:?}: the other core has posted none");
        }
    }

    #[test]
    fn cores_that_do_not_exist_are_not_measured() {
        let nowhere = CpuSet::MAX_CPU - 1;
        for pair in [[own_cores()[0], nowhere], [nowhere, own_cores()[0]]] {
            for other in [Other::Idle, Other::Computes] {
                assert!(hand_offs(pair, other, 3).is_empty(), "{pair:?}");
            }
        }
    }
}
