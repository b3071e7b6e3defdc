//! State that the threads of the application and the helper share: one of them holds the lock and turns the
//! pump, others sleep.

use crate::apart::Held;
use crate::clock::Clock;
use crate::cores;
use crate::idle;
use crate::lock::{Guard, Lock};
use crate::locked::Core;
use crate::standby::Standby;
use crate::state::State;
use nmad_engine::profile::estimate::burst::Burst;
use nmad_engine::{Duration, Instant, pump};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Turns of the pump from one reading of the clock to the next while nothing is posted; a power of two.
const CLOCK_EVERY: u32 = 8;

/// Numbers of events that may be what a thread waits for: calls of [`crate::Node::rouse`], and ended requests
/// for which no thread waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tidings {
    roused: u32,
    ended: u32,
}

/// State that the application's threads and the helper share.
pub(crate) struct Shared {
    core: Lock<Core>,
    pub(crate) clock: Clock,
    /// Turns of the pump by any thread. Written under the lock; the helper reads it without.
    turns: AtomicU32,
    /// Number of threads that sleep without the lock, and the descriptor that wakes them.
    pub(crate) sleepers: AtomicUsize,
    pub(crate) alarm: OwnedFd,
    /// Calls of [`crate::Node::rouse`].
    pub(crate) roused: AtomicU32,
    pub(crate) standby: Arc<Standby>,
    /// The helper's part; none before it starts.
    helper: OnceLock<Arc<State>>,
}

impl Shared {
    /// Makes the state of a node, with the lock free.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub(crate) fn new(core: Core) -> std::io::Result<Shared> {
        let alarm = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let (clock, turns, sleepers) = (Clock::start(), AtomicU32::new(0), AtomicUsize::new(0));
        let standby = core.standby.clone();
        let roused = AtomicU32::new(0);
        let (core, helper) = (Lock::new(core), OnceLock::new());
        Ok(Shared { core, clock, turns, sleepers, alarm, roused, standby, helper })
    }

    pub(crate) fn set_helper(&self, helper: Arc<State>) {
        // There is one.
        let _ = self.helper.set(helper);
    }

    /// A poll of the rails has them believe that threads which sleep are awake.
    #[inline]
    pub(crate) fn disarm(&self, core: &mut Core) {
        if std::mem::take(&mut core.is_armed)
            && let Some(helper) = self.helper.get()
        {
            helper.disarmed();
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, Core> {
        self.core.lock()
    }

    pub(crate) fn try_lock(&self) -> Option<Guard<'_, Core>> {
        self.core.try_lock()
    }

    /// Returns whether other threads wait for the lock.
    pub(crate) fn is_wanted(&self) -> bool {
        self.core.is_wanted()
    }

    /// Returns whether a thread of the application holds the lock, as far as known without taking it.
    pub(crate) fn is_inside(&self) -> bool {
        self.core.is_inside()
    }

    /// Returns the approximate number of turns of the pump so far.
    #[inline]
    pub(crate) fn turns(&self) -> u32 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Makes the next turn read the clock. The caller holds the lock.
    #[inline]
    pub(crate) fn forget_time(&self) {
        self.turns.store(self.turns() | (CLOCK_EVERY - 1), Ordering::Relaxed);
    }

    /// Records that a thread begins to wait; returns whether something was submitted since the last wait.
    #[inline]
    pub(crate) fn waits(&self, core: &mut Core) -> bool {
        core.engine.setup().waits(false);
        core.core_sharing.begins();
        self.end_burst(core)
    }

    /// Ends a burst, since a thread waits now; returns whether something was submitted since the last wait.
    #[inline]
    pub(crate) fn end_burst(&self, core: &mut Core) -> bool {
        let is_open = core.bursts.is_open();
        if is_open {
            let now = self.clock.now();
            if let Some(Burst { count, took, computed }) = core.bursts.ended(now) {
                core.engine.setup().note_burst(now, count, took, computed);
            }
        }
        is_open
    }

    /// Feeds the rails without polling them; returns whether requests have ended.
    #[inline]
    pub(crate) fn push(&self, core: &mut Guard<'_, Core>, urgent: bool) -> bool {
        let found_at = core.now;
        let mut now = found_at;
        let fed = pump::feed(&mut Held(core), found_at, &mut self.clock.kept_in(&mut now), urgent);
        core.now = core.now.max(now);
        // An idle rail that accepted nothing is full: it may have completed a send meanwhile.
        if !fed && core.engine.inspect().is_stuck(now) {
            self.disarm(core);
            pump::turn(&mut Held(core), found_at, &mut || self.clock.now(), urgent);
            // The turn may take long if a rail has room again.
            core.now = self.clock.now();
        }
        self.collect(core)
    }

    /// Turns the pump once; returns whether something happened.
    #[inline]
    pub(crate) fn turn(&self, core: &mut Guard<'_, Core>, urgent: bool) -> bool {
        self.disarm(core);
        // Reading the clock costs a tenth of a look at a rail, so a thread that spins reads it only now and
        // then.
        let turns = self.turns().wrapping_add(1);
        self.turns.store(turns, Ordering::Relaxed);
        if turns.is_multiple_of(CLOCK_EVERY) {
            core.now = self.clock.now();
        }
        let found_at = core.now;
        let mut now = found_at;
        let happened = pump::turn(&mut Held(core), found_at, &mut self.clock.kept_in(&mut now), urgent);
        core.now = core.now.max(now);
        core.engine.setup().waits(urgent);
        if happened {
            // Handling the events may have taken long.
            self.forget_time();
            if core.engine.has_news() {
                self.collect(core);
            }
        } else {
            idle::end_speculation();
        }
        if !core.services.is_empty() {
            return self.serve(core) || happened;
        }
        happened
    }

    /// Runs the services of the node; returns whether it did something.
    #[inline(never)]
    pub(crate) fn serve(&self, core: &mut Guard<'_, Core>) -> bool {
        let Core { engine, services, service_waits, .. } = &mut **core;
        let served = services.serve(engine);
        *service_waits = served.waits;
        if served.worked {
            // Peers wait for the submitted messages.
            if core.may_feed() {
                self.push(core, true);
            } else if core.engine.has_news() {
                self.collect(core);
            }
        }
        served.worked
    }

    /// Handles ended requests and notices; returns whether a request has ended.
    #[inline(never)]
    pub(crate) fn collect(&self, core: &mut Core) -> bool {
        let ended = core.engine.any_ended();
        if core.engine.inspect().has_notices() {
            self.tell_notices(core);
        }
        if ended {
            self.news(core);
        }
        ended
    }

    #[cold]
    fn tell_notices(&self, core: &mut Core) {
        while let Some(notice) = core.engine.next_notice() {
            (core.tell)(&notice);
        }
    }

    /// Announces an ended request: wakes sleeping threads, unless it is the one that this thread waits for.
    #[inline]
    pub(crate) fn news(&self, core: &mut Core) {
        if !core.awaited.is_some_and(|request| core.engine.inspect().only_ended(request)) {
            core.ended = core.ended.wrapping_add(1);
            self.wake_sleepers();
        }
        if let Some(watch) = &mut core.watch {
            watch.ended();
        }
        if !core.on_receipt.is_empty() {
            core.tell_receipts();
        }
    }

    /// Yields the core, without the lock.
    #[cold]
    pub(crate) fn yield_core<'a>(&'a self, core: Guard<'a, Core>) -> Guard<'a, Core> {
        let before = self.clock.now();
        drop(core);
        // A missing rail may wait for a core to post on it.
        let helped = self.standby.has_offers() && self.standby.help(cores::here());
        if !helped {
            std::thread::yield_now();
        }
        let mut core = self.lock();
        core.now = self.clock.now();
        if !helped {
            let now = core.now;
            core.core_sharing.yielded(now, now.since(before));
        }
        core.look_once();
        core
    }

    pub(crate) fn tidings(&self, core: &Core) -> Tidings {
        Tidings { roused: self.roused.load(Ordering::SeqCst), ended: core.ended }
    }

    /// Sleeps without the lock until a rail has an event, another thread has completed requests, the
    /// engine's next deadline, or the time `until`. Does not sleep if there are other tidings than those
    /// that were seen.
    #[cold]
    pub(crate) fn sleep<'a>(
        &'a self,
        mut core: Guard<'a, Core>,
        until: Option<Instant>,
        seen: Option<Tidings>,
    ) -> Guard<'a, Core> {
        let awaited = core.awaited.take();
        let wants_links = awaited.is_some_and(|request| core.engine.sleeps_for(Some(request)));
        let (descriptors, mut bound) = core.prepare_sleep();
        if wants_links {
            // The next look at the rails asks for the links.
            bound = Duration::from_us(1);
        }
        if let Some(until) = until {
            bound = bound.min(until.since(core.now).max(Duration::from_us(1)));
        }
        // A thread that calls `rouse` after this wakes this one; one that has called it before is seen.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let is_late = seen.is_some_and(|seen| seen != self.tidings(&core));
        drop(core);
        if !is_late {
            idle::block_on(&descriptors, &self.alarm, bound);
        }
        let mut core = self.lock();
        if self.sleepers.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _ = rustix::io::read(&self.alarm, &mut [0u8; 8]);
        }
        core.now = self.clock.now();
        let now = core.now;
        core.core_sharing.slept(now);
        core
    }
}
