//! The helper: a thread that turns the pump while the application computes.
//!
//! [`crate::policy`] decides what it does next, from what each look at the node has found. It is woken only
//! by a submission that leaves something pending after a long silence, by the rails that it watches, and by a
//! peer that wants a link, which would take a process that computes for long, and answers nobody, for dead. A
//! thread that waits never wakes it: to wake a thread takes 12 to 16 us (two hosts on 2 cores).
//!
//! A process that was forked has no helper; there the node can only be dropped.

use crate::cores::{self, Cores};
use crate::idle::block_on;
use crate::lock::Guard;
use crate::locked::Core;
use crate::policy::{Account, PERIOD, Policy, Sight, Step};
use crate::setting::Progress;
use crate::shared::Shared;
use crate::signals;
use crate::slice;
use crate::topology::{CoreId, Topology};
use crate::wish::Wishes;
use crate::worker::{Crew, Tally};
use nmad_engine::Duration as Span;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The name of the thread.
const NAME: &str = "nmad-progress";
/// Turns of the pump at each look at rails that lose: where some links were busy lately a rail looks at the
/// others once in a few dozen turns only.
const LOOKS: u32 = 64;
/// It rests until it is woken; a sleep has to have a length.
const REST: Span = Span::from_ms(3_600_000);
/// With a rail that loses it looks so often: there only this process itself acknowledges and says that it
/// lives, and peers give up a process that leaves them without an answer for some seconds.
const LOOK: Span = Span::from_ms(250);

/// Its time slice on a core that it shares: the shortest that Linux grants. A thread with a shorter slice
/// than the running one gets the core as soon as it wakes; with the usual 3 ms the helper would wait until
/// the program has computed for as long.
const SLICE: Span = Span::from_us(100);

/// What the helper does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Doing {
    /// Sleeps until something is submitted.
    #[default]
    Rests,
    /// Turns the pump once in a while.
    Ticks,
    /// Sleeps until a rail has something.
    Watches,
    /// Turns the pump all the time.
    Polls,
    /// Looks all the time whether another thread hands it something to post.
    StandsBy,
}

/// What the helper has decided and done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Helped {
    /// The setting in force.
    pub setting: Progress,
    /// Cores that the process may use; empty where the system does not tell.
    pub allowed: Vec<usize>,
    /// Those of them on which the helper may run now since they are idle, or its own.
    pub cores: Vec<usize>,
    /// There are more ranks than cores: it gives way.
    pub gives_way: bool,
    /// Its present activity.
    pub doing: Doing,
    /// Helping has stopped for a while since it cost more than it gave.
    pub is_suspended: bool,
    /// How often that has happened.
    pub suspensions: u64,
    /// Its turns of the pump.
    pub turns: u64,
    /// Those that have moved something while the application computed.
    pub moved: u64,
    /// Rails on which it has posted what a thread in a call has handed it.
    pub posted: u64,
    /// Large copies, packings and reductions of other threads of which it, or a worker, has done a part.
    pub shared: u64,
    /// How long all of this took, in nanoseconds: work that the application did not have to do.
    pub given_ns: u64,
    /// Processor time of the helper while it was judged, in nanoseconds.
    pub spent_ns: u64,
    /// How long the application's threads waited for a core meanwhile, in nanoseconds.
    pub delayed_ns: u64,
}

/// Tells how cores are arranged; called by the helper, once, where it matters.
pub(crate) type Arrange = fn(&[CoreId]) -> Topology;

/// The thread; it ends with this value.
pub(crate) struct Helper {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread.
    process: u32,
}

struct State {
    resting: AtomicBool,
    stop: AtomicBool,
    /// The setting was changed.
    changed: AtomicBool,
    /// Cores of the job beside those of the process, and what tells which of them are near to each other.
    shared_cores: Mutex<(Vec<CoreId>, Option<Arrange>)>,
    /// Ends a rest.
    bell: OwnedFd,
    helped: Mutex<Helped>,
}

impl Helper {
    pub(crate) fn start(shared: Arc<Shared>, oversubscribed: bool) -> std::io::Result<Helper> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let mut cores = Cores::new();
        let allowed = cores.allowed();
        let helped = Mutex::new(Helped { allowed, gives_way: oversubscribed, ..Helped::default() });
        let no = || AtomicBool::new(false);
        let shared_cores = Mutex::default();
        let (resting, stop, changed) = (no(), no(), no());
        let state = Arc::new(State { resting, stop, changed, shared_cores, bell, helped });
        let own = state.clone();
        let serve = move || Work::new(&shared, &own, cores, oversubscribed).serve();
        let thread = signals::without(|| thread::Builder::new().name(NAME.into()).spawn(serve))?;
        Ok(Helper { state, thread: Some(thread), process: std::process::id() })
    }

    /// Something is pending: makes sure that the thread looks after it.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.state.resting.load(Ordering::Relaxed) {
            self.state.ring();
        }
    }

    /// Chooses what the thread does from now on.
    ///
    /// # Errors
    /// This process cannot have it; nothing has changed.
    pub(crate) fn set_progress(&self, setting: Progress) -> Result<(), String> {
        setting.check()?;
        self.state.helped().setting = setting;
        self.state.changed.store(true, Ordering::Release);
        self.state.ring();
        Ok(())
    }

    /// Cores of other ranks on which the thread may run too, and what tells which are near to each other.
    pub(crate) fn share_cores(&self, cores: Vec<CoreId>, arrange: Arrange) {
        *self.state.shared_cores() = (cores, Some(arrange));
        self.state.changed.store(true, Ordering::Release);
        self.state.ring();
    }

    /// What the thread has decided and done.
    pub(crate) fn helped(&self) -> Helped {
        self.state.helped().clone()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // A forked process has the value and not the thread.
        if std::process::id() != self.process {
            return;
        }
        self.state.stop.store(true, Ordering::Release);
        self.state.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl State {
    #[cold]
    fn ring(&self) {
        self.resting.store(false, Ordering::Release);
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Sleeps until one of the descriptors is readable or somebody rings. One that rings late ends the next
    /// sleep early.
    fn sleep(&self, descriptors: &[i32], bound: Span) {
        block_on(descriptors, &self.bell, bound);
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
    }

    fn shared_cores(&self) -> MutexGuard<'_, (Vec<CoreId>, Option<Arrange>)> {
        self.shared_cores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn helped(&self) -> MutexGuard<'_, Helped> {
        self.helped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the thread is wanted for something else than what it does.
    fn is_called(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.changed.load(Ordering::Acquire)
    }
}

/// What the thread works with.
struct Work<'a> {
    shared: &'a Arc<Shared>,
    state: &'a State,
    policy: Policy,
    cores: Cores,
    topology: Topology,
    /// Its own cores, the nearest to the application first.
    places: Vec<CoreId>,
    /// Rails of the node at the last look.
    rails: usize,
    crew: Crew,
    tally: Arc<Tally>,
    /// Turns of the pump by the time of the last look.
    turns: u32,
    wishes: Wishes,
    /// Descriptors of rails that end a sleep.
    watched: Vec<i32>,
    /// Since the last review.
    given: Span,
    /// At the last review: processor time of this thread, and delay of the application's.
    before: (Span, Span),
}

impl<'a> Work<'a> {
    fn new(shared: &'a Arc<Shared>, state: &'a State, cores: Cores, oversubscribed: bool) -> Work<'a> {
        // A nap should be as long as was asked for; the system rounds up by 50 us otherwise.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        slice::ask_for(SLICE);
        let policy = Policy::new(shared.clock.now(), state.helped().setting.clone(), oversubscribed);
        let tally = Arc::new(Tally::default());
        Work {
            shared,
            state,
            policy,
            cores,
            topology: Topology::default(),
            places: Vec::new(),
            rails: 0,
            crew: Crew::new(shared.clone(), tally.clone()),
            tally,
            turns: 0,
            wishes: Wishes::default(),
            watched: Vec::new(),
            given: Span::ZERO,
            before: (Span::ZERO, Span::ZERO),
        }
    }

    fn serve(&mut self) {
        let mut step = Step::Tick(PERIOD);
        while !self.state.stop.load(Ordering::Acquire) {
            if self.state.changed.swap(false, Ordering::AcqRel) {
                self.adopt();
                step = Step::Tick(Span::ZERO);
            }
            step = self.take(step);
            self.state.helped().doing = match step {
                Step::Poll => Doing::Polls,
                Step::StandBy(_) => Doing::StandsBy,
                Step::Watch(_) => Doing::Watches,
                Step::Peek(_) | Step::Tick(_) => Doing::Ticks,
                Step::Rest => Doing::Rests,
            };
        }
    }

    /// Another setting is in force from now on.
    fn adopt(&mut self) {
        self.cores.add(&self.state.shared_cores().0);
        let mut helped = self.state.helped();
        self.policy.set(helped.setting.clone());
        helped.is_suspended = false;
        helped.allowed = self.cores.allowed();
        helped.cores = match &helped.setting {
            // It was checked; a core that was taken away since leaves the choice to the system.
            Progress::Dedicated(cores) if self.cores.go_to(cores) => cores.clone(),
            _ => Vec::new(),
        };
        self.places.clone_from(&helped.cores);
    }

    /// Takes the step and looks at the node; the next step.
    fn take(&mut self, step: Step) -> Step {
        match step {
            Step::Rest => return self.rest(),
            Step::Watch(bound) => self.state.sleep(&self.watched, bound),
            Step::StandBy(bound) => self.stand_by(bound),
            Step::Peek(nap) | Step::Tick(nap) => thread::sleep(Duration::from_nanos(nap.as_ns())),
            Step::Poll => {}
        }
        let is_tick = matches!(step, Step::Tick(_));
        if !is_tick && (self.shared.is_inside() || self.shared.turns() != self.turns) {
            return self.give_way();
        }
        // Whoever holds the lock turns the pump better than this thread could.
        let Some(core) = self.shared.try_lock() else { return self.give_way() };
        let (sight, next) = self.look(core);
        match next {
            _ if !self.policy.asks_review(self.shared.clock.now()) => next,
            // The rails were asked to wake this thread already.
            Step::Watch(_) => {
                self.review();
                next
            }
            _ => {
                self.review();
                self.policy.next(self.shared.clock.now(), Sight { moved: false, alone: false, ..sight })
            }
        }
    }

    /// A thread of the application is in a call.
    fn give_way(&mut self) -> Step {
        self.turns = self.shared.turns();
        let sight = Sight { inside: true, asked: self.was_asked(), ..Sight::default() };
        let next = self.policy.next(self.shared.clock.now(), sight);
        if !self.policy.asks_review(self.shared.clock.now()) {
            return next;
        }
        self.review();
        self.policy.next(self.shared.clock.now(), Sight { asked: false, ..sight })
    }

    /// Whether something was done since the last call of which another core could have done a part.
    fn was_asked(&mut self) -> bool {
        self.wishes.look(self.shared.clock.now(), &self.shared.standby)
    }

    /// Posts what other threads hand over, for this long or until the thread is called. Workers on other idle
    /// cores do so for a while, if there are rails for them.
    fn stand_by(&mut self, bound: Span) {
        self.arrange();
        let workers =
            self.wishes.workers(self.shared.clock.now(), self.rails).min(self.places.len().saturating_sub(1));
        if workers > 0 {
            self.cores.go_to(&self.places[..1]);
            self.crew.stand_by(&self.places[1..=workers], NAME);
        }
        let Work { shared, state, tally, .. } = self;
        let until = shared.clock.now() + bound;
        shared.stand_by(tally, || state.is_called() || shared.clock.now() >= until);
        let ([posted, shared_out], took) = tally.take();
        self.given = Span::from_ns(self.given.as_ns() + took.as_ns());
        let mut helped = self.state.helped();
        (helped.posted, helped.shared) = (helped.posted + posted, helped.shared + shared_out);
    }

    /// Finds out which cores are near to each other, the first time.
    fn arrange(&mut self) {
        let mut shared_cores = self.state.shared_cores();
        let (cores, arrange) = &mut *shared_cores;
        if let Some(arrange) = arrange.take() {
            self.topology = arrange(cores);
            self.shared.standby.arrange(self.topology.clone());
        }
    }

    /// Turns the pump for as long as the policy polls and nobody else wants the lock.
    fn look(&mut self, mut core: Guard<'_, Core>) -> (Sight, Step) {
        self.shared.waits(&mut core);
        loop {
            let sight = self.turn(&mut core);
            let now = core.now;
            match self.policy.next(now, sight) {
                Step::Poll if self.shared.is_wanted() => {
                    drop(core);
                    return (sight, self.give_way());
                }
                Step::Poll if !self.state.is_called() && !self.policy.asks_review(now) => {}
                Step::Watch(bound) => {
                    let (watched, until) = core.prepare_sleep();
                    self.watched = watched;
                    return (sight, Step::Watch(bound.min(until)));
                }
                next => return (sight, next),
            }
        }
    }

    /// One turn of the pump, and what it has found.
    fn turn(&mut self, core: &mut Guard<'_, Core>) -> Sight {
        let alone = self.shared.turns() == self.turns;
        let begun = self.shared.clock.now();
        let mut moved = self.shared.turn_aside(core);
        let sleeps = self.shared.has_sleepers();
        let mut waits = false;
        if !sleeps && *self.policy.setting() != Progress::Off {
            let served = self.shared.work_in_background(core);
            (moved, waits) = (moved || served.worked, served.waits);
        }
        self.turns = self.shared.turns();
        self.rails = core.rails.len();
        let flies = core.engine.pending() > 0 || waits;
        let serves = core.service.is_some();
        let needed = flies || serves || core.engine.next_deadline().is_some();
        let mut helped = self.state.helped();
        helped.turns += 1;
        if moved && alone && !sleeps {
            core.now = self.shared.clock.now();
            let took = core.now.since(begun);
            self.given = Span::from_ns(self.given.as_ns() + took.as_ns());
            helped.moved += 1;
            helped.given_ns += took.as_ns();
        }
        let asked = self.was_asked();
        Sight { inside: false, sleeps, alone, needed, flies, serves, moved, asked }
    }

    /// Looks which cores are idle, goes there, and has the policy judge what helping was worth.
    fn review(&mut self) {
        let threads = cores::threads(NAME);
        let now = (cores::processor_time(), threads.delayed);
        let own = Span::from_ns(now.0.as_ns().saturating_sub(self.before.0.as_ns()));
        let mut ran = self.crew.ran();
        ran.push((cores::here(), own));
        let spent = Span::from_ns(ran.iter().map(|(_, time)| time.as_ns()).sum());
        let delayed = Span::from_ns(now.1.as_ns().saturating_sub(self.before.1.as_ns()));
        let account = Account { given: std::mem::take(&mut self.given), spent, delayed };
        self.before = now;
        let allowed = self.cores.allowed();
        let idle = self.cores.idle(&allowed, &threads.on, &ran);
        self.cores.go_to(&idle);
        self.places.clone_from(&idle);
        if let Some(&from) = threads.on.first() {
            self.topology.sort_from(from, &mut self.places);
        }
        let at = self.shared.clock.now();
        let was_suspended = self.policy.is_suspended(at);
        self.policy.review(at, idle.len(), account);
        let mut helped = self.state.helped();
        helped.is_suspended = self.policy.is_suspended(at);
        helped.suspensions += u64::from(helped.is_suspended && !was_suspended);
        helped.spent_ns += spent.as_ns();
        helped.delayed_ns += delayed.as_ns();
        (helped.allowed, helped.cores) = (allowed, idle);
    }

    /// Sleeps until something is submitted, a peer is at the door, or it is time to look at rails that lose.
    fn rest(&mut self) -> Step {
        let Some(mut core) = self.shared.try_lock() else { return self.give_way_to_rest() };
        // While the lock is held, so that no submission is missed. Nobody rings for one that is switched off.
        let is_off = *self.policy.setting() == Progress::Off;
        self.state.resting.store(!is_off, Ordering::Release);
        let doors = core.doors();
        let loses = core.rails.iter().flatten().any(|rail| rail.limits().lossy);
        drop(core);
        if !self.state.is_called() {
            match is_off {
                // The descriptors of streams tell of messages as well, which are none of its business.
                true => self.state.sleep(&[], LOOK),
                false => self.state.sleep(&doors, if loses { LOOK } else { REST }),
            }
        }
        let is_rung = !self.state.resting.swap(false, Ordering::AcqRel);
        // The thread that holds the lock instead looks at the doors itself, sooner or later.
        let Some(mut core) = self.shared.try_lock() else { return self.give_way_to_rest() };
        core.doors();
        let turns = if loses { LOOKS } else { 1 };
        let happened = (0..turns).fold(false, |happened, _| self.turn(&mut core).moved || happened);
        if happened || (is_rung && !is_off) || !loses {
            self.policy.woken(core.now);
        }
        match is_off {
            true => Step::Rest,
            false => Step::Tick(PERIOD),
        }
    }

    /// The same when a rest cannot begin, or ends, while a thread of the application is in a call.
    fn give_way_to_rest(&mut self) -> Step {
        self.policy.woken(self.shared.clock.now());
        Step::Tick(PERIOD)
    }
}
