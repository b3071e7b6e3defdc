//! The node: an engine and its rails, for any number of threads.

use crate::core_sharing::{Sharing, Stage};
use crate::helped::Helped;
use crate::helper::Helper;
use crate::lock::{Guard, Release};
use crate::locked::{Core, Looked, Outcome, Tell};
use crate::receipts::{Listener, OnReceipt, Purpose};
use crate::service::Service;
use crate::setting::Progress;
use crate::share;
use crate::shared::Shared;
use crate::topology::Topology;
use crate::watch::{Armed, Watch};
use nmad_engine::{Driver, Duration, Engine, Instant, Pair, RequestId};
use rustix::fd::RawFd;
use std::io;
use std::sync::Arc;

/// Reason why a wait without a bound always has an answer.
const ENDLESS: &str = "it waits until there is one";

/// An engine, its rails, and the state of the threads that drive it.
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    pub(crate) helper: Helper,
    sharing: Sharing,
    /// Ranks of other nodes need the cores of this one.
    takes_turns: bool,
}

impl Node {
    /// Takes over an engine and its rails, in the order in which they were added to it. Whichever thread
    /// finds a notice for the user calls `tell`.
    ///
    /// # Errors
    /// The system has no descriptor or thread left.
    pub fn new(
        engine: Engine,
        rails: Vec<Box<dyn Driver>>,
        sharing: Sharing,
        tell: Tell,
    ) -> std::io::Result<Node> {
        let shared = Arc::new(Shared::new(Core::new(engine, rails, tell))?);
        let helper = Helper::start(shared.clone(), sharing.ranks_per_core())?;
        share::enlist(&shared.standby);
        Ok(Node { shared, helper, sharing, takes_turns: false })
    }

    /// Sets whether there are more ranks than cores, of several nodes: hosts of a testbed, or containers.
    #[must_use]
    pub fn taking_turns(self, takes_turns: bool) -> Node {
        Node { takes_turns, ..self }
    }

    /// Submits a request; an idle rail takes it at once, a busy one later.
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
        // Most receives need no further work.
        if core.has_work() {
            self.shared.push_or_hold(core);
        }
        self.wake_helper(core);
        answer
    }

    /// Wakes the helper if requests are pending, so that they advance while the application computes.
    #[inline]
    pub(crate) fn wake_helper(&self, core: &mut Core) {
        if core.engine.inspect().pending() > 0 {
            self.helper.notify(|| core.may_feed() || core.engine.inspect().next_deadline().is_some());
        }
    }

    /// Calls `look` with the engine, without turning the pump.
    pub fn with<R>(&self, look: impl FnOnce(&mut Engine) -> R) -> R {
        look(&mut self.shared.lock().engine)
    }

    /// Calls `look` with the rails, when no thread works with one of them.
    pub fn with_rails<R>(&self, look: impl FnOnce(&mut [&mut dyn Driver]) -> R) -> R {
        self.with_rails_until(None, look).expect(ENDLESS)
    }

    /// Calls `look` with the rails, within a bound. `None`: another thread works with one of them all the
    /// time, or, in a forked process, does not exist any more.
    pub fn with_rails_within<R>(
        &self,
        bound: Duration,
        look: impl FnOnce(&mut [&mut dyn Driver]) -> R,
    ) -> Option<R> {
        self.with_rails_until(Some(self.now() + bound), look)
    }

    fn with_rails_until<R>(
        &self,
        until: Option<Instant>,
        look: impl FnOnce(&mut [&mut dyn Driver]) -> R,
    ) -> Option<R> {
        loop {
            let mut core = self.shared.lock();
            core.reclaim_all();
            let rails = core.rails.iter_mut().map(|rail| rail.as_deref_mut().map(|rail| rail as _));
            if let Some(mut rails) = rails.collect::<Option<Vec<&mut dyn Driver>>>() {
                return Some(look(&mut rails));
            }
            drop(core);
            if until.is_some_and(|until| self.now() >= until) {
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// Returns the time on the clock of the engine.
    pub fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Changes the setting of the helper.
    ///
    /// # Errors
    /// This process may not use the setting; nothing has changed.
    pub fn set_progress(&self, setting: Progress) -> Result<(), String> {
        self.helper.set_progress(setting)
    }

    /// Allows the helper to run on these cores too while they are idle: the cores of the other ranks of
    /// this node, since launchers bind each rank to cores of its own. `arrange` returns the topology; the
    /// helper calls it once, when it stands by for the first time.
    pub fn share_cores(&self, cores: Vec<usize>, arrange: fn(&[usize]) -> Topology) {
        self.helper.share_cores(cores, arrange);
    }

    /// Sets the measured time of a hand-off between cores, in nanoseconds, for each kind of pair
    /// ([`Pair::ALL`]). Large copies are shared with other cores where it is known.
    pub fn set_hand_offs(&self, ns: [Option<u64>; Pair::ALL.len()]) {
        self.shared.standby.set_hand_offs(ns);
    }

    /// Returns the decisions and counters of the helper.
    pub fn helped(&self) -> Helped {
        self.helper.helped()
    }

    /// Sets or removes the service with this name. While one needs the helper, that never rests.
    pub fn set_service(&self, name: &'static str, service: Option<Box<dyn Service>>) {
        let mut core = self.shared.lock();
        core.services.set(name, service);
        core.service_waits = false;
        drop(core);
        self.helper.wake();
    }

    /// Sets the background service, which the helper runs while the application computes. Unlike with a
    /// service, the helper rests when nothing is in flight.
    pub fn set_background(&self, background: Box<dyn Service>) {
        self.shared.lock().background = Some(background);
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

    /// Submits a request and waits for it; keeps the lock in between.
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

    /// Turns the pump until `ready` answers; polls, yields and sleeps as [`Sharing`] says. `None`: it did not
    /// answer before the time `until`, nor after one more look at the rails, so that a thread that was
    /// stopped for longer still finds messages that came meanwhile.
    #[inline]
    pub(crate) fn wait_until<R>(
        &self,
        until: Option<Instant>,
        ready: impl FnMut(&mut Guard<'_, Core>) -> Looked<R>,
    ) -> Option<R> {
        let mut core = self.shared.lock();
        if self.shared.waits(&mut core) {
            // Messages that have gathered leave before the rails are polled, however many rails there are.
            self.shared.push(&mut core, true);
        }
        self.wait_on(core, (None, until), ready)
    }

    /// Returns the next action of a thread that waits, since the time `active` without any event.
    #[inline]
    pub(crate) fn stage(&self, core: &mut Guard<'_, Core>, active: Instant) -> Stage {
        let (sharing, now) = (self.sharing(core), core.now);
        core.core_sharing.stage(sharing, now, now.since(active))
    }

    /// Returns the next action of a waiting thread that asks again unless the action is to poll.
    #[inline]
    pub(crate) fn next_stage(&self, core: &mut Guard<'_, Core>, active: Instant) -> Stage {
        let (sharing, now) = (self.sharing(core), core.now);
        core.core_sharing.next(sharing, now, now.since(active))
    }

    /// Lets ranks of other nodes have the core of a thread that waits and has seen an event, if it is their
    /// turn.
    #[inline]
    pub(crate) fn give_way<'a>(&'a self, core: Guard<'a, Core>) -> Guard<'a, Core> {
        if self.is_turn_over(&core) { self.shared.yield_core(core) } else { core }
    }

    #[inline]
    pub(crate) fn is_turn_over(&self, core: &Guard<'_, Core>) -> bool {
        self.takes_turns && core.core_sharing.gives_way(core.now)
    }

    /// Returns whether other ranks may need the cores of this one.
    pub fn shares_cores(&self) -> bool {
        self.sharing != Sharing::Never
    }

    /// Returns whether others may need the core of a waiting thread: other ranks, or other threads of this
    /// process that use the node.
    #[inline]
    pub(crate) fn sharing(&self, core: &Guard<'_, Core>) -> Sharing {
        match self.sharing {
            Sharing::Never if core.is_shared() => Sharing::Perhaps,
            sharing => sharing,
        }
    }

    /// Waits like [`Node::wait_until`], but holds the lock already; `active` is the time of the last event
    /// if this thread has waited before.
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
            let from = awaited.and_then(|request| core.engine.inspect().awaited_from(request));
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
                core.happened();
                core = self.give_way(core);
                continue;
            }
            match self.stage(&mut core, *active) {
                // The thread that works with the rail needs the lock when it has found an event.
                Stage::Spin if core.missed => core = self.shared.yield_core(core),
                // Polling a rail costs a system call, which is pause enough.
                Stage::Spin => {}
                Stage::Yield => core = self.shared.yield_core(core),
                Stage::Sleep => {
                    // Another thread may have ended the request while this one polled the rails, and has
                    // woken no thread.
                    if core.is_shared()
                        && let Ok(answer) = ready(&mut core)
                    {
                        return Some(answer);
                    }
                    core = self.shared.sleep(core, until, None);
                }
            }
        }
    }
}

/// Receipts for listeners.
impl Node {
    /// Calls `tell` from now on with a receipt of each sent message whose request has ended; `None` removes
    /// the listener of this purpose. The node is locked during the call, so `tell` must not call it.
    pub fn on_receipt(&self, purpose: Purpose, tell: Option<OnReceipt>) {
        let mut core = self.shared.lock();
        core.on_receipt
            .retain(|(other, _)| std::mem::discriminant(other) != std::mem::discriminant(&purpose));
        core.on_receipt.extend(tell.map(|tell| (purpose, tell)));
        let from_len = |(purpose, _): &Listener| match purpose {
            Purpose::Told => 0,
            Purpose::Traced(from_len) => *from_len,
        };
        let from_len = core.on_receipt.iter().map(from_len).min();
        core.engine.setup().record_receipts(from_len);
    }

    /// Returns the origin of the time of receipts on the monotonic clock of the system, in nanoseconds.
    pub fn origin_ns(&self) -> u64 {
        self.shared.clock.origin_ns()
    }

    /// Delivers the waiting receipts. Receipts of messages that left in the call that sent them wait until
    /// another request ends.
    pub fn tell_receipts(&self) {
        self.shared.lock().tell_receipts();
    }
}

/// Waiting in an event loop of the application.
impl Node {
    /// Returns a descriptor to wait on with `poll(2)` and similar calls. It stays the same and belongs to
    /// the node. It becomes readable only after [`Node::arm`].
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn descriptor(&self) -> io::Result<RawFd> {
        let mut core = self.shared.lock();
        if core.watch.is_none() {
            core.watch = Some(Watch::new()?);
        }
        let watch = core.watch.as_ref().expect("made above");
        Ok(watch.descriptor())
    }

    /// Turns the pump, then arms the descriptor for one sleep. A caller that has checked all of its
    /// requests before this call, and then sleeps as the answer says, misses no end of any of them.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn arm(&self) -> io::Result<Armed> {
        self.descriptor()?;
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        core.engine.sleeps_for(None);
        let happened = self.shared.turn(&mut core, true);
        self.shared.collect(&mut core);
        let (rails, bound) = core.prepare_sleep();
        let watch = core.watch.as_mut().expect("made above");
        if watch.take_ended() || happened {
            return Ok(Armed::Busy);
        }
        watch.arm(rails)?;
        Ok(Armed::Sleep(bound))
    }
}
