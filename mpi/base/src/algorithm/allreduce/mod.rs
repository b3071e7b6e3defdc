//! Allreduce: operands of all ranks are combined, and all get the result.

mod doubling;
mod grid;
mod rabenseifner;
mod ring;

use super::bcast::Bcast;
use super::choice::{Algorithm, Combines, Context, Direct, Family, GRID, Problem, TWO_LEVEL};
use super::operands::Operands;
use super::place::Spot;
use super::reduce::Reduce;
use super::schedule::Builder;
use super::team::Team;

/// An allreduce in a team.
#[derive(Debug)]
pub struct Allreduce {
    /// Our operands; they are not changed, unless `into` is the same.
    pub from: Spot,
    /// Where the result goes.
    pub into: Spot,
    /// The vectors.
    pub operands: Operands,
}

impl Allreduce {
    fn scratch(&self, builder: &mut Builder) -> Spot {
        builder.scratch_elements(self.operands.count, self.operands.operator.datatype())
    }

    /// The reduction to rank 0 of the same operands.
    fn reduction(&self) -> Reduce {
        Reduce { from: self.from, into: Some(self.into), operands: self.operands.clone(), root: 0 }
    }

    /// The broadcast of the result by rank 0.
    fn broadcast(&self) -> Bcast {
        Bcast { data: self.operands.place(self.into), root: 0 }
    }

    fn is_commutative(&self) -> bool {
        self.operands.operator.is_commutative()
    }
}

impl Combines for Allreduce {
    fn operands(&self) -> &Operands {
        &self.operands
    }
}

impl Problem for Allreduce {
    const FAMILY: Family = Family::Allreduce;

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
                    name: "recursive_doubling",
                    fits: |_, _| true,
                    cost: doubling::cost,
                    build: |p, team, _, builder| doubling::build(p, team, builder),
                },
                Algorithm {
                    name: "reduce_bcast",
                    fits: |_, _| true,
                    cost: |p, team, cost| {
                        p.reduction().inner_cost(team, cost) + p.broadcast().inner_cost(team, cost)
                    },
                    build: |p, team, context, builder| reduce_bcast(p, team, context, builder),
                },
                Algorithm {
                    name: "rabenseifner",
                    fits: |p, _| p.is_commutative(),
                    cost: rabenseifner::cost,
                    build: |p, team, _, builder| rabenseifner::build(p, team, builder),
                },
                Algorithm {
                    name: "ring",
                    fits: |p, team| p.is_commutative() && team.size() <= ring::RANKS_MAX,
                    cost: ring::cost,
                    build: |p, team, _, builder| ring::build(p, team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |p, team| team.has_levels() && (p.is_commutative() || team.is_ordered_by_group()),
                    cost: |p, team, cost| {
                        let [local, leaders] = team.shapes();
                        let within = p.reduction().inner_cost(local, cost);
                        within + p.inner_cost(leaders, cost) + p.broadcast().inner_cost(local, cost)
                    },
                    build: two_level,
                },
                Algorithm {
                    name: GRID,
                    fits: |p, team| team.is_grid() && p.is_commutative() && p.operands.is_plain(),
                    cost: grid::cost,
                    build: grid::build,
                },
            ]
        }
    }
}

/// Reduce to rank 0, then broadcast: half as many messages at once as recursive doubling.
fn reduce_bcast(problem: &Allreduce, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let into = (team.me() == 0).then_some(problem.into);
    let reduce = Reduce { into, ..problem.reduction() };
    builder.stage(1, |builder| reduce.build(team, &context.within(), builder));
    builder.stage(2, |builder| problem.broadcast().build(team, &context.within(), builder));
}

/// Each node at its leader, the leaders among themselves, then each node.
fn two_level(problem: &Allreduce, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let levels = team.levels(0);
    let (context, into) = (context.within(), problem.into);
    let within = Reduce { into: levels.leaders.as_ref().map(|_| into), ..problem.reduction() };
    builder.stage(1, |builder| within.build(&levels.local, &context, builder));
    if let Some(leaders) = &levels.leaders {
        let among = Allreduce { from: into, into, operands: problem.operands.clone() };
        builder.stage(2, |builder| among.build(leaders, &context, builder));
    }
    builder.stage(3, |builder| problem.broadcast().build(&levels.local, &context, builder));
}
