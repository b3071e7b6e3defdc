//! Threads that stand by on idle cores: the helper, and where a process has three rails or more, or works on
//! large memory, workers.
//!
//! A message is shared out among min(idle rails, idle cores) rails (P3 section III-B), so a process needs as
//! many threads that stand by as it has rails beside the one that the caller posts on. Workers are started
//! when they are needed for the first time, each pinned to an idle core. They sleep unless the helper stands
//! by.

use crate::cores;
use crate::shared::Shared;
use crate::signals;
use crate::standby::Done;
use crate::topology::CoreId;
use nmad_engine::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Looks for something to post from one look at the clock to the next.
const SPINS: u32 = 32;
/// A worker stands by for this long after the helper has last said that it does: the helper says so ten
/// times as often, so that it is not woken again and again.
const LEASE: Duration = Duration::from_ms(1);

/// What threads have posted, and how long it took.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    posted: AtomicU64,
    /// Work on large memory of which they did pieces.
    shared: AtomicU64,
    took_ns: AtomicU64,
}

impl Tally {
    fn add(&self, done: Done, took: Duration) {
        match done {
            Done::Posted => self.posted.fetch_add(1, Ordering::Relaxed),
            Done::Shared(pieces) => self.shared.fetch_add(u64::from(pieces > 0), Ordering::Relaxed),
        };
        self.took_ns.fetch_add(took.as_ns(), Ordering::Relaxed);
    }

    /// Rails posted on, work shared, and the time for both, since the last call.
    pub(crate) fn take(&self) -> ([u64; 2], Duration) {
        let took_ns = self.took_ns.swap(0, Ordering::Relaxed);
        (
            [&self.posted, &self.shared].map(|count| count.swap(0, Ordering::Relaxed)),
            Duration::from_ns(took_ns),
        )
    }
}

impl Shared {
    /// Posts what other threads hand over, until `over`, which is asked every few looks.
    pub(crate) fn stand_by(&self, tally: &Tally, over: impl Fn() -> bool) {
        let standing = self.standby.enter(cores::here());
        while !over() {
            for _ in 0..SPINS {
                if self.standby.has_offers() {
                    let begun = self.clock.now();
                    if let Some(done) = standing.run_one() {
                        tally.add(done, self.clock.now().since(begun));
                    }
                }
                std::hint::spin_loop();
            }
            // A thread that is inside puts the rail back itself, if it needs it.
            if self.standby.has_posted()
                && !self.is_inside()
                && let Some(mut core) = self.try_lock()
                && core.reclaim_all()
            {
                self.push(&mut core, false);
            }
        }
    }
}

/// The workers of a process. Dropping it ends them.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    tally: Arc<Tally>,
    workers: Vec<Worker>,
}

struct Worker {
    told: Arc<Told>,
    thread: Option<JoinHandle<()>>,
    /// Its processor time when it was last asked for.
    ran: Duration,
}

/// Orders to a worker, and its account.
struct Told {
    core: AtomicUsize,
    until_ns: AtomicU64,
    stop: AtomicBool,
    /// Its processor time.
    ran_ns: AtomicU64,
}

impl Crew {
    pub(crate) fn new(shared: Arc<Shared>, tally: Arc<Tally>) -> Crew {
        Crew { shared, tally, workers: Vec::new() }
    }

    /// Has a worker stand by on each of these cores for a while.
    pub(crate) fn stand_by(&mut self, cores: &[CoreId], name: &str) {
        let until = self.shared.clock.now() + LEASE;
        while self.workers.len() < cores.len() {
            // A system without threads left goes on with those that there are.
            let Ok(worker) = Worker::start(self.shared.clone(), self.tally.clone(), name) else { break };
            self.workers.push(worker);
        }
        for (worker, &core) in self.workers.iter().zip(cores) {
            worker.told.core.store(core, Ordering::Relaxed);
            let before_ns = worker.told.until_ns.swap(until.as_ns(), Ordering::AcqRel);
            if Instant::from_ns(before_ns) <= self.shared.clock.now()
                && let Some(thread) = &worker.thread
            {
                thread.thread().unpark();
            }
        }
    }

    /// How long each has run since the last call, and on which core.
    pub(crate) fn ran(&mut self) -> Vec<(CoreId, Duration)> {
        let ran = |worker: &mut Worker| {
            let now = Duration::from_ns(worker.told.ran_ns.load(Ordering::Relaxed));
            let before = std::mem::replace(&mut worker.ran, now);
            let time = Duration::from_ns(now.as_ns().saturating_sub(before.as_ns()));
            (worker.told.core.load(Ordering::Relaxed), time)
        };
        self.workers.iter_mut().map(ran).collect()
    }
}

impl Worker {
    fn start(shared: Arc<Shared>, tally: Arc<Tally>, name: &str) -> std::io::Result<Worker> {
        let [until_ns, ran_ns] = [0; 2].map(AtomicU64::new);
        let (core, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let told = Arc::new(Told { core, until_ns, stop, ran_ns });
        let own = told.clone();
        let work = move || {
            while !own.stop.load(Ordering::Acquire) {
                own.stand_by(&shared, &tally);
                thread::park();
            }
        };
        let thread = signals::without(|| thread::Builder::new().name(name.into()).spawn(work))?;
        Ok(Worker { told, thread: Some(thread), ran: Duration::ZERO })
    }
}

impl Told {
    /// Stands by as long as it is told to, where it is told to.
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
        self.told.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
