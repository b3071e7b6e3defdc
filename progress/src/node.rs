//! The node: an engine and its rails, for any number of threads.

use crate::helper::{Helped, Helper};
use crate::idle::{Idle, Stage};
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

/// Why a wait without a bound always has an answer.
const ENDLESS: &str = "it waits until there is one";

/// An engine, its rails, and the threads that move it.
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    pub(crate) helper: Helper,
    pub(crate) idle: Idle,
}

impl Node {
    /// Takes over an engine and its rails, in the order in which they were added to it. `tell` is called with
    /// what the user should know, by whichever thread finds it.
    ///
    /// # Errors
    /// The system has no descriptor or thread left.
    pub fn new(engine: Engine, rails: Vec<Box<dyn Driver>>, idle: Idle, tell: Tell) -> std::io::Result<Node> {
        let shared = Arc::new(Shared::new(Core::new(engine, rails, tell))?);
        let helper = Helper::start(shared.clone(), idle == Idle::SHARED)?;
        share::enlist(&shared.standby);
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
        self.with_rails_until(None, look).expect(ENDLESS)
    }

    /// The same within a bound; none: a thread works with one of them all the time, or has not come along to
    /// a forked process.
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

    /// The time now, on the clock that the engine is given.
    pub fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Chooses what the helper does from now on.
    ///
    /// # Errors
    /// This process cannot have it; nothing has changed.
    pub fn set_progress(&self, setting: Progress) -> Result<(), String> {
        self.helper.set_progress(setting)
    }

    /// The helper may run on these cores too while they are idle: those of other ranks of this node, which
    /// launchers bind to cores of their own. `arrange` tells which of them are near to each other: the helper
    /// asks once, when it stands by for the first time.
    pub fn share_cores(&self, cores: Vec<usize>, arrange: fn(&[usize]) -> Topology) {
        self.helper.share_cores(cores, arrange);
    }

    /// What it takes to hand work from a core to another one, in nanoseconds, for each kind of pair
    /// ([`Pair::ALL`]) that was measured. Large copies are shared with other cores where that is known.
    pub fn set_hand_offs(&self, ns: [Option<u64>; Pair::ALL.len()]) {
        self.shared.standby.set_hand_offs(ns);
    }

    /// What the helper has decided and done.
    pub fn helped(&self) -> Helped {
        self.helper.helped()
    }

    /// Has a service go on from now on, or none. While there is one, the helper never rests.
    pub fn set_service(&self, service: Option<Box<dyn Service>>) {
        let mut core = self.shared.lock();
        core.service = service;
        core.service_waits = false;
        drop(core);
        self.helper.wake();
    }

    /// Has the helper go on with this from now on while the application computes. Unlike for a service, it
    /// rests when nothing is in flight.
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
        if self.shared.waits(&mut core) {
            // What has gathered goes before the rails are looked at, however many there are.
            self.shared.push(&mut core, true);
        }
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

/// Receipts, for those that listen.
impl Node {
    /// From now on `tell` is given a receipt of each message that was sent, when its request has ended; none
    /// ends it for this purpose. It holds the lock of the node, so it must not call it.
    pub fn on_receipt(&self, purpose: Purpose, tell: Option<OnReceipt>) {
        let mut core = self.shared.lock();
        core.on_receipt
            .retain(|(other, _)| std::mem::discriminant(other) != std::mem::discriminant(&purpose));
        core.on_receipt.extend(tell.map(|tell| (purpose, tell)));
        let from_len = |(purpose, _): &Listener| match purpose {
            Purpose::Told => 0,
            Purpose::Traced(from_len) => *from_len,
        };
        match core.on_receipt.iter().map(from_len).min() {
            Some(from_len) => core.engine.record_receipts_from(from_len),
            None => core.engine.record_receipts(false),
        }
    }

    /// Where the time of receipts begins on the monotonic clock of the system, in nanoseconds.
    pub fn origin_ns(&self) -> u64 {
        self.shared.clock.origin_ns()
    }

    /// Hands out the receipts that wait: those of messages that left at once wait for the next request that
    /// ends otherwise.
    pub fn tell_receipts(&self) {
        self.shared.lock().tell_receipts();
    }
}

/// A loop of the application's own.
impl Node {
    /// A descriptor to wait on with `poll(2)` and its kin; it stays the same and belongs to the node. It
    /// tells something only after [`Node::arm`].
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

    /// Prepares the descriptor for one sleep; turns the pump first. A caller that has looked at all of its
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
