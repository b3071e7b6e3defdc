//! Faults: how unreliable each fabric is, and what breaks when.

use crate::rng::Rng;
use std::fmt;

/// How unreliable a fabric is. Reliable fabrics have delays only; they lose cargo only when a link dies.
/// Probabilities in ten-thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// A cargo vanishes (lossy fabrics).
    pub loss: u64,
    /// A cargo arrives twice (lossy fabrics).
    pub duplication: u64,
    /// A cargo is overtaken by later ones (lossy fabrics).
    pub reordering: u64,
    /// A bit of a cargo is turned over on its way (lossy fabrics).
    pub corruption: u64,
    /// A cargo, and on a reliable link everything behind it, is late.
    pub spikes: u64,
    /// By how much a late or overtaken cargo is late, at most, in nanoseconds.
    pub late_ns: u64,
    /// A cargo for which its receiver's port is busy for longer than this, in nanoseconds, vanishes, as from
    /// the queue of a switch (lossy fabrics); zero: queues have no end.
    pub queue_ns: u64,
}

/// What becomes of one cargo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// How many times it arrives.
    pub copies: u64,
    /// How much later than usual, in nanoseconds.
    pub late_ns: u64,
    /// The first of them arrives damaged: by this much chance says where.
    pub damage: Option<u64>,
}

impl Default for Fate {
    fn default() -> Self {
        Fate { copies: 1, late_ns: 0, damage: None }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.copies {
            _ if self.damage.is_some() => write!(f, "is damaged"),
            0 => write!(f, "vanishes"),
            1 => write!(f, "is late by {} ns", self.late_ns),
            _ => write!(f, "arrives twice"),
        }
    }
}

impl Faults {
    /// Draws the unreliability of a fabric.
    pub fn draw(lossy: bool, rng: &mut Rng) -> Faults {
        let late_max = *rng.pick(&[20_000, 300_000, 3_000_000]);
        let late_ns = rng.range(1_000, late_max);
        let mut faults = Faults { late_ns, ..Faults::default() };
        if rng.percent(40) {
            faults.spikes = rng.range(1, 300);
        }
        if lossy {
            faults.loss = *rng.pick(&[0, 10, 200, 1_000, 2_500]);
            faults.duplication = *rng.pick(&[0, 0, 100, 1_000]);
            faults.reordering = *rng.pick(&[0, 20, 500, 3_000]);
        }
        faults
    }

    /// The unreliability of a fabric of datagrams of which everything is expected, for runs that are about
    /// nothing else: a loss of up to 20 %.
    pub fn draw_harsh(rng: &mut Rng) -> Faults {
        let mut faults = Faults::draw(true, rng);
        faults.loss = rng.range(0, 2_000);
        faults.damaged(rng)
    }

    /// The same with damage as chance will have it.
    pub fn damaged(self, rng: &mut Rng) -> Faults {
        Faults { corruption: *rng.pick(&[0, 0, 10, 200, 1_000]), ..self }
    }

    /// What becomes of the next cargo.
    pub fn fate(&self, lossy: bool, rng: &mut Rng) -> Fate {
        let mut fate = Fate::default();
        if lossy && rng.per_10k(self.loss) {
            fate.copies = 0;
        } else if lossy && rng.per_10k(self.duplication) {
            fate.copies = 2;
        }
        if rng.per_10k(self.spikes) || (lossy && rng.per_10k(self.reordering)) {
            fate.late_ns = rng.below(self.late_ns + 1);
        }
        if lossy && self.corruption > 0 && rng.per_10k(self.corruption) {
            fate.damage = Some(rng.below(u64::MAX));
        }
        fate
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (Faults { late_ns: 0, ..*self }) == Faults::default() {
            return write!(f, "no faults");
        }
        let parts = [
            (self.loss, "lost"),
            (self.duplication, "twice"),
            (self.reordering, "overtaken"),
            (self.corruption, "damaged"),
            (self.spikes, "late"),
        ];
        let shown: Vec<String> = parts
            .iter()
            .filter(|(per, _)| *per > 0)
            .map(|(per, what)| format!("{}.{:02} % {what}", per / 100, per % 100))
            .collect();
        write!(f, "{} (late by up to {} us)", shown.join(", "), self.late_ns / 1000)
    }
}

/// Something that breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strike {
    /// When, in nanoseconds.
    pub at: u64,
    /// What.
    pub what: Broken,
    /// How long the first and the second side take to notice, in nanoseconds.
    pub notice_ns: [u64; 2],
}

/// What breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The link between two hosts on a fabric.
    Link {
        /// Which fabric.
        fabric: usize,
        /// One host.
        a: usize,
        /// The other.
        b: usize,
    },
    /// The way from one host to another; the way back works until both notice.
    Direction {
        /// Which fabric.
        fabric: usize,
        /// From this host.
        a: usize,
        /// To this one.
        b: usize,
    },
    /// The interface of a host on a fabric.
    Port {
        /// Which fabric.
        fabric: usize,
        /// Whose interface.
        host: usize,
    },
    /// A host, with everything on it.
    Host(usize),
    /// Nothing for good: the process on a host gets no core for so long, in nanoseconds.
    Starves(usize, u64),
}

impl Strike {
    /// Draws the faults of a scenario with `hosts` hosts and `fabrics` fabrics. Hosts die in few scenarios,
    /// since little can be expected of a run afterwards.
    pub fn draw(hosts: usize, fabrics: usize, rng: &mut Rng) -> Vec<Strike> {
        let count = if rng.percent(50) { 0 } else { rng.range(1, 3) };
        let mut strikes: Vec<Strike> = (0..count).map(|_| Strike::draw_one(hosts, fabrics, rng)).collect();
        if rng.percent(6) {
            let what = Broken::Host(rng.index(hosts));
            strikes.push(Strike { at: moment(rng), what, notice_ns: [0, rng.len(20_000_000)] });
        }
        strikes
    }

    fn draw_one(hosts: usize, fabrics: usize, rng: &mut Rng) -> Strike {
        let fabric = rng.index(fabrics);
        let a = rng.index(hosts);
        let b = (a + 1 + rng.index(hosts - 1)) % hosts;
        let what = match rng.below(3) {
            0 => Broken::Link { fabric, a, b },
            1 => Broken::Direction { fabric, a, b },
            _ => Broken::Port { fabric, host: a },
        };
        Strike { at: moment(rng), what, notice_ns: [rng.len(5_000_000), rng.len(5_000_000)] }
    }
}

/// Longest time in all for which a process gets no core, in nanoseconds: shorter than others wait for it.
const STARVED_NS: u64 = 5_000_000_000;

impl Strike {
    /// Draws when processes starve on a machine that others use too: for long, and with little time between.
    pub fn draw_starving(hosts: usize, rng: &mut Rng) -> Vec<Strike> {
        let mut strikes = Vec::new();
        for host in 0..hosts {
            let (mut at, mut left) = (moment(rng), STARVED_NS);
            for _ in 0..rng.range(0, 12) {
                let ns = rng.len(STARVED_NS).min(left);
                strikes.push(Strike { at, what: Broken::Starves(host, ns), notice_ns: [0; 2] });
                at += ns + rng.len(30_000_000);
                left -= ns;
            }
        }
        strikes
    }
}

/// A time at which a scenario is likely to be in the middle of something.
fn moment(rng: &mut Rng) -> u64 {
    20_000 + rng.len(8_000_000)
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", crate::trace::Time(self.at))?;
        let [first, second] = self.notice_ns.map(|ns| ns / 1000);
        match self.what {
            Broken::Link { fabric, a, b } => {
                write!(f, "net{fabric} loses the link h{a}-h{b}, noticed after {first} and {second} us")
            }
            Broken::Direction { fabric, a, b } => {
                write!(f, "net{fabric} loses what h{a} sends to h{b}, noticed after {first} and {second} us")
            }
            Broken::Port { fabric, host } => {
                write!(
                    f,
                    "net{fabric} loses h{host}, noticed there after {first}, elsewhere after {second} us"
                )
            }
            Broken::Host(host) => write!(f, "h{host} dies, noticed elsewhere after {second} us"),
            Broken::Starves(host, ns) => write!(f, "h{host} gets no core for {} us", ns / 1000),
        }
    }
}
