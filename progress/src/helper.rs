//! The helper: a thread that turns the pump while the application computes.
//!
//! [`crate::policy`] decides its next step from the result of each look at the node. Only these wake it: a
//! submission that leaves something pending after a long silence, the rails that it watches, and a peer
//! that wants a link, since a process that computes for long without an answer looks dead to that peer. A
//! waiting thread never wakes the helper, since a wakeup takes 12 to 16 us (two hosts on 2 cores).
//!
//! A forked process has no helper; it can only drop the node.

use crate::cores::{self, Cores};
use crate::demand::Demand;
use crate::helped::{Doing, Helped};
use crate::lock::Guard;
use crate::locked::Core;
use crate::on_call::OnCall;
use crate::policy::{Account, PERIOD, Policy, Sight, Step};
use crate::setting::Progress;
use crate::shared::Shared;
use crate::signals;
use crate::slice;
use crate::state::{Arrange, Rest, State};
use crate::topology::{CoreId, Topology};
use crate::worker::{Tally, WorkerPool};
use nmad_engine::Duration as Span;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The name of the thread.
const NAME: &str = "nmad-progress";
/// Turns of the pump at each look at lossy rails: a rail on which some links were busy lately polls the
/// other links only once in a few dozen turns.
const LOOKS: u32 = 64;
/// Bound of a rest, which a wakeup ends.
const REST: Span = Span::from_ms(3_600_000);
/// Interval of looks at lossy rails. On these only this process itself acknowledges and sends signs of
/// life, and peers give up a process that does not answer for some seconds.
const LOOK: Span = Span::from_ms(250);

/// Time slice of the helper on a shared core: the shortest that Linux grants. A thread with a shorter slice
/// than the running one gets the core as soon as it wakes. With the usual slice of 3 ms the helper would
/// wait until the program has computed for as long.
const SLICE: Span = Span::from_us(100);

/// The helper thread, which ends when this is dropped.
pub(crate) struct Helper {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
    /// Process that has the thread; a forked one has not.
    process: u32,
}

impl Helper {
    pub(crate) fn start(shared: Arc<Shared>, ranks_per_core: u32) -> std::io::Result<Helper> {
        let mut cores = Cores::new();
        let allowed = cores.allowed();
        let helped = Helped { allowed, gives_way: ranks_per_core > 1, ..Helped::default() };
        let state = Arc::new(State::new(helped)?);
        shared.set_helper(state.clone());
        let own = state.clone();
        let serve = move || Work::new(&shared, &own, cores, ranks_per_core).serve();
        let thread = signals::spawn(NAME, serve)?;
        Ok(Helper { state, thread: Some(thread), process: std::process::id() })
    }

    /// Returns whether messages advance while the application computes.
    pub(crate) fn advances(&self) -> bool {
        let helped = self.state.helped();
        helped.setting != Progress::Off && !helped.is_suspended
    }

    /// Wakes a resting helper, since something is pending; one that listens only if that is urgent.
    #[inline]
    pub(crate) fn notify(&self, is_urgent: impl FnOnce() -> bool) {
        self.state.notify(is_urgent);
    }

    /// Wakes a helper that sleeps, since something has changed.
    pub(crate) fn wake(&self) {
        self.state.notify(|| true);
    }

    /// Changes the setting of the thread.
    ///
    /// # Errors
    /// This process may not use the setting; nothing has changed.
    pub(crate) fn set_progress(&self, setting: Progress) -> Result<(), String> {
        setting.check()?;
        self.state.helped().setting = setting;
        self.state.changed.store(true, Ordering::Release);
        self.state.wake();
        Ok(())
    }

    /// Allows cores of other ranks, and sets the function that returns the topology.
    pub(crate) fn share_cores(&self, cores: Vec<CoreId>, arrange: Arrange) {
        *self.state.shared_cores() = (cores, Some(arrange));
        self.state.changed.store(true, Ordering::Release);
        self.state.wake();
    }

    /// Returns the decisions and counters of the thread.
    pub(crate) fn helped(&self) -> Helped {
        self.state.helped().clone()
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // A forked process has this value but not the thread.
        if std::process::id() != self.process {
            return;
        }
        self.state.stop.store(true, Ordering::Release);
        self.state.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State of the helper thread.
struct Work<'a> {
    shared: &'a Arc<Shared>,
    state: &'a State,
    policy: Policy,
    cores: Cores,
    topology: Topology,
    /// Cores of the helper, the nearest to the application first.
    places: Vec<CoreId>,
    /// Number of rails at the last look.
    rails: usize,
    workers: WorkerPool,
    tally: Arc<Tally>,
    on_call: OnCall,
    /// Time of posts by threads on call since the last review.
    preempting: Span,
    /// Cores on which threads of this process compute.
    busy: Vec<CoreId>,
    /// Requests for cores that compute ([`crate::standby::Standby::asked_to_preempt`]).
    asked_to_preempt: u32,
    /// Turns of the pump by any thread until the last look.
    turns: u32,
    demand: Demand,
    /// Descriptors of the rails, which end a sleep.
    watched: Vec<i32>,
    /// Longest sleep on them: rails have timers that no descriptor reports.
    sleep_bound: Span,
    /// Gain since the last review.
    given: Span,
    /// Processor time of this thread and delay of the application's threads at the last review.
    before: (Span, Span),
}

impl<'a> Work<'a> {
    fn new(shared: &'a Arc<Shared>, state: &'a State, cores: Cores, ranks_per_core: u32) -> Work<'a> {
        // Makes naps exact: by default the system rounds them up by 50 us.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        slice::request(SLICE);
        let policy = Policy::new(shared.clock.now(), state.helped().setting.clone(), ranks_per_core);
        let tally = Arc::new(Tally::default());
        Work {
            shared,
            state,
            policy,
            cores,
            topology: Topology::default(),
            places: Vec::new(),
            rails: 0,
            workers: WorkerPool::new(shared.clone(), tally.clone()),
            tally,
            on_call: OnCall::new(shared.clone()),
            preempting: Span::ZERO,
            busy: Vec::new(),
            asked_to_preempt: 0,
            turns: 0,
            demand: Demand::default(),
            watched: Vec::new(),
            sleep_bound: Span::ZERO,
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
                Step::Watch(_) | Step::Listen => Doing::Watches,
                Step::Peek(_) | Step::Tick(_) => Doing::Ticks,
                Step::Rest => Doing::Rests,
            };
        }
    }

    /// Adopts a changed setting.
    fn adopt(&mut self) {
        self.cores.add(&self.state.shared_cores().0);
        let mut helped = self.state.helped();
        self.policy.set(helped.setting.clone());
        helped.is_suspended = false;
        helped.allowed = self.cores.allowed();
        helped.cores = match &helped.setting {
            // The setting was checked. If one of its cores was taken away since, the system chooses.
            Progress::Dedicated(cores) if self.cores.go_to(cores) => cores.clone(),
            _ => Vec::new(),
        };
        self.places.clone_from(&helped.cores);
    }

    /// Takes the step and looks at the node; returns the next step.
    fn take(&mut self, step: Step) -> Step {
        match step {
            Step::Rest => return self.rest(),
            Step::Watch(bound) => self.state.sleep(&self.watched, bound),
            Step::Listen => self.listen(),
            Step::StandBy(bound) => self.stand_by(bound),
            Step::Peek(nap) | Step::Tick(nap) => thread::sleep(Duration::from_nanos(nap.as_ns())),
            Step::Poll => {}
        }
        let is_tick = matches!(step, Step::Tick(_));
        if !is_tick && (self.shared.is_inside() || self.shared.turns() != self.turns) {
            return self.give_way();
        }
        // If another thread holds the lock, it turns the pump better than this thread could.
        let Some(core) = self.shared.try_lock() else { return self.give_way() };
        let (sight, next) = self.look(core);
        match next {
            _ if !self.policy.asks_review(self.shared.clock.now()) => next,
            // The rails were already armed to wake this thread.
            Step::Watch(_) | Step::Listen => {
                self.review();
                next
            }
            _ => {
                self.review();
                self.policy.next(self.shared.clock.now(), Sight { moved: false, alone: false, ..sight })
            }
        }
    }

    /// Sleeps on the rails' descriptors until one of them has an event or this thread is woken.
    fn listen(&mut self) {
        self.state.sleep(&self.watched, self.sleep_bound);
        if self.state.awakes() {
            self.policy.woken(self.shared.clock.now());
        }
    }

    /// Next step while a thread of the application is in a call.
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

    /// Returns whether threads did something since the last call of which another core could have done a
    /// part.
    fn was_asked(&mut self) -> bool {
        let ([preempted, _], took) = self.on_call.tally().take();
        if preempted > 0 {
            self.state.helped().preempted += preempted;
            self.preempting = Span::from_ns(self.preempting.as_ns() + took.as_ns());
        }
        let asked = self.shared.standby.asked_to_preempt();
        let is_new = std::mem::replace(&mut self.asked_to_preempt, asked) != asked;
        // One of these cores is that of the thread that asks.
        if is_new && self.busy.len() > 1 && self.policy.may_preempt(self.shared.clock.now()) {
            self.arrange();
            self.on_call.extend(&self.busy[..self.rails.clamp(2, self.busy.len())], NAME);
        }
        self.demand.look(self.shared.clock.now(), &self.shared.standby) || is_new
    }

    /// Posts for other threads, for this long or until the thread is called. Workers on other idle cores do
    /// so too if there are rails for them.
    fn stand_by(&mut self, bound: Span) {
        self.arrange();
        let workers =
            self.demand.workers(self.shared.clock.now(), self.rails).min(self.places.len().saturating_sub(1));
        if workers > 0 {
            self.cores.go_to(&self.places[..1]);
            self.workers.stand_by(&self.places[1..=workers], NAME);
        }
        let Work { shared, state, tally, .. } = self;
        let until = shared.clock.now() + bound;
        shared.stand_by(tally, || state.is_called() || shared.clock.now() >= until);
        let ([posted, shared_out], took) = tally.take();
        self.given = Span::from_ns(self.given.as_ns() + took.as_ns());
        let mut helped = self.state.helped();
        (helped.posted, helped.shared) = (helped.posted + posted, helped.shared + shared_out);
    }

    /// Reads the topology of the cores, the first time.
    fn arrange(&mut self) {
        let mut shared_cores = self.state.shared_cores();
        let (cores, arrange) = &mut *shared_cores;
        if let Some(arrange) = arrange.take() {
            self.topology = arrange(cores);
            self.shared.standby.arrange(self.topology.clone());
        }
    }

    /// Turns the pump while the policy polls and no other thread wants the lock.
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
                Step::Listen => {
                    (self.watched, self.sleep_bound) = core.prepare_sleep();
                    // Under the lock, so that no submission is missed.
                    self.state.falls_asleep(Rest::Listens);
                    return (sight, Step::Listen);
                }
                next => return (sight, next),
            }
        }
    }

    /// Turns the pump once; returns the result.
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
        let in_flight = core.engine.inspect().pending() > 0 || waits;
        let serves = core.services.need_helper();
        let needed = in_flight || serves || core.engine.inspect().next_deadline().is_some();
        let asked = self.was_asked();
        let mut helped = self.state.helped();
        helped.turns += 1;
        if moved && alone && !sleeps {
            core.now = self.shared.clock.now();
            let took = core.now.since(begun);
            self.given = Span::from_ns(self.given.as_ns() + took.as_ns());
            helped.moved += 1;
            helped.given_ns += took.as_ns();
        }
        Sight { inside: false, sleeps, alone, needed, in_flight, serves, moved, asked }
    }

    /// Measures which cores are idle, moves there, and lets the policy judge the helping since the last
    /// review.
    fn review(&mut self) {
        let threads = cores::threads(NAME);
        let now = (cores::processor_time(), threads.delayed);
        let own = Span::from_ns(now.0.as_ns().saturating_sub(self.before.0.as_ns()));
        let mut ran = self.workers.ran();
        ran.push((cores::here(), own));
        let preempting = std::mem::take(&mut self.preempting);
        self.given = Span::from_ns(self.given.as_ns() + self.shared.standby.take_gained_ns());
        let spent_ns: u64 = ran.iter().map(|(_, time)| time.as_ns()).sum();
        let spent = Span::from_ns(spent_ns + preempting.as_ns());
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
        self.busy.clone_from(&threads.on);
        self.busy.retain(|core| allowed.contains(core) && !idle.contains(core));
        self.busy.sort_unstable();
        self.busy.dedup();
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

    /// Sleeps until something is submitted, a peer wants a link, or lossy rails are due for a look.
    fn rest(&mut self) -> Step {
        let Some(mut core) = self.shared.try_lock() else { return self.give_way_to_rest() };
        // This happens under the lock, so that no submission is missed. A helper that is off is not woken
        // by submissions.
        let is_off = *self.policy.setting() == Progress::Off;
        self.state.falls_asleep(if is_off { Rest::Awake } else { Rest::Sleeps });
        let link_descriptors = core.link_descriptors();
        let is_lossy = core.rails.iter().flatten().any(|rail| rail.limits().lossy);
        drop(core);
        if !self.state.is_called() {
            match is_off {
                // Descriptors of streams also report messages, which do not concern a helper that is off.
                true => self.state.sleep(&[], LOOK),
                false => self.state.sleep(&link_descriptors, if is_lossy { LOOK } else { REST }),
            }
        }
        let was_woken = self.state.awakes();
        // The thread that holds the lock polls the link descriptors itself sooner or later.
        let Some(mut core) = self.shared.try_lock() else { return self.give_way_to_rest() };
        core.link_descriptors();
        let turns = if is_lossy { LOOKS } else { 1 };
        let happened = (0..turns).fold(false, |happened, _| self.turn(&mut core).moved || happened);
        if happened || (was_woken && !is_off) || !is_lossy {
            self.policy.woken(core.now);
        }
        match is_off {
            true => Step::Rest,
            false => Step::Tick(PERIOD),
        }
    }

    /// Next step if a thread of the application is in a call when a rest should begin or end.
    fn give_way_to_rest(&mut self) -> Step {
        self.policy.woken(self.shared.clock.now());
        Step::Tick(PERIOD)
    }
}
