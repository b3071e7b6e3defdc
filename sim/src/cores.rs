//! The cores of a simulated host beside the one on which its application runs: each posts what it takes of
//! what is offered (P3 section III-D), in its own time. Who may take an offer, who gets it first, and what is
//! taken back is decided by the library's own code ([`nmad_progress::Offers`]); a core's time is simulated.

use crate::network::{Shared, lock};
use nmad_engine::pump::{self, Access, Exclusive, Looked};
use nmad_engine::transfer::driver::{Driver, Order, Scope};
use nmad_engine::{Engine, Instant, Pair, RailId, RequestId};
use nmad_progress::{Offered, Offers, Priority, Topology};

/// The core of the application.
const HERE: usize = 0;

/// A core beside the application's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Core {
    /// From the decision until it begins to post: P3 has 3 us for one that is idle, and 6 us for one that
    /// computes and has to be preempted.
    pub begins_ns: u64,
    /// A thread computes there.
    pub computes: bool,
}

impl Core {
    /// A core that stands by.
    pub const fn idle(begins_ns: u64) -> Core {
        Core { begins_ns, computes: false }
    }

    /// A core that computes.
    pub const fn busy(begins_ns: u64) -> Core {
        Core { begins_ns, computes: true }
    }

    /// How near it is to the application's core: one that begins sooner is nearer.
    pub fn pair(self) -> Pair {
        match self.begins_ns {
            _ if self.computes => Pair::Busy,
            0..1_000 => Pair::Cache,
            1_000..5_000 => Pair::Socket,
            _ => Pair::Across,
        }
    }
}

/// Orders that are offered with their rail.
#[derive(Debug)]
struct Task {
    rail: RailId,
    orders: Vec<Order>,
    offered_at: u64,
}

/// A core, and what it does.
#[derive(Debug)]
struct Worker {
    core: Core,
    /// It takes work: it stands by, or its thread was woken.
    looks: bool,
    /// The rail on which it has posted last, and when it was done.
    rail: Option<RailId>,
    free_at: u64,
}

/// The cores of a host beside the application's, numbered from one, and what is offered to them.
#[derive(Debug)]
pub struct Cores {
    offers: Offers<Task>,
    workers: Vec<Worker>,
    /// Rails that are offered.
    out: Vec<RailId>,
}

impl Cores {
    /// Makes cores that have nothing to do.
    pub fn new(cores: &[Core]) -> Cores {
        let of = |pair: Pair| {
            let all = (1..).zip(cores).filter(|(_, core)| core.pair() == pair);
            all.map(|(number, _)| number).collect::<Vec<usize>>()
        };
        let near = [vec![HERE], of(Pair::Cache)].concat();
        let socket = [near.clone(), of(Pair::Socket), of(Pair::Busy)].concat();
        let topology = Topology::of(&[near], &[socket, of(Pair::Across)]);
        let worker = |&core: &Core| Worker { core, looks: false, rail: None, free_at: 0 };
        let workers = cores.iter().map(worker).collect();
        let mut all = Cores { offers: Offers::new(topology), workers, out: Vec::new() };
        (0..cores.len()).for_each(|index| all.enter(index));
        all
    }

    fn enter(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        (worker.rail, worker.looks) = (None, !worker.core.computes);
        match worker.core.computes {
            true => self.offers.enter_on_call(index + 1),
            false => self.offers.enter(index + 1),
        }
    }

    /// Those that have posted by now may take work again.
    pub fn return_by(&mut self, now: u64) {
        for index in 0..self.workers.len() {
            let Worker { rail, free_at, .. } = self.workers[index];
            if rail.is_some() && free_at <= now {
                self.enter(index);
            }
        }
    }

    /// Returns when the next core will have posted, if that is later than now.
    pub fn posts_until(&self, now: u64) -> Option<u64> {
        self.workers.iter().map(|worker| worker.free_at).filter(|&at| at > now).min()
    }

    /// Whether a core posts on this rail, or may begin to.
    fn has(&self, rail: RailId, now: u64) -> bool {
        let posts = |worker: &Worker| worker.rail == Some(rail) && worker.free_at > now;
        self.out.contains(&rail) || self.workers.iter().any(posts)
    }

    /// Returns the next task that a core begins by now, the core's index, and when it begins. Of several
    /// cores that may take it the one that begins first does.
    fn begun(&mut self, now: u64) -> Option<(Task, usize, u64)> {
        let mut order: Vec<usize> =
            (0..self.workers.len()).filter(|&index| self.workers[index].looks).collect();
        order.sort_by_key(|&index| self.workers[index].core.begins_ns);
        order.into_iter().find_map(|index| {
            let Worker { core: Core { begins_ns, computes }, .. } = self.workers[index];
            let task =
                self.offers.take_if(index + 1, !computes, |task| task.offered_at + begins_ns <= now)?;
            self.workers[index].looks = false;
            let at = task.offered_at + begins_ns;
            Some((task, index, at))
        })
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
    pub cores: &'a mut Cores,
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
        self.away == Some(rail) || self.cores.has(rail, own)
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

    fn beside(&self) -> Vec<Pair> {
        self.cores.offers.beside(HERE)
    }

    /// The application's core goes on; what another one does meanwhile is found out when it is taken back.
    fn hand_off(&mut self, rail: RailId, orders: Vec<Order>) -> Result<(), Vec<Order>> {
        let offered_at = lock(self.network).local_ns(self.host);
        let task = Task { rail, orders, offered_at };
        match self.cores.offers.offer(HERE, Priority::Prompt, task, true) {
            Ok(Offered::Seen) => {}
            Ok(Offered::Wake(core)) => self.cores.workers[core - 1].looks = true,
            Err(task) => return Err(task.orders),
        }
        self.cores.out.push(rail);
        Ok(())
    }

    /// Cores have begun with what was offered, each in its own time, unless the application's core has come
    /// back before.
    fn take_back(&mut self) {
        let own = lock(self.network).local_ns(self.host);
        while let Some((Task { rail, orders, .. }, index, at)) = self.cores.begun(own) {
            lock(self.network).go_to(self.host, at);
            self.own.work(rail, |rail| pump::post(rail, orders));
            let mut network = lock(self.network);
            let worker = &mut self.cores.workers[index];
            (worker.rail, worker.free_at) = (Some(rail), network.local_ns(self.host));
            network.go_to(self.host, own);
        }
        while let Some(Task { rail, orders, .. }) = self.cores.offers.take_back(|_| true) {
            self.own.work(rail, |rail| pump::post(rail, orders));
        }
        self.cores.out.clear();
        // A thread that was woken in vain sleeps again.
        let in_vain = |worker: &Worker| worker.core.computes && worker.looks;
        let woken: Vec<usize> =
            (0..self.cores.workers.len()).filter(|&index| in_vain(&self.cores.workers[index])).collect();
        woken.into_iter().for_each(|index| self.cores.enter(index));
    }
}
