//! Allgather by way of rows in scratch memory.

use super::Allgather;
use crate::algorithm::bcast::Bcast;
use crate::algorithm::choice::{Context, Problem};
use crate::algorithm::cost::Cost;
use crate::algorithm::gather::Gather;
use crate::algorithm::place::{Blocks, Buffer, Place, Spot};
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::{Levels, Team};
use std::ops::Range;

/// Round k: all that we have to the rank 2^k before, as much from the one 2^k behind, for any number of ranks
/// (Bruck, Ho, Kipnis, Upfal, Weathersby 1997). Rows begin with our own block.
pub(super) fn bruck(problem: &Allgather, team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    let rank = |row: usize| (me + row) % size;
    let start = builder.scratch(problem.recv.total(0..size));
    let rows = Blocks::rows(start, (0..size).map(|row| problem.recv.len(rank(row))));
    builder.copy(problem.own(team), rows.place(0), &[]);
    for (round, distance) in (0..).map(|k| (k, 1 << k)).take_while(|&(_, d)| d < size) {
        let count = distance.min(size - distance);
        let (Some(held), Some(wanted)) = (rows.range(0..count), rows.range(distance..distance + count))
        else {
            return;
        };
        builder.round();
        builder.recv(team.party(rank(distance)), round, wanted, &[]);
        builder.send(team.party(rank(size - distance)), round, held, &[]);
    }
    builder.round();
    // Our own block is in its place already if the caller has put it there.
    let first = usize::from(problem.send.is_none());
    copy_rows(&rows, &problem.recv, (first..size).map(|row| (row, rank(row))), builder);
}

/// Copies rows to the blocks of ranks, given in the order of the rows; those of ranks in a row at once.
fn copy_rows(
    rows: &Blocks,
    blocks: &Blocks,
    order: impl Iterator<Item = (usize, usize)>,
    builder: &mut Builder,
) {
    let mut copy = |rows_of: Range<usize>, ranks: Range<usize>| match (
        rows.range(rows_of.clone()),
        blocks.range(ranks.clone()),
    ) {
        (Some(from), Some(into)) => _ = builder.copy(from, into, &[]),
        _ => rows_of
            .zip(ranks)
            .for_each(|(row, rank)| _ = builder.copy(rows.place(row), blocks.place(rank), &[])),
    };
    let mut run: Option<(usize, usize, usize)> = None;
    for (row, rank) in order {
        run = match run {
            Some((first, to, len)) if rank == to + len => Some((first, to, len + 1)),
            _ => {
                if let Some((first, to, len)) = run {
                    copy(first..first + len, to..to + len);
                }
                Some((row, rank, 1))
            }
        };
    }
    if let Some((first, to, len)) = run {
        copy(first..first + len, to..to + len);
    }
}

pub(super) fn two_level_cost(problem: &Allgather, team: &Team, cost: &Cost) -> f64 {
    let ([local, leaders], all) = (team.shapes(), problem.recv.total(0..team.size()));
    let gather = Gather { send: None, recv: None, block: problem.recv.each(), root: 0, left: None };
    let gather = match gather.block {
        Some(_) => gather.inner_cost(local, cost),
        None => cost.row(local, local.size() - 1, problem.mean(team)),
    };
    let rows =
        Blocks::rows(Spot::start(Buffer::Recv), (0..leaders.size()).map(|_| all / leaders.size() as u64));
    let among = Allgather { send: None, recv: rows }.inner_cost(leaders, cost);
    let told = Bcast { data: Place::bytes(Spot::start(Buffer::Recv), all), root: 0 }.inner_cost(local, cost);
    let copied = if problem.recv.is_even() && team.is_ordered_by_group() { 0 } else { all };
    gather + among + told + cost.copy(team, copied)
}

/// The receive buffer, if the blocks of a group lie in a row there, and those of all groups in their order.
fn rows_in_place(problem: &Allgather, team: &Team) -> Option<Spot> {
    let all = problem.recv.range(0..team.size()).filter(|_| team.is_ordered_by_group())?;
    all.is_contiguous().then_some(all.spot)
}

/// Each node gathers at its leader, the leaders exchange what their nodes have, each leader tells its node.
pub(super) fn two_level(problem: &Allgather, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let Levels { local, leaders } = team.levels(0);
    let (order, begins) = team.by_group();
    let all = problem.recv.total(0..team.size());
    let in_place = rows_in_place(problem, team);
    let start = in_place.unwrap_or_else(|| builder.scratch(all));
    let rows = Blocks::rows(start, order.iter().map(|rank| problem.recv.len(rank as usize)));
    let begins: Vec<usize> = begins.iter().map(|begin| begin as usize).collect();
    let first = begins[team.group_place()];
    let own = (first..first + local.size()).map(|row| rows.place(row).len());
    let is_there = in_place.is_some() && problem.send.is_none() && local.me() == 0;
    let gather = Gather {
        send: (!is_there).then(|| problem.own(team)),
        recv: Some(Blocks::rows(rows.place(first).spot, own)),
        block: problem.recv.each(),
        root: 0,
        left: None,
    };
    let context = context.within();
    builder.stage(1, |builder| gather.build(&local, &context, builder));
    if let Some(leaders) = &leaders {
        let lens = begins.windows(2).map(|both| rows.total(both[0]..both[1]));
        let among = Allgather { send: None, recv: Blocks::rows(start, lens) };
        builder.stage(2, |builder| among.build(leaders, &context, builder));
    }
    let all = Bcast { data: Place::bytes(start, all), root: 0 };
    builder.stage(3, |builder| all.build(&local, &context, builder));
    if in_place.is_none() {
        copy_rows(&rows, &problem.recv, order.iter().map(|rank| rank as usize).enumerate(), builder);
    }
}
