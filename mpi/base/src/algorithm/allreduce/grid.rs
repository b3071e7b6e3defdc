//! Allreduce by all ranks of each node: they combine a part of the vector each, every part is combined
//! between the nodes by the ranks that have it, and the ranks of a node give each other the parts. So all
//! cores and rails of a node work at once, for any number of nodes and ranks.

use super::Allreduce;
use crate::algorithm::allgather::Allgather;
use crate::algorithm::choice::{Context, Problem};
use crate::algorithm::cost::Cost;
use crate::algorithm::operands::Operands;
use crate::algorithm::place::Blocks;
use crate::algorithm::reduce_scatter::ReduceScatter;
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::{Grid, Team};

/// The parts of the result in one node, as they lie in the receive buffer.
fn collected(problem: &Allreduce, parts: usize) -> Allgather {
    let operands = &problem.operands;
    let lens = (0..parts).map(|at| operands.part(problem.into, &operands.share(parts, at)).len());
    Allgather { send: None, recv: Blocks::rows(problem.into, lens) }
}

pub(super) fn cost(problem: &Allreduce, team: &Team, cost: &Cost) -> f64 {
    let ([local, _], operands) = (team.shapes(), &problem.operands);
    let part = Operands { count: operands.count / local.size() as i64, ..operands.clone() };
    let within = ReduceScatter::in_parts((problem.from, problem.into), operands, local.size());
    let between = Allreduce { operands: part, ..*problem };
    within.inner_cost(local, cost)
        + between.inner_cost(team.column(), cost)
        + collected(problem, local.size()).inner_cost(local, cost)
}

pub(super) fn build(problem: &Allreduce, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let Grid { local, column } = team.grid();
    let (operands, inner) = (&problem.operands, context.within());
    let (parts, place) = (local.size(), local.me());
    let own = operands.share(parts, place);
    let part = Operands { count: own.end - own.start, ..operands.clone() };
    let within = builder.scratch_elements(part.count, operands.operator.datatype());
    let scattered = ReduceScatter::in_parts((problem.from, within), operands, parts);
    builder.stage(1, |builder| scattered.build(&local, &inner, builder));
    let into = operands.at(problem.into, own.start);
    let between = Allreduce { from: within, into, operands: part };
    builder.stage(2, |builder| between.build(&column, &inner, builder));
    builder.stage(3, |builder| collected(problem, parts).build(&local, &inner, builder));
}
