//! Turns of the pump by the helper, beside threads of the application that compute or sleep.

use crate::lock::Guard;
use crate::locked::Core;
use crate::service::Served;
use crate::shared::Shared;
use crate::watch::Watch;
use nmad_engine::Interest;
use std::sync::atomic::Ordering;

impl Shared {
    /// Turns the pump in the helper, in case no other thread does. Ended requests wake sleepers. Any poll
    /// makes the rails believe that the sleeper is awake, so they are armed again afterwards.
    pub(crate) fn turn_aside(&self, core: &mut Guard<'_, Core>) -> bool {
        core.now = self.clock.now();
        let sleeps = self.has_sleepers();
        if sleeps && core.is_armed && !core.has_work() && !core.is_due() {
            return false;
        }
        core.engine.setup().waits(sleeps);
        let happened = self.turn(core, true);
        core.engine.setup().waits(sleeps);
        if sleeps || core.watch.as_ref().is_some_and(Watch::is_armed) {
            core.prepare_sleep();
        }
        happened
    }

    /// Runs the background service, since no thread is in a call.
    pub(crate) fn work_in_background(&self, core: &mut Guard<'_, Core>) -> Served {
        let Core { engine, background, .. } = &mut **core;
        let Some(background) = background else { return Served::default() };
        let served = background.serve(engine);
        if served.worked {
            // Peers wait for the submitted messages, and threads that fall asleep now wait for their end.
            self.push(core, true);
            self.rouse();
        }
        served
    }

    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0
    }
}

impl Core {
    /// Returns whether a deadline of the engine has passed, perhaps of a message that another thread
    /// submitted after the sleeper fell asleep.
    fn is_due(&self) -> bool {
        self.engine.inspect().next_deadline().is_some_and(|deadline| deadline <= self.now)
    }

    /// Returns the descriptors that become readable when a peer wants a link.
    pub(crate) fn link_descriptors(&mut self) -> Vec<i32> {
        let found = self.rails.iter_mut().flatten().filter_map(|rail| rail.wakeup(Interest::Links));
        found.filter(|&fd| fd >= 0).collect()
    }
}
