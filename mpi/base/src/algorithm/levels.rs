//! A pipeline on a tree of all levels of a machine: one tree joins the root and the leaders of other nodes,
//! one a node's leader and its cache leaders, one a cache's leader and its ranks. So a leader passes a piece
//! into its node, or a sum out of it, while the next one is under way. Where the switches of nodes are known,
//! leaders of nodes may be joined by two trees: the leaders of switches, and the nodes of each.

use super::cost::Cost;
use super::team::Team;
use std::ops::Range;

/// Which way pieces go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// From the root to all.
    Down,
    /// From all to the root, which combines them with each rank on their way.
    Up,
}

/// The neighbours of a rank in the tree, as parties.
#[derive(Debug, Default)]
pub struct Links {
    /// Towards the root; none at the root.
    pub parent: Option<u32>,
    /// Away from it; those of the outermost level first.
    pub children: Vec<u32>,
}

impl Links {
    /// Those of a tree in which each rank has `arity` children, from the root on in order of the ranks.
    pub fn of_tree(team: &Team, root: usize, arity: usize) -> Links {
        let size = team.size();
        let place = (team.me() + size - root) % size;
        let party = |place: usize| team.party((place + root) % size);
        let children = (1..=arity).map(|branch| place * arity + branch).filter(|&place| place < size);
        let parent = (place > 0).then(|| party((place - 1) / arity));
        Links { parent, children: children.map(party).collect() }
    }
}

/// A pipeline: the length of pieces, and what it is predicted to take.
#[derive(Debug, Clone, Copy)]
pub struct Pipeline {
    flow: Flow,
    len: u64,
    /// Bytes of a piece.
    pub piece: u64,
    /// Whether switches are levels.
    by_switch: bool,
    /// Predicted nanoseconds.
    pub cost: f64,
}

/// Lengths of pieces, as powers of two.
const PIECES: Range<u32> = 12..22;
/// Numbers of branches tried for a level's tree; a flat tree is tried, too.
const ARITIES: [usize; 5] = [1, 2, 3, 4, 7];

/// Predicted times of one level, or of several together, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Until the first piece has passed it, between nodes and within one.
    far: f64,
    near: f64,
    /// Time of its leader's core for each piece, and of the wires of its node.
    core: f64,
    wire: f64,
}

impl Level {
    /// Adds the times of another level, of which the same core may be the leader.
    fn and(self, other: Level) -> Level {
        let [far, near] = [self.far + other.far, self.near + other.near];
        Level { far, near, core: self.core + other.core, wire: self.wire + other.wire }
    }
}

impl Pipeline {
    /// The pipeline with the best length of pieces, of which there are `pieces_max` at most, and with or
    /// without switches; the same on all ranks.
    pub fn new(flow: Flow, (len, pieces_max): (u64, u64), team: &Team, cost: &Cost) -> Pipeline {
        let least = len.div_ceil(pieces_max).max(1);
        let lengths = PIECES.map(|power| 1 << power).filter(|&piece| piece >= least && piece < len);
        let with = |piece: u64| {
            let with = |by_switch| {
                let pipeline = Pipeline { flow, len, piece, by_switch, cost: 0.0 };
                Pipeline { cost: pipeline.predicted(team, cost), ..pipeline }
            };
            let (plain, by_switch) = (with(false), team.has_switches().then(|| with(true)));
            by_switch.filter(|by_switch| by_switch.cost < plain.cost).unwrap_or(plain)
        };
        let whole = with(len.max(1));
        lengths.map(with).fold(whole, |best, next| if next.cost < best.cost { next } else { best })
    }

    fn predicted(&self, team: &Team, cost: &Cost) -> f64 {
        let (all, others) = self.tree(team, cost);
        let further = (self.count() - 1) as f64 * others.max(all.wire);
        let copies = if self.flow == Flow::Up { 2 } else { 1 };
        let memory = cost.moved(team, team.crowd() as f64, copies * self.len);
        all.far + (all.near + further).max(memory)
    }

    /// Returns the times of all levels of a team, each with its best number of branches, and the time per
    /// piece of the busiest core other than the root's.
    fn tree(&self, team: &Team, cost: &Cost) -> (Level, f64) {
        if !team.is_divided(self.by_switch) {
            let level = self.best(team, cost).1;
            return (level, self.taken(team, cost) + level.core);
        }
        let [local, leaders] = team.shapes();
        let ((within, others), (among, led)) = (self.tree(local, cost), self.tree(leaders, cost));
        // The leader of a group receives each piece from another one, and does its part in all levels.
        (within.and(among), others.max(led + within.core))
    }

    fn count(&self) -> u64 {
        self.len.div_ceil(self.piece).max(1)
    }

    /// The best number of branches of a level, and what it takes.
    fn best(&self, team: &Team, cost: &Cost) -> (usize, Level) {
        let others = team.size().max(2) - 1;
        let fitting = ARITIES.into_iter().filter(|&arity| arity < others).chain([others]);
        let all = fitting.map(|arity| (arity, self.level(team, arity, cost)));
        let further = (self.count() - 1) as f64;
        let ns = |level: &Level| level.far + level.near + further * level.core.max(level.wire);
        all.min_by(|(_, a), (_, b)| ns(a).total_cmp(&ns(b))).expect("there is a number of branches")
    }

    fn level(&self, team: &Team, arity: usize, cost: &Cost) -> Level {
        if team.size() < 2 {
            return Level::default();
        }
        let mut last = team.size() - 1;
        let mut depth = 0;
        while last > 0 {
            last = (last - 1) / arity;
            depth += 1;
        }
        let (child, further) = (self.child(team, cost), (arity - 1) as f64);
        let is_far = team.spans_nodes();
        let wire = if is_far { team.abreast() as f64 * cost.card_ns(self.piece) } else { 0.0 };
        let combined = if self.flow == Flow::Up { cost.reduce_alone(self.piece) } else { 0.0 };
        let hop = if arity == 1 { cost.pass(team, self.piece) } else { cost.hop(team, self.piece) };
        let first = f64::from(depth) * (hop + combined + further * child.max(wire));
        let [far, near] = if is_far { [first, 0.0] } else { [0.0, first] };
        let uplinks = cost.uplinks_ns(team, team.uplinks_of_tree(arity), self.piece);
        let wire = (arity as f64 * wire).max(uplinks);
        Level { far, near, core: arity as f64 * child, wire }
    }

    /// Time of a core for a piece that it has to receive, unless it is the root of the pipeline.
    fn taken(&self, team: &Team, cost: &Cost) -> f64 {
        if self.flow == Flow::Up { 0.0 } else { cost.taken(team, self.piece) }
    }

    /// Time of a core for a piece of each of its children.
    fn child(&self, team: &Team, cost: &Cost) -> f64 {
        match self.flow {
            Flow::Down => cost.passed_on(team, self.piece),
            Flow::Up => cost.taken(team, self.piece) + cost.reduce_alone(self.piece),
        }
    }

    /// Our neighbours in the tree from `root`.
    pub fn links(&self, team: &Team, root: usize, cost: &Cost) -> Links {
        let mut links = Links::default();
        for level in team.path(root, self.by_switch) {
            let (me, (arity, _)) = (level.me(), self.best(&level, cost));
            if me > 0 {
                links.parent = Some(level.party((me - 1) / arity));
            }
            let children =
                (1..=arity).map(|branch| me * arity + branch).filter(|&child| child < level.size());
            links.children.extend(children.map(|child| level.party(child)));
        }
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_length_of_pieces_is_taken_up_to_the_most_pieces() {
        let nodes: Vec<u32> = (0..64).map(|rank| rank / 8).collect();
        let (team, cost, len) = (Team::new(&nodes, 0), Cost::default(), 4 << 20);
        for flow in [Flow::Down, Flow::Up] {
            let piece = |pieces_max| Pipeline::new(flow, (len, pieces_max), &team, &cost).piece;
            let best = piece(len);
            assert!(best < len && len.is_multiple_of(best), "{best}");
            assert_eq!(piece(len / best), best);
            assert!(piece(len / best - 1) > best);
        }
    }
}
