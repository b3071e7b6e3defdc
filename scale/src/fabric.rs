//! The simulated machines: hosts of many cores, cards, topologies, and what a message takes between two of
//! them.

use super::rounds::{further_ns, profile};
use nmad_mpi_base::algorithm::cost::{Cost, Curve, Memory, SIZES, Uplinks};
use nmad_sim::golden::card::Card;
use nmad_sim::golden::machines::TODAY;
use nmad_sim::golden::ping_pong::{Exchange, Stage};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Hosts, their rails, and how ranks are placed on them.
#[derive(Debug)]
pub struct Fabric {
    /// By which the user chooses it.
    pub name: &'static str,
    /// Description, printed above its tables.
    pub title: &'static str,
    /// The rails of each host, the fastest first.
    pub rails: &'static [Rail],
}

/// A card in every host, and what connects them.
#[derive(Debug)]
pub struct Rail {
    /// The card, with one switch between two of them.
    pub card: &'static Card,
    /// The switches.
    pub shape: Shape,
    /// Nanoseconds that each further switch on the way adds.
    pub switch_ns: u64,
}

/// How switches are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One switch for all hosts.
    Switch,
    /// Two levels of switches, see [`super::links`].
    FatTree {
        /// Hosts of a leaf switch.
        leaf: usize,
        /// Bandwidth of its hosts over that of its links upwards.
        taper: u64,
    },
    /// Groups of hosts, a link between each two of them, see [`super::links`].
    Dragonfly {
        /// Hosts of a group.
        group: usize,
        /// Bandwidth of all its links to other groups, in percent of that of its hosts.
        global_percent: u64,
    },
}

/// Cores of a host.
pub const CORES: usize = 64;
/// Cores that share a cache: AMD EPYC 7003 ("Milan" and "Trento"), eight per die.
pub const CACHE_CORES: usize = 8;
/// From the post of a message of 8 B to its arrival between cores that share a cache, in nanoseconds. OSU
/// latency of MPI libraries on EPYC 7003 is 0.2 to 0.3 us within a die and 0.3 to 0.5 us between dies.
pub const NEAR_NS: u64 = 220;
/// Between two caches.
pub const ACROSS_NS: u64 = 380;
/// Part of a short message within a host for which a core is busy, at each end, in percent.
pub const NEAR_POST_PERCENT: u64 = 40;
/// Single copy by the receiver, in MB/s, within a cache and across (same benchmarks, messages of 1 MiB).
pub const COPY_MB: u64 = 12_000;
/// Memory of a host, in MB/s: eight channels of DDR4-3200.
pub const MEMORY_MB: u64 = 204_800;
/// Data of a rank that fits into its cache: 32 MiB for eight cores.
pub const CACHED: u64 = 4 << 20;

/// ConnectX-6 on HDR InfiniBand. Bandwidth of 24.5 GB/s and 1.0 us from memory to memory through one switch
/// are what OSU benchmarks show on such systems; 215 million messages a second from NVIDIA's data sheet;
/// what the library itself takes is measured ([`TODAY`]).
const HDR: Card = Card {
    name: "hdr",
    latency_ns: 600,
    bandwidth: 24_500_000_000,
    send_ns: 60,
    recv_ns: 40,
    look_ns: 10,
    gap_ns: 5,
    done_ns: 600,
    depth: 16,
    pio_max: 0,
    pio_bandwidth: 0,
    copy_max: 0,
    gather_ns: 10,
    setup_ns: 200,
    register_ns: [100, 0],
    packet: 18 << 10,
    swallows: 0,
};

/// Cassini on Slingshot 11: 24.5 GB/s a card, some 2 us within a group (Atchley et al., "Frontier: Exploring
/// Exascale", SC23: 2.6 us between groups).
const SLINGSHOT: Card = Card { name: "slingshot", latency_ns: 1_300, done_ns: 1_300, ..HDR };

/// 100 Gbit/s Ethernet with RDMA, as a second rail.
const ROCE: Card = Card { name: "roce", latency_ns: 1_500, bandwidth: 12_200_000_000, done_ns: 1_500, ..HDR };

/// The simulated fabrics.
pub const FABRICS: &[Fabric] = &[
    Fabric {
        name: "fat-tree",
        title: "fat tree of HDR InfiniBand, 32 hosts a leaf, taper 2:1",
        // 130 ns port to port: data sheet of NVIDIA's QM8700.
        rails: &[Rail { card: &HDR, shape: Shape::FatTree { leaf: 32, taper: 2 }, switch_ns: 130 }],
    },
    Fabric {
        name: "dragonfly",
        title: "dragonfly of Slingshot 11, 32 hosts a group, 57 % of their bandwidth between groups",
        // 350 ns a switch: De Sensi et al., "An In-Depth Analysis of the Slingshot Interconnect", SC20; taper
        // of Frontier: Atchley et al., SC23.
        rails: &[Rail {
            card: &SLINGSHOT,
            shape: Shape::Dragonfly { group: 32, global_percent: 57 },
            switch_ns: 350,
        }],
    },
    Fabric {
        name: "two-rails",
        title: "two rails: HDR InfiniBand, fat tree 1:1; 100 Gbit/s Ethernet, fat tree 4:1",
        rails: &[
            Rail { card: &HDR, shape: Shape::FatTree { leaf: 16, taper: 1 }, switch_ns: 130 },
            Rail { card: &ROCE, shape: Shape::FatTree { leaf: 32, taper: 4 }, switch_ns: 500 },
        ],
    },
];

/// Hosts of one core behind one switch: what the packet-level simulator runs too.
pub const FLAT: Fabric = Fabric {
    name: "flat",
    title: "HDR InfiniBand, one switch",
    rails: &[Rail { card: &HDR, shape: Shape::Switch, switch_ns: 0 }],
};

impl Fabric {
    /// The cards of its hosts.
    pub fn cards(&self) -> Vec<&'static Card> {
        self.rails.iter().map(|rail| rail.card).collect()
    }

    /// Hosts of a leaf switch or of a group, of the fastest rail; none if there is one switch.
    pub fn group(&self) -> Option<usize> {
        match self.rails[0].shape {
            Shape::Switch => None,
            Shape::FatTree { leaf: hosts, .. } | Shape::Dragonfly { group: hosts, .. } => Some(hosts),
        }
    }

    /// What messages take from one such group to another.
    fn uplinks(&self) -> Uplinks {
        let taper = match self.rails[0].shape {
            Shape::Switch => 1.0,
            Shape::FatTree { taper, .. } => taper as f64,
            Shape::Dragonfly { global_percent, .. } => 100.0 / global_percent as f64,
        };
        Uplinks { ns: 2.0 * self.rails[0].switch_ns as f64, taper }
    }

    /// What messages take between two of its hosts, measured once.
    pub fn measured(&self) -> Arc<Measured> {
        static KNOWN: Mutex<BTreeMap<&'static str, Arc<Measured>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(self.name).or_insert_with(|| Arc::new(Measured::of(&self.cards()))).clone()
    }

    /// The figures from which algorithms are chosen: those that ranks on such hosts agree on at the start.
    pub fn cost(&self) -> Cost {
        let near = Curve::line(NEAR_NS as f64, 1e3 / COPY_MB as f64);
        let measured = self.measured();
        let post = (NEAR_NS * NEAR_POST_PERCENT) as f64 / 100.0;
        let gaps = [post, measured.further.iter().map(|curve| curve.ns(0)).fold(0.0, f64::max)];
        Cost {
            near,
            across_ns: (ACROSS_NS - NEAR_NS) as f64,
            far: measured.far,
            gaps,
            send_gap: measured.further[0].ns(0),
            alone: (measured.eager_max + 1, 1e9 / self.rails[0].card.bandwidth as f64),
            cores: CORES,
            reads: (0, u64::MAX),
            memory: Memory { ns_per_byte: 1e3 / MEMORY_MB as f64, cached: CACHED },
            uplinks: self.uplinks(),
            ..Cost::default()
        }
    }
}

/// What messages take between two idle hosts, by the engine that ships in the packet-level simulator.
#[derive(Debug)]
pub struct Measured {
    /// Half a round trip.
    pub far: Curve,
    /// Time that each further message adds for a sender to several hosts, and for a receiver from several:
    /// core time for short messages, wire time for long ones.
    further: [Curve; 2],
    /// Parts of a message that each rail carries, in thousandths, for each of [`SIZES`].
    shares: Vec<Vec<u64>>,
    /// Longer messages wait for their receivers.
    pub eager_max: u64,
}

impl Measured {
    fn of(cards: &[&'static Card]) -> Measured {
        let mut stage = Stage::shipped(TODAY, cards, "auto");
        stage.profiles = cards.iter().map(|card| Some(profile(card))).collect();
        let runs = SIZES.map(|len| stage.run(&Exchange::one(len as usize)));
        let shares = runs.iter().map(|run| {
            let bytes: u64 = run.shares.iter().map(|(bytes, _)| bytes).sum();
            let part = |(place, (own, _)): (usize, &(u64, u64))| match bytes {
                0 => 1000 * u64::from(place == 0),
                _ => own * 1000 / bytes,
            };
            run.shares.iter().enumerate().map(part).collect()
        });
        Measured {
            shares: shares.collect(),
            far: Curve::new(runs.each_ref().map(|run| run.half_ns as f64)),
            further: [true, false].map(|is_out| Curve::new(SIZES.map(|len| further_ns(cards, len, is_out)))),
            eager_max: stage.course(&Exchange::one(8), 3).eager_max as u64,
        }
    }

    fn core_ps(&self, further: &Curve, len: u64) -> u64 {
        // Of a long message (rendezvous) a core handles only control messages, at the cost of two short ones.
        let ns = if len <= self.eager_max { further.ns(len) } else { 2.0 * further.ns(0) };
        (ns * 1e3) as u64
    }

    /// Time of the sender's core for a message to another host, in picoseconds.
    pub fn send_ps(&self, len: u64) -> u64 {
        self.core_ps(&self.further[0], len)
    }

    /// Time of the receiver's core, likewise.
    pub fn recv_ps(&self, len: u64) -> u64 {
        self.core_ps(&self.further[1], len)
    }

    /// Bytes of a message of `len` bytes that each rail carries.
    pub fn parts(&self, len: u64) -> impl Iterator<Item = (usize, u64)> + '_ {
        let class = SIZES.iter().rposition(|&size| size <= len).unwrap_or(0);
        let shares = &self.shares[class];
        let later =
            move |rail: usize| -> u64 { shares[rail + 1..].iter().map(|part| len * part / 1000).sum() };
        let whole = len.max(1);
        shares.iter().enumerate().filter(|(_, part)| **part > 0).map(move |(rail, part)| {
            // The first rail takes what rounding leaves.
            if rail == 0 { (0, whole - later(0).min(whole - 1)) } else { (rail, len * part / 1000) }
        })
    }
}

/// Picoseconds for `len` bytes at `mb` MB/s.
pub fn ps(len: u64, mb: u64) -> u64 {
    len * 1_000_000 / mb.max(1)
}
