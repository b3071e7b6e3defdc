//! Reduce along a tree: each rank combines whole vectors.

use super::Reduce;
use crate::algorithm::choice::Problem;
use crate::algorithm::cost::{Cost, log2_ceil};
use crate::algorithm::place::Spot;
use crate::algorithm::schedule::{Builder, Step};
use crate::algorithm::team::Team;
use crate::algorithm::tree::Binomial;

pub(super) fn binomial_cost(problem: &Reduce, team: &Team, cost: &Cost) -> f64 {
    let (is_commutative, len) = (problem.is_commutative(), problem.len());
    let turn = if is_commutative { problem.root } else { 0 };
    let combined = f64::from(log2_ceil(team.size())) * cost.reduce_by_cores(team, len);
    // All ranks but the root send once.
    let combined = combined.max(cost.reduce(team, len));
    let extra = if is_commutative || problem.root == 0 { 0.0 } else { cost.hop(team, len) };
    cost.tree(team, turn, |_| len) + combined + extra
}

pub(super) fn flat_cost(problem: &Reduce, team: &Team, cost: &Cost) -> f64 {
    let (others, len) = (team.size() - 1, problem.len());
    let combined = others as f64 * cost.reduce_alone(len);
    let near = others.min(team.crowd()) as f64;
    (cost.row(team, others, len) + combined).max(cost.moved(team, near, 2 * len))
}

/// The binomial tree. The subtree of a rank is a row of ranks, so that operands are combined in order; the
/// tree is turned to the root only if the order does not matter.
pub(super) fn binomial(problem: &Reduce, team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    let turn = if problem.is_commutative() { problem.root } else { 0 };
    let party = |place: usize| team.party((place + turn) % size);
    let tree = Binomial::of(size, (me + size - turn) % size);
    let (mut sum, mut done): (Spot, Option<Step>) = (problem.from, None);
    let last = tree.children.len().wrapping_sub(1);
    for (index, &(child, _)) in tree.children.iter().enumerate() {
        // The operands of the child are those behind ours; the sum replaces them.
        let their = if index == last { problem.result(builder) } else { problem.scratch(builder) };
        let arrived = builder.recv(party(child), 0, problem.operands.place(their), &[]);
        let after: Vec<Step> = done.into_iter().chain([arrived]).collect();
        done = Some(builder.reduce(sum, their, problem.operands.count, &after));
        sum = their;
    }
    if let Some(parent) = tree.parent {
        builder.send(party(parent), 0, problem.operands.place(sum), done.as_slice());
    }
    move_to_root(problem, team, (turn, sum), builder);
}

/// From the root of the tree to the root of the reduction.
fn move_to_root(problem: &Reduce, team: &Team, (turn, sum): (usize, Spot), builder: &mut Builder) {
    if turn == problem.root {
        if team.me() == turn {
            problem.deliver(sum, builder);
        }
        return;
    }
    builder.round();
    if team.me() == turn {
        builder.send(team.party(problem.root), 1, problem.operands.place(sum), &[]);
    } else if let (true, Some(into)) = (team.me() == problem.root, problem.into) {
        builder.recv(team.party(turn), 1, problem.operands.place(into), &[]);
    }
}

/// All send to the root, which combines from the last rank to the first.
pub(super) fn flat(problem: &Reduce, team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    if me != problem.root {
        builder.send(team.party(problem.root), 0, problem.operands.place(problem.from), &[]);
        return;
    }
    let mut arrivals: Vec<(Spot, Option<Step>)> = Vec::new();
    for rank in 0..size {
        arrivals.push(match rank == me {
            true => (problem.from, None),
            false => {
                let spot = if rank == size - 1 { problem.result(builder) } else { problem.scratch(builder) };
                let arrived = builder.recv(team.party(rank), 0, problem.operands.place(spot), &[]);
                (spot, Some(arrived))
            }
        });
    }
    let (mut sum, mut done) = arrivals[size - 1];
    if me == size - 1 && size > 1 {
        // Our own operands must not be changed.
        sum = problem.result(builder);
        done = Some(builder.copy(problem.operands.place(problem.from), problem.operands.place(sum), &[]));
    }
    for &(left, arrived) in arrivals[..size - 1].iter().rev() {
        let after: Vec<Step> = done.into_iter().chain(arrived).collect();
        done = Some(builder.reduce(left, sum, problem.operands.count, &after));
    }
    problem.deliver(sum, builder);
}
