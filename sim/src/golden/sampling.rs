//! What a simulated rail is measured to do: the engine's own sampler, its probes carried out in virtual time.
//!
//! Decisions of the figures rest on these samples alone. The models never reach the strategies.

use super::card::Card;
use super::ping_pong::{Exchange, Stage};
use crate::machine::Machine;
use crate::model::Model;
use nmad_engine::profile::measured::{Profile, Provenance};
use nmad_engine::profile::sample::{Method, Sample};
use nmad_engine::{Config, Effort, Pair, Reach, Sampler};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest eager message that is probed, in bytes: what a library may keep unexpected (P4 section III-B).
pub const EAGER_MAX: usize = 64 << 10;
/// Longest message that is probed where messages are to be split, in bytes.
pub const LARGE_MAX: usize = 4 << 20;

/// Preempting a thread that computes on another core, in nanoseconds (P3 section III-D).
pub const PREEMPT_NS: u64 = 6_000;

/// Virtual time has no noise: one visit of each point is enough, and takes as long as it takes.
const EFFORT: Effort =
    Effort { budget_ns: u64::MAX, ratio: 2, refined: 1.05, rounds: 1, repetitions: (1, 1), tolerance: 1.0 };

/// A host by its name, its bus and its engine's time; a card; the hand-off; the longest message.
type Key = ((&'static str, Option<u64>, u64), &'static str, u64, usize);

/// Profiles that were sampled: figures share them.
static KNOWN: Mutex<BTreeMap<Key, Arc<Profile>>> = Mutex::new(BTreeMap::new());

/// One rail between two hosts, to be probed.
#[derive(Debug, Clone, Copy)]
pub struct Bench {
    /// Both hosts.
    pub machine: Machine,
    /// The rail.
    pub card: &'static Card,
    /// Handing a task to another core, in nanoseconds.
    pub hand_off_ns: u64,
}

impl Bench {
    /// A profile of messages up to a length. As a rail that is sampled anew: the first sampling says which
    /// data of two messages stays in place (P4 section III-B).
    pub fn profile(&self, len_max: usize) -> Arc<Profile> {
        let host = (self.machine.name, self.machine.bus, self.machine.packet_ns);
        let key = (host, self.card.name, self.hand_off_ns, len_max);
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        known.unwrap_or_else(|| {
            let profile = self.sampled(len_max);
            KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(key, profile.clone());
            profile
        })
    }

    fn sampled(&self, len_max: usize) -> Arc<Profile> {
        let first = self.sample(EAGER_MAX, None);
        let in_place_min = first.crossings().expect("it was measured").in_place_min;
        Arc::new(self.sample(len_max, Some(in_place_min.min(1 << 40) as usize)))
    }

    fn sample(&self, len_max: usize, in_place_min: Option<usize>) -> Profile {
        let packet_max = EAGER_MAX.min(self.card.eager_max()) as u64;
        let gathers = self.card.limits().gather > 0;
        let reach = Reach {
            packet_max,
            len_max: len_max as u64,
            gathers,
            reads: false,
            blocks: false,
            posts: false,
            pushes: self.card.limits().push > 0,
            host: true,
            hand_offs: [false, false, false, true, true],
        };
        let mut sampler = Sampler::new(reach, EFFORT);
        while let Some(probe) = sampler.next_probe() {
            let ns = self.probe(probe.method, probe.len as usize, in_place_min);
            sampler.measured(&probe, &mut [ns]);
        }
        sampler.finish(self.provenance()).expect("eager messages were probed at many sizes")
    }

    /// Half a round trip by one method, in nanoseconds.
    fn probe(&self, method: Method, len: usize, in_place_min: Option<usize>) -> u64 {
        let two = matches!(method, Method::Pair | Method::Aggregate);
        match method {
            Method::Memcpy => self.machine.copy_ns(len as u64),
            Method::HandOff(Pair::Busy) => PREEMPT_NS,
            Method::HandOff(_) => self.hand_off_ns,
            _ => {
                let mut stage = Stage::new(self.machine, &[self.card], "aggregate");
                stage.config.in_place_min = in_place_min;
                if self.card.swallows > 0 {
                    stage.config.chunk = Config::default().chunk;
                }
                let messages = vec![len; if two { 2 } else { 1 }];
                stage.run(&Exchange { messages, probe: Some(method), ..Exchange::default() }).half_ns
            }
        }
    }

    /// A profile of eager messages alone, copied into their packets.
    pub fn eager_profile(&self, sizes: &[usize]) -> Arc<Profile> {
        let sample = |&len: &usize| {
            let ns = self.probe(Method::Copy, len, None);
            (Method::Copy, Sample { len: len as u64, ns, low_ns: ns, high_ns: ns, count: 1 })
        };
        let profile = Profile::new(self.provenance(), sizes.iter().map(sample));
        Arc::new(profile.expect("there are several sizes"))
    }

    fn provenance(&self) -> Provenance {
        Provenance {
            key: format!("sim/{} on {}", self.card.name, self.machine.name),
            how: "the sampler on simulated rails".into(),
            ..Provenance::default()
        }
    }
}

/// Two hosts with these rails, on which thresholds and eager limit are those that the engine samples. Shares
/// of large messages are posted whole, as the papers' library does.
pub fn sampled(machine: Machine, cards: &[&'static Card], strategy: &str) -> Stage {
    let mut stage = Stage::new(machine, cards, strategy);
    let profile = |card: &&'static Card| Bench { machine, card, hand_off_ns: 0 }.profile(LARGE_MAX);
    stage.profiles = cards.iter().map(|card| Some(profile(card))).collect();
    stage
}

/// Sizes from one to another, two for each doubling.
pub fn spaced(from: usize, to: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut len = from;
    while len <= to {
        sizes.push(len);
        if len > 1 && len + len / 2 < to {
            sizes.push(len + len / 2);
        }
        len *= 2;
    }
    sizes
}
