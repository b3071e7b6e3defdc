//! Allgather by way of rows in scratch memory.

use super::Allgather;
use crate::algorithm::bcast::Bcast;
use crate::algorithm::choice::{Context, Problem};
use crate::algorithm::cost::{Cost, log2_ceil};
use crate::algorithm::gather::Gather;
use crate::algorithm::place::{Blocks, Place};
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::{Levels, Team};

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
    for row in first..size {
        builder.copy(rows.place(row), problem.recv.place(rank(row)), &[]);
    }
}

pub(super) fn two_level_cost(problem: &Allgather, team: &Team, cost: &Cost) -> f64 {
    let nodes = team.node_count();
    let (mean, all) = (problem.mean(team), problem.recv.total(0..team.size()));
    let gather = (team.crowd() - 1) as f64 * cost.near.ns(mean) + cost.near_hop(team, mean);
    let leaders = (nodes - 1) as f64 * cost.far.ns(all / nodes as u64);
    gather + leaders + f64::from(log2_ceil(team.crowd())) * cost.near_hop(team, all) + cost.copy(team, all)
}

/// Each node gathers at its leader, the leaders exchange what their nodes have, each leader tells its node.
pub(super) fn two_level(problem: &Allgather, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let (Levels { local, leaders }, by_node) = (team.levels(0), team.by_node(0));
    let all = problem.recv.total(0..team.size());
    let start = builder.scratch(all);
    let order: Vec<usize> = by_node.iter().flatten().copied().collect();
    let rows = Blocks::rows(start, order.iter().map(|&rank| problem.recv.len(rank)));
    let lens = by_node.iter().map(|node| node.iter().map(|&rank| problem.recv.len(rank)).sum());
    let nodes = Blocks::rows(start, lens);
    let before = by_node.iter().take_while(|node| !node.contains(&team.me()));
    let first: usize = before.map(Vec::len).sum();
    let own = (first..first + local.size()).map(|row| rows.place(row).len());
    let gather = Gather {
        send: Some(problem.own(team)),
        recv: Some(Blocks::rows(rows.place(first).spot, own)),
        block: None,
        root: 0,
        left: None,
    };
    let context = context.within();
    builder.stage(1, |builder| gather.build(&local, &context, builder));
    if let Some(leaders) = &leaders {
        let among = Allgather { send: None, recv: nodes };
        builder.stage(2, |builder| among.build(leaders, &context, builder));
    }
    let all = Bcast { data: Place::bytes(start, all), root: 0 };
    builder.stage(3, |builder| all.build(&local, &context, builder));
    for (row, &rank) in order.iter().enumerate() {
        builder.copy(rows.place(row), problem.recv.place(rank), &[]);
    }
}
