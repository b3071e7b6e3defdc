//! The experiment of every figure: a ping-pong between two hosts in virtual time, with the real engine.
//!
//! Each direction is a series of sends that are posted together and then waited for; the receives are posted
//! together, too (P2 section 3.1). Oracles watch, so a time is that of messages that arrived intact.

use super::card::Card;
use crate::cores::Core;
use crate::death::Deaths;
use crate::faults::Faults;
use crate::machine::Machine;
use crate::model::Model;
use crate::network::lock;
use crate::oracle::ledger::{Ledger, What as Booked};
use crate::outage::Outage;
use crate::scenario::Scenario;
use crate::workload::{Ask, Op, Plan, Step, What};
use crate::world::World;
use nmad_engine::packet::{PeerId, RailId};
use nmad_engine::profile::forecast::Forecast;
use nmad_engine::profile::measured::Profile;
use nmad_engine::profile::sample::Method;
use nmad_engine::{Config, Hints, Protocol};
use std::sync::Arc;

/// Hosts, rails, and how the engine is configured.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Both hosts.
    pub machine: Machine,
    /// The rails, in the order in which they are polled.
    pub cards: Vec<&'static Card>,
    /// For both engines; who they are is filled in.
    pub config: Config,
    /// Several messages that are posted together wait for the call that waits for them, which the library
    /// does once a program has shown that habit; else the first one leaves at once.
    pub holds_back: bool,
    /// A single message is sent by a call that waits, which may pass the window, and messages are awaited by
    /// calls that may look at one rail only, as in the library.
    pub is_blocking: bool,
    /// The drivers take packets while earlier ones are under way, which the papers' library does not use.
    pub pipelined: bool,
    /// See [`Scenario::wires`].
    pub wires: Vec<usize>,
    /// See [`Scenario::cores`].
    pub cores: Vec<Core>,
    /// What changes on the way.
    pub outages: Vec<Outage>,
    /// What the rails were measured to do; empty or none: only nominal figures are known.
    pub profiles: Vec<Option<Arc<Profile>>>,
}

/// The messages that go there and back.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// Bytes of each message.
    pub messages: Vec<usize>,
    /// Each message has a context (an MPI communicator) of its own.
    pub apart: bool,
    /// They are the blocks of one message instead, which lie apart on both sides (a derived datatype).
    pub is_datatype: bool,
    /// The messages are the sampler's, carried by this method; receives take any tag, so that no Rtr
    /// saves a handshake.
    pub probe: Option<Method>,
    /// Receives take any tag, so that each large message asks, as the papers' library does.
    pub asks: bool,
    /// The application copies on each side, before it sends and after it has received, for so long.
    pub copies_ns: u64,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Half a round trip in nanoseconds, the application's copies included.
    pub half_ns: u64,
    /// For each rail: bytes of large messages that the first host gave it in the last round, and when the
    /// last of them had landed, in nanoseconds since the send.
    pub shares: Vec<(u64, u64)>,
    /// Half a round trip in nanoseconds as predicted, if the last message was shared out among cores.
    pub parallel_ns: Option<u64>,
    /// Bytes of small blocks that the first host has sent with each request to send, on average.
    pub with_request: u64,
}

/// The round trips of a run, one after the other.
#[derive(Debug, Clone)]
pub struct Course {
    /// When each began, in nanoseconds.
    pub begins: Vec<u64>,
    /// Half of what each took, in nanoseconds.
    pub halves: Vec<u64>,
    /// For each rail: bytes of large messages that the first host gave it in the last tenth of the rounds.
    pub last: Vec<u64>,
    /// What the first host expects of its rails in the end.
    pub forecasts: Vec<Forecast>,
    /// The longest message that it sends without asking.
    pub eager_max: usize,
}

impl Stage {
    /// Two hosts with these rails and this strategy. Eager limit and thresholds are those of the engine;
    /// shares of large messages are posted whole, as those of the papers are.
    pub fn new(machine: Machine, cards: &[&'static Card], strategy: &str) -> Stage {
        let config = Config { strategy: strategy.into(), chunk: u64::MAX, ..Config::default() };
        Stage {
            machine,
            cards: cards.to_vec(),
            config,
            holds_back: true,
            is_blocking: false,
            pipelined: false,
            wires: Vec::new(),
            cores: Vec::new(),
            outages: Vec::new(),
            profiles: Vec::new(),
        }
    }

    /// Rails as the library drives them: chunks are its own too.
    pub fn shipped(machine: Machine, cards: &[&'static Card], strategy: &str) -> Stage {
        let config = Config { strategy: strategy.into(), ..Config::default() };
        Stage { config, is_blocking: true, ..Stage::new(machine, cards, strategy) }
    }

    /// The papers' eager limit, 32 KiB, and copies up to half of it, instead of the engine's thresholds.
    pub fn limited(mut self) -> Stage {
        (self.config.eager_max, self.config.in_place_min) = (Some(32 << 10), Some(16 << 10));
        self
    }

    /// Half a round trip of one message, in nanoseconds.
    pub fn half_ns(&self, len: usize) -> u64 {
        self.run(&Exchange::one(len)).half_ns
    }

    /// Bandwidth of one message, in MB/s of 2^20 bytes.
    pub fn bandwidth(&self, len: usize) -> f64 {
        bandwidth(len as u64, self.half_ns(len))
    }

    /// Goes there and back.
    ///
    /// # Panics
    /// An oracle objects: then the engine is broken, and no time means anything.
    pub fn run(&self, exchange: &Exchange) -> Outcome {
        let len: usize = exchange.messages.iter().sum();
        // The first rounds open links and settle credits and Rtrs; the times of small messages vary a
        // little with what control frames ride along.
        let (warm, measured) = match len {
            _ if exchange.messages.len() > 16 => (3, 2),
            ..0x0004_0000 => (6, 5),
            0x0004_0000..0x0100_0000 => (2, 1),
            _ => (1, 1),
        };
        let (plan, rounds) = plan(exchange, warm + measured);
        let mut world = World::new(self.scenario(exchange), plan, false);
        world.engine(0).setup().record_receipts((!self.cores.is_empty()).then_some(0));
        world.run().unwrap_or_else(|objection| panic!("golden ping-pong of {len} B: {objection}"));
        let mut halves: Vec<u64> =
            rounds[warm..].iter().map(|round| round.half_ns(world.ledger(), exchange)).collect();
        halves.sort_unstable();
        let half_ns = halves[halves.len() / 2];
        let mut receipts = std::iter::from_fn(|| world.engine(0).next_receipt());
        let parallel_ns = receipts.find(|receipt| receipt.protocol == Protocol::EagerParallel);
        let parallel_ns = parallel_ns.map(|receipt| receipt.predicted_ns);
        let start = rounds[warm + measured - 1].start(world.ledger());
        let network = world.network();
        let mut network = lock(&network);
        let shares = (0..self.cards.len()).map(|fabric| {
            let (bytes, last) = network.landed_since(fabric, 1, start);
            (bytes, last - start)
        });
        let shares = shares.collect();
        drop(network);
        let traffic = world.engine(0).inspect().traffic(PeerId(1)).unwrap_or_default();
        let with_request = traffic.blocks_bytes / traffic.requested.max(1);
        Outcome { half_ns, shares, parallel_ns, with_request }
    }

    /// Goes there and back `count` times. Messages are in one piece each, and their content is not checked:
    /// each would keep its memory to the end of the run.
    ///
    /// # Panics
    /// An oracle objects.
    pub fn course(&self, exchange: &Exchange, count: usize) -> Course {
        let (plan, rounds) = plan(exchange, count);
        let mut world = World::new(self.scenario(exchange), plan, false);
        world.share_memory(false);
        world.run().unwrap_or_else(|objection| panic!("ping-pong: {objection}"));
        let begins: Vec<u64> = rounds.iter().map(|round| round.start(world.ledger())).collect();
        let halves = rounds.iter().map(|round| round.half_ns(world.ledger(), exchange)).collect();
        let (network, late) = (world.network(), begins[count - count.div_ceil(10)]);
        let mut network = lock(&network);
        let rails = 0..self.cards.len();
        let last = rails.clone().map(|fabric| network.landed_since(fabric, 1, late).0).collect();
        drop(network);
        let engine = world.engine(0);
        let forecasts =
            rails.filter_map(|rail| engine.inspect().forecast(RailId(rail as u8), PeerId(1)).cloned());
        let (forecasts, eager_max) =
            (forecasts.collect(), engine.inspect().eager_max(PeerId(1)).unwrap_or(0));
        Course { begins, halves, last, forecasts, eager_max }
    }

    /// Both hosts send a message of `len` bytes at once and wait for both, `count` times; returns the
    /// nanoseconds of each round.
    ///
    /// # Panics
    /// An oracle objects.
    pub fn both_ways(&self, len: usize, count: usize) -> Vec<u64> {
        let exchange = Exchange::one(len);
        let mut plan = Plan { scripts: vec![Vec::new(); 2], ..Plan::default() };
        let rounds: Vec<Vec<Op>> = (0..count)
            .map(|_| {
                let mut ways = Plan { scripts: vec![Vec::new(); 2], ..Plan::default() };
                std::mem::swap(&mut ways.asks, &mut plan.asks);
                let sends = [one_way(&mut ways, &exchange, 0, 1), one_way(&mut ways, &exchange, 1, 0)];
                plan.asks = ways.asks;
                // Both requests of a host are posted before it waits for either.
                for (script, steps) in plan.scripts.iter_mut().zip(ways.scripts) {
                    let is_post = |step: &Step| matches!(step, Step::Post(_));
                    let (posts, waits): (Vec<Step>, Vec<Step>) = steps.into_iter().partition(is_post);
                    script.extend(posts.into_iter().chain(waits));
                }
                sends.concat()
            })
            .collect();
        let mut world = World::new(self.scenario(&exchange), plan, false);
        world.share_memory(false);
        world.run().unwrap_or_else(|objection| panic!("both ways: {objection}"));
        let took = |sends: &Vec<Op>| {
            let start = times(world.ledger(), sends).map(|(submitted, _)| submitted).min();
            let end = times(world.ledger(), sends).map(|(_, received)| received).max();
            end.unwrap_or(0) - start.unwrap_or(0)
        };
        rounds.iter().map(took).collect()
    }

    fn scenario(&self, exchange: &Exchange) -> Scenario {
        let depth = |card: &Card| if self.pipelined { 64 } else { card.depth };
        let card = |card: &&'static Card| Card { depth: depth(card), ..(*card).clone() };
        let models = self.cards.iter().map(|each| Arc::new(card(each)) as Arc<dyn Model>);
        let config = |me| Config { me: PeerId(me), ..self.config.clone() };
        Scenario {
            seed: 0,
            fabrics: models.map(|model| (model, Faults::default())).collect(),
            machine: self.machine,
            // A single message is sent by a call that waits for it.
            holds_back: self.holds_back && exchange.messages.len() > 1 && !exchange.is_datatype,
            looks: self.is_blocking,
            hurries: self.is_blocking && exchange.messages.len() == 1,
            profiles: self.profiles.clone(),
            rails: vec![(0..self.cards.len()).collect(); 2],
            configs: vec![config(0), config(1)],
            strikes: Vec::new(),
            outages: self.outages.clone(),
            deaths: Deaths::None,
            dying: Vec::new(),
            no_faults: true,
            has_files: false,
            takes_turns: false,
            canary: None,
            wires: self.wires.clone(),
            cores: self.cores.clone(),
            threads: 1,
        }
    }
}

impl Exchange {
    /// One message.
    pub fn one(len: usize) -> Exchange {
        Exchange { messages: vec![len], ..Exchange::default() }
    }

    /// A number of messages of equal length, `len` bytes together.
    pub fn segments(len: usize, count: usize) -> Exchange {
        Exchange { messages: vec![len / count; count], ..Exchange::default() }
    }
}

/// MB/s of 2^20 bytes.
pub fn bandwidth(len: u64, ns: u64) -> f64 {
    len as f64 / (1 << 20) as f64 / (ns as f64 / 1e9)
}

/// The requests of one round, in the order of submission on each side.
struct Round {
    pings: Vec<Op>,
    pongs: Vec<Op>,
}

impl Round {
    /// When the first ping was submitted.
    fn start(&self, ledger: &Ledger) -> u64 {
        times(ledger, &self.pings).map(|(submitted, _)| submitted).min().unwrap_or(0)
    }

    fn half_ns(&self, ledger: &Ledger, exchange: &Exchange) -> u64 {
        let end = times(ledger, &self.pongs).map(|(_, received)| received).max().unwrap_or(0);
        // The first host copies before its sends and after its receives; the other's copies lie between.
        (end - self.start(ledger)) / 2 + exchange.copies_ns
    }
}

/// When sends were submitted and when their receives ended.
fn times<'a>(ledger: &'a Ledger, sends: &'a [Op]) -> impl Iterator<Item = (u64, u64)> + 'a {
    ledger.entries.iter().filter_map(move |entry| {
        let Booked::Send { payload, .. } = entry.what else { return None };
        let received = ledger.entries.get(entry.partner?)?.ended.as_ref()?.0;
        sends.contains(&(payload as Op)).then_some((entry.submitted, received))
    })
}

fn plan(exchange: &Exchange, rounds: usize) -> (Plan, Vec<Round>) {
    let mut plan = Plan { scripts: vec![Vec::new(); 2], ..Plan::default() };
    let there_and_back = (0..rounds).map(|_| Round {
        pings: one_way(&mut plan, exchange, 0, 1),
        pongs: one_way(&mut plan, exchange, 1, 0),
    });
    let rounds = there_and_back.collect();
    (plan, rounds)
}

/// All messages from one host to the other; returns the sends.
fn one_way(plan: &mut Plan, exchange: &Exchange, from: usize, to: usize) -> Vec<Op> {
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    let messages: Vec<Vec<usize>> = match exchange.is_datatype {
        true => vec![exchange.messages.clone()],
        false => exchange.messages.iter().map(|&len| vec![len]).collect(),
    };
    for (number, pieces) in messages.into_iter().enumerate() {
        let context = if exchange.apart { number as u32 } else { 0 };
        let hints = Hints { probe: exchange.probe, ..Hints::default() };
        let tag = if exchange.probe.is_some() || exchange.asks { None } else { Some(0) };
        let mut ask = |host, what| {
            plan.asks.push(Ask { host, what, pieces: pieces.clone(), part: None });
            plan.asks.len() - 1
        };
        sends.push(ask(from, What::Send { to, context, tag: 0, hints }));
        receives.push(ask(to, What::Recv { from: Some(from), context, tag }));
    }
    for (host, ops, copies_first) in [(from, &sends, true), (to, &receives, false)] {
        let script = &mut plan.scripts[host];
        let copies = (exchange.copies_ns > 0).then_some(Step::Compute(exchange.copies_ns));
        script.extend(copies.clone().filter(|_| copies_first));
        script.extend(ops.iter().map(|&op| Step::Post(op)));
        script.push(Step::Wait(ops.clone()));
        script.extend(copies.filter(|_| !copies_first));
    }
    sends
}
