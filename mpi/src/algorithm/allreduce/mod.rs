//! Allreduce: operands of all ranks are combined, and all get the result.

mod doubling;
mod rabenseifner;
mod ring;

use super::bcast::Bcast;
use super::choice::{Algorithm, Combines, Context, Direct, Family, Problem, TWO_LEVEL};
use super::cost::log2_ceil;
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
        const { &[Direct::ON_BOARD, Direct::IN_POOL] }
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
                        let rounds = f64::from(log2_ceil(team.size()));
                        rounds * (2.0 * cost.hop(team, p.len()) + cost.reduce(team, p.len()))
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
                    fits: |p, team| team.has_levels() && (p.is_commutative() || team.is_ordered_by_node()),
                    cost: |p, team, cost| {
                        let nodes = team.node_count();
                        let near = 2.0 * cost.near_hop(team, p.len()) + cost.reduce(team, p.len());
                        let far = cost.far.ns(p.len()) + cost.reduce(team, p.len());
                        f64::from(log2_ceil(team.crowd())) * near + f64::from(log2_ceil(nodes)) * far
                    },
                    build: two_level,
                },
            ]
        }
    }
}

/// Reduce to rank 0, then broadcast: half as many messages at once as recursive doubling.
fn reduce_bcast(problem: &Allreduce, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let Allreduce { from, into, operands } = problem;
    let at_root = (team.me() == 0).then_some(*into);
    let reduce = Reduce { from: *from, into: at_root, operands: operands.clone(), root: 0 };
    let bcast = Bcast { data: operands.place(*into), root: 0 };
    builder.stage(1, |builder| reduce.build(team, &context.within(), builder));
    builder.stage(2, |builder| bcast.build(team, &context.within(), builder));
}

/// Each node at its leader, the leaders among themselves, then each node.
fn two_level(problem: &Allreduce, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let Allreduce { from, into, operands } = problem;
    let levels = team.levels(0);
    let context = context.within();
    let at_leader = levels.leaders.as_ref().map(|_| *into);
    let within = Reduce { from: *from, into: at_leader, operands: operands.clone(), root: 0 };
    builder.stage(1, |builder| within.build(&levels.local, &context, builder));
    if let Some(leaders) = &levels.leaders {
        let among = Allreduce { from: *into, into: *into, operands: operands.clone() };
        builder.stage(2, |builder| among.build(leaders, &context, builder));
    }
    let bcast = Bcast { data: operands.place(*into), root: 0 };
    builder.stage(3, |builder| bcast.build(&levels.local, &context, builder));
}
