//! The cores of a simulated host beside the one on which its application runs: each posts what it is handed
//! (P3 section III-D), in its own time.

use crate::network::{Shared, lock};
use nmad_engine::pump::{self, Access, Exclusive, Looked};
use nmad_engine::transfer::driver::{Driver, Order, Scope};
use nmad_engine::{Engine, Instant, RailId};

/// A core beside the application's.
#[derive(Debug, Clone, Copy)]
pub struct Core {
    /// From the decision until it begins to post: P3 has 3 us for one that is idle, and 6 us for one that
    /// computes and has to be preempted.
    hand_off_ns: u64,
    /// When it has posted what it was handed last.
    free_at: u64,
}

impl Core {
    /// A core that begins to post this long after the decision.
    pub fn new(hand_off_ns: u64) -> Core {
        Core { hand_off_ns, free_at: 0 }
    }
}

/// An engine and its rails in the hands of a host with several cores.
pub struct Node<'a> {
    /// In the hands of the core of the application.
    pub own: Exclusive<'a>,
    /// The others.
    pub cores: &'a mut [Core],
    /// Where time is.
    pub network: &'a Shared,
    /// Which host this is.
    pub host: usize,
}

impl Access for Node<'_> {
    fn engine(&mut self) -> &mut Engine {
        self.own.engine()
    }

    fn rails(&self) -> usize {
        self.own.rails()
    }

    fn ask<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        self.own.ask(rail, work)
    }

    fn work<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        self.own.work(rail, work)
    }

    fn poll(&mut self, rail: RailId, scope: Scope, now: Instant) -> Looked {
        self.own.poll(rail, scope, now)
    }

    fn is_shared(&self) -> bool {
        false
    }

    /// The core that begins first posts, if it has nothing to do; the application's core goes on meanwhile.
    fn hand_off(&mut self, rail: RailId, orders: Vec<Order>) -> Result<(), Vec<Order>> {
        let own = lock(self.network).local_ns(self.host);
        let idle = self.cores.iter_mut().filter(|core| core.free_at <= own);
        let Some(core) = idle.min_by_key(|core| core.hand_off_ns) else { return Err(orders) };
        lock(self.network).go_to(self.host, own + core.hand_off_ns);
        self.own.work(rail, |rail| pump::post(rail, orders));
        let mut network = lock(self.network);
        core.free_at = network.local_ns(self.host);
        network.go_to(self.host, own);
        Ok(())
    }
}
