//! Barrier: nobody leaves before everybody has come. Messages are empty.

use super::board::{self, tiers};
use super::choice::{Algorithm, Context, Direct, Family, Memory, Problem, TWO_LEVEL};
use super::cost::log2_ceil;
use super::place::{Buffer, Place, Spot};
use super::schedule::Builder;
use super::team::Team;
use super::tree::Binomial;

/// A barrier of a team.
#[derive(Debug)]
pub struct Barrier;

impl Problem for Barrier {
    const FAMILY: Family = Family::Barrier;

    fn len(&self) -> u64 {
        0
    }

    fn direct() -> &'static [Direct<Self>] {
        const {
            &[
                Direct {
                    memory: Memory::Board,
                    fits: |_, team| board::serves(team, 0),
                    cost: |_, team, cost| cost.look(team, 0),
                },
                Direct {
                    memory: Memory::Boards,
                    fits: |_, team| tiers::serves(team, 0),
                    cost: |_, team, cost| cost.boards(team, 0),
                },
            ]
        }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "dissemination",
                    fits: |_, _| true,
                    cost: |_, team, cost| cost.shifts(team, |_| 0),
                    build: |_, team, _, builder| dissemination(team, builder),
                },
                Algorithm {
                    name: "binomial",
                    fits: |_, _| true,
                    cost: |_, team, cost| 2.0 * cost.tree(team, 0, |_| 0),
                    build: |_, team, _, builder| {
                        come(team, builder);
                        leave(team, builder);
                    },
                },
                Algorithm {
                    name: "flat",
                    fits: |_, _| true,
                    cost: |_, team, cost| 2.0 * cost.row(team, team.size() - 1, 0),
                    build: |_, team, _, builder| flat(team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |_, team| team.has_levels(),
                    cost: |_, team, cost| {
                        let [local, leaders] = team.shapes();
                        2.0 * cost.tree(local, 0, |_| 0) + Barrier.inner_cost(leaders, cost)
                    },
                    build: two_level,
                },
            ]
        }
    }
}

const NOTHING: Place = Place::bytes(Spot::start(Buffer::Scratch), 0);

/// Round k: to the rank 2^k behind, from the one 2^k before (Hensgen, Finkel, Manber 1988).
fn dissemination(team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    for round in 0..log2_ceil(size) {
        let distance = 1 << round;
        builder.round();
        builder.recv(team.party((me + size - distance) % size), round, NOTHING, &[]);
        builder.send(team.party((me + distance) % size), round, NOTHING, &[]);
    }
}

/// Towards rank 0 along a binomial tree: it knows that all have come.
pub(super) fn come(team: &Team, builder: &mut Builder) {
    let tree = Binomial::of(team.size(), team.me());
    for &(child, _) in &tree.children {
        builder.recv(team.party(child), 0, NOTHING, &[]);
    }
    builder.round();
    if let Some(parent) = tree.parent {
        builder.send(team.party(parent), 0, NOTHING, &[]);
    }
    builder.round();
}

/// From rank 0 along a binomial tree, the largest subtree first: all may leave.
pub(super) fn leave(team: &Team, builder: &mut Builder) {
    let tree = Binomial::of(team.size(), team.me());
    if let Some(parent) = tree.parent {
        builder.recv(team.party(parent), 1, NOTHING, &[]);
    }
    builder.round();
    for &(child, _) in tree.children.iter().rev() {
        builder.send(team.party(child), 1, NOTHING, &[]);
    }
    builder.round();
}

/// All tell rank 0, which tells all: few dependent messages, for ranks that share cores.
fn flat(team: &Team, builder: &mut Builder) {
    if team.me() > 0 {
        builder.send(team.party(0), 0, NOTHING, &[]);
        builder.recv(team.party(0), 1, NOTHING, &[]);
        return;
    }
    for rank in team.others() {
        builder.recv(team.party(rank), 0, NOTHING, &[]);
    }
    builder.round();
    for rank in team.others() {
        builder.send(team.party(rank), 1, NOTHING, &[]);
    }
}

/// Each node by itself, then the leaders, then each node.
fn two_level(_: &Barrier, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let levels = team.levels(0);
    builder.stage(1, |builder| come(&levels.local, builder));
    if let Some(leaders) = &levels.leaders {
        builder.stage(2, |builder| Barrier.build(leaders, &context.within(), builder));
    }
    builder.stage(3, |builder| leave(&levels.local, builder));
}
