//! Broadcast: the data of one rank goes to all.

mod pipeline;
mod scatter_allgather;
mod trees;

use super::board::{self, tiers};
use super::choice::{Algorithm, Context, Direct, Family, MULTI_LEVEL, Memory, Problem, TWO_LEVEL};
use super::cost::Cost;
use super::levels;
use super::place::Place;
use super::schedule::{Builder, SLOTS};
use super::team::Team;
use pipeline::Pipeline;

/// Bytes of a piece that is passed on while the next one arrives.
pub(super) const PIECE: u64 = 128 << 10;

/// A broadcast in a team.
#[derive(Debug)]
pub struct Bcast {
    /// Where the data is or goes.
    pub data: Place,
    /// Whose data it is.
    pub root: usize,
}

impl Problem for Bcast {
    const FAMILY: Family = Family::Bcast;

    fn len(&self) -> u64 {
        self.data.len()
    }

    fn direct() -> &'static [Direct<Self>] {
        const {
            &[
                Direct {
                    memory: Memory::Board,
                    fits: |p, team| board::serves(team, p.len()),
                    cost: |p, team, cost| cost.post(team, p.len()),
                },
                Direct {
                    memory: Memory::Boards,
                    fits: |p, team| tiers::serves(team, p.len()),
                    // To the leader of the root's group, to all leaders, and to their groups.
                    cost: |p, team, cost| 3.0 * cost.post(team, p.len()),
                },
            ]
        }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "binomial",
                    fits: |_, _| true,
                    cost: |p, team, cost| cost.tree(team, p.root, |_| p.len()),
                    build: |p, team, _, builder| trees::binomial(p, team, builder),
                },
                Algorithm {
                    name: "flat",
                    fits: |_, _| true,
                    cost: |p, team, cost| cost.fan_out(team, team.size() - 1, p.len()),
                    build: |p, team, _, builder| trees::flat(p, team, builder),
                },
                Algorithm {
                    name: "chain",
                    fits: |_, _| true,
                    cost: |p, team, cost| Pipeline::new(1, p.len(), (team, cost)).cost,
                    build: |p, team, context, builder| {
                        let pipeline = Pipeline::new(1, p.len(), (team, context.cost));
                        pipeline.build(p, team, builder);
                    },
                },
                Algorithm {
                    name: "binary",
                    fits: |_, team| team.size() > 2,
                    cost: |p, team, cost| Pipeline::new(2, p.len(), (team, cost)).cost,
                    build: |p, team, context, builder| {
                        let pipeline = Pipeline::new(2, p.len(), (team, context.cost));
                        pipeline.build(p, team, builder);
                    },
                },
                Algorithm {
                    name: "scatter_allgather",
                    fits: |p, team| p.len() >= team.size() as u64,
                    cost: scatter_allgather::cost,
                    build: |p, team, _, builder| scatter_allgather::build(p, team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |_, team| team.has_levels(),
                    cost: |p, team, cost| {
                        let at_root = Bcast { data: p.data.clone(), root: 0 };
                        team.shapes().iter().map(|level| at_root.inner_cost(level, cost)).sum()
                    },
                    build: two_level,
                },
                Algorithm {
                    name: MULTI_LEVEL,
                    fits: |_, team| team.has_levels(),
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

fn levels(problem: &Bcast, team: &Team, cost: &Cost) -> levels::Pipeline {
    levels::Pipeline::new(levels::Flow::Down, (problem.len(), SLOTS.into()), team, cost)
}

/// The leaders of all nodes first, then each node.
fn two_level(problem: &Bcast, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let levels = team.levels(problem.root);
    let inner = Bcast { data: problem.data.clone(), root: 0 };
    if let Some(leaders) = &levels.leaders {
        builder.stage(1, |builder| inner.build(leaders, &context.within(), builder));
    }
    builder.stage(2, |builder| inner.build(&levels.local, &context.within(), builder));
}
