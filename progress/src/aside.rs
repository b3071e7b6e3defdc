//! Turns of the pump by the helper, beside threads of the application that compute or sleep.

use crate::lock::Guard;
use crate::locked::Core;
use crate::service::Served;
use crate::shared::Shared;
use crate::watch::Watch;
use nmad_engine::Interest;
use std::sync::atomic::Ordering;

impl Shared {
    /// One turn of the pump by the helper, since no other thread may turn it. Sleepers are woken when
    /// requests end; but after any look at them the rails take a sleeper for awake and wake nobody, so that
    /// they have to be asked again.
    pub(crate) fn turn_aside(&self, core: &mut Guard<'_, Core>) -> bool {
        core.now = self.clock.now();
        let sleeps = self.has_sleepers();
        if sleeps && core.is_armed && !core.has_work() && !core.is_due() {
            return false;
        }
        let happened = self.turn(core, true);
        if sleeps || core.watch.as_ref().is_some_and(Watch::is_armed) {
            core.prepare_sleep();
        }
        happened
    }

    /// Goes on with what threads in calls would do themselves; there are none.
    pub(crate) fn work_in_background(&self, core: &mut Guard<'_, Core>) -> Served {
        let Core { engine, background, .. } = &mut **core;
        let Some(background) = background else { return Served::default() };
        let served = background.serve(engine);
        if served.worked {
            // Peers wait for what was submitted, and threads that go to sleep now for the end of it.
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
    /// Whether the engine wants to be looked after by now: perhaps for what another thread has submitted
    /// since somebody went to sleep.
    fn is_due(&self) -> bool {
        self.engine.next_deadline().is_some_and(|deadline| deadline <= self.now)
    }

    /// The descriptors by which peers that want a link wake a sleeper.
    pub(crate) fn doors(&mut self) -> Vec<i32> {
        let doors = self.rails.iter_mut().flatten().filter_map(|rail| rail.wakeup(Interest::Links));
        doors.filter(|&fd| fd >= 0).collect()
    }
}
