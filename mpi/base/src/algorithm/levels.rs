//! A pipeline on a tree of all levels of a machine: one tree joins the root and the leaders of other nodes,
//! one a node's leader and its cache leaders, one a cache's leader and its ranks. So a leader passes a piece
//! into its node, or a sum out of it, while the next one is under way.

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
    /// Predicted nanoseconds.
    pub cost: f64,
}

/// Lengths of pieces, as powers of two.
const PIECES: Range<u32> = 12..22;
/// Numbers of branches tried for a level's tree; a flat tree is tried, too.
const ARITIES: [usize; 5] = [1, 2, 3, 4, 7];

/// What one level adds, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// Until the first piece has passed it.
    first: f64,
    /// Time of its leader's core for each piece, and of the wires of its node.
    core: f64,
    wire: f64,
}

/// The levels of a team, each with its best number of branches.
struct Levels {
    leaders: Level,
    /// All levels within a group.
    within: Level,
    /// Time per piece of the busiest core, leaders of outermost groups excepted.
    others: f64,
}

impl Pipeline {
    /// The pipeline with the best length of pieces, of which there are `pieces_max` at most; the same on
    /// all ranks.
    pub fn new(flow: Flow, (len, pieces_max): (u64, u64), team: &Team, cost: &Cost) -> Pipeline {
        let least = len.div_ceil(pieces_max).max(1);
        let lengths = PIECES.map(|power| 1 << power).filter(|&piece| piece >= least && piece < len);
        let with = |piece: u64| {
            let pipeline = Pipeline { flow, len, piece, cost: 0.0 };
            Pipeline { cost: pipeline.predicted(team, cost), ..pipeline }
        };
        let whole = with(len.max(1));
        lengths.map(with).fold(whole, |best, next| if next.cost < best.cost { next } else { best })
    }

    fn predicted(&self, team: &Team, cost: &Cost) -> f64 {
        let Levels { leaders, within, others } = self.levels(team, cost);
        // The leader of the outermost group receives each piece, and does its part in all levels.
        let first = self.taken(&team.shapes()[1], cost) + within.core + leaders.core;
        let further = (self.count() - 1) as f64 * first.max(others).max(leaders.wire);
        let copies = if self.flow == Flow::Up { 2 } else { 1 };
        let memory = cost.moved(team, team.crowd() as f64, copies * self.len);
        leaders.first + (within.first + further).max(memory)
    }

    fn levels(&self, team: &Team, cost: &Cost) -> Levels {
        let [local, leaders] = team.shapes();
        let (leaders, taken) = (self.best(leaders, cost).1, self.taken(local, cost));
        if !local.has_levels() {
            let within = self.best(local, cost).1;
            return Levels { leaders, within, others: taken + within.core };
        }
        let inner = self.levels(local, cost);
        let within = Level {
            first: inner.leaders.first + inner.within.first,
            core: inner.leaders.core + inner.within.core,
            wire: 0.0,
        };
        let others = inner.others.max(taken + inner.leaders.core + inner.within.core);
        Levels { leaders, within, others }
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
        let ns = |level: &Level| level.first + further * level.core.max(level.wire);
        all.min_by(|(_, a), (_, b)| ns(a).total_cmp(&ns(b))).expect("there is a number of branches")
    }

    fn level(&self, team: &Team, arity: usize, cost: &Cost) -> Level {
        if team.size() < 2 {
            return Level { first: 0.0, core: 0.0, wire: 0.0 };
        }
        let mut last = team.size() - 1;
        let mut depth = 0;
        while last > 0 {
            last = (last - 1) / arity;
            depth += 1;
        }
        let (child, further) = (self.child(team, cost), (arity - 1) as f64);
        let wire = if team.spans_nodes() { cost.wire_ns(self.piece) } else { 0.0 };
        let combined = if self.flow == Flow::Up { cost.reduce_alone(self.piece) } else { 0.0 };
        Level {
            first: f64::from(depth) * (cost.hop(team, self.piece) + combined + further * child.max(wire)),
            core: arity as f64 * child,
            wire: arity as f64 * wire,
        }
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
        for level in team.path(root) {
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
