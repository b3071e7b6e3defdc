//! All-to-all: a block of each rank for each rank.

use super::board;
use super::choice::{Algorithm, Direct, Family, Memory, Problem};
use super::cost::log2_ceil;
use super::place::{Blocks, Place};
use super::schedule::{Builder, Step};
use super::team::Team;

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
                    cost: |p, team, cost| cost.exchange_row(team, team.size() - 1, p.len()),
                    build: |p, team, _, builder| flat(p, team, builder),
                },
                Algorithm {
                    name: "pairwise",
                    fits: |_, _| true,
                    cost: |p, team, cost| (team.size() - 1) as f64 * cost.exchange(team, p.len()),
                    build: |p, team, _, builder| pairwise(p, team, builder),
                },
                Algorithm {
                    name: "bruck",
                    fits: |p, _| p.block.is_some(),
                    cost: |p, team, cost| {
                        let half = p.len() * team.size().div_ceil(2) as u64;
                        let round = cost.exchange(team, half) + 2.0 * cost.copy(team, half);
                        f64::from(log2_ceil(team.size())) * round + 2.0 * cost.copy(team, 2 * half)
                    },
                    build: |p, team, _, builder| bruck(p, team, builder),
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
    let row = |start: super::place::Spot, index: usize| {
        Place::bytes(start.skip((index as u64 * block) as i64), block)
    };
    let send = problem.send.as_ref().unwrap_or(&problem.recv);
    let rows = builder.scratch(block * size as u64);
    for distance in 1..size {
        builder.copy(send.place((me + distance) % size), row(rows, distance), &[]);
    }
    problem.keep_own(team, builder);
    let half = block * size.div_ceil(2) as u64;
    let (out, into) = (builder.scratch(half), builder.scratch(half));
    for (round, bit) in (0..).map(|k| (k, 1 << k)).take_while(|&(_, bit)| bit < size) {
        let moved: Vec<usize> = (1..size).filter(|distance| distance & bit != 0).collect();
        let len = block * moved.len() as u64;
        builder.round();
        let packed: Vec<Step> =
            (0..).zip(&moved).map(|(i, &d)| builder.copy(row(rows, d), row(out, i), &[])).collect();
        builder.send(team.party((me + bit) % size), round, Place::bytes(out, len), &packed);
        let from = team.party((me + size - bit) % size);
        let arrived = builder.recv(from, round, Place::bytes(into, len), &[]);
        for (index, &distance) in moved.iter().enumerate() {
            builder.copy(row(into, index), row(rows, distance), &[arrived]);
        }
    }
    builder.round();
    for distance in 1..size {
        builder.copy(row(rows, distance), problem.recv.place((me + size - distance) % size), &[]);
    }
}
