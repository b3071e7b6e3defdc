//! Reduce of long vectors (Rabenseifner): recursive halving leaves each rank a part of the result, and the
//! root collects the parts.

use super::Reduce;
use crate::algorithm::choice::Problem;
use crate::algorithm::cost::Cost;
use crate::algorithm::halving::{self, Halving};
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::Team;

pub(super) fn cost(problem: &Reduce, team: &Team, cost: &Cost) -> f64 {
    let collect = cost.row(team, team.size() - 1, problem.len() / team.size() as u64);
    halving::cost(&problem.operands, team, cost) + collect
}

pub(super) fn build(problem: &Reduce, team: &Team, builder: &mut Builder) {
    let sum = problem.result(builder);
    let operands = &problem.operands;
    let halving = builder.stage(1, |b| Halving::build(operands, (problem.from, sum), team, b));
    // Every core rank sends its part straight to the root.
    if team.me() == problem.root {
        for rank in (0..team.size()).filter(|&rank| rank != problem.root) {
            if let Some(part) = halving.part_of(operands, rank) {
                builder.recv(team.party(rank), 0, operands.part(sum, &part), &[]);
            }
        }
    } else if let Some(part) = halving.part_of(operands, team.me()) {
        builder.send(team.party(problem.root), 0, operands.part(sum, &part), &[]);
    }
    if team.me() == problem.root {
        problem.deliver(sum, builder);
    }
}
