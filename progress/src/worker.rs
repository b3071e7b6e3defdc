//! Threads that stand by on idle cores: the helper, and workers where a process has three rails or more or
//! works on large memory.
//!
//! A message is split over min(idle rails, idle cores) rails (P3 section III-B), so a process needs one
//! thread that stands by for each rail beside the one that the caller posts on. Workers start when they are
//! first needed, each pinned to an idle core. They sleep unless the helper stands by.

use crate::clock::Clock;
use crate::cores;
use crate::shared::Shared;
use crate::signals;
use crate::standby::{Done, Standing};
use crate::topology::CoreId;
use nmad_engine::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Polls for work between two readings of the clock.
const SPINS: u32 = 32;
/// A worker stands by for this long after the helper has last asked for it. The helper asks ten times as
/// often, so a worker is not woken again and again.
const LEASE: Duration = Duration::from_ms(1);

/// Work of the threads that stand by, and its time.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    posted: AtomicU64,
    /// Shared work on large memory of which they did pieces.
    shared: AtomicU64,
    took_ns: AtomicU64,
}

impl Tally {
    pub(crate) fn add(&self, done: Done, took: Duration) {
        match done {
            Done::Posted => self.posted.fetch_add(1, Ordering::Relaxed),
            Done::Shared(pieces) => self.shared.fetch_add(u64::from(pieces > 0), Ordering::Relaxed),
        };
        self.took_ns.fetch_add(took.as_ns(), Ordering::Relaxed);
    }

    /// Returns and resets the counts of posted rails and of shared work, and the time for both.
    pub(crate) fn take(&self) -> ([u64; 2], Duration) {
        let took_ns = self.took_ns.swap(0, Ordering::Relaxed);
        (
            [&self.posted, &self.shared].map(|count| count.swap(0, Ordering::Relaxed)),
            Duration::from_ns(took_ns),
        )
    }
}

impl Shared {
    /// Posts for other threads until `over`, which is checked every SPINS polls.
    pub(crate) fn stand_by(&self, tally: &Tally, over: impl Fn() -> bool) {
        let standing = self.standby.enter(cores::here());
        while !over() {
            poll(&standing, &self.clock, tally);
            self.put_back();
        }
    }

    /// Puts rails back that other threads have posted on. A thread that holds the lock does so itself if it
    /// needs one.
    pub(crate) fn put_back(&self) {
        if self.standby.has_posted()
            && !self.is_inside()
            && let Some(mut core) = self.try_lock()
            && core.reclaim_all()
        {
            self.push(&mut core, false);
        }
    }
}

/// Polls for work SPINS times, and does it.
pub(crate) fn poll(standing: &Standing<'_>, clock: &Clock, tally: &Tally) {
    for _ in 0..SPINS {
        let mut begun = Instant::default();
        if let Some(done) = standing.look(|| begun = clock.now()) {
            tally.add(done, clock.now().since(begun));
        }
        std::hint::spin_loop();
    }
}

/// The workers of a process. Dropping it ends them.
pub(crate) struct WorkerPool {
    shared: Arc<Shared>,
    tally: Arc<Tally>,
    workers: Vec<Worker>,
}

struct Worker {
    assignment: Arc<Assignment>,
    thread: Option<JoinHandle<()>>,
    /// Its processor time at the last call of [`WorkerPool::ran`].
    ran: Duration,
}

/// Assignment of a worker, and its processor time.
struct Assignment {
    core: AtomicUsize,
    until_ns: AtomicU64,
    stop: AtomicBool,
    /// Its processor time.
    ran_ns: AtomicU64,
}

impl WorkerPool {
    pub(crate) fn new(shared: Arc<Shared>, tally: Arc<Tally>) -> WorkerPool {
        WorkerPool { shared, tally, workers: Vec::new() }
    }

    /// Lets a worker stand by on each of these cores for a while.
    pub(crate) fn stand_by(&mut self, cores: &[CoreId], name: &str) {
        let until = self.shared.clock.now() + LEASE;
        while self.workers.len() < cores.len() {
            // If the system has no thread left, the existing workers must do.
            let Ok(worker) = Worker::start(self.shared.clone(), self.tally.clone(), name) else { break };
            self.workers.push(worker);
        }
        for (worker, &core) in self.workers.iter().zip(cores) {
            worker.assignment.core.store(core, Ordering::Relaxed);
            let before_ns = worker.assignment.until_ns.swap(until.as_ns(), Ordering::AcqRel);
            if Instant::from_ns(before_ns) <= self.shared.clock.now()
                && let Some(thread) = &worker.thread
            {
                thread.thread().unpark();
            }
        }
    }

    /// Returns the core of each worker and its running time since the last call.
    pub(crate) fn ran(&mut self) -> Vec<(CoreId, Duration)> {
        let ran = |worker: &mut Worker| {
            let now = Duration::from_ns(worker.assignment.ran_ns.load(Ordering::Relaxed));
            let before = std::mem::replace(&mut worker.ran, now);
            let time = Duration::from_ns(now.as_ns().saturating_sub(before.as_ns()));
            (worker.assignment.core.load(Ordering::Relaxed), time)
        };
        self.workers.iter_mut().map(ran).collect()
    }
}

impl Worker {
    fn start(shared: Arc<Shared>, tally: Arc<Tally>, name: &str) -> std::io::Result<Worker> {
        let [until_ns, ran_ns] = [0; 2].map(AtomicU64::new);
        let (core, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let assignment = Arc::new(Assignment { core, until_ns, stop, ran_ns });
        let own = assignment.clone();
        let work = move || {
            while !own.stop.load(Ordering::Acquire) {
                own.stand_by(&shared, &tally);
                thread::park();
            }
        };
        let thread = signals::spawn(name, work)?;
        Ok(Worker { assignment, thread: Some(thread), ran: Duration::ZERO })
    }
}

impl Assignment {
    /// Stands by on the assigned core until the assigned time.
    fn stand_by(&self, shared: &Shared, tally: &Tally) {
        let is_over = || {
            let until = Instant::from_ns(self.until_ns.load(Ordering::Acquire));
            self.stop.load(Ordering::Acquire) || shared.clock.now() >= until
        };
        while !is_over() {
            let core = self.core.load(Ordering::Relaxed);
            cores::go_to(&[core]);
            let turn = shared.clock.now() + LEASE;
            let is_elsewhere = || self.core.load(Ordering::Relaxed) != core;
            shared.stand_by(tally, || is_over() || is_elsewhere() || shared.clock.now() >= turn);
            self.ran_ns.store(cores::processor_time().as_ns(), Ordering::Relaxed);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.assignment.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
