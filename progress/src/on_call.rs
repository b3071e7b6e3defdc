//! Threads on call: each sleeps on a core that computes, and preempts what runs there to post a part of a
//! message (P3 section III-D).
//!
//! The thread that sends wakes one of them with the offer ([`crate::standby`]). It has a higher priority than
//! threads of the application, as far as the system permits. It never polls: it does what was offered, and
//! sleeps again. Whether a message is worth that is decided by equation (1) of P3 with the measured time of a
//! preemption, and by the time that the computing thread loses ([`nmad_engine::Preempt`]).

use crate::cores;
use crate::shared::Shared;
use crate::signals;
use crate::slice;
use crate::topology::CoreId;
use crate::worker::Tally;
use nmad_engine::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// A thread stays on call for this long after the helper has last asked for it.
const LEASE: Duration = Duration::from_ms(50);

/// The threads on call of a process. Dropping it ends them.
pub(crate) struct OnCall {
    shared: Arc<Shared>,
    tally: Arc<Tally>,
    sleepers: Vec<Sleeper>,
}

struct Sleeper {
    core: CoreId,
    lease: Arc<Lease>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Lease {
    until_ns: AtomicU64,
    stop: AtomicBool,
}

impl OnCall {
    pub(crate) fn new(shared: Arc<Shared>) -> OnCall {
        OnCall { shared, tally: Arc::default(), sleepers: Vec::new() }
    }

    /// Puts a thread on call on each of these cores for a while.
    pub(crate) fn extend(&mut self, cores: &[CoreId], name: &str) {
        let now = self.shared.clock.now();
        for &core in cores {
            let place = self.sleepers.iter().position(|sleeper| sleeper.core == core);
            let place = place.or_else(|| {
                // If the system has no thread left, the sender posts itself.
                let sleeper = Sleeper::start(core, self.shared.clone(), self.tally.clone(), name).ok()?;
                self.sleepers.push(sleeper);
                Some(self.sleepers.len() - 1)
            });
            if let Some(place) = place {
                self.sleepers[place].extend(now);
            }
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Sleeper {
    fn start(core: CoreId, shared: Arc<Shared>, tally: Arc<Tally>, name: &str) -> std::io::Result<Sleeper> {
        let lease = Arc::<Lease>::default();
        let own = lease.clone();
        let thread = signals::spawn(name, move || {
            slice::preempt();
            // Elsewhere it would preempt the sender.
            if cores::go_to(&[core]) {
                own.serve(core, &shared, &tally);
            }
        })?;
        Ok(Sleeper { core, lease, thread: Some(thread) })
    }

    /// A wakeup takes some microseconds of the computing thread, so there is one for each lease only.
    fn extend(&self, now: Instant) {
        let before_ns = self.lease.until_ns.swap((now + LEASE).as_ns(), Ordering::AcqRel);
        if Instant::from_ns(before_ns) <= now {
            self.wake();
        }
    }

    fn wake(&self) {
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Lease {
    fn serve(&self, core: CoreId, shared: &Shared, tally: &Tally) {
        while !self.stop.load(Ordering::Acquire) {
            let now = shared.clock.now();
            let until = Instant::from_ns(self.until_ns.load(Ordering::Acquire));
            if now < until {
                shared.standby.enter_on_call(core);
                thread::park_timeout(std::time::Duration::from_nanos(until.since(now).as_ns()));
            } else {
                shared.standby.leave_on_call(core);
                thread::park();
            }
            let mut begun = shared.clock.now();
            while let Some(done) = shared.standby.answer(core) {
                let over = shared.clock.now();
                tally.add(done, over.since(begun));
                begun = over;
            }
            shared.put_back();
        }
        shared.standby.leave_on_call(core);
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.lease.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
