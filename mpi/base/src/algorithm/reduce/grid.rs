//! Reduce by all ranks of each node: they combine a part of the vector each, every part is reduced between
//! the nodes by the ranks that have it, and the root collects the parts from its node. So all cores and
//! rails of a node work at once.

use super::Reduce;
use crate::algorithm::choice::{Context, Problem};
use crate::algorithm::cost::Cost;
use crate::algorithm::gather::Gather;
use crate::algorithm::operands::Operands;
use crate::algorithm::place::Blocks;
use crate::algorithm::reduce_scatter::ReduceScatter;
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::{Grid, Team};

pub(super) fn cost(problem: &Reduce, team: &Team, cost: &Cost) -> f64 {
    let ([local, _], operands) = (team.shapes(), &problem.operands);
    let part = Operands { count: operands.count / local.size() as i64, ..operands.clone() };
    let within = ReduceScatter::in_parts((problem.from, problem.from), operands, local.size());
    let between = Reduce { operands: part.clone(), root: 0, ..*problem };
    within.inner_cost(local, cost)
        + between.inner_cost(team.column(), cost)
        + cost.row(local, local.size() - 1, part.len())
}

pub(super) fn build(problem: &Reduce, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let Grid { local, column } = team.grid();
    let (operands, inner) = (&problem.operands, context.within());
    let (parts, place) = (local.size(), local.me());
    let own = operands.share(parts, place);
    let part = Operands { count: own.end - own.start, ..operands.clone() };
    let [within, sum] = [(); 2].map(|()| builder.scratch_elements(part.count, operands.operator.datatype()));
    let scattered = ReduceScatter::in_parts((problem.from, within), operands, parts);
    builder.stage(1, |builder| scattered.build(&local, &inner, builder));
    let (root, is_here) = (team.group_of(problem.root), team.group_of(problem.root) == team.group_place());
    let between = Reduce { from: within, into: is_here.then_some(sum), operands: part.clone(), root };
    builder.stage(2, |builder| between.build(&column, &inner, builder));
    if !is_here {
        return;
    }
    let is_root = |rank: &usize| local.party(*rank) == team.party(problem.root);
    let root = (0..parts).find(is_root).expect("the root is on this node");
    let places =
        |into| Blocks::places((0..parts).map(|at| operands.part(into, &operands.share(parts, at))).collect());
    let collected =
        Gather { send: Some(part.place(sum)), recv: problem.into.map(places), block: None, root, left: None };
    builder.stage(3, |builder| collected.build(&local, &inner, builder));
}
