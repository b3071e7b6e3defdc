//! Communication phases on 256 hosts, for a model of such phases to be held against (P5 section 7).

use super::minife::{LARGE, minife};
use super::phase::{Letter, Policy, Program, phase_ns};
use super::toys::toy;
use super::{E5_2670, INFINIBAND, Network, TEN_GIGABIT};
use crate::golden::sampling::{Bench, LARGE_MAX};
use nmad_engine::profile::measured::Profile;
use std::sync::Arc;

const HOSTS: usize = 256;

/// Toys: the longest message in KB, to how many others each host sends, and whether calculation comes between
/// the sends and the wait.
const TOYS: [(usize, usize, bool); 8] = [
    (32, 15, false),
    (128, 1, true),
    (128, 8, false),
    (512, 4, true),
    (1024, 2, true),
    (1024, 8, false),
    (2048, 3, false),
    (4096, 1, false),
];

/// A phase that was simulated: all hosts post their receives, send one message after the other with blocking
/// calls, compute, and wait. Each has one rail, and answers nobody while it computes.
#[derive(Debug, Clone)]
pub struct Wide {
    /// The network.
    pub network: &'static str,
    /// The program.
    pub program: String,
    /// What the rail was measured to do.
    pub profile: Arc<Profile>,
    /// The longest packet that it takes, in bytes.
    pub packet: usize,
    /// The longest message that goes without asking, in bytes.
    pub eager_max: usize,
    /// Sender, receiver, and bytes, in the order in which each host sends.
    pub letters: Vec<Letter>,
    /// The calculation of each host, in nanoseconds.
    pub calculation_ns: u64,
    /// When each host begins, and the time that it spends in its sends and in its wait, in nanoseconds.
    pub hosts: Vec<(u64, u64)>,
}

/// The phases in which each host sends at most so many messages on average, simulated one by one as they are
/// asked for.
pub fn wide(most: usize) -> impl Iterator<Item = Wide> {
    let toys = TOYS.into_iter().map(|(kb, degree, overlaps)| {
        let name = if overlaps { "overlapToy" } else { "noOverlapToy" };
        (format!("{name}, {kb} KB to {degree}"), toy(HOSTS, kb << 10, degree, overlaps))
    });
    let minife = [false, true].map(|overlaps| {
        let name = if overlaps { "miniFE with overlap" } else { "miniFE" };
        (name.to_string(), minife(LARGE, HOSTS, overlaps))
    });
    let programs =
        toys.chain(minife).filter(move |(_, program)| program.letters.len().div_ceil(HOSTS) <= most);
    programs.flat_map(|(name, program)| {
        [&TEN_GIGABIT, &INFINIBAND].into_iter().map(move |network| simulated(network, &name, &program))
    })
}

fn simulated(network: &Network, name: &str, program: &Program) -> Wide {
    let card = network.card;
    Wide {
        network: network.title,
        program: name.to_string(),
        profile: Bench { machine: E5_2670, card, hand_off_ns: 0 }.profile(LARGE_MAX),
        packet: card.packet,
        eager_max: network.default_max,
        letters: program.letters.clone(),
        calculation_ns: program.before_ns,
        hosts: phase_ns(network, Policy::limit(network.default_max), program),
    }
}
