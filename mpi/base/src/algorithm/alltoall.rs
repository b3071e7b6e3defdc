//! All-to-all: a block of each rank for each rank.

use super::board;
use super::choice::{Algorithm, Context, Direct, Family, Memory, Problem, TWO_LEVEL};
use super::cost::{Cost, log2_ceil};
use super::place::{Blocks, Buffer, Place, Spot};
use super::schedule::{Builder, Step};
use super::team::{Grid, Team};
use std::ops::Range;

/// An all-to-all in a team.
#[derive(Debug)]
pub struct Alltoall {
    /// The blocks for each rank; none: `recv` holds the blocks to send, and is replaced.
    pub send: Option<Blocks>,
    /// Where the blocks from each rank go.
    pub recv: Blocks,
    /// Bytes of each block; none if they differ.
    pub block: Option<u64>,
}

impl Alltoall {
    /// The blocks to send. Those that will be replaced are put aside.
    fn outgoing(&self, team: &Team, builder: &mut Builder) -> Blocks {
        if let Some(send) = &self.send {
            return send.clone();
        }
        let start = builder.scratch(self.recv.total(0..team.size()));
        let rows = Blocks::rows(start, (0..team.size()).map(|rank| self.recv.len(rank)));
        for rank in team.others() {
            builder.copy(self.recv.place(rank), rows.place(rank), &[]);
        }
        builder.round();
        rows
    }

    fn keep_own(&self, team: &Team, builder: &mut Builder) {
        if let Some(send) = &self.send {
            builder.copy(send.place(team.me()), self.recv.place(team.me()), &[]);
        }
    }
}

impl Problem for Alltoall {
    const FAMILY: Family = Family::Alltoall;

    fn len(&self) -> u64 {
        self.block.unwrap_or(0)
    }

    fn data(&self, team: &Team) -> u64 {
        2 * team.blocks(self.len())
    }

    fn direct() -> &'static [Direct<Self>] {
        const {
            &[Direct {
                memory: Memory::Board,
                fits: |p, team| p.block.is_some_and(|block| board::serves(team, team.blocks(block))),
                cost: |p, team, cost| cost.look(team, p.len()) + cost.copy(team, team.blocks(p.len())),
            }]
        }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "flat",
                    fits: |_, _| true,
                    cost: |p, team, cost| cost.exchange_all(team, p.len()),
                    build: |p, team, _, builder| flat(p, team, builder),
                },
                Algorithm {
                    name: "pairwise",
                    fits: |_, _| true,
                    cost: |p, team, cost| cost.pairwise(team, p.len()),
                    build: |p, team, _, builder| pairwise(p, team, builder),
                },
                Algorithm {
                    name: "bruck",
                    fits: |p, _| p.block.is_some(),
                    cost: |p, team, cost| {
                        let half = p.len() * team.size().div_ceil(2) as u64;
                        let copies = f64::from(log2_ceil(team.size())) * 2.0 * cost.copy(team, half);
                        cost.shifts(team, |_| half) + copies + 2.0 * cost.copy(team, 2 * half)
                    },
                    build: |p, team, _, builder| bruck(p, team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |p, team| p.block.is_some() && team.is_grid(),
                    cost: two_level_cost,
                    build: two_level,
                },
            ]
        }
    }
}

/// All at once; everybody begins with the rank behind, so that nobody is everybody's first.
fn flat(problem: &Alltoall, team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    let send = problem.outgoing(team, builder);
    for distance in 1..size {
        let from = (me + size - distance) % size;
        builder.recv(team.party(from), 0, problem.recv.place(from), &[]);
    }
    for distance in 1..size {
        let to = (me + distance) % size;
        builder.send(team.party(to), 0, send.place(to), &[]);
    }
    problem.keep_own(team, builder);
}

/// One partner after the other, so that little is under way at once.
fn pairwise(problem: &Alltoall, team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    let send = problem.outgoing(team, builder);
    problem.keep_own(team, builder);
    for distance in 1..size {
        let (to, from) = ((me + distance) % size, (me + size - distance) % size);
        builder.round();
        builder.recv(team.party(from), 0, problem.recv.place(from), &[]);
        builder.send(team.party(to), 0, send.place(to), &[]);
    }
}

/// Round k: all blocks whose way has bit k go 2^k ranks further in one message (Bruck et al. 1997). Row d is
/// the block that has to go d ranks further.
fn bruck(problem: &Alltoall, team: &Team, builder: &mut Builder) {
    let (size, me, block) = (team.size(), team.me(), problem.len());
    let send = problem.send.as_ref().unwrap_or(&problem.recv);
    let rows = Rows { start: builder.scratch(block * size as u64), block };
    // Those of the ranks behind us up to the last rank, then those before us.
    for (first, ranks) in [(1, me + 1..size), (size - me, 0..me)] {
        match send.range(ranks.clone()).filter(Place::is_contiguous) {
            Some(from) if !ranks.is_empty() => {
                _ = builder.copy(from, rows.row(first..first + ranks.len()), &[])
            }
            _ => ranks.enumerate().for_each(|(index, rank)| {
                builder.copy(send.place(rank), rows.row(first + index..first + index + 1), &[]);
            }),
        }
    }
    problem.keep_own(team, builder);
    let half = block * size.div_ceil(2) as u64;
    let (out, into) = (builder.scratch(half), builder.scratch(half));
    for (round, bit) in (0..).map(|k| (k, 1 << k)).take_while(|&(_, bit)| bit < size) {
        let moved = rows.with_bit(bit, size);
        let len: u64 = moved.iter().map(Place::len).sum();
        // Where each part of them begins.
        let begins = moved.iter().scan(0, |end, part| Some(std::mem::replace(end, *end + part.len())));
        let begins: Vec<u64> = begins.collect();
        let piece =
            |start: Spot, index: usize| Place::bytes(start.skip(begins[index] as i64), moved[index].len());
        builder.round();
        let packed: Vec<Step> = (0..moved.len())
            .map(|index| builder.copy(moved[index].clone(), piece(out, index), &[]))
            .collect();
        builder.send(team.party((me + bit) % size), round, Place::bytes(out, len), &packed);
        let from = team.party((me + size - bit) % size);
        let arrived = builder.recv(from, round, Place::bytes(into, len), &[]);
        for (index, part) in moved.iter().enumerate() {
            builder.copy(piece(into, index), part.clone(), &[arrived]);
        }
    }
    builder.round();
    // The rows come from the ranks before us, the nearest first.
    for (first, ranks) in [(1, 0..me), (me + 1, me + 1..size)] {
        match problem.recv.range(ranks.clone()).filter(Place::is_contiguous) {
            Some(into) if !ranks.is_empty() => {
                let count = ranks.len() as i64;
                let last = into.spot.skip((count - 1) * block as i64);
                let downwards = Place::strided(last, (count, block as i64, -(block as i64)));
                builder.copy(rows.row(first..first + ranks.len()), downwards, &[]);
            }
            _ => ranks.rev().enumerate().for_each(|(index, rank)| {
                builder.copy(rows.row(first + index..first + index + 1), problem.recv.place(rank), &[]);
            }),
        }
    }
}

fn two_level_cost(problem: &Alltoall, team: &Team, cost: &Cost) -> f64 {
    let ([local, _], column) = (team.shapes(), team.column());
    let within = |level: &Team, rows: usize| {
        let recv = Blocks::rows(Spot::start(Buffer::Recv), std::iter::empty());
        let block = Some(problem.len() * rows as u64);
        Alltoall { send: None, recv, block }.inner_cost(level, cost)
    };
    // Blocks are picked out of rows twice.
    let copies = 2.0 * cost.copy(team, team.blocks(problem.len()));
    within(local, column.size()) + within(column, local.size()) + copies
}

/// Each rank gets the blocks that its node has for ranks at its own place on all nodes, and exchanges them
/// with these: a message to each rank of a node and one to each node, instead of one to each rank.
fn two_level(problem: &Alltoall, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let Grid { local, column } = team.grid();
    let (nodes, block) = (column.size(), problem.len());
    let by_node: Vec<Vec<usize>> = team.groups_from(0).collect();
    let (context, send) = (context.within(), problem.send.as_ref().unwrap_or(&problem.recv));
    let at_place = |place: usize| {
        let ranks: Vec<usize> = by_node.iter().map(|node| node[place]).collect();
        builder.gathered_blocks(send, &ranks)
    };
    let outgoing = Blocks::places((0..local.size()).map(at_place).collect());
    let rows = builder.scratch(team.blocks(block));
    let lens = (0..local.size()).map(|_| block * nodes as u64);
    let within =
        Alltoall { send: Some(outgoing), recv: Blocks::rows(rows, lens), block: Some(block * nodes as u64) };
    builder.stage(1, |builder| within.build(&local, &context, builder));
    // What our node has for a node: a block in each row.
    let for_node = |node: usize| {
        let start = rows.skip((node as u64 * block) as i64);
        Place::strided(start, (local.size() as i64, block as i64, (nodes as u64 * block) as i64))
    };
    let mut later = Vec::new();
    let from_node = |ranks: &Vec<usize>| builder.room_for_blocks(&problem.recv, ranks, &mut later);
    let between = Alltoall {
        recv: Blocks::places(by_node.iter().map(from_node).collect()),
        send: Some(Blocks::places((0..nodes).map(for_node).collect())),
        block: Some(block * local.size() as u64),
    };
    builder.stage(2, |builder| between.build(&column, &context, builder));
    for (from, into) in later {
        builder.copy(from, into, &[]);
    }
}

/// Blocks in a row in scratch memory.
struct Rows {
    start: Spot,
    block: u64,
}

impl Rows {
    fn row(&self, rows: Range<usize>) -> Place {
        let offset = rows.start as u64 * self.block;
        Place::bytes(self.start.skip(offset as i64), rows.len() as u64 * self.block)
    }

    /// The rows below `size` whose number has this bit: all complete groups of `bit` rows as one strided
    /// place, and the incomplete last group.
    fn with_bit(&self, bit: usize, size: usize) -> Vec<Place> {
        let whole = size / (2 * bit);
        let rest = (whole * 2 * bit + bit).min(size)..size;
        let len = bit as i64 * self.block as i64;
        let groups = Place::strided(self.row(bit..bit + 1).spot, (whole as i64, len, 2 * len));
        let parts = [groups, self.row(rest)];
        parts.into_iter().filter(|part| part.len() > 0).collect()
    }
}
