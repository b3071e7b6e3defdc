//! Reduce-scatter: operands of all ranks are combined, and each rank gets a part of the result.

use super::choice::{Algorithm, Combines, Context, Direct, Family, Problem, TWO_LEVEL};
use super::cost::Cost;
use super::operands::Operands;
use super::place::{Blocks, Place, Spot};
use super::reduce::Reduce;
use super::scatter::Scatter;
use super::schedule::{Builder, Step};
use super::team::{Grid, Reach, Team};
use crate::datatype::{Datatype, Form};
use std::ops::Range;

/// A reduce-scatter in a team.
#[derive(Debug)]
pub struct ReduceScatter {
    /// Our operands for all parts.
    pub from: Spot,
    /// Where our part of the result goes; may be where our operands begin.
    pub into: Spot,
    /// The vectors.
    pub operands: Operands,
    /// Where the part of each rank begins, in elements, and the end of the last.
    pub bounds: Box<[i64]>,
}

impl ReduceScatter {
    /// Nearly equal parts of all operands. `spots`: those, and where our part of the result goes.
    pub fn in_parts(spots: (Spot, Spot), operands: &Operands, parts: usize) -> ReduceScatter {
        let ends = (0..parts).map(|part| operands.share(parts, part).end);
        ReduceScatter {
            from: spots.0,
            into: spots.1,
            operands: operands.clone(),
            bounds: std::iter::once(0).chain(ends).collect(),
        }
    }

    fn part(&self, rank: usize) -> Range<i64> {
        self.bounds[rank]..self.bounds[rank + 1]
    }

    fn count(&self, rank: usize) -> i64 {
        self.bounds[rank + 1] - self.bounds[rank]
    }

    /// A part of it, as far as its cost is concerned: one in `parts` of the operands.
    fn of_level(&self, parts: usize) -> ReduceScatter {
        let operands = Operands { count: self.operands.count / parts as i64, ..self.operands.clone() };
        ReduceScatter { from: self.from, into: self.into, operands, bounds: Box::default() }
    }

    fn has_equal_parts(&self) -> bool {
        self.bounds.windows(2).all(|pair| pair[1] - pair[0] == self.count(0))
    }

    fn scratch(&self, count: i64, builder: &mut Builder) -> Spot {
        builder.scratch_elements(count, self.operands.operator.datatype())
    }
}

impl Combines for ReduceScatter {
    fn operands(&self) -> &Operands {
        &self.operands
    }
}

impl Problem for ReduceScatter {
    const FAMILY: Family = Family::ReduceScatter;

    fn len(&self) -> u64 {
        self.operands.len()
    }

    fn direct() -> &'static [Direct<Self>] {
        const {
            &[
                Direct {
                    cost: |p, team, cost| {
                        let part = p.len() / team.size() as u64;
                        let combined = cost.reduce(team, p.len().saturating_sub(part));
                        cost.look(team, part) + cost.copy(team, p.len()) + combined
                    },
                    ..Direct::ON_BOARD
                },
                Direct::IN_POOL,
            ]
        }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "reduce_scatter",
                    fits: |_, _| true,
                    cost: |p, team, cost| {
                        let (from, operands) = (p.from, p.operands.clone());
                        let reduce = Reduce { from, into: Some(p.into), operands, root: 0 };
                        let block = Some(p.len() / team.size() as u64);
                        let scatter = Scatter { send: None, recv: None, block, root: 0 };
                        reduce.inner_cost(team, cost) + scatter.inner_cost(team, cost)
                    },
                    build: by_reduce,
                },
                Algorithm {
                    name: "pairwise",
                    fits: |p, _| p.operands.operator.is_commutative(),
                    cost: |p, team, cost| {
                        let part = p.len() / team.size() as u64;
                        let others = team.size() - 1;
                        cost.exchange_all(team, part) + others as f64 * cost.reduce(team, part)
                    },
                    build: |p, team, _, builder| pairwise(p, team, builder),
                },
                Algorithm {
                    name: "halving",
                    fits: |p, team| p.operands.operator.is_commutative() && team.size().is_power_of_two(),
                    cost: |p, team, cost| {
                        let round = |k: u32| {
                            let (reach, len) = (Reach::Flip(team.size() >> k), p.len() >> k);
                            cost.exchange(team, reach, len) + cost.reduce(team, len)
                        };
                        let own = cost.copy(team, p.len() / team.size() as u64);
                        (1..=team.size().ilog2()).map(round).sum::<f64>() + own
                    },
                    build: |p, team, _, builder| halving(p, team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |p, team| p.has_equal_parts() && team.is_grid() && team.is_ordered_by_group(),
                    cost: two_level_cost,
                    build: two_level,
                },
            ]
        }
    }
}

/// Reduce to rank 0, which scatters the result: for operators that are not commutative, and short vectors.
fn by_reduce(problem: &ReduceScatter, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let operands = &problem.operands;
    let at_root = (team.me() == 0).then(|| problem.scratch(operands.count, builder));
    let reduce = Reduce { from: problem.from, into: at_root, operands: operands.clone(), root: 0 };
    builder.stage(1, |builder| reduce.build(team, &context.within(), builder));
    let part = 0..problem.count(team.me());
    let scatter = Scatter {
        send: at_root.map(|all| {
            let places = (0..team.size()).map(|rank| operands.part(all, &problem.part(rank)));
            Blocks::places(places.collect())
        }),
        recv: Some(operands.part(problem.into, &part)),
        block: None,
        root: 0,
    };
    builder.stage(2, |builder| scatter.build(team, &context.within(), builder));
}

/// Everybody gets its part from everybody, and combines.
fn pairwise(problem: &ReduceScatter, team: &Team, builder: &mut Builder) {
    let (size, me, operands) = (team.size(), team.me(), &problem.operands);
    let count = problem.count(me);
    let own = operands.at(problem.from, problem.bounds[me]);
    let sum = match problem.into == problem.from {
        true => problem.scratch(count, builder),
        false => problem.into,
    };
    if size == 1 {
        builder.copy(operands.operator.place(own, count), operands.operator.place(sum, count), &[]);
    }
    let mut done: Option<Step> = None;
    for distance in 1..size {
        let (to, from) = ((me + distance) % size, (me + size - distance) % size);
        builder.send(team.party(to), 0, operands.part(problem.from, &problem.part(to)), &[]);
        let into = if distance == 1 { sum } else { problem.scratch(count, builder) };
        let arrived = builder.recv(team.party(from), 0, operands.operator.place(into, count), &[]);
        let (left, after) = if distance == 1 { (own, None) } else { (into, done) };
        let after: Vec<Step> = after.into_iter().chain([arrived]).collect();
        done = Some(builder.reduce(left, sum, count, &after));
    }
    if sum != problem.into {
        builder.round();
        builder.copy(operands.operator.place(sum, count), operands.operator.place(problem.into, count), &[]);
    }
}

/// Recursive halving: round k gives away the half of the ranks' parts that lies on the other side of bit k.
fn halving(problem: &ReduceScatter, team: &Team, builder: &mut Builder) {
    let (me, operands) = (team.me(), &problem.operands);
    let (mut source, sum) = (problem.from, problem.scratch(operands.count, builder));
    let aside = problem.scratch(operands.count, builder);
    let mut held = 0..team.size();
    while held.len() > 1 {
        let bit = held.len() / 2;
        let (low, high) = (held.start..held.start + bit, held.start + bit..held.end);
        let (kept, given) = if me & bit == 0 { (low, high) } else { (high, low) };
        let elements = |ranks: &Range<usize>| problem.bounds[ranks.start]..problem.bounds[ranks.end];
        let (mine, theirs) = (elements(&kept), elements(&given));
        let partner = team.party(me ^ bit);
        // The first round combines what arrives with operands that stay as they are.
        let into = if source == sum { aside } else { sum };
        builder.round();
        builder.send(partner, bit.ilog2(), operands.part(source, &theirs), &[]);
        let arrived = builder.recv(partner, bit.ilog2(), operands.part(into, &mine), &[]);
        let (ours, came) = (operands.at(source, mine.start), operands.at(into, mine.start));
        let (left, right) = if source == sum { (came, ours) } else { (ours, came) };
        builder.reduce(left, right, mine.end - mine.start, &[arrived]);
        (source, held) = (sum, kept);
    }
    builder.round();
    let into = operands.operator.place(problem.into, problem.count(me));
    builder.copy(operands.part(source, &problem.part(me)), into, &[]);
}

/// What the ranks of a node do first, and what it is predicted to take: the parts of all nodes at once, for
/// which they are put in another order, or those of one node after the other.
fn within_nodes(problem: &ReduceScatter, team: &Team, cost: &Cost) -> (Within, f64) {
    let ([local, _], nodes) = (team.shapes(), team.group_count());
    let at_once = problem.of_level(1).inner_cost(local, cost) + cost.copy(team, problem.len());
    let in_turn = nodes as f64 * problem.of_level(nodes).inner_cost(local, cost);
    if at_once < in_turn { (Within::AtOnce, at_once) } else { (Within::InTurn, in_turn) }
}

enum Within {
    AtOnce,
    InTurn,
}

fn two_level_cost(problem: &ReduceScatter, team: &Team, cost: &Cost) -> f64 {
    let between = problem.of_level(team.largest_group()).inner_cost(team.column(), cost);
    within_nodes(problem, team, cost).1 + between
}

/// The ranks of a node first combine the parts of the ranks at the same place on all nodes, then these
/// combine what the nodes have: what leaves a node is one vector, not one of each rank.
fn two_level(problem: &ReduceScatter, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let Grid { local, column } = team.grid();
    let (operands, inner, count) = (&problem.operands, context.within(), problem.count(0));
    let (nodes, places) = (column.size() as i64, local.size() as i64);
    let level = |from: Spot, into: Spot, (parts, each): (i64, i64)| {
        let operands = Operands { count: parts * each, ..operands.clone() };
        ReduceScatter { from, into, operands, bounds: (0..=parts).map(|part| part * each).collect() }
    };
    let of_node = problem.scratch(nodes * count, builder);
    match within_nodes(problem, team, context.cost).0 {
        Within::AtOnce => {
            let rows = by_place(problem, (nodes, places), builder);
            let within = level(rows, of_node, (places, nodes * count));
            builder.stage(1, |builder| within.build(&local, &inner, builder));
        }
        Within::InTurn => (0..nodes).for_each(|node| {
            let from = operands.at(problem.from, node * places * count);
            let within = level(from, operands.at(of_node, node * count), (places, count));
            builder.stage(1, |builder| within.build(&local, &inner, builder));
        }),
    }
    let between = level(of_node, problem.into, (nodes, count));
    builder.stage(2, |builder| between.build(&column, &inner, builder));
}

/// Our operands in another order: those of the ranks at the same place on all nodes follow each other.
fn by_place(problem: &ReduceScatter, (nodes, places): (i64, i64), builder: &mut Builder) -> Spot {
    let (operands, count) = (&problem.operands, problem.count(0));
    let datatype = operands.operator.datatype();
    let rows = problem.scratch(operands.count, builder);
    for place in 0..places {
        let stride = places * count * datatype.extent();
        let parts = Datatype::hvector(Form::Large, nodes, count, stride, datatype);
        let parts = parts.expect("neither a number nor a length is negative");
        let from = Place::elements(operands.at(problem.from, place * count), 1, &parts);
        let row = place * nodes * count..(place + 1) * nodes * count;
        builder.copy(from, operands.part(rows, &row), &[]);
    }
    rows
}
