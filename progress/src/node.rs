//! The node: an engine and its rails, for any number of threads.

use crate::apart::Held;
use crate::burst::Bursts;
use crate::clock::Clock;
use crate::crowd::Crowd;
use crate::helper::Helper;
use crate::idle::{self, Idle, Stage};
use crate::lock::{Guard, Lock, Release};
use crate::receipts::Listener;
use crate::service::Service;
use crate::standby::Standby;
use crate::watch::Watch;
use nmad_engine::{Driver, Duration, Engine, Envelope, Error, Instant, Interest, Notice, RequestId, pump};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Tells the user something.
pub type Tell = fn(&Notice);

/// How a request ended.
pub type Outcome = Result<Envelope, Error>;

/// The result of a wait: the awaited answer, or the request that has to end before, if it is known.
pub(crate) type Looked<R> = Result<R, Option<RequestId>>;

/// Nobody sleeps longer than this without looking at the rails: some have timers of their own.
const SLEEP_MAX: Duration = Duration::from_ms(50);
/// And no longer than this while a service waits for what no rail reports.
const SLEEP_SERVING: Duration = Duration::from_ms(1);
/// Turns of the pump for each reading of the clock, while nothing is posted; a power of two.
const CLOCK_EVERY: u32 = 8;
/// And no longer than this when a rail cannot say when it has something.
const SLEEP_BLIND: Duration = Duration::from_us(200);

/// Why a wait without a bound always has an answer.
const ENDLESS: &str = "it waits until there is one";

/// An engine, its rails, and the threads that move it.
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    pub(crate) helper: Helper,
    pub(crate) idle: Idle,
}

/// What the application's threads and the helper share.
pub(crate) struct Shared {
    core: Lock<Core>,
    pub(crate) clock: Clock,
    /// Turns of the pump by any thread. Only written with the lock; the helper looks at it without.
    turns: AtomicU32,
    /// Threads that sleep outside of the lock, and what wakes them.
    pub(crate) sleepers: AtomicUsize,
    pub(crate) alarm: OwnedFd,
    pub(crate) standby: Arc<Standby>,
}

pub(crate) struct Core {
    pub(crate) engine: Engine,
    /// The rails in their places; none while a thread works with one ([`crate::apart`]).
    pub(crate) rails: Vec<Option<Box<dyn Driver>>>,
    /// Rails that other cores post on.
    pub(crate) standby: Arc<Standby>,
    /// A rail was not in its place since this was last cleared.
    pub(crate) missed: bool,
    /// What the thread that turns the pump waits for, and takes when it has ended.
    awaited: Option<RequestId>,
    tell: Tell,
    /// The time, as of one of the last turns.
    pub(crate) now: Instant,
    /// Looks for an expected message since the last turn.
    pub(crate) looks: u32,
    /// All rails wake a sleeping thread: they were asked to, and nobody has looked at them since.
    pub(crate) is_armed: bool,
    pub(crate) bursts: Bursts,
    pub(crate) crowd: Crowd,
    /// For an application with a loop of its own; none until it asks.
    pub(crate) watch: Option<Watch>,
    pub(crate) on_receipt: Vec<Listener>,
    /// Goes on after each look at the rails.
    pub(crate) service: Option<Box<dyn Service>>,
    /// It has to be asked again soon, whatever arrives.
    pub(crate) service_waits: bool,
}

impl Node {
    /// Takes over an engine and its rails, in the order in which they were added to it. `tell` is called with
    /// what the user should know, by whichever thread finds it.
    ///
    /// # Errors
    /// The system has no descriptor or thread left.
    pub fn new(engine: Engine, rails: Vec<Box<dyn Driver>>, idle: Idle, tell: Tell) -> std::io::Result<Node> {
        let core = Core::new(engine, rails, tell);
        let alarm = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let (clock, turns, sleepers) = (Clock::start(), AtomicU32::new(0), AtomicUsize::new(0));
        let standby = core.standby.clone();
        let shared = Arc::new(Shared { core: Lock::new(core), clock, turns, sleepers, alarm, standby });
        let helper = Helper::start(shared.clone(), idle == Idle::SHARED)?;
        Ok(Node { shared, helper, idle })
    }

    /// Submits something; an idle rail takes it at once, a busy one later.
    #[inline]
    pub fn submit<R>(&self, submission: impl FnOnce(&mut Engine) -> R) -> R {
        self.submit_to(&mut self.shared.lock(), |_, core| submission(&mut core.engine))
    }

    #[inline]
    pub(crate) fn submit_to<'a, R>(
        &'a self,
        core: &mut Guard<'a, Core>,
        submission: impl FnOnce(&'a Shared, &mut Guard<'a, Core>) -> R,
    ) -> R {
        let answer = submission(&self.shared, core);
        // Most receives leave nothing to be done.
        if core.has_work() {
            self.shared.push_or_hold(core);
        }
        self.mind(core);
        answer
    }

    /// Transfers that are under way go on while the application computes.
    #[inline]
    pub(crate) fn mind(&self, core: &Core) {
        if core.engine.pending() > 0 {
            self.helper.wake();
        }
    }

    /// Looks at the engine, without moving it.
    pub fn with<R>(&self, look: impl FnOnce(&mut Engine) -> R) -> R {
        look(&mut self.shared.lock().engine)
    }

    /// Looks at the rails, when no thread works with one of them.
    pub fn with_rails<R>(&self, look: impl FnOnce(&mut [&mut dyn Driver]) -> R) -> R {
        loop {
            let mut core = self.shared.lock();
            core.reclaim_all();
            let rails = core.rails.iter_mut().map(|rail| rail.as_deref_mut().map(|rail| rail as _));
            if let Some(mut rails) = rails.collect::<Option<Vec<&mut dyn Driver>>>() {
                return look(&mut rails);
            }
            drop(core);
            std::thread::yield_now();
        }
    }

    /// The time now, on the clock that the engine is given.
    pub fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Turns the pump once, as a thread that waits.
    pub fn turn(&self) -> bool {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        self.shared.turn(&mut core, true)
    }

    /// Waits until the request ends.
    #[inline]
    pub fn wait(&self, request: RequestId) -> Outcome {
        self.wait_until(None, |core| core.take(request)).expect(ENDLESS)
    }

    /// Submits a request and waits for it, without letting go of the lock in between.
    #[inline]
    pub fn call(&self, submission: impl FnOnce(&mut Engine) -> RequestId) -> Outcome {
        let mut core = self.shared.lock();
        let request = submission(&mut core.engine);
        self.shared.waits(&mut core);
        self.finish(core, request)
    }

    #[inline]
    pub(crate) fn finish(&self, mut core: Guard<'_, Core>, request: RequestId) -> Outcome {
        self.shared.push(&mut core, true);
        let ended = core.engine.take(request);
        drop(core);
        ended.unwrap_or_else(|| self.wait(request))
    }

    /// Turns the pump until `ready` answers; spins, yields and blocks as [`Idle`] says. None: it did not
    /// answer before the time `until`, nor after a look at the rails since: whoever stood still for longer
    /// finds what has come meanwhile.
    #[inline]
    pub(crate) fn wait_until<R>(
        &self,
        until: Option<Instant>,
        ready: impl FnMut(&mut Guard<'_, Core>) -> Looked<R>,
    ) -> Option<R> {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        self.wait_on(core, (None, until), ready)
    }

    /// The same with the lock, and the time of the last event if this thread has waited already.
    #[inline]
    pub(crate) fn wait_on<'a, R>(
        &'a self,
        mut core: Guard<'a, Core>,
        (mut active, until): (Option<Instant>, Option<Instant>),
        mut ready: impl FnMut(&mut Guard<'_, Core>) -> Looked<R>,
    ) -> Option<R> {
        loop {
            let awaited = match ready(&mut core) {
                Ok(answer) => {
                    core.awaited = None;
                    return Some(answer);
                }
                Err(awaited) => awaited,
            };
            let is_over = until.is_some_and(|until| core.now >= until);
            let from = awaited.and_then(|request| core.engine.awaited_from(request));
            (core.missed, core.awaited) = (false, awaited);
            let happened = from.is_some_and(|from| self.shared.look_for(&mut core, from))
                || self.shared.turn(&mut core, true);
            if is_over {
                core.awaited = None;
                return ready(&mut core).ok();
            }
            let active = active.get_or_insert(core.now);
            if happened {
                *active = core.now;
                core.crowd.happened();
                continue;
            }
            match core.crowd.idle(self.idle).stage(core.now.since(*active)) {
                // The thread that works with the rail needs the lock when it has found something.
                Stage::Spin if core.missed => core = self.shared.give_away(core),
                // Looking at a rail costs a system call: that is pause enough.
                Stage::Spin => {}
                Stage::Yield => core = self.shared.give_away(core),
                Stage::Block => {
                    // Another thread may have ended it while this one looked at the rails, and has woken
                    // nobody.
                    if core.is_shared()
                        && let Ok(answer) = ready(&mut core)
                    {
                        return Some(answer);
                    }
                    core = self.shared.sleep(core, until);
                }
            }
        }
    }
}

impl Shared {
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, Core> {
        self.core.lock()
    }

    pub(crate) fn try_lock(&self) -> Option<Guard<'_, Core>> {
        self.core.try_lock()
    }

    /// Whether other threads wait for the lock.
    pub(crate) fn is_wanted(&self) -> bool {
        self.core.is_wanted()
    }

    /// Whether a thread of the application uses the node, as far as can be told without the lock.
    pub(crate) fn is_inside(&self) -> bool {
        self.core.is_inside()
    }

    /// Turns of the pump so far, about.
    #[inline]
    pub(crate) fn turns(&self) -> u32 {
        self.turns.load(Ordering::Relaxed)
    }

    /// The next turn reads the clock. The caller has the lock.
    #[inline]
    pub(crate) fn forget_time(&self) {
        self.turns.store(self.turns() | (CLOCK_EVERY - 1), Ordering::Relaxed);
    }

    /// Somebody waits: the window is released.
    #[inline]
    pub(crate) fn waits(&self, core: &mut Core) {
        if core.bursts.is_open() {
            core.bursts.ended(self.clock.now());
        }
    }

    /// Feeds the rails without looking at them; true: requests have ended.
    #[inline]
    pub(crate) fn push(&self, core: &mut Guard<'_, Core>, urgent: bool) -> bool {
        let found_at = core.now;
        let mut now = found_at;
        let fed = pump::feed(&mut Held(core), found_at, &mut self.clock.kept_in(&mut now), urgent);
        core.now = core.now.max(now);
        // An idle rail that took nothing is full: perhaps it has sent something meanwhile.
        if !fed && core.engine.is_stuck(now) {
            core.is_armed = false;
            pump::turn(&mut Held(core), found_at, &mut || self.clock.now(), urgent);
        }
        self.collect(core)
    }

    /// One turn of the pump.
    #[inline]
    pub(crate) fn turn(&self, core: &mut Guard<'_, Core>, urgent: bool) -> bool {
        core.is_armed = false;
        // Reading the clock costs as much as a tenth of a look at a rail; a thread that spins does it now and
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
        if happened {
            // What happened may have taken long.
            self.forget_time();
            if core.engine.has_news() {
                self.collect(core);
            }
        } else {
            idle::look_anew();
        }
        if core.service.is_some() {
            return self.serve(core) || happened;
        }
        happened
    }

    /// Takes note of what has ended; true: something has.
    #[inline(never)]
    pub(crate) fn collect(&self, core: &mut Core) -> bool {
        let ended = core.engine.any_ended();
        if core.engine.has_notices() {
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

    /// A request has ended: threads that sleep are woken, unless it is the one that this thread waits for.
    #[inline]
    pub(crate) fn news(&self, core: &mut Core) {
        if !core.awaited.is_some_and(|request| core.engine.only_ended(request)) {
            self.rouse();
        }
        if let Some(watch) = &mut core.watch {
            watch.ended();
        }
        if !core.on_receipt.is_empty() {
            core.tell_receipts();
        }
    }

    /// Gives the core to others, without the lock.
    #[cold]
    pub(crate) fn give_away<'a>(&'a self, core: Guard<'a, Core>) -> Guard<'a, Core> {
        let before = self.clock.now();
        drop(core);
        std::thread::yield_now();
        let mut core = self.lock();
        core.now = self.clock.now();
        let took = core.now.since(before);
        core.crowd.gave_away(took);
        core.look_once();
        core
    }

    /// Sleeps without the lock until a rail has something, another thread has completed requests, or the
    /// engine's next deadline, or the time `until`.
    #[cold]
    pub(crate) fn sleep<'a>(&'a self, mut core: Guard<'a, Core>, until: Option<Instant>) -> Guard<'a, Core> {
        let (descriptors, mut bound) = core.prepare_sleep();
        core.awaited = None;
        if let Some(until) = until {
            bound = bound.min(until.since(core.now).max(Duration::from_us(1)));
        }
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        drop(core);
        idle::block_on(&descriptors, &self.alarm, bound);
        let mut core = self.lock();
        if self.sleepers.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _ = rustix::io::read(&self.alarm, &mut [0u8; 8]);
        }
        core.now = self.clock.now();
        core
    }
}

impl Core {
    pub(crate) fn new(engine: Engine, rails: Vec<Box<dyn Driver>>, tell: Tell) -> Core {
        let standby = Arc::new(Standby::new(engine.cores().clone()));
        Core {
            engine,
            standby,
            rails: rails.into_iter().map(Some).collect(),
            missed: false,
            awaited: None,
            tell,
            now: Instant::default(),
            looks: 0,
            is_armed: false,
            bursts: Bursts::default(),
            crowd: Crowd::default(),
            watch: None,
            on_receipt: Vec::new(),
            service: None,
            service_waits: false,
        }
    }

    /// Whether a rail may be fed, or somebody is to be told of something.
    #[inline]
    pub(crate) fn has_work(&mut self) -> bool {
        self.may_feed() || self.engine.has_news()
    }

    /// Whether a rail may be fed.
    #[inline]
    pub(crate) fn may_feed(&mut self) -> bool {
        self.engine.has_orders(self.now) || self.engine.has_errands()
    }

    /// The result of a request, for a thread that waits for it.
    #[inline]
    pub(crate) fn take(&mut self, request: RequestId) -> Looked<Outcome> {
        self.engine.take(request).ok_or(Some(request))
    }

    /// The wakeups of a thread that sleeps now, and for how long nothing else needs a look at the rails.
    pub(crate) fn prepare_sleep(&mut self) -> (Vec<i32>, Duration) {
        // A rail that another thread works with wakes nobody.
        let told: Vec<Option<i32>> =
            self.rails.iter_mut().map(|rail| rail.as_mut()?.wakeup(Interest::Traffic)).collect();
        self.is_armed = !told.contains(&None);
        let mut bound = if !self.is_armed {
            SLEEP_BLIND
        } else if self.service_waits {
            SLEEP_SERVING
        } else {
            SLEEP_MAX
        };
        if let Some(deadline) = self.engine.next_deadline() {
            bound = bound.min(deadline.since(self.now).max(Duration::from_us(1)));
        }
        (told.into_iter().flatten().filter(|&fd| fd >= 0).collect(), bound)
    }
}
