//! Allreduce of long vectors on a ring: each part goes around once to be combined, once to be told.
//!
//! Each rank sends little less than twice the vector, always to its neighbour, in 2 (n - 1) rounds. Parts are
//! cut into pieces that follow each other, so that combining and sending overlap.

use super::Allreduce;
use crate::algorithm::bcast::PIECE;
use crate::algorithm::choice::Problem;
use crate::algorithm::cost::Cost;
use crate::algorithm::operands::MOST_PIECES;
use crate::algorithm::place::Spot;
use crate::algorithm::schedule::{Builder, Step};
use crate::algorithm::team::Team;
use std::ops::Range;

/// More ranks have more rounds than there are slots; other algorithms are faster then anyway.
pub(super) const RANKS_MAX: usize = 1024;

pub(super) fn cost(problem: &Allreduce, team: &Team, cost: &Cost) -> f64 {
    let part = problem.len().div_ceil(team.size() as u64);
    let rounds = (team.size() - 1) as f64;
    rounds * (2.0 * cost.ring(team, part) + cost.reduce(team, part))
}

pub(super) fn build(problem: &Allreduce, team: &Team, builder: &mut Builder) {
    let Allreduce { from, into, operands } = problem;
    let size = team.size();
    if size == 1 {
        builder.copy(operands.place(*from), operands.place(*into), &[]);
        return;
    }
    // In place, arriving operands need memory beside ours.
    let aside = if from == into { problem.scratch(builder) } else { *into };
    let most = (0..size).map(|part| pieces(problem, size, part).len()).max().unwrap_or(1);
    for piece in 0..most {
        Lane { problem, team, aside, piece }.build(builder);
    }
}

fn pieces(problem: &Allreduce, size: usize, part: usize) -> Vec<Range<i64>> {
    problem.operands.pieces(problem.operands.share(size, part), PIECE)
}

/// One piece of each part: it goes around without waiting for the others.
struct Lane<'a> {
    problem: &'a Allreduce,
    team: &'a Team,
    aside: Spot,
    piece: usize,
}

impl Lane<'_> {
    fn build(&self, builder: &mut Builder) {
        let Allreduce { from, into, operands } = self.problem;
        let (size, me) = (self.team.size(), self.team.me());
        let (before, behind) = (self.team.party((me + size - 1) % size), self.team.party((me + 1) % size));
        let mut ready: Option<Step> = None;
        // The send of each part that is still to be replaced.
        let mut sent: Vec<Option<Step>> = vec![None; size];
        for round in 0..2 * (size - 1) {
            let (out, coming) = ((me + 2 * size - round) % size, (me + 2 * size - round - 1) % size);
            let slot = (round * MOST_PIECES as usize + self.piece) as u32;
            if let Some(part) = self.part(out) {
                let spot = if round == 0 { *from } else { *into };
                sent[out] = Some(builder.send(behind, slot, operands.part(spot, &part), ready.as_slice()));
            }
            ready = None;
            let Some(part) = self.part(coming) else { continue };
            ready = Some(if round < size - 1 {
                let arrived = builder.recv(before, slot, operands.part(self.aside, &part), &[]);
                self.combine(&part, arrived, builder)
            } else {
                builder.recv(before, slot, operands.part(*into, &part), sent[coming].as_slice())
            });
        }
    }

    /// Our operands on the left of what has arrived; the sum lies in the result.
    fn combine(&self, part: &Range<i64>, arrived: Step, builder: &mut Builder) -> Step {
        let Allreduce { from, into, operands } = self.problem;
        let (ours, theirs) = (operands.at(*from, part.start), operands.at(self.aside, part.start));
        let (left, right) = if from == into { (theirs, ours) } else { (ours, theirs) };
        builder.reduce(left, right, part.end - part.start, &[arrived])
    }

    fn part(&self, part: usize) -> Option<Range<i64>> {
        pieces(self.problem, self.team.size(), part).get(self.piece).cloned()
    }
}
