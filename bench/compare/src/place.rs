//! Where the ranks of a job run.

use nmad_testbed::{Rate, Spec};

/// A number of ranks on this machine, or on hosts of a testbed.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// As the user writes it.
    pub name: &'static str,
    /// As a heading.
    pub title: &'static str,
    /// How many ranks.
    pub ranks: u32,
    /// How many hosts, a rank on each; zero for this machine without a testbed.
    pub hosts: u32,
    /// Rates of the rails in Mbit/s; 0 for no limit.
    pub rails: &'static [u64],
}

const NODE: &[u64] = &[];
const ONE: &[u64] = &[0];
const NEAR: &[u64] = &[4000, 2800];
const APART: &[u64] = &[4000, 1000];

/// All places, in the order in which they are measured and shown.
pub const PLACES: &[Place] = &[
    place("node2", "One node, 2 ranks", 2, 0, NODE),
    place("node4", "One node, 4 ranks", 4, 0, NODE),
    place("node8", "One node, 8 ranks", 8, 0, NODE),
    place("hosts2", "2 hosts, one rail without a limit (TCP)", 2, 2, ONE),
    place("hosts4", "4 hosts, one rail without a limit (TCP)", 4, 4, ONE),
    place("hosts2-4+2.8", "2 hosts, rails of 4 and 2.8 Gbit/s", 2, 2, NEAR),
    place("hosts2-4+1", "2 hosts, rails of 4 and 1 Gbit/s", 2, 2, APART),
    place("hosts4-4+2.8", "4 hosts, rails of 4 and 2.8 Gbit/s", 4, 4, NEAR),
    place("hosts4-4+1", "4 hosts, rails of 4 and 1 Gbit/s", 4, 4, APART),
];

/// More places, for programs that exchange messages between all of their ranks (P5).
pub const WIDE_PLACES: &[Place] = &[
    place("hosts8", "8 hosts, one rail without a limit (TCP)", 8, 8, ONE),
    place("hosts8-4+2.8", "8 hosts, rails of 4 and 2.8 Gbit/s", 8, 8, NEAR),
];

/// Places where files are accessed: those of one machine, whose file systems all of its ranks see.
pub const FILE_PLACES: &[Place] = &[
    place("node1", "One node, 1 rank", 1, 0, NODE),
    place("node2", "One node, 2 ranks", 2, 0, NODE),
    place("node4", "One node, 4 ranks", 4, 0, NODE),
    place("node8", "One node, 8 ranks", 8, 0, NODE),
];

const fn place(
    name: &'static str,
    title: &'static str,
    ranks: u32,
    hosts: u32,
    rails: &'static [u64],
) -> Place {
    Place { name, title, ranks, hosts, rails }
}

impl Place {
    /// Whether it needs a testbed.
    pub fn is_testbed(&self) -> bool {
        self.hosts > 0
    }

    /// Whether a message may use more than one rail.
    pub fn has_rails(&self) -> bool {
        self.rails.len() > 1
    }

    /// The testbed that it needs.
    pub fn spec(&self) -> Spec {
        let rate = |mbit: &u64| match mbit {
            0 => Rate::Unlimited,
            mbit => Rate::Limited(mbit * 1_000_000),
        };
        Spec::new(self.hosts, self.rails.iter().map(rate).collect())
    }

    /// The title of a place by its name; the name itself of one that another version had.
    pub fn title_of(name: &str) -> &str {
        PLACES.iter().find(|place| place.name == name).map_or(name, |place| place.title)
    }

    /// Where it stands among all; after them, if it is unknown.
    pub fn order_of(name: &str) -> usize {
        PLACES.iter().position(|place| place.name == name).unwrap_or(PLACES.len())
    }
}
