//! Reduce: operands of all ranks are combined at the root.
//!
//! The result is that of combining in the order of ranks, whatever the tree; only commutative operators may
//! be combined in another order (MPI 6.9.1).

mod grid;
mod halving;
mod pipeline;
mod trees;

use super::choice::{Algorithm, Combines, Context, Direct, Family, GRID, MULTI_LEVEL, Problem, TWO_LEVEL};
use super::cost::Cost;
use super::levels;
use super::operands::{MOST_PIECES, Operands};
use super::place::Spot;
use super::schedule::Builder;
use super::team::Team;
use pipeline::Pipeline;

/// A reduction in a team.
#[derive(Debug)]
pub struct Reduce {
    /// Our operands; they are not changed, unless `into` is the same.
    pub from: Spot,
    /// Where the result goes, at the root only.
    pub into: Option<Spot>,
    /// The vectors.
    pub operands: Operands,
    /// Who gets the result.
    pub root: usize,
}

impl Reduce {
    /// Memory for the result: where it belongs if that is not our operands' memory too.
    fn result(&self, builder: &mut Builder) -> Spot {
        let Operands { operator, count } = &self.operands;
        let free = self.into.filter(|into| *into != self.from);
        free.unwrap_or_else(|| builder.scratch_elements(*count, operator.datatype()))
    }

    fn scratch(&self, builder: &mut Builder) -> Spot {
        builder.scratch_elements(self.operands.count, self.operands.operator.datatype())
    }

    /// Puts the result from where it is to where it belongs, after everything before.
    fn deliver(&self, result: Spot, builder: &mut Builder) {
        if let Some(into) = self.into.filter(|into| *into != result) {
            builder.round();
            builder.copy(self.operands.place(result), self.operands.place(into), &[]);
        }
    }

    fn is_commutative(&self) -> bool {
        self.operands.operator.is_commutative()
    }
}

impl Combines for Reduce {
    fn operands(&self) -> &Operands {
        &self.operands
    }
}

impl Problem for Reduce {
    const FAMILY: Family = Family::Reduce;

    fn len(&self) -> u64 {
        self.operands.len()
    }

    fn direct() -> &'static [Direct<Self>] {
        const { &[Direct::ON_BOARD, Direct::ON_BOARDS, Direct::IN_POOL] }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "binomial",
                    fits: |_, _| true,
                    cost: trees::binomial_cost,
                    build: |p, team, _, builder| trees::binomial(p, team, builder),
                },
                Algorithm {
                    name: "flat",
                    fits: |_, _| true,
                    cost: trees::flat_cost,
                    build: |p, team, _, builder| trees::flat(p, team, builder),
                },
                Algorithm {
                    name: "chain",
                    fits: |p, _| p.is_commutative() || p.root == 0,
                    cost: |p, team, cost| Pipeline::new(1, p.len(), (team, cost)).cost,
                    build: |p, team, context, builder| {
                        let pipeline = Pipeline::new(1, p.len(), (team, context.cost));
                        pipeline.build(p, team, builder);
                    },
                },
                Algorithm {
                    name: "binary",
                    fits: |p, team| p.is_commutative() && team.size() > 2,
                    cost: |p, team, cost| Pipeline::new(2, p.len(), (team, cost)).cost,
                    build: |p, team, context, builder| {
                        let pipeline = Pipeline::new(2, p.len(), (team, context.cost));
                        pipeline.build(p, team, builder);
                    },
                },
                Algorithm {
                    name: "rabenseifner",
                    fits: |p, _| p.is_commutative(),
                    cost: halving::cost,
                    build: |p, team, _, builder| halving::build(p, team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |p, team| team.has_levels() && p.is_commutative(),
                    cost: |p, team, cost| {
                        let at_root = Reduce { root: 0, operands: p.operands.clone(), ..*p };
                        team.shapes().iter().map(|level| at_root.inner_cost(level, cost)).sum()
                    },
                    build: two_level,
                },
                Algorithm {
                    name: GRID,
                    fits: |p, team| team.is_grid() && p.is_commutative() && p.operands.is_plain(),
                    cost: grid::cost,
                    build: grid::build,
                },
                Algorithm {
                    name: MULTI_LEVEL,
                    fits: |p, team| team.has_levels() && p.is_commutative(),
                    cost: |p, team, cost| levels(p, team, cost).cost,
                    build: |p, team, context, builder| {
                        let pipeline = levels(p, team, context.cost);
                        let links = pipeline.links(team, p.root, context.cost);
                        pipeline::relay(p, &links, pipeline.piece, builder);
                    },
                },
            ]
        }
    }
}

fn levels(problem: &Reduce, team: &Team, cost: &Cost) -> levels::Pipeline {
    levels::Pipeline::new(levels::Flow::Up, (problem.len(), MOST_PIECES), team, cost)
}

/// Each node at its leader, then the leaders.
fn two_level(problem: &Reduce, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let levels = team.levels(problem.root);
    let operands = &problem.operands;
    let partial = levels.leaders.as_ref().map(|_| problem.scratch(builder));
    let within = Reduce { from: problem.from, into: partial, operands: operands.clone(), root: 0 };
    builder.stage(1, |builder| within.build(&levels.local, &context.within(), builder));
    if let (Some(leaders), Some(from)) = (&levels.leaders, partial) {
        let among = Reduce { from, into: problem.into, operands: operands.clone(), root: 0 };
        builder.stage(2, |builder| among.build(leaders, &context.within(), builder));
    }
}
