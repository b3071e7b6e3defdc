//! Attaching and detaching rails while the node runs.

use crate::node::Node;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::{Departure, Driver, Engine, Event, Interest, Limits, PollScope, RailId, Segments, Sent};

/// Placeholder for a detached rail, on which nothing happens.
#[derive(Default)]
pub(crate) struct Vacant {
    /// What the rail does when it is told to post, if a measurement wants to know.
    pub(crate) on_flush: Option<Box<dyn Fn() + Send>>,
}

impl Driver for Vacant {
    fn name(&self) -> &str {
        "vacant"
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn open(&mut self, _: RegionId, _: PeerId, _: Segments) -> Key {
        Key(0)
    }

    fn close(&mut self, _: RegionId) {}

    fn room(&self) -> usize {
        0
    }

    fn send(&mut self, _: Departure<'_>) -> Sent {
        Sent::Done
    }

    fn flush(&mut self) {
        self.on_flush.iter().for_each(|on_flush| on_flush());
    }

    fn poll(&mut self, _: PollScope, _: &mut dyn FnMut(Event<'_>)) -> bool {
        true
    }

    fn wakeup(&mut self, _: Interest) -> Option<i32> {
        Some(-1)
    }
}

impl Node {
    /// Puts rails into their places, each behind the last one or in the place of a detached one. `prepare`
    /// adds them and their links to the engine.
    pub fn attach<R>(
        &self,
        rails: Vec<(RailId, Box<dyn Driver>)>,
        prepare: impl FnOnce(&mut Engine) -> R,
    ) -> R {
        let mut core = self.shared.lock();
        let prepared = prepare(&mut core.engine);
        for (place, rail) in rails {
            while core.rails.len() <= place.index() {
                core.rails.push(Some(Box::new(Vacant::default())));
            }
            core.rails[place.index()] = Some(rail);
        }
        // A sleeping thread does not poll the new descriptors.
        core.is_armed = false;
        drop(core);
        self.shared.rouse();
        self.helper.wake();
        prepared
    }

    /// Takes rails out of their places and closes them; `forget` removes their links from the engine.
    pub fn detach(&self, rails: &[RailId], forget: impl FnOnce(&mut Engine)) {
        let mut forget = Some(forget);
        loop {
            let mut core = self.shared.lock();
            let is_there = |rail: &RailId| core.rails.get(rail.index()).is_none_or(Option::is_some);
            if rails.iter().all(is_there) {
                if let Some(forget) = forget.take() {
                    forget(&mut core.engine);
                }
                let vacant = || -> Option<Box<dyn Driver>> { Some(Box::new(Vacant::default())) };
                let places = rails.iter().map(|rail| rail.index());
                let gone: Vec<_> =
                    places.map(|place| std::mem::replace(&mut core.rails[place], vacant())).collect();
                drop(core);
                self.shared.rouse();
                // Closing a driver may take a while.
                drop(gone);
                return;
            }
            // Another thread works with one of the rails.
            drop(core);
            std::thread::yield_now();
        }
    }
}
