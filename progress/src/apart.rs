//! Rails in use without the engine's lock.
//!
//! One lock protects the engine and the places of its rails. A thread that starts long work on a rail takes
//! the rail out of its place, releases the lock, and puts the rail back under the lock. So a rail has one
//! user at a time, several rails work at once (P3 section III), and no thread waits for a rail. A thread
//! that finds the place empty leaves its orders in the engine; the user of the rail asks the engine for
//! orders after it has put the rail back ([`pump::Access`]). Places are only filled and emptied under the
//! lock, so one of the two threads sees the other.
//!
//! While only one thread uses the node, rails work in their places and the lock is kept.

use crate::cores;
use crate::lock::Release;
use crate::locked::Core;
use crate::standby::Task;
use nmad_engine::pump::{self, Access, Looked, look_at};
use nmad_engine::transfer::driver::Scope;
use nmad_engine::{Driver, Engine, Instant, Order, Pair, RailId};
use std::ops::DerefMut;

/// Access of the pump to the node, for the holder of its lock.
pub(crate) struct Held<'g, G>(pub(crate) &'g mut G);

impl<G: DerefMut<Target = Core> + Release> Access for Held<'_, G> {
    #[inline]
    fn engine(&mut self) -> &mut Engine {
        &mut self.0.engine
    }

    #[inline]
    fn rails(&self) -> usize {
        self.0.rails.len()
    }

    #[inline]
    fn ask<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        let Some(driver) = &mut self.0.rails[rail.index()] else { return self.ask_again(rail, work) };
        Some(work(driver.as_mut()))
    }

    #[inline]
    fn work<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        if !self.0.is_shared() {
            return self.ask(rail, work);
        }
        Apart::take(self.0, rail).map(|mut apart| work(apart.rail()))
    }

    #[inline]
    fn poll(&mut self, rail: RailId, scope: Scope, now: Instant) -> Looked {
        // Polling for the packet of one peer is as short as a decision of the engine, so the lock is kept.
        if scope == Scope::All && self.0.is_shared() {
            return self.poll_apart(rail, now);
        }
        let Core { engine, rails, .. } = &mut **self.0;
        let Some(driver) = &mut rails[rail.index()] else {
            return if self.0.reclaim(rail) { self.poll(rail, scope, now) } else { Looked::Unknown };
        };
        look_at(driver.as_mut(), scope, |event| engine.handle(now, rail, event))
    }

    #[inline]
    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    fn hand_off(&mut self, id: RailId, orders: Vec<Order>) -> Result<(), Vec<Order>> {
        let core = &mut **self.0;
        let place = &mut core.rails[id.index()];
        let Some(rail) = place.take() else { return Err(orders) };
        core.standby.offer(Task { id, rail, orders }, cores::here()).map_err(
            |Task { rail, orders, .. }| {
                *place = Some(rail);
                orders
            },
        )
    }

    fn beside(&self) -> Vec<Pair> {
        self.0.standby.beside(cores::here())
    }

    fn take_back(&mut self) {
        while let Some(Task { id, rail, orders }) = self.0.standby.take_back() {
            self.0.let_go();
            let mut apart = Apart { held: &mut *self.0, id, rail: Some(rail) };
            pump::post(apart.rail(), orders);
        }
    }
}

impl Core {
    /// Puts a rail back after another core has posted on it; false: it is still in use.
    #[cold]
    pub(crate) fn reclaim(&mut self, id: RailId) -> bool {
        let Some((_, rail)) = self.standby.reclaim(Some(id)) else {
            self.missed = true;
            return false;
        };
        self.rails[id.index()] = Some(rail);
        true
    }

    /// Puts all such rails back; returns whether there were any.
    pub(crate) fn reclaim_all(&mut self) -> bool {
        let mut any = false;
        while let Some((id, rail)) = self.standby.reclaim(None) {
            self.rails[id.index()] = Some(rail);
            any = true;
        }
        any
    }
}

impl<G: DerefMut<Target = Core> + Release> Held<'_, G> {
    /// Uses a rail that is out of its place, if another core has finished posting on it.
    #[cold]
    fn ask_again<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        if !self.0.reclaim(rail) {
            return None;
        }
        let driver = self.0.rails[rail.index()].as_mut()?;
        Some(work(driver.as_mut()))
    }

    /// Polls a rail with the lock released until the rail reports an event.
    #[inline(never)]
    fn poll_apart(&mut self, id: RailId, now: Instant) -> Looked {
        let Some(mut apart) = Apart::take(self.0, id) else { return Looked::Unknown };
        let Apart { held, rail, .. } = &mut apart;
        look_at(rail.as_mut().expect(OUT).as_mut(), Scope::All, |event| {
            held.take_again();
            held.engine.handle(now, id, event);
        })
    }
}

/// A rail outside of its place, with the lock released. Dropping it takes the lock again and puts the rail
/// back, also when a driver panics.
struct Apart<'g, G: DerefMut<Target = Core> + Release> {
    held: &'g mut G,
    id: RailId,
    rail: Option<Box<dyn Driver>>,
}

/// Reason why the rail is present.
const OUT: &str = "the rail is outside of its place until this is dropped";

impl<'g, G: DerefMut<Target = Core> + Release> Apart<'g, G> {
    /// Takes a rail out of its place; `None`: another thread uses it.
    fn take(held: &'g mut G, id: RailId) -> Option<Self> {
        if held.rails[id.index()].is_none() && !held.reclaim(id) {
            return None;
        }
        let rail = held.rails[id.index()].take()?;
        held.let_go();
        Some(Apart { held, id, rail: Some(rail) })
    }

    fn rail(&mut self) -> &mut dyn Driver {
        self.rail.as_mut().expect(OUT).as_mut()
    }
}

impl<G: DerefMut<Target = Core> + Release> Drop for Apart<'_, G> {
    fn drop(&mut self) {
        self.held.take_again();
        self.held.rails[self.id.index()] = self.rail.take();
    }
}
