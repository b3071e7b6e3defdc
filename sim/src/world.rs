//! The world: hosts, the network between them, the agenda in virtual time, and the oracles that watch.

use crate::buffer::Buffer;
use crate::canary::Canary;
use crate::cores::Core;
use crate::death::Deaths;
use crate::exposed::Windows;
use crate::faults::{Broken, Faults};
use crate::files::{Files, Volumes};
use crate::host::{Host, Lean};
use crate::model::Model;
use crate::network::{Fabric, Happening, Key, Network, Shared, lock};
use crate::oracle::Objection;
use crate::oracle::delivery::DeliveryOracle;
use crate::oracle::fates::Fates;
use crate::oracle::ledger::Ledger;
use crate::oracle::liveness::{self, LivenessOracle};
use crate::oracle::order;
use crate::oracle::stall::StallOracle;
use crate::oracle::ways::{self, WaysOracle};
use crate::rail::SimRail;
use crate::scenario::Scenario;
use crate::workload::{Ask, Plan};
use nmad_engine::Engine;
use nmad_engine::packet::{PeerId, RailId};
use nmad_engine::transfer::driver::Driver;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// A run must be over by then, in virtual time.
const TIME_MAX_NS: u64 = 60_000_000_000;
/// A run must be over after this number of entries of the agenda. Three hosts that look for each other all
/// the time make some 70 million in a second.
const EVENTS_MAX: u64 = 100_000_000;
/// How long after the last application has ended everything must be settled: longer than an engine tries
/// before it gives a link up, since chance may swallow what is last, and its acknowledgements, that often.
const SETTLE_NS: u64 = 16_000_000_000;
/// Credit that every peer assumes before the receiver has announced one (see the engine's credits), in bytes.
const INITIAL_CREDIT: u64 = 256 << 10;

/// Hosts, network and oracles of one run.
pub struct World {
    hosts: Vec<Host>,
    network: Shared,
    /// The files that hosts share.
    volumes: Volumes,
    scenario: Scenario,
    plan: Plan,
    delivery: DeliveryOracle,
    liveness: LivenessOracle,
    stall: StallOracle,
    ways: WaysOracle,
    /// Whether oracles watch over time.
    is_watched: bool,
    now: u64,
    done_at: Option<u64>,
}

impl Fates for Network {
    fn severed(&self, a: usize, b: usize) -> bool {
        Network::severed(self, a, b)
    }

    fn dead(&self, host: usize) -> bool {
        self.doing[host].dead
    }

    fn closed(&self, host: usize, context: u32) -> bool {
        self.doing[host].closed.contains(&context)
    }
}

impl World {
    /// Sets the stage.
    pub fn new(scenario: Scenario, plan: Plan, explain: bool) -> World {
        World::of(scenario, plan, explain, &|_, _| true)
    }

    /// The same with links between these pairs of hosts only.
    fn of(scenario: Scenario, plan: Plan, explain: bool, meet: Meet<'_>) -> World {
        let fabric = |(number, (model, faults)): (usize, &(Arc<dyn Model>, Faults))| {
            let wire = scenario.wires.get(number).copied().unwrap_or(number);
            Fabric { model: model.clone(), faults: *faults, wire }
        };
        let fabrics = scenario.fabrics.iter().enumerate().map(fabric).collect();
        let mut network = Network::new(fabrics, &scenario.rails, scenario.seed, explain);
        network.machine = scenario.machine;
        network.set_outages(scenario.outages.clone());
        let budgets = scenario.configs.iter().map(|config| config.credit.max(INITIAL_CREDIT)).collect();
        network.oracle.set_budgets(budgets);
        network.corrupts = scenario.canary == Some(Canary::Corrupts);
        network.unchecked = scenario.canary == Some(Canary::Unchecked);
        for (number, strike) in scenario.strikes.iter().enumerate() {
            network.agenda.enter(strike.at, Happening::Strike(number));
        }
        for (number, death) in scenario.dying.iter().enumerate() {
            network.agenda.enter(death.at, Happening::Declared(number));
        }
        network.moments = (scenario.deaths == Deaths::Single(None)).then(BTreeSet::new);
        let network = Arc::new(Mutex::new(network));
        let volumes = plan.files.as_ref().map(Volumes::new).unwrap_or_default();
        let host = |id| host(&scenario, &plan, id, (&network, &volumes, meet));
        let hosts: Vec<Host> = (0..scenario.hosts()).map(host).collect();
        for id in 0..hosts.len() {
            lock(&network).wake(id, id as u64 * 100);
        }
        let (delivery, liveness) = (DeliveryOracle::default(), LivenessOracle::default());
        let (stall, ways) = (StallOracle::new(scenario.stall_ns()), WaysOracle::default());
        let (is_watched, now, done_at) = (true, 0, None);
        World {
            hosts,
            network,
            volumes,
            scenario,
            plan,
            delivery,
            liveness,
            stall,
            ways,
            is_watched,
            now,
            done_at,
        }
    }

    /// A run of which only the time counts: requests share memory ([`World::share_memory`]), and only hosts
    /// with messages for each other have links, so that hundreds of hosts need little memory. No oracle
    /// objects that messages stand still.
    pub fn time_only(scenario: Scenario, plan: Plan, sleeps: bool) -> World {
        let pairs: BTreeSet<(usize, usize)> = plan.asks.iter().filter_map(Ask::pair).collect();
        let meet = |a: usize, b: usize| pairs.contains(&(a.min(b), a.max(b)));
        let mut world = World::of(scenario, plan, false, &meet);
        world.share_memory(sleeps);
        world.is_watched = false;
        world
    }

    /// Has all requests use the same contiguous memory; its content is neither carried nor checked. `sleeps`:
    /// an engine makes no progress while its application computes.
    pub fn share_memory(&mut self, sleeps: bool) {
        let longest = (0..self.plan.asks.len()).map(|op| self.plan.len(op)).max().unwrap_or(0) as usize;
        let memory = || Rc::new(Buffer::new(&[longest]));
        let lean = Lean { out: memory(), into: memory(), sleeps };
        self.hosts.iter_mut().for_each(|host| host.set_lean(lean.clone()));
        lock(&self.network).hollow = true;
    }

    /// The engine of a host.
    pub fn engine(&mut self, host: usize) -> &mut Engine {
        &mut self.hosts[host].engine
    }

    /// The network, for what it has counted and recorded.
    pub fn network(&self) -> Shared {
        self.network.clone()
    }

    /// Virtual time in nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Messages submitted, and their bytes.
    pub fn messages(&self) -> (u64, u64) {
        self.delivery.messages()
    }

    /// Accesses to memory of other hosts.
    pub fn accesses(&self) -> u64 {
        self.delivery.memory.count()
    }

    /// Tasks of hosts with files.
    pub fn tasks(&self) -> u64 {
        self.delivery.files.count()
    }

    /// The submitted messages, and when each ended.
    pub fn ledger(&self) -> &Ledger {
        &self.delivery.ledger
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// What the first oracle objected to.
    pub fn run(&mut self) -> Result<(), Objection> {
        for _ in 0..EVENTS_MAX {
            let next = lock(&self.network).agenda.take_next();
            let Some((at, what)) = next else { return Err("nothing will ever happen again".into()) };
            self.now = at;
            self.happen(what)?;
            if let Some(objection) = lock(&self.network).oracle.objection() {
                return Err(objection);
            }
            if at > TIME_MAX_NS {
                return Err(format!("not over after {} s: {}", TIME_MAX_NS / 1_000_000_000, self.open()));
            }
            if self.is_over()? {
                return self.finish();
            }
        }
        Err(format!("not over after {EVENTS_MAX} events: {}", self.open()))
    }

    fn happen(&mut self, what: Happening) -> Result<(), Objection> {
        let now = self.now;
        let mut network = lock(&self.network);
        match what {
            Happening::Wake(host) => {
                drop(network);
                return self.wake(host);
            }
            Happening::Depart(id) => network.depart(now, id),
            Happening::Done(key, sent) => network.done(now, key, *sent),
            Happening::Begin(fabric, host) => network.begin(now, fabric, host),
            Happening::Drained(id) => network.drained(now, id),
            Happening::Reach(transit) => network.reach(now, transit),
            Happening::Deliver(transit) => network.deliver(now, transit),
            Happening::Open(key) => network.opened(now, key),
            Happening::Notice(key, epoch) => network.noticed_of(now, key, epoch),
            Happening::Carrier(number, is_back) => network.carrier(now, number, is_back),
            Happening::Part(key) => network.part(now, key),
            Happening::Declared(number) => {
                let death = &self.scenario.dying[number];
                death.declare(now, number, &mut network);
                if network.doing[death.host].dead {
                    self.delivery.files.died(death.host);
                }
            }
            Happening::Ends(host, notice_ns) => network.kill_host(host, now, notice_ns),
            Happening::Reported(number, host) => {
                let is_there = !network.doing[host].dead;
                let dead = self.scenario.dying[number].host;
                drop(network);
                let closes = self.scenario.canary != Some(Canary::Forgets);
                if is_there {
                    self.hosts[host].learn_death(now, dead, &self.plan, closes);
                }
            }
            Happening::Strike(number) => {
                let strike = self.scenario.strikes[number];
                match strike.what {
                    Broken::Link { fabric, a, b } => {
                        network.kill_link(Key { fabric, me: a, peer: b }, now, strike.notice_ns);
                    }
                    Broken::Direction { fabric, a, b } => {
                        network.kill_direction(Key { fabric, me: a, peer: b }, now, strike.notice_ns);
                    }
                    Broken::Port { fabric, host } => network.kill_port(fabric, host, now, strike.notice_ns),
                    Broken::Host(host) => network.kill_host(host, now, strike.notice_ns[1]),
                    Broken::Starves(host, ns) => network.starve(host, now, ns),
                }
            }
        }
        Ok(())
    }

    fn wake(&mut self, id: usize) -> Result<(), Objection> {
        let now = self.now;
        {
            let mut network = lock(&self.network);
            let doing = &mut network.doing[id];
            if doing.dead || doing.wake_at != Some(now) {
                return Ok(());
            }
            doing.wake_at = None;
            if doing.local_ns > now {
                let at = doing.local_ns;
                network.wake(id, at);
                return Ok(());
            }
        }
        let host = &mut self.hosts[id];
        host.run(now, &self.plan, &mut self.delivery)?;
        if !self.is_watched {
            return Ok(());
        }
        let network = lock(&self.network);
        // After a death requests to the dead host fail at once, so long computations without traffic are
        // normal.
        if network.doing.iter().all(|doing| !doing.declared) {
            self.stall.look(now, &network, &self.delivery.ledger)?;
        }
        self.liveness.look(network.local_ns(id), id, &host.engine, &network, &self.delivery.ledger)?;
        let hosts = &self.hosts;
        let memory = |target: usize| hosts[target].exposed().filter(|_| !network.doing[target].dead);
        self.delivery.memory.look(&self.plan, &memory)?;
        let engine = |host: usize| &hosts[host].engine;
        let sight = ways::Sight { now, engine: &engine, rails: &self.scenario.rails, network: &network };
        self.ways.look(id, &sight)
    }

    /// Whether every application has ended and everything is settled.
    fn is_over(&mut self) -> Result<bool, Objection> {
        let network = lock(&self.network);
        let mut living = self.hosts.iter().filter(|host| !network.doing[host.id].dead);
        if !living.clone().all(Host::is_done) {
            return Ok(false);
        }
        let done_at = *self.done_at.get_or_insert(self.now);
        let settled = living.all(|host| liveness::is_settled(host.id, &host.engine, &network));
        let is_whole = !self.is_watched || !self.ways.awaits();
        // A message of a dead host that no receive has taken may lie in a region.
        let keeps = |host: usize| self.hosts[host].engine.inspect().unexpected() > 0;
        let is_closed = network.open_regions().all(|(_, host, _)| keeps(host));
        if settled && is_whole && network.is_idle() && is_closed {
            return Ok(true);
        }
        if self.now < done_at + SETTLE_NS {
            return Ok(false);
        }
        Err(format!(
            "not settled {} s after the last application ended: {}",
            SETTLE_NS / 1_000_000_000,
            self.left(&network)
        ))
    }

    /// Requests and receive regions that are left over, for a message.
    fn left(&self, network: &Network) -> String {
        let mut texts: Vec<String> = Vec::new();
        for host in self.hosts.iter().filter(|host| !network.doing[host.id].dead) {
            for peer in 0..self.hosts.len() {
                let Some(view) = host.engine.inspect().peer_view(PeerId(peer as u32)) else { continue };
                texts.push(format!("h{}->h{peer} {view:?}", host.id));
            }
        }
        if !network.is_idle() {
            texts.push("cargo is on a wire or in a port".into());
        }
        texts.extend(
            network
                .open_regions()
                .map(|(fabric, host, id)| format!("net{fabric} h{host} region {:#x}", id.0)),
        );
        texts.join("; ")
    }

    fn finish(&mut self) -> Result<(), Objection> {
        let network = lock(&self.network);
        self.delivery.finish(&*network)?;
        order::check(&self.delivery.ledger)?;
        if !self.scenario.dying.is_empty() {
            let living = self.hosts.iter().filter(|host| !network.doing[host.id].dead);
            living.for_each(Host::close_files);
        }
        for file in 0..self.volumes.count() {
            self.volumes.with(file, |server| self.delivery.files.finish(file, server))?;
        }
        for host in self.hosts.iter().filter(|host| !network.doing[host.id].dead) {
            if let Some(memory) = host.exposed() {
                self.delivery.memory.finish(&self.plan, host.id, memory, &*network)?;
            }
            let whole = (0..self.hosts.len()).all(|peer| peer == host.id || !network.severed(host.id, peer));
            let left = host.engine.inspect().unexpected();
            if whole && left > 0 {
                return Err(format!("h{} still keeps {left} unexpected messages", host.id));
            }
        }
        Ok(())
    }

    fn open(&self) -> String {
        let network = lock(&self.network);
        let open = self.delivery.ledger.open().filter(|entry| !network.doing[entry.host].dead);
        let mut texts: Vec<String> = open.map(ToString::to_string).collect();
        texts.extend(self.plan.files.iter().flat_map(|script| self.delivery.files.open(script)));
        let more = texts.len().saturating_sub(6);
        texts.truncate(6);
        if more > 0 {
            texts.push(format!("and {more} more"));
        }
        if texts.is_empty() { "no request is open".into() } else { texts.join("; ") }
    }
}

/// Which hosts have links to each other.
type Meet<'a> = &'a dyn Fn(usize, usize) -> bool;

fn host(
    scenario: &Scenario,
    plan: &Plan,
    id: usize,
    (network, volumes, meet): (&Shared, &Volumes, Meet<'_>),
) -> Host {
    let config = scenario.configs[id].clone();
    let mut engine = Engine::new(config).unwrap_or_else(|e| panic!("scenario: {e}"));
    let (busy, idle): (Vec<&Core>, Vec<&Core>) = scenario.cores.iter().partition(|core| core.computes);
    idle.iter().for_each(|_| engine.inspect().cores().enter());
    engine.inspect().cores().set_on_call(busy.len());
    let mut rails: Vec<Box<dyn Driver>> = Vec::new();
    let wire = |fabric: usize| scenario.wires.get(fabric).copied().unwrap_or(fabric);
    for (place, &fabric) in scenario.rails[id].iter().enumerate() {
        let rail = SimRail::new(network, fabric, id);
        let number = engine.setup().add_rail(rail.limits());
        rails.push(Box::new(rail));
        let other = scenario.rails[id][..place].iter().position(|&other| wire(other) == wire(fabric));
        if let Some(other) = other {
            engine.setup().share_wire(number, RailId(other as u8));
        }
        if let Some(Some(profile)) = scenario.profiles.get(fabric) {
            engine.setup().set_profile(number, None, profile.clone());
        }
        for peer in (0..scenario.hosts()).filter(|&peer| peer != id && meet(id, peer)) {
            if scenario.rails[peer].contains(&fabric) {
                engine.setup().add_link(PeerId(peer as u32), number);
            }
        }
    }
    let mut host = Host::new(id, engine, rails, network.clone(), scenario);
    if let Some(&size) = plan.exposes.get(id) {
        let doubles = scenario.canary == Some(Canary::Doubles);
        host.expose(Windows::new((id, scenario.hosts()), size, network.clone(), doubles));
    }
    if let Some(script) = &plan.files {
        host.open(Files::new((id, scenario.seed), script, (volumes, network), scenario.canary));
    }
    host
}
