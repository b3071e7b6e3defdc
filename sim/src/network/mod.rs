//! The simulated wires between hosts, and the agenda of everything that is under way on them.
//!
//! Below the drivers: this layer carries packets and chunks between ports, with the cost of a [`Model`] and
//! the [`Faults`] of a scenario. It sees bytes and orders, as a driver does, and never a frame except to
//! explain it. Times are nanoseconds of virtual time.

mod absence;
pub mod bus;
mod carry;
mod expense;
mod link;
mod port;
mod reading;

pub use crate::key::Key;
pub use link::Standing;
pub use port::Inbound;

use crate::agenda::Agenda;
use crate::faults::Faults;
use crate::machine::Machine;
use crate::model::Model;
use crate::oracle::wire::WireOracle;
use crate::outage::Outage;
use crate::rng::Rng;
use crate::trace::Trace;
use bus::Buses;
use carry::Flight;
use link::Side;
use port::Port;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// The network as drivers and the world share it. There is one thread; the lock is for the compiler.
pub type Shared = Arc<Mutex<Network>>;

/// Takes the lock. A panic of the engine poisons it, and is reported by itself.
pub fn lock(shared: &Shared) -> MutexGuard<'_, Network> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// An event of the agenda.
#[derive(Debug)]
pub enum Happening {
    /// A host looks after its rails and its application.
    Wake(usize),
    /// An order leaves the sender's rail.
    Depart(u64),
    /// A port, by fabric and host, begins with what is first in its queue.
    Begin(usize, usize),
    /// The bytes of an order have gone over the bus, unless it was slowed down.
    Drained(u64),
    /// An interface reports an order as sent.
    Done(Key, Box<Inbound>),
    /// A cargo reaches the port of its receiver.
    Reach(Box<carry::Transit>),
    /// A cargo is at the disposal of its receiver.
    Deliver(Box<carry::Transit>),
    /// One side of a link is open.
    Open(Key),
    /// One side of a link learns that it is gone, if it was not opened again since.
    Notice(Key, u64),
    /// The death with this number in the list of the scenario is declared.
    Declared(usize),
    /// A host ends that was declared dead before; its links are noticed after so long.
    Ends(usize, u64),
    /// A host has the report of the death with this number.
    Reported(usize, usize),
    /// A carrier is lost or back, by the number of the outage.
    Carrier(usize, bool),
    /// Part of what this side sends has arrived.
    Part(Key),
    /// The fault with this number in the list of the scenario strikes.
    Strike(usize),
}

/// One fabric: a network that connects a port of every host.
#[derive(Debug)]
pub struct Fabric {
    /// Its costs.
    pub model: Arc<dyn Model>,
    /// How unreliable it is.
    pub faults: Faults,
    /// The fabric whose interfaces carry it; its own number if they are its own.
    pub wire: usize,
}

/// What one host is doing, as far as the network must know.
#[derive(Debug, Default, Clone)]
pub struct Doing {
    /// Where the host's core is in time.
    pub local_ns: u64,
    /// The host wants to be woken by arrivals.
    pub attentive: bool,
    /// When it will wake next.
    pub wake_at: Option<u64>,
    /// The host has died.
    pub dead: bool,
    /// The launcher has declared it dead. It may still run.
    pub declared: bool,
    /// Hosts whose death was reported to it.
    pub told_dead: BTreeSet<usize>,
    /// Contexts that it has closed.
    pub closed: BTreeSet<u32>,
    /// For how long it got no core so far.
    pub starved_ns: u64,
}

/// Counters of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Packets that left.
    pub packets: u64,
    /// Chunks that left.
    pub chunks: u64,
    /// Bytes that left, headers of packets included.
    pub bytes: u64,
    /// Packets and chunks sent again.
    pub resent: u64,
    /// Cargoes that a fault took.
    pub dropped: u64,
    /// Links that died by a fault.
    pub killed: u64,
}

/// All ports, links and cargoes.
#[derive(Debug)]
pub struct Network {
    /// What happens when.
    pub agenda: Agenda<Happening>,
    /// The record of the run.
    pub trace: Trace,
    /// Counters.
    pub traffic: Traffic,
    /// What the hosts are doing.
    pub doing: Vec<Doing>,
    /// Looks at everything that is posted.
    pub oracle: WireOracle,
    /// The wires change bytes of chunks now and then.
    pub corrupts: bool,
    /// Drivers take datagrams that were damaged on their way.
    pub unchecked: bool,
    /// Chunks carry their length and no bytes; see [`crate::world::World::share_memory`].
    pub hollow: bool,
    /// What every host costs.
    pub machine: Machine,
    buses: Buses,
    fabrics: Vec<Fabric>,
    /// By fabric and host.
    ports: Vec<Option<Port>>,
    /// By fabric and host, and then by its peer, up to the last that was used.
    sides: Vec<Vec<Side>>,
    /// What fails for a while.
    outages: Vec<Outage>,
    /// Links that a fault has hit, as fabric and both hosts in ascending order.
    struck: BTreeSet<(usize, usize, usize)>,
    flights: BTreeMap<u64, Flight>,
    next_flight: u64,
    next_key: u64,
    in_transit: u64,
    /// When something left a host or was delivered to it, if that is kept.
    pub moments: Option<BTreeSet<(usize, u64)>>,
    rng: Rng,
}

impl Network {
    /// Hosts whose rails are the fabrics that `rails` lists, in the order of the host's own numbers.
    pub fn new(fabrics: Vec<Fabric>, rails: &[Vec<usize>], seed: u64, explain: bool) -> Network {
        let places = fabrics.len() * rails.len();
        let mut ports: Vec<Option<Port>> = (0..places).map(|_| None).collect();
        for (host, list) in rails.iter().enumerate() {
            for (number, &fabric) in list.iter().enumerate() {
                ports[fabric * rails.len() + host] = Some(Port::new(number as u8));
            }
        }
        Network {
            agenda: Agenda::new(),
            trace: Trace::new(explain),
            traffic: Traffic::default(),
            doing: vec![Doing::default(); rails.len()],
            oracle: WireOracle::default(),
            corrupts: false,
            unchecked: false,
            hollow: false,
            machine: Machine::default(),
            buses: Buses::default(),
            fabrics,
            ports,
            sides: (0..places).map(|_| Vec::new()).collect(),
            outages: Vec::new(),
            struck: BTreeSet::new(),
            flights: BTreeMap::new(),
            next_flight: 0,
            next_key: 1,
            in_transit: 0,
            moments: None,
            rng: Rng::of(seed, 0x77_69_72_65),
        }
    }

    /// The model of a fabric.
    pub fn model(&self, fabric: usize) -> Arc<dyn Model> {
        self.fabrics[fabric].model.clone()
    }

    /// Where the core of `host` is in time.
    pub fn local_ns(&self, host: usize) -> u64 {
        self.doing[host].local_ns
    }

    /// The core of `host` works for `ns`.
    pub fn work(&mut self, host: usize, ns: u64) {
        self.doing[host].local_ns += ns;
    }

    /// What `host` does from now on it does on another core, which is there in time.
    pub fn go_to(&mut self, host: usize, at: u64) {
        self.doing[host].local_ns = at;
    }

    /// `host` gets no core for `ns` from now on.
    pub fn starve(&mut self, host: usize, now: u64, ns: u64) {
        let doing = &mut self.doing[host];
        doing.local_ns = doing.local_ns.max(now) + ns;
        doing.starved_ns += ns;
    }

    /// Enters that `host` wakes at `at`, unless it does so earlier anyway.
    pub fn wake(&mut self, host: usize, at: u64) {
        let doing = &mut self.doing[host];
        let at = at.max(doing.local_ns);
        if !doing.dead && doing.wake_at.is_none_or(|other| at < other) {
            doing.wake_at = Some(at);
            self.agenda.enter(at, Happening::Wake(host));
        }
    }

    /// Nothing is on any wire or in any port.
    pub fn is_idle(&self) -> bool {
        self.in_transit == 0
            && self.flights.is_empty()
            && self.ports().all(|(_, host, port)| self.doing[host].dead || port.inbox.is_empty())
    }

    /// A host has died: its ports swallow everything and its links are lost to the others.
    pub fn kill_host(&mut self, host: usize, now: u64, notice_ns: u64) {
        self.doing[host].dead = true;
        self.flights.retain(|_, flight| flight.key.me != host);
        for fabric in 0..self.fabrics.len() {
            if self.has_port(fabric, host) {
                self.kill_port(fabric, host, now, [notice_ns, notice_ns]);
            }
        }
    }

    /// Keeps the time at which something left a host or was delivered to it.
    fn keep_moment(&mut self, host: usize, at: u64) {
        if let Some(moments) = &mut self.moments {
            moments.insert((host, at));
        }
    }

    /// Fabrics that two hosts share.
    pub fn shared(&self, a: usize, b: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.fabrics.len()).filter(move |&fabric| self.has_port(fabric, a) && self.has_port(fabric, b))
    }

    /// Faults have left no way between two hosts: their engines may, and shall, give each other up.
    pub fn severed(&self, a: usize, b: usize) -> bool {
        let is_gone = |host: usize| self.doing[host].dead || self.doing[host].declared;
        is_gone(a)
            || is_gone(b)
            || self.shared(a, b).all(|fabric| self.struck.contains(&(fabric, a.min(b), a.max(b))))
    }

    /// The engine of `me` has received the loss of every link to `peer`, or the report of its death.
    pub fn knows_severed(&self, me: usize, peer: usize) -> bool {
        if self.doing[me].told_dead.contains(&peer) {
            return true;
        }
        let told = |fabric| self.seen(Key { fabric, me, peer }).map(|side| side.told);
        self.shared(me, peer).all(|fabric| told(fabric) == Some(Standing::Gone))
    }

    /// Orders for `peer` that `me` has posted and that have not left.
    pub fn waiting(&self, me: usize, peer: usize) -> usize {
        let waiting = |fabric| self.seen(Key { fabric, me, peer }).map_or(0, |side| side.waiting.len());
        self.shared(me, peer).map(waiting).sum()
    }

    /// Whether a link from `me` to `peer` is still to open, or to fail to: what the application has
    /// dedicated to it has to wait.
    pub fn opening(&self, me: usize, peer: usize) -> bool {
        let standing = |fabric| self.seen(Key { fabric, me, peer }).map(|side| side.standing);
        self.shared(me, peer).any(|fabric| standing(fabric) == Some(Standing::Opening))
    }

    /// Whether two hosts share a fabric that loses cargoes.
    pub fn share_lossy(&self, a: usize, b: usize) -> bool {
        self.shared(a, b).any(|fabric| self.fabrics[fabric].model.limits().lossy)
    }

    /// The port whose interface carries what goes through this one.
    fn interface(&mut self, fabric: usize, host: usize) -> &mut Port {
        let wire = self.fabrics[fabric].wire;
        let own = !self.has_port(wire, host);
        self.port(if own { fabric } else { wire }, host)
    }

    fn port(&mut self, fabric: usize, host: usize) -> &mut Port {
        let place = self.place(fabric, host);
        self.ports[place].as_mut().expect("every rail of the scenario has a port")
    }

    /// Where a fabric and a host have their entry in lists of both.
    fn place(&self, fabric: usize, host: usize) -> usize {
        fabric * self.doing.len() + host
    }

    fn has_port(&self, fabric: usize, host: usize) -> bool {
        self.ports.get(self.place(fabric, host)).is_some_and(Option::is_some)
    }

    /// All ports, with fabric and host.
    fn ports(&self) -> impl Iterator<Item = (usize, usize, &Port)> {
        let hosts = self.doing.len();
        let ports = self.ports.iter().enumerate();
        ports.filter_map(move |(place, port)| Some((place / hosts, place % hosts, port.as_ref()?)))
    }

    fn arrive(&mut self, at: u64, fabric: usize, host: usize, what: Inbound) {
        if self.doing[host].dead {
            return;
        }
        self.port(fabric, host).inbox.push_back(what);
        if self.doing[host].attentive {
            self.wake(host, at);
        }
    }
}
