//! What messages, copies and reductions cost: the model that algorithms are compared by.
//!
//! The curves come from what the rails were measured to do (P4). All ranks must choose alike, so they agree
//! on one set of figures before the first choice ([`Cost::figures`], [`Cost::from_figures`]).

mod agreed;
mod curve;
mod pipeline;
mod uplinks;

use super::board::tiers;
use super::team::{Reach, Team};
pub use agreed::{FIGURES, Node};
pub use curve::{Curve, SIZES};
use std::borrow::Cow;
pub use uplinks::Uplinks;

/// Part of the latency of a short message for which a core is busy, at each end (LogP's o), where the time
/// of a further message was not measured.
const OVERHEAD: f64 = 0.4;
/// Part of the way of a cache line that each further one adds: a core has several under way at once.
/// Nominal; with it, and with half, an allreduce of 2 KB goes over the board up to 8 ranks that have a core
/// each, with twice up to 4.
const FURTHER_LINE: f64 = 0.25;
/// What each line of many adds that another core has written, as a part of its way beyond [`HIDDEN_NS`]: in
/// reductions of 64 KiB to 4 MiB in the pool 32 to 37 ns where a line alone takes 240, and 4 ns where it
/// takes 55 (EPYC of the fourth generation, cores far from each other and near).
const FETCHED_LINE: f64 = 0.17;
const HIDDEN_NS: f64 = 30.0;
const LINE: u64 = 64;
/// Time until a core runs another process that waits for it, in nanoseconds.
const SWITCH_NS: f64 = 2000.0;
/// What a network card takes for each message, whichever core sends it: 215 million messages a second (data
/// sheet of NVIDIA's ConnectX-6). Slower cards are limited by cores. In rounds of one message for each rank
/// it is hidden in the latency.
const CARD_NS: f64 = 5.0;
/// One pass over two operands in a cache: 0.02 measured (a sum of doubles, Intel, 2 MiB of cache a core),
/// more where they come from further away.
const REDUCE_NS_PER_BYTE: f64 = 0.03;
/// A copy in a cache, likewise.
const COPY_NS_PER_BYTE: f64 = 0.02;

/// What the parts of a collective cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Time of a message between two ranks of a node whose cores share a cache.
    pub near: Curve,
    /// Nanoseconds to add to `near` if the cores share no cache.
    pub across_ns: f64,
    /// Time of a message between two nodes.
    pub far: Curve,
    /// Time that a further short message adds for a rank that sends or receives several, within a node and
    /// between two.
    pub gaps: [f64; 2],
    /// Time that a further short message to another node adds for a rank that only sends.
    pub send_gap: f64,
    /// Messages between nodes below this length take one rail, whose wire is busy for this time for each
    /// byte.
    pub alone: (u64, f64),
    /// For which an eager message between two nodes keeps a core at each end; `None`: not measured.
    pub post: Option<Curve>,
    /// Cores that the ranks of a node share.
    pub cores: usize,
    /// Nodes that share them: hosts of a testbed or containers of one machine.
    pub nodes: usize,
    /// Lengths of messages of a node that their receivers copy by themselves, from the first number on and
    /// below the second: their sender only announces them.
    pub reads: (u64, u64),
    /// The way of a cache line between two cores in nanoseconds, as measured in this job; zero: not
    /// measured.
    pub line_ns: f64,
    /// The memory that the cores of a node share.
    pub memory: Memory,
    /// The links between switches.
    pub uplinks: Uplinks,
}

/// The memory bandwidth of a node, which limits copies and reductions by all of its cores at once.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Memory {
    /// Nanoseconds for each byte that any core reads or writes; zero: not known, or it is in caches.
    pub ns_per_byte: f64,
    /// Bytes that a rank may work on without it: its part of the cache.
    pub cached: u64,
}

impl Default for Cost {
    /// Nominal figures: shared memory and a fast Ethernet.
    fn default() -> Self {
        let (near, far) = (Curve::line(400.0, 0.04), Curve::line(6000.0, 0.2));
        let gaps = [&near, &far].map(|curve| OVERHEAD * curve.0[0]);
        Cost {
            near,
            across_ns: 0.0,
            far,
            gaps,
            send_gap: gaps[1],
            alone: (0, 0.0),
            post: None,
            cores: 2,
            nodes: 1,
            reads: (u64::MAX, 0),
            line_ns: 0.0,
            memory: Memory::default(),
            uplinks: Uplinks { ns: 0.0, taper: 1.0 },
        }
    }
}

impl Cost {
    /// The cost of collectives in which each rank works on so many bytes. Collectives within another one
    /// work on the same data.
    pub fn with_data(&self, bytes: u64) -> Cow<'_, Cost> {
        let Memory { ns_per_byte, cached } = self.memory;
        if ns_per_byte == 0.0 || cached == 0 {
            return Cow::Borrowed(self);
        }
        let memory = Memory { ns_per_byte: if bytes > cached { ns_per_byte } else { 0.0 }, cached: 0 };
        Cow::Owned(Cost { memory, ..self.clone() })
    }

    /// Time of a node's memory for copies or reductions of `len` bytes by each of so many ranks: all bytes
    /// are read and written once.
    pub fn moved(&self, team: &Team, ranks: f64, len: u64) -> f64 {
        ranks * team.abreast() as f64 * 2.0 * len as f64 * self.memory.ns_per_byte
    }

    /// How many ranks share a core. All nodes of a machine are taken to be as busy.
    fn sharing(&self, team: &Team) -> f64 {
        ((team.crowd() * team.abreast() * self.nodes) as f64 / self.cores as f64).max(1.0)
    }

    /// Delay until the receiver of a message runs, where ranks share cores.
    fn switch_ns(&self, team: &Team) -> f64 {
        (self.sharing(team) - 1.0) * SWITCH_NS
    }

    /// One message that others wait for. Between nodes it shares the wires with those of teams that work at
    /// the same time.
    pub fn hop(&self, team: &Team, len: u64) -> f64 {
        match team.spans_nodes() {
            true => self.far_hop(team, team.uplinks(None), len),
            false => self.near_hop(team, None, len),
        }
    }

    /// A message within a node that others wait for, between ranks of a distance or any.
    fn near_hop(&self, team: &Team, reach: Option<Reach>, len: u64) -> f64 {
        let across = if team.across_caches(reach) > 0.0 { self.across_ns } else { 0.0 };
        self.near.ns(len) + across + self.switch_ns(team)
    }

    /// A message that others wait for, between ranks of a distance.
    pub fn hop_over(&self, team: &Team, reach: Reach, len: u64) -> f64 {
        match team.leaving(reach) {
            0 => self.near_hop(team, Some(reach), len),
            _ => self.far_hop(team, team.uplinks(Some(reach)), len),
        }
    }

    /// A message on its way along all ranks, one after the other: those of a node are near each other
    /// unless ranks lie by turns.
    pub fn pass(&self, team: &Team, len: u64) -> f64 {
        let next = Reach::Shift(1);
        let far = team.leaving(next) as f64 / team.crowd() as f64;
        let near = self.near.ns(len) + team.across_caches(Some(next)) * self.across_ns + self.switch_ns(team);
        let across = team.uplinks(Some(next)).min(1.0) * self.uplinks.ns;
        far * (self.far_hop(team, 0.0, len) + across) + (1.0 - far) * near
    }

    /// Time that a further message adds for a rank that sends or receives several. Between nodes that is what
    /// it takes of a core, each end handling half of the bytes where that was not measured, or on the wire if
    /// that is longer; within a node one side copies all bytes.
    fn further(&self, is_far: bool, len: u64) -> f64 {
        match is_far {
            true => {
                let estimate = self.gaps[1] + self.far.bytes_ns(len) / 2.0;
                self.posted(len).unwrap_or(estimate).max(self.wire_ns(len))
            }
            false => self.gaps[0] + self.near.bytes_ns(len),
        }
    }

    /// A further message to another node, beside those of teams that work at the same time.
    fn further_far(&self, team: &Team, len: u64) -> f64 {
        self.further(true, len).max(team.abreast() as f64 * self.card_ns(len))
    }

    /// The same for a rank that sends to several nodes.
    fn sent(&self, team: &Team, len: u64) -> f64 {
        let core = self.posted(len).unwrap_or(self.send_gap + self.far.bytes_ns(len) / 2.0);
        core.max(team.abreast() as f64 * self.card_ns(len))
    }

    /// A message from every rank at once to one of a distance: those that leave a node share its rails, and
    /// all of them its cores.
    pub fn exchange(&self, team: &Team, reach: Reach, len: u64) -> f64 {
        let rivals = self.sharing(team) - 1.0;
        match team.leaving(reach) {
            0 => {
                let core = self.near_hop(team, Some(reach), len) + rivals * self.further(false, len);
                core.max(self.moved(team, team.crowd() as f64, len))
            }
            leaving => {
                let wire = self.wires_ns(team, (leaving, Some(reach)), len);
                self.hop_over(team, reach, len) + wire + rivals * self.further(true, len)
            }
        }
    }

    /// A round of a ring: every rank sends to the next one what the one before sent it.
    pub fn ring(&self, team: &Team, len: u64) -> f64 {
        let leaving = team.leaving(Reach::Shift(1));
        let wire = self.wires_ns(team, (leaving, Some(Reach::Shift(1))), len);
        let rivals = self.sharing(team) - 1.0;
        let round = self.pass(team, len) + wire + rivals * self.further(team.spans_nodes(), len);
        round.max(self.moved(team, (team.crowd() - leaving) as f64, len))
    }

    /// Rounds in which every rank sends to the one 1, 2, 4, ... further; `len` is the length in each round.
    /// While only some ranks of a node send to another node, a chain of dependent messages leaves the node
    /// at most once.
    pub fn shifts(&self, team: &Team, len: impl Fn(u32) -> u64) -> f64 {
        let (mut sum, mut crossing) = (0.0, 0.0f64);
        for round in 0..log2_ceil(team.size()) {
            let (reach, len) = (Reach::Shift(1 << round), len(round));
            let leaving = team.leaving(reach);
            if leaving == 0 || leaving == team.crowd() {
                sum += self.exchange(team, reach, len);
                continue;
            }
            let rivals = self.sharing(team) - 1.0;
            let near = self.near_hop(team, None, len) + rivals * self.further(false, len);
            let memory = self.moved(team, (team.crowd() - leaving) as f64, len);
            let wire = (leaving * team.abreast()) as f64 * self.wire_ns(len);
            let across = team.uplinks(Some(reach));
            sum += near.max(memory).max(wire).max(self.uplinks_ns(team, across, len));
            let hop = self.far_hop(team, across, len);
            crossing = crossing.max(hop - self.near.ns(len) - self.across_ns);
        }
        sum + crossing
    }

    /// Time of a node's wires for a message: of those of one rail if it is short.
    pub fn wire_ns(&self, len: u64) -> f64 {
        let (below, alone) = self.alone;
        let shared = self.far.wire_ns_per_byte();
        len as f64 * if len < below { shared.max(alone) } else { shared }
    }

    /// Time of a node's card for one of many messages in a row.
    pub fn card_ns(&self, len: u64) -> f64 {
        CARD_NS + self.wire_ns(len)
    }

    /// Splits a number of other ranks into those on our node and those on other nodes.
    fn split(team: &Team, others: usize) -> (f64, f64) {
        let near = (team.crowd() - 1).min(others);
        (near as f64, (others - near) as f64)
    }

    /// `messages` messages that one rank sends to others, or receives from them, in a row.
    pub fn row(&self, team: &Team, messages: usize, len: u64) -> f64 {
        if messages == 0 {
            return 0.0;
        }
        let (near, far) = Cost::split(team, messages);
        let further_far = self.further_far(team, len);
        let last = if team.spans_nodes() { further_far } else { self.further(false, len) };
        let row = self.hop(team, len) + near * self.further(false, len) + far * further_far - last;
        row.max(self.moved(team, near, len))
    }

    /// The same from one rank to as many others. Ranks copy the messages that they read at the same time,
    /// as many of them as have a core.
    pub fn fan_out(&self, team: &Team, messages: usize, len: u64) -> f64 {
        if messages == 0 || !(self.reads.0..self.reads.1).contains(&len) {
            return self.row(team, messages, len);
        }
        let (near, far) = Cost::split(team, messages);
        let copies_in_a_row = (near / self.cores as f64).max(1.0);
        let copies = (copies_in_a_row - 1.0) * self.near.bytes_ns(len);
        let copies = copies.max(self.moved(team, near, len) - self.near.bytes_ns(len));
        let announced = (near + far.min(1.0) - 1.0) * self.gaps[0];
        self.hop(team, len) + announced + copies + (far - 1.0).max(0.0) * self.sent(team, len)
    }

    /// Every rank sends a message to each other one in a row, and receives as many. Latency is paid once,
    /// what a message takes of a core at both ends each time; the wires of a node carry those of all its
    /// ranks. Long ones to other nodes ask first, and are heard when those of the node have been copied.
    pub fn exchange_all(&self, team: &Team, len: u64) -> f64 {
        let (near, far) = Cost::split(team, team.size().saturating_sub(1));
        let [in_node, between] = [2.0 * self.gaps[0] + self.near.bytes_ns(len), 2.0 * self.far_core_ns(len)];
        let first = if team.spans_nodes() { between } else { in_node };
        let cores = (near * in_node + far * between - first).max(0.0);
        let wires = far * (team.crowd() * team.abreast()) as f64 * self.card_ns(len);
        let uplinks = (near + far) * self.uplinks_ns(team, team.uplinks(None), len);
        let memory = self.moved(team, team.crowd() as f64 * near, len);
        let links = wires.max(uplinks);
        let moved = if len < self.alone.0 { links.max(memory) } else { links + memory };
        self.hop(team, len) + (cores * self.sharing(team)).max(moved)
    }

    /// Time of the core at one end of a message between nodes that follows others. Where that was not
    /// measured, each end handles half of the bytes, unless the wire takes longer.
    fn far_core_ns(&self, len: u64) -> f64 {
        let estimate = self.gaps[1] + if self.is_by_wire(len) { 0.0 } else { self.far.bytes_ns(len) / 2.0 };
        self.posted(len).unwrap_or(estimate)
    }

    /// Time of the core at one end of an eager message between nodes, if it was measured.
    fn posted(&self, len: u64) -> Option<f64> {
        self.post.filter(|_| len < self.alone.0).map(|post| post.ns(len))
    }

    /// Whether the wire takes more than half of the bytes' time: the cores' part then overlaps with it.
    fn is_by_wire(&self, len: u64) -> bool {
        2.0 * self.wire_ns(len) > self.far.bytes_ns(len)
    }

    /// The way of a cache line between two cores: a message without what it costs a core at each end.
    fn line(&self) -> f64 {
        (1.0 - 2.0 * OVERHEAD) * self.near.0[0]
    }

    /// One rank leaves `len` bytes in memory that the ranks of its node see, and others look at them: a
    /// message without what it costs a core at each end.
    pub fn post(&self, team: &Team, len: u64) -> f64 {
        self.near_hop(team, None, len) - 2.0 * OVERHEAD * self.near.0[0]
    }

    /// A rank looks at what each of the others has left there, `len` bytes each.
    pub fn look(&self, team: &Team, len: u64) -> f64 {
        self.look_at(team, team.size(), len)
    }

    /// The same of some ranks, itself among them.
    fn look_at(&self, team: &Team, ranks: usize, len: u64) -> f64 {
        let further = self.near.bytes_ns(len) + FURTHER_LINE * self.line();
        self.post(team, len) + ranks.saturating_sub(2) as f64 * further
    }

    /// Leaders of groups look at their groups and at each other, and the others at them; `len` bytes each.
    pub fn boards(&self, team: &Team, len: u64) -> f64 {
        let looks = tiers::shape(team.size()).map(|ranks| self.look_at(team, ranks, len));
        looks.iter().sum::<f64>() + self.post(team, len)
    }

    /// Bytes that one core has written and another one fetches, by the time of a line: zero if that was not
    /// measured.
    fn fetched(&self, len: u64) -> f64 {
        (len / LINE) as f64 * (self.line_ns - HIDDEN_NS).max(0.0) * FETCHED_LINE
    }

    /// A reduction of `len` bytes of each rank, which go through such memory, and of which each rank
    /// combines a part; two meetings. Each rank reads what those of other cores have for its part, and
    /// where all get everything each core the sums.
    pub fn pooled(&self, team: &Team, len: u64, is_for_all: bool) -> f64 {
        let ranks = team.size().max(2) as f64;
        let others = len - len / ranks as u64;
        let elsewhere = (ranks - self.sharing(team)).max(0.0) / (ranks - 1.0);
        let carried = self.near.bytes_ns(others).max(self.fetched(others)) * elsewhere;
        let sums = if is_for_all { carried } else { 0.0 };
        let own = self.copy(team, others) + self.reduce(team, others);
        // To meet, each tells all others and hears of them: a line goes both ways.
        let meeting = self.look(team, 0) + self.line();
        2.0 * meeting + carried * self.sharing(team) + sums + own
    }

    /// Every rank exchanges a message with each other one, one after the other. While some ranks of a node
    /// exchange with another node, others copy.
    pub fn pairwise(&self, team: &Team, len: u64) -> f64 {
        let (near, far) = Cost::split(team, team.size().saturating_sub(1));
        let rivals = self.sharing(team) - 1.0;
        let within = self.near_hop(team, None, len) + rivals * self.further(false, len);
        let between = self.hop(team, len) + rivals * self.further(true, len);
        let memory = near * self.moved(team, team.crowd() as f64, len);
        let wires = far * (self.hop(team, len) + self.wires_ns(team, (team.crowd(), None), len));
        (near * within + far * between).max(wires).max(memory)
    }

    /// One dependent message over each distance 1, 2, 4, ... of a binomial tree, which is turned so that it
    /// begins at `root`; `len` is the length in each round.
    pub fn tree(&self, team: &Team, root: usize, len: impl Fn(u32) -> u64) -> f64 {
        let reach = |distance| if root == 0 { Reach::Flip(distance) } else { Reach::Shift(distance) };
        let round = |round: u32| {
            let reach = reach(1 << round);
            let at_once = if team.leaving(reach) == 0 { team.crowd() >> (round + 1) } else { 0 };
            let memory = self.moved(team, at_once as f64, len(round));
            self.hop_over(team, reach, len(round)).max(memory)
        };
        (0..log2_ceil(team.size())).map(round).sum()
    }

    /// A reduction of `len` bytes by one rank, while the others wait for it.
    pub fn reduce_alone(&self, len: u64) -> f64 {
        len as f64 * REDUCE_NS_PER_BYTE
    }

    /// A reduction of `len` bytes by every rank, as far as cores limit it.
    pub fn reduce_by_cores(&self, team: &Team, len: u64) -> f64 {
        self.reduce_alone(len) * self.sharing(team)
    }

    /// A reduction of `len` bytes by every rank.
    pub fn reduce(&self, team: &Team, len: u64) -> f64 {
        self.reduce_by_cores(team, len).max(self.moved(team, team.crowd() as f64, len))
    }

    /// A copy of `len` bytes by one rank.
    pub fn copy_alone(&self, len: u64) -> f64 {
        len as f64 * COPY_NS_PER_BYTE
    }

    /// A copy of `len` bytes by every rank.
    pub fn copy(&self, team: &Team, len: u64) -> f64 {
        let memory = self.moved(team, team.crowd() as f64, len);
        (self.copy_alone(len) * self.sharing(team)).max(memory)
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
    fn a_job_whose_lines_take_long_does_not_reduce_in_the_pool() {
        let team = Team::new(&[0; 2], 0);
        let near = Curve::line(400.0, 0.1);
        let pooled = |line_ns: f64| Cost { near, line_ns, ..Cost::default() }.pooled(&team, 1 << 20, true);
        assert_eq!(pooled(0.0), pooled(55.0), "messages have been measured to take longer");
        // Two passes over 512 KiB, 35.7 ns a line.
        assert!((pooled(240.0) - pooled(0.0) - 2.0 * (8192.0 * 35.7 - 524_280.0 * 0.1)).abs() < 1.0);
    }

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
        let memory = Memory { ns_per_byte: 0.01, cached: 1 << 20 };
        let node = Node { cores: 4, nodes: 1, post: None, reads, memory, taper: 0.0 };
        assert_eq!(Cost::from_figures(&Cost::figures([None; 2], 0.0, node, (0, 0.0))).reads, reads);
    }
}
