//! What messages, copies and reductions cost: the model that algorithms are compared by.
//!
//! The curves come from what the rails were measured to do (P4). All ranks must choose alike, so they agree
//! on one set of figures before the first choice ([`Cost::figures`], [`Cost::from_figures`]).

use super::team::Team;

/// Sizes at which curves have figures, in bytes.
pub const SIZES: [u64; 7] = [8, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20];
/// Figures of a cost.
pub const FIGURES: usize = 2 * SIZES.len() + 3;

/// Part of the latency of a short message for which a core is busy, at each end (LogP's o).
const OVERHEAD: f64 = 0.4;
/// Part of the way of a cache line that each further one adds: a core has several under way at once. Nominal;
/// with it, and with half, an allreduce of 2 KB goes over the board up to 8 ranks that have a core each, with
/// twice up to 4.
const FURTHER_LINE: f64 = 0.25;
/// Time until a core runs another process that waits for it, in nanoseconds.
const SWITCH_NS: f64 = 2000.0;
/// One pass over two operands in a cache: 0.02 measured (a sum of doubles, Intel, 2 MiB of cache a core),
/// more where they come from further away.
const REDUCE_NS_PER_BYTE: f64 = 0.03;
/// A copy in a cache, likewise.
const COPY_NS_PER_BYTE: f64 = 0.02;

/// Nanoseconds from the post of a message to its arrival, by its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve([f64; SIZES.len()]);

impl Curve {
    /// A curve through figures at [`SIZES`].
    pub const fn new(ns: [f64; SIZES.len()]) -> Curve {
        Curve(ns)
    }

    /// A straight line.
    pub fn line(latency_ns: f64, ns_per_byte: f64) -> Curve {
        Curve(SIZES.map(|size| latency_ns + size as f64 * ns_per_byte))
    }

    /// Nanoseconds for a message of `len` bytes.
    pub fn ns(&self, len: u64) -> f64 {
        let above = SIZES.iter().position(|&size| len <= size).unwrap_or(SIZES.len() - 1);
        if above == 0 {
            return self.0[0];
        }
        let (x0, x1) = (SIZES[above - 1] as f64, SIZES[above] as f64);
        let slope = (self.0[above] - self.0[above - 1]) / (x1 - x0);
        self.0[above - 1] + (len as f64 - x0) * slope.max(0.0)
    }

    /// Nanoseconds that a message adds behind others of its size.
    fn further_ns(&self, len: u64) -> f64 {
        (self.ns(len) - self.0[0]).max(0.0) + OVERHEAD * self.0[0]
    }
}

/// What the parts of a collective cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Between two ranks of a node.
    pub near: Curve,
    /// Between two nodes.
    pub far: Curve,
    /// Cores that the ranks of a node share.
    pub cores: usize,
    /// Lengths of messages of a node that their receivers copy by themselves, from the first number on and
    /// below the second: their sender only announces them.
    pub reads: (u64, u64),
}

impl Default for Cost {
    /// Nominal figures: shared memory and a fast Ethernet.
    fn default() -> Self {
        Cost { near: Curve::line(400.0, 0.04), far: Curve::line(6000.0, 0.2), cores: 2, reads: (u64::MAX, 0) }
    }
}

impl Cost {
    /// The figures that ranks agree on: each takes the largest that any rank names. Zero: not known here.
    pub fn figures(
        near: Option<Curve>,
        far: Option<Curve>,
        cores: usize,
        reads: (u64, u64),
    ) -> [f64; FIGURES] {
        let mut figures = [0.0; FIGURES];
        for (place, curve) in [near, far].into_iter().enumerate() {
            let Some(Curve(ns)) = curve else { continue };
            figures[place * SIZES.len()..][..SIZES.len()].copy_from_slice(&ns);
        }
        // The fewest cores count.
        figures[FIGURES - 3] = 1.0 / cores.max(1) as f64;
        // And the widest range.
        if reads.0 < reads.1 {
            figures[FIGURES - 2..].copy_from_slice(&[1.0 / reads.0.max(1) as f64, reads.1 as f64]);
        }
        figures
    }

    /// The figures that all ranks agreed on; nominal ones where no rank had any.
    pub fn from_figures(figures: &[f64; FIGURES]) -> Cost {
        let nominal = Cost::default();
        let curve = |place: usize, nominal: Curve| {
            let mut ns = [0.0; SIZES.len()];
            ns.copy_from_slice(&figures[place * SIZES.len()..][..SIZES.len()]);
            if ns.iter().all(|&ns| ns > 0.0) { Curve(ns) } else { nominal }
        };
        let cores = (1.0 / figures[FIGURES - 3]).round().max(1.0) as usize;
        let reads = match figures[FIGURES - 1] as u64 {
            0 => nominal.reads,
            below => ((1.0 / figures[FIGURES - 2]).round() as u64, below),
        };
        Cost { near: curve(0, nominal.near), far: curve(1, nominal.far), cores, reads }
    }

    fn curve(&self, team: &Team) -> &Curve {
        if team.spans_nodes() { &self.far } else { &self.near }
    }

    /// How many ranks share a core.
    fn sharing(&self, team: &Team) -> f64 {
        (team.crowd() as f64 / self.cores as f64).max(1.0)
    }

    /// Until a rank runs that something has arrived for, where ranks share cores.
    fn switch_ns(&self, team: &Team) -> f64 {
        (self.sharing(team) - 1.0) * SWITCH_NS
    }

    /// One message that others wait for.
    pub fn hop(&self, team: &Team, len: u64) -> f64 {
        self.curve(team).ns(len) + self.switch_ns(team)
    }

    /// A message within a node that others wait for.
    pub fn near_hop(&self, team: &Team, len: u64) -> f64 {
        self.near.ns(len) + self.switch_ns(team)
    }

    /// A message from every rank at once: those of a node share its rails, or its cores.
    pub fn exchange(&self, team: &Team, len: u64) -> f64 {
        let curve = self.curve(team);
        let rivals = if team.spans_nodes() { team.crowd() as f64 } else { self.sharing(team) };
        curve.ns(len) + (rivals - 1.0) * curve.further_ns(len) + self.switch_ns(team)
    }

    /// `messages` messages that one rank sends, or receives, in a row.
    pub fn row(&self, team: &Team, messages: usize, len: u64) -> f64 {
        match messages {
            0 => 0.0,
            _ => self.hop(team, len) + (messages - 1) as f64 * self.curve(team).further_ns(len),
        }
    }

    /// The same from one rank to as many others. Ranks copy the messages that they read at the same time, as
    /// many of them as have a core.
    pub fn fan_out(&self, team: &Team, messages: usize, len: u64) -> f64 {
        if messages == 0 || team.spans_nodes() || !(self.reads.0..self.reads.1).contains(&len) {
            return self.row(team, messages, len);
        }
        let announced = (messages - 1) as f64 * OVERHEAD * self.near.0[0];
        let copies_in_a_row = (messages as f64 / self.cores as f64).max(1.0);
        let copy = (self.near.ns(len) - self.near.0[0]).max(0.0);
        self.hop(team, len) + announced + (copies_in_a_row - 1.0) * copy
    }

    /// Every rank sends `messages` messages in a row, and receives as many.
    pub fn exchange_row(&self, team: &Team, messages: usize, len: u64) -> f64 {
        match messages {
            0 => 0.0,
            _ => {
                let further = (messages - 1) as f64 * (self.exchange(team, len) - self.switch_ns(team));
                // Latency is paid once, the occupancy of each message every time.
                let hidden = (messages - 1) as f64 * (1.0 - OVERHEAD) * self.curve(team).0[0];
                self.exchange(team, len) + further - hidden
            }
        }
    }

    /// The way of a cache line between two cores: a message without what it costs a core at each end.
    fn line(&self) -> f64 {
        (1.0 - 2.0 * OVERHEAD) * self.near.0[0]
    }

    /// One rank leaves `len` bytes in memory that the ranks of its node see, and others look at them: a
    /// message without what it costs a core at each end.
    pub fn post(&self, team: &Team, len: u64) -> f64 {
        self.near_hop(team, len) - 2.0 * OVERHEAD * self.near.0[0]
    }

    /// A rank looks at what each of the others has left there, `len` bytes each.
    pub fn look(&self, team: &Team, len: u64) -> f64 {
        let further = (self.near.ns(len) - self.near.0[0]).max(0.0) + FURTHER_LINE * self.line();
        self.post(team, len) + team.size().saturating_sub(2) as f64 * further
    }

    /// A reduction of `len` bytes of each rank, which go through such memory, and of which each rank combines
    /// a part; two meetings. Each rank reads what those of other cores have for its part, and where all get
    /// everything each core the sums.
    pub fn pooled(&self, team: &Team, len: u64, is_for_all: bool) -> f64 {
        let ranks = team.size().max(2) as f64;
        let others = len - len / ranks as u64;
        let elsewhere = (ranks - self.sharing(team)).max(0.0) / (ranks - 1.0);
        let carried = (self.near.ns(others) - self.near.0[0]).max(0.0) * elsewhere;
        let sums = if is_for_all { carried } else { 0.0 };
        let own = self.copy(team, others) + self.reduce(team, others);
        // To meet, each tells all others and hears of them: a line goes both ways.
        let meeting = self.look(team, 0) + self.line();
        2.0 * meeting + carried * self.sharing(team) + sums + own
    }

    /// A reduction of `len` bytes by one rank, while the others wait for it.
    pub fn reduce_alone(&self, len: u64) -> f64 {
        len as f64 * REDUCE_NS_PER_BYTE
    }

    /// A reduction of `len` bytes by every rank.
    pub fn reduce(&self, team: &Team, len: u64) -> f64 {
        self.reduce_alone(len) * self.sharing(team)
    }

    /// A copy of `len` bytes by one rank.
    pub fn copy_alone(&self, len: u64) -> f64 {
        len as f64 * COPY_NS_PER_BYTE
    }

    /// A copy of `len` bytes by every rank.
    pub fn copy(&self, team: &Team, len: u64) -> f64 {
        self.copy_alone(len) * self.sharing(team)
    }
}

/// The smallest k with 2^k >= n.
pub fn log2_ceil(n: usize) -> u32 {
    n.next_power_of_two().ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_read_a_message_copy_it_at_the_same_time() {
        let reads = (32 << 10, 1 << 20);
        let cost = Cost { cores: 4, reads, ..Cost::default() };
        let (near, far) = (Team::new(&[0; 5], 0), Team::new(&[0, 1, 2, 3, 4], 0));
        let ratio = |team: &Team, len: u64| cost.fan_out(team, 4, len) / cost.row(team, 4, len);
        assert!(ratio(&near, 256 << 10) < 0.5, "four cores copy");
        for (team, len) in [(&near, 1 << 10), (&near, 1 << 20), (&far, 256 << 10)] {
            assert!((ratio(team, len) - 1.0).abs() < 1e-9, "nobody reads {len} B");
        }
        assert_eq!(Cost::from_figures(&Cost::figures(None, None, 4, reads)).reads, reads);
    }
}
