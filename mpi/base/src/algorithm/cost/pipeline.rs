//! Messages that follow each other along a chain or a tree.

use super::Cost;
use crate::algorithm::team::{Reach, Team};

impl Cost {
    /// Time of the messages after the first of `count` in a pipeline: the slower of wire and core. Each
    /// rank receives from `ways[0]` ranks and sends to `ways[1]` ranks.
    pub fn stream(&self, team: &Team, ways: [usize; 2], pieces: (u64, u64)) -> f64 {
        self.stream_of_work(team, ways, pieces, 0.0)
    }

    /// The same where each rank combines what it receives. Meanwhile the wires carry the next ones.
    pub fn reducing_stream(&self, team: &Team, ways: [usize; 2], pieces: (u64, u64)) -> f64 {
        self.stream_of_work(team, ways, pieces, ways[0] as f64 * self.reduce_alone(pieces.1))
    }

    /// The same where a core has `work_ns` of other work for each piece.
    fn stream_of_work(&self, team: &Team, ways: [usize; 2], (count, len): (u64, u64), work_ns: f64) -> f64 {
        let is_far = team.spans_nodes();
        let [ins, outs] = ways.map(|others| others as f64);
        let core = match is_far {
            true => (ins + outs) * self.far_core_ns(len),
            false => ins * self.further(false, len) + outs * self.gaps[0],
        };
        let rivals = if ways == [1, 1] { team.leaving(Reach::Shift(1)) } else { team.crowd() };
        let rivals = (rivals * team.abreast()) as f64;
        let uplinks = team.uplinks_of_tree(ways[0].max(ways[1]));
        let wire = match is_far {
            true => (ins.max(outs) * rivals * self.card_ns(len)).max(self.uplinks_ns(team, uplinks, len)),
            false => 0.0,
        };
        count.saturating_sub(1) as f64 * ((core + work_ns) * self.sharing(team)).max(wire)
    }

    /// Time of a core that passes a message on which others follow: within a node its receiver copies it,
    /// and a long one to another node takes two control messages at each end.
    pub fn passed_on(&self, team: &Team, len: u64) -> f64 {
        let core = match (team.spans_nodes(), self.posted(len)) {
            (true, Some(ns)) => ns,
            (true, None) if self.is_by_wire(len) => 2.0 * self.send_gap,
            (true, None) => self.send_gap + self.far.bytes_ns(len) / 2.0,
            (false, _) => self.gaps[0],
        };
        core * self.sharing(team)
    }

    /// Time of a core that receives a message which others follow.
    pub fn taken(&self, team: &Team, len: u64) -> f64 {
        let core = match (team.spans_nodes(), self.posted(len)) {
            (true, Some(ns)) => ns,
            (true, None) if self.is_by_wire(len) => 2.0 * self.gaps[1],
            (true, None) => self.far_core_ns(len),
            (false, _) => self.further(false, len),
        };
        core * self.sharing(team)
    }

    /// Time of a node's memory for a pipeline on a tree of `arity` branches, in which each rank copies or
    /// reduces `len` bytes. On a chain the first piece waits for those that follow it on each node: for a
    /// quarter of them, since they come one by one, and move one by one.
    pub fn through_memory(&self, team: &Team, arity: usize, len: u64) -> f64 {
        let others = if arity == 1 { team.node_count() - 1 } else { 0 };
        self.moved(team, team.crowd() as f64, len) * (1.0 + others as f64 / 4.0)
    }
}
