//! The stage of a run, drawn from its seed: hosts, networks, rails, how each engine is configured, and what
//! will go wrong.

use crate::canary::Canary;
use crate::cores::Core;
use crate::death::{Death, Deaths};
use crate::faults::{Broken, Faults, Strike};
use crate::machine::Machine;
use crate::model::{KINDS, LOSSY, Model, SHARED_MEMORY};
use crate::outage::{Outage, STALL_NS, STALL_TURNS_NS, Turns};
use crate::rng::Rng;
use nmad_engine::packet::PeerId;
use nmad_engine::profile::measured::{Profile, Provenance};
use nmad_engine::profile::sample::{Method, Sample};
use nmad_engine::{Config, CongestionControl, Feed, Preempt, Registry};
use std::fmt;
use std::sync::Arc;

/// Longest message of any workload, in bytes.
pub const LEN_MAX: u64 = 4 << 20;

/// Bytes that are under way at once, at most, where rails fail for a while.
pub const STEADY_MAX: u64 = 4 << 20;

/// Of a hundred scenarios this number run on machines whose cores other programs use, too.
const STARVING: u64 = 12;

/// And this number are of processes of one node, which have no network but its memory.
const ONE_NODE: u64 = 15;

/// And this number have hosts with idle cores, and rails that were measured.
const CORES: u64 = 15;

/// And in this number blocking sends may end before their receivers answer.
const EARLY: u64 = 50;

/// And this number have applications of several threads.
const THREADS: u64 = 30;

/// What a user may fix instead of leaving it to the seed.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Number of hosts, at least two; none: drawn.
    pub hosts: Option<usize>,
    /// Threads of each application; none: drawn.
    pub threads: Option<usize>,
    /// Nothing goes wrong.
    pub no_faults: bool,
    /// All networks carry datagrams, and lose, repeat, reorder and damage them.
    pub lossy: bool,
    /// All hosts use this broken strategy, for tests of the oracles.
    pub canary: Option<Canary>,
    /// All hosts use this strategy; none: drawn for each.
    pub strategy: Option<String>,
    /// Rails fail for a while and come back, or only become narrow, while one is whole.
    pub outages: bool,
    /// Hosts die, which a launcher reports to the others.
    pub deaths: Deaths,
    /// Hosts share files, which their threads access.
    pub files: bool,
    /// What bounds the bytes in flight on lossy links, on all hosts.
    pub congestion: CongestionControl,
    /// Keep a line of text for each event.
    pub explain: bool,
}

/// The stage of a run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Where chance comes from.
    pub seed: u64,
    /// The networks, and how unreliable each is.
    pub fabrics: Vec<(Arc<dyn Model>, Faults)>,
    /// For each network the one whose interfaces carry it, by which they are two ways to one NIC; missing:
    /// it has interfaces of its own.
    pub wires: Vec<usize>,
    /// What its hosts cost.
    pub machine: Machine,
    /// The cores that every host has beside that of its application.
    pub cores: Vec<Core>,
    /// Threads of each application that use the library at the same time.
    pub threads: usize,
    /// A burst of submissions waits for the call that waits, as in the library when the bursts before it each
    /// ended with one (`progress/src/burst.rs`).
    pub holds_back: bool,
    /// A host that waits for a message of one peer also looks on that peer's link, besides turning the pump,
    /// as in the library (`progress/src/receive.rs`).
    pub looks: bool,
    /// A sender waits until its message has left, so that it may leave without the window, as in the library
    /// (`progress/src/send.rs`).
    pub hurries: bool,
    /// What the rails on each network were measured to do; missing or none: only nominal figures are known.
    pub profiles: Vec<Option<Arc<Profile>>>,
    /// For each host the networks that its rails are on, in the order of its own numbers.
    pub rails: Vec<Vec<usize>>,
    /// How the engine of each host is configured.
    pub configs: Vec<Config>,
    /// What breaks.
    pub strikes: Vec<Strike>,
    /// What fails for a while.
    pub outages: Vec<Outage>,
    /// Whether hosts die with a report.
    pub deaths: Deaths,
    /// The deaths.
    pub dying: Vec<Death>,
    /// Nothing goes wrong.
    pub no_faults: bool,
    /// Hosts share files. Then no two of them lose each other.
    pub has_files: bool,
    /// Which fabric does not fail changes.
    pub takes_turns: bool,
    /// A network or its drivers are broken on purpose; broken strategies are in `configs`.
    pub canary: Option<Canary>,
}

impl Scenario {
    /// Draws the stage for `seed`.
    pub fn draw(seed: u64, options: &Options) -> Scenario {
        let is_single = options.deaths.is_single();
        let no_faults = options.no_faults || is_single;
        let mut rng = Rng::of(seed, 1);
        let hosts = options.hosts.unwrap_or_else(|| *rng.pick(&[2, 2, 2, 3, 3, 4, 5]));
        let hosts = if is_single { hosts.min(3) } else { hosts };
        let is_one_node = !options.lossy && Rng::of(seed, 9).percent(ONE_NODE);
        let count = if is_one_node { 1 } else { *rng.pick(&[1, 2, 2, 2, 3, 3, 4]) };
        // Chance of its own, so that what was drawn before damage was known stays as it was.
        let mut damage_rng = Rng::of(seed, 4);
        let fabrics: Vec<(Arc<dyn Model>, Faults)> = (0..count)
            .map(|_| {
                let mut model = if rng.percent(15) { LOSSY } else { rng.pick(&KINDS).clone() };
                if is_one_node {
                    model = SHARED_MEMORY;
                }
                let mut faults = Faults::draw(model.lossy, &mut rng);
                if options.lossy {
                    (model, faults) = (LOSSY, Faults::draw_harsh(&mut damage_rng));
                } else if model.lossy {
                    faults = faults.damaged(&mut damage_rng);
                }
                let model: Arc<dyn Model> = Arc::new(model);
                (model, if no_faults { Faults::default() } else { faults })
            })
            .collect();
        let rails = (0..hosts).map(|_| draw_rails(count, &mut rng)).collect();
        let configs = (0..hosts).map(|host| draw_config(host, options, &mut rng)).collect();
        // Chance of its own, so that what was drawn before these were known stays as it was.
        let mut hosts_rng = Rng::of(seed, 3);
        let bus = hosts_rng.percent(20).then(|| hosts_rng.range(100_000_000, 4_000_000_000));
        let mut scenario = Scenario {
            seed,
            wires: draw_wires(fabrics.len(), &mut Rng::of(seed, 5)),
            fabrics,
            machine: Machine { bus, ..Machine::default() },
            cores: Vec::new(),
            threads: match options.threads {
                _ if is_single => 1,
                threads => threads.unwrap_or_else(|| draw_threads(&mut Rng::of(seed, 12))),
            },
            holds_back: hosts_rng.percent(10),
            looks: Rng::of(seed, 7).percent(50),
            hurries: Rng::of(seed, 8).percent(50),
            profiles: Vec::new(),
            rails,
            configs,
            strikes: Vec::new(),
            outages: Vec::new(),
            deaths: options.deaths,
            dying: Vec::new(),
            no_faults,
            has_files: options.files,
            takes_turns: false,
            canary: options.canary,
        };
        scenario.draw_early();
        scenario.draw_cores();
        if options.outages {
            scenario.fail_for_a_while(no_faults);
        } else if !no_faults {
            scenario.strike(&mut rng);
        }
        if options.files && scenario.may_sever() {
            scenario.strikes.retain(|strike| matches!(strike.what, Broken::Starves(..)));
        }
        scenario.dying = options.deaths.draw(seed, scenario.hosts(), options.files);
        scenario
    }

    /// Draws what breaks.
    fn strike(&mut self, rng: &mut Rng) {
        self.strikes = Strike::draw(self.hosts(), self.fabrics.len(), rng);
        self.postpone_severing();
        let mut starving_rng = Rng::of(self.seed, 6);
        if starving_rng.percent(STARVING) {
            self.strikes.extend(Strike::draw_starving(self.hosts(), &mut starving_rng));
        }
    }

    /// In some scenarios blocking sends may end early. Chance of its own, so that what was drawn before this
    /// was known stays as it was.
    fn draw_early(&mut self) {
        let mut rng = Rng::of(self.seed, 14);
        if rng.percent(EARLY) {
            self.configs.iter_mut().for_each(|config| config.early = rng.len(4 << 20));
        }
    }

    /// Some hosts have cores that post what they are handed, and then rails that were measured.
    fn draw_cores(&mut self) {
        let mut rng = Rng::of(self.seed, 10);
        if rng.percent(CORES) {
            let kinds = [Core::idle(200), Core::idle(3_000), Core::idle(6_000), Core::busy(6_000)];
            self.cores = (0..rng.range(1, 3)).map(|_| *rng.pick(&kinds)).collect();
            let preempt = *rng.pick(&[Preempt::Auto, Preempt::Always]);
            self.configs.iter_mut().for_each(|config| config.preempt = preempt);
            self.profiles = self.fabrics.iter().map(|(model, _)| measured(&**model, &self.cores)).collect();
        }
    }

    /// Everybody is on all networks, of which all but one may fail for a while. Besides, processes starve now
    /// and then, and some scenarios know nothing but that and narrow rails: there no link may be left.
    fn fail_for_a_while(&mut self, no_faults: bool) {
        let mut rng = Rng::of(self.seed, 9);
        let lossy = rng.percent(20);
        let model = |rng: &mut Rng| if lossy { LOSSY } else { rng.pick(&KINDS).clone() };
        self.fabrics.truncate(3);
        while self.fabrics.len() < 2 {
            self.fabrics.push((Arc::new(model(&mut rng)), Faults::default()));
        }
        self.fabrics.iter_mut().for_each(|(_, faults)| *faults = Faults::default());
        let (hosts, fabrics) = (self.hosts().min(3), self.fabrics.len());
        self.wires.clear();
        self.configs.truncate(hosts);
        self.rails.truncate(hosts);
        self.rails.iter_mut().for_each(|rails| {
            *rails = (0..fabrics).collect();
            rng.shuffle(rails);
        });
        self.machine.bus = None;
        if no_faults {
            return;
        }
        let slow = rng.percent(25);
        let turns = match rng.percent(30) {
            true => Turns::draw(fabrics, &mut rng),
            false => Turns::never(rng.index(fabrics)),
        };
        self.outages = Outage::draw(hosts, fabrics, &turns, slow, &mut rng);
        self.takes_turns = turns.changes();
        if slow || rng.percent(25) {
            self.strikes = Strike::draw_starving(hosts, &mut rng);
        }
    }

    /// Longest time for which no request may end while some are under way; none: nobody looks.
    pub fn stall_ns(&self) -> Option<u64> {
        let slowest = self.fabrics.iter().map(|(model, _)| model.wire_ns(STEADY_MAX)).max();
        let narrow = self.outages.iter().map(Outage::narrowness).max().unwrap_or(1);
        let stall_ns = if self.takes_turns { STALL_TURNS_NS } else { STALL_NS };
        (!self.outages.is_empty()).then(|| stall_ns + slowest.unwrap_or(0) * narrow)
    }

    /// Hosts of the scenario.
    pub fn hosts(&self) -> usize {
        self.rails.len()
    }

    /// Whether its faults may leave two hosts without a way to each other.
    pub fn may_sever(&self) -> bool {
        let pairs = (0..self.hosts()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.into_iter().any(|(a, b)| {
            let shared = |f: &usize| self.rails[a].contains(f) && self.rails[b].contains(f);
            (0..self.fabrics.len()).filter(shared).all(|f| self.strikes.iter().any(|s| s.what.hits(f, a, b)))
        })
    }

    /// An engine that never had a link to a peer cannot know that it is gone (finding that out is the
    /// launcher's business), so peers part only after everybody has met.
    fn postpone_severing(&mut self) {
        if self.may_sever() {
            for strike in &mut self.strikes {
                strike.at += 5_000_000;
            }
        }
    }
}

impl Broken {
    /// Whether this breaks the link between two hosts on a fabric.
    fn hits(&self, on: usize, x: usize, y: usize) -> bool {
        match *self {
            Broken::Link { fabric, a, b } | Broken::Direction { fabric, a, b } => {
                fabric == on && (a.min(b), a.max(b)) == (x.min(y), x.max(y))
            }
            Broken::Port { fabric, host } => fabric == on && (host == x || host == y),
            Broken::Host(host) => host == x || host == y,
            Broken::Starves(..) => false,
        }
    }
}

/// What a rail, and the cores beside the application's, are known to do, measured without any noise.
fn measured(model: &dyn Model, cores: &[Core]) -> Option<Arc<Profile>> {
    let sample = |method, len, ns| (method, Sample { len, ns, low_ns: ns, high_ns: ns, count: 1 });
    let lens = (0..17).map(|bits| 1 << bits);
    let copies = lens.map(|len| sample(Method::Copy, len, model.latency_ns() + model.wire_ns(len)));
    let hand_offs = cores.iter().map(|core| sample(Method::HandOff(core.pair()), 0, core.begins_ns));
    let samples = copies.chain(hand_offs);
    Profile::new(Provenance::default(), samples).ok().map(Arc::new)
}

/// Usually one.
fn draw_threads(rng: &mut Rng) -> usize {
    if rng.percent(THREADS) { *rng.pick(&[2, 3, 4, 4]) } else { 1 }
}

/// Sometimes the last network goes through the interfaces of the first one, to which everybody is joined.
fn draw_wires(fabrics: usize, rng: &mut Rng) -> Vec<usize> {
    let shared = fabrics > 1 && rng.percent(15);
    (0..fabrics).map(|number| if shared && number + 1 == fabrics { 0 } else { number }).collect()
}

/// Rails in an order of the host's own. Everybody is on the first fabric, so all pairs can talk.
fn draw_rails(fabrics: usize, rng: &mut Rng) -> Vec<usize> {
    let mut rails: Vec<usize> = (0..fabrics).filter(|&fabric| fabric == 0 || rng.percent(88)).collect();
    rng.shuffle(&mut rails);
    rails
}

fn draw_config(host: usize, options: &Options, rng: &mut Rng) -> Config {
    let mut registry = Registry::default();
    let names: Vec<String> = registry.names().map(String::from).collect();
    let mut strategy = rng.pick(&names).clone();
    if let Some(name) = &options.strategy {
        strategy.clone_from(name);
    }
    if let Some((canary, maker)) = options.canary.and_then(|canary| Some((canary, canary.maker()?))) {
        registry.add(maker);
        strategy = canary.name().into();
    }
    let feed = *rng.pick(&[Feed::Accumulate, Feed::Accumulate, Feed::Prepare, Feed::Backlog(8 << 10)]);
    let mut config = Config { me: PeerId(host as u32), strategy, registry, feed, ..Config::default() };
    config.congestion = options.congestion;
    if rng.percent(60) {
        config.eager_max = Some(rng.len(64 << 10) as usize);
        config.in_place_min = Some(rng.len(16 << 10) as usize);
        config.credit = rng.range(4 << 10, 2 << 20);
        config.chunk = rng.range(2 << 10, 2 << 20);
    }
    config
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {} hosts, {} networks", self.seed, self.hosts(), self.fabrics.len())?;
        for (number, (model, faults)) in self.fabrics.iter().enumerate() {
            let limits = model.limits();
            let kind = if limits.lossy { "datagrams" } else { "reliable" };
            let wire = self.wires.get(number).filter(|wire| **wire != number);
            let kind = wire.map_or(kind.into(), |wire| format!("{kind}, over the wire of net{wire}"));
            let (us, mb) = (limits.latency_ns / 1000, limits.bandwidth / 1_000_000);
            writeln!(f, "  net{number} {:<9} {us:>3} us {mb:>6} MB/s {kind}; {faults}", model.name())?;
        }
        if let Some(bus) = self.machine.bus {
            writeln!(f, "  every host has an I/O bus of {} MB/s", bus / 1_000_000)?;
        }
        if self.threads > 1 {
            writeln!(f, "  every application has {} threads", self.threads)?;
        }
        if self.holds_back {
            writeln!(f, "  submissions wait for a call that waits")?;
        }
        if self.looks {
            writeln!(f, "  a host that waits for one peer also looks at that peer's link alone")?;
        }
        if self.hurries {
            writeln!(f, "  a sender waits until its message has left")?;
        }
        for (host, (rails, config)) in self.rails.iter().zip(&self.configs).enumerate() {
            let rails: Vec<String> =
                rails.iter().enumerate().map(|(r, net)| format!("{r}:net{net}")).collect();
            write!(f, "  h{host} rails {:<24} {} feed {:?}", rails.join(" "), config.strategy, config.feed)?;
            let Config { eager_max, in_place_min, credit, chunk, .. } = config;
            let set = |value: &Option<usize>| value.map_or(String::from("-"), |bytes| bytes.to_string());
            let (eager_max, in_place_min) = (set(eager_max), set(in_place_min));
            writeln!(f, " eager {eager_max} in place {in_place_min} credit {credit} chunk {chunk}")?;
        }
        self.strikes.iter().try_for_each(|strike| writeln!(f, "  {strike}"))?;
        self.dying.iter().try_for_each(|death| writeln!(f, "  {death}"))?;
        self.outages.iter().try_for_each(|outage| writeln!(f, "  {outage}"))
    }
}
