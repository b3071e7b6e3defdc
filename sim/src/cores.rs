//! The cores of a simulated host beside the one on which its application runs: each posts what it is handed
//! (P3 section III-D), in its own time.

use crate::network::{Shared, lock};
use nmad_engine::pump::{self, Access, Exclusive, Looked};
use nmad_engine::transfer::driver::{Driver, Order, Scope};
use nmad_engine::{Engine, Instant, Pair, RailId, RequestId};

/// A core beside the application's.
#[derive(Debug, Clone, Copy)]
pub struct Core {
    /// From the decision until it begins to post: P3 has 3 us for one that is idle, and 6 us for one that
    /// computes and has to be preempted.
    hand_off_ns: u64,
    /// The rail on which it has posted last, and when it was done.
    rail: Option<RailId>,
    free_at: u64,
}

impl Core {
    /// A core that begins to post this long after the decision.
    pub fn new(hand_off_ns: u64) -> Core {
        Core { hand_off_ns, rail: None, free_at: 0 }
    }

    /// How near it is to the application's core: profiles and the pump tell cores apart by that.
    pub fn pair(hand_off_ns: u64) -> Pair {
        match hand_off_ns {
            0..1_000 => Pair::Cache,
            1_000..5_000 => Pair::Socket,
            _ => Pair::Across,
        }
    }

    /// When it has posted what it was handed, if that is later.
    pub fn posts_until(&self, now: u64) -> Option<u64> {
        (self.free_at > now).then_some(self.free_at)
    }
}

/// What another thread of the application submits, when the thread that uses the node lets others have the
/// engine.
pub struct Other {
    /// Submits it.
    pub submit: Box<dyn FnOnce(&mut Engine) -> RequestId>,
}

/// What becomes of it.
pub enum Meanwhile {
    /// The node has one thread.
    Nobody,
    /// It is still to come.
    Waits(Other),
    /// It came while a rail worked: its request, and when.
    Came(RequestId, u64),
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
    /// Several threads use it: others get the engine while a rail works, as in the library
    /// (`progress/src/apart.rs`).
    pub is_shared: bool,
    /// What one of them does then.
    pub meanwhile: &'a mut Meanwhile,
    /// The rail that works.
    pub away: Option<RailId>,
}

impl Node<'_> {
    /// Whether somebody else works with a rail.
    fn is_away(&self, rail: RailId) -> bool {
        let own = lock(self.network).local_ns(self.host);
        let posts = |core: &Core| core.rail == Some(rail) && core.posts_until(own).is_some();
        self.away == Some(rail) || self.cores.iter().any(posts)
    }

    /// The rail works without the engine: another thread may submit something, and post it on other rails.
    fn let_go(&mut self, rail: RailId) {
        if !self.is_shared {
            return;
        }
        match std::mem::replace(self.meanwhile, Meanwhile::Nobody) {
            Meanwhile::Waits(other) => {
                let request = (other.submit)(self.own.engine());
                self.away = Some(rail);
                let (network, host) = (self.network, self.host);
                let mut clock = || Instant::from_ns(lock(network).local_ns(host));
                let now = clock();
                pump::feed(self, now, &mut clock, false);
                self.away = None;
                *self.meanwhile = Meanwhile::Came(request, now.as_ns());
            }
            meanwhile => *self.meanwhile = meanwhile,
        }
    }
}

impl Access for Node<'_> {
    fn engine(&mut self) -> &mut Engine {
        self.own.engine()
    }

    fn rails(&self) -> usize {
        self.own.rails()
    }

    fn ask<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        if self.is_away(rail) { None } else { self.own.ask(rail, work) }
    }

    fn work<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        if self.is_away(rail) {
            return None;
        }
        self.let_go(rail);
        self.own.work(rail, work)
    }

    fn poll(&mut self, rail: RailId, scope: Scope, now: Instant) -> Looked {
        if self.is_away(rail) {
            return Looked::Unknown;
        }
        if scope == Scope::All {
            self.let_go(rail);
        }
        self.own.poll(rail, scope, now)
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Cores that begin sooner are nearer.
    fn beside(&self) -> Vec<Pair> {
        let own = lock(self.network).local_ns(self.host);
        let idle = self.cores.iter().filter(|core| core.free_at <= own);
        let mut pairs: Vec<Pair> = idle.map(|core| Core::pair(core.hand_off_ns)).collect();
        pairs.sort_unstable();
        pairs
    }

    /// The core that begins first posts, if it has nothing to do; the application's core goes on meanwhile.
    fn hand_off(&mut self, rail: RailId, orders: Vec<Order>) -> Result<(), Vec<Order>> {
        let own = lock(self.network).local_ns(self.host);
        let idle = self.cores.iter_mut().filter(|core| core.free_at <= own);
        let Some(core) = idle.min_by_key(|core| core.hand_off_ns) else { return Err(orders) };
        lock(self.network).go_to(self.host, own + core.hand_off_ns);
        self.own.work(rail, |rail| pump::post(rail, orders));
        let mut network = lock(self.network);
        (core.rail, core.free_at) = (Some(rail), network.local_ns(self.host));
        network.go_to(self.host, own);
        Ok(())
    }
}
