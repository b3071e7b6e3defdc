//! Allreduce of long vectors (Rabenseifner 2004): recursive halving, then recursive doubling collects the
//! parts.
//!
//! Each rank sends little more than twice the vector, in 2 log2 n rounds.

use super::Allreduce;
use crate::algorithm::bcast::PIECE;
use crate::algorithm::choice::Problem;
use crate::algorithm::cost::Cost;
use crate::algorithm::halving::{self, Halving};
use crate::algorithm::operands::MOST_PIECES;
use crate::algorithm::schedule::{Builder, Step};
use crate::algorithm::team::{Reach, Team};

pub(super) fn cost(problem: &Allreduce, team: &Team, cost: &Cost) -> f64 {
    let halving = Halving::of_team(team);
    let exchange = |(bit, len): (usize, u64)| cost.exchange(team, Reach::Flip(bit), len);
    let collect: f64 = halving.rounds(problem.len()).map(exchange).sum();
    let back = if halving.beside > 0 { cost.pass(team, problem.len()) } else { 0.0 };
    halving::cost(&problem.operands, team, cost) + collect + back
}

pub(super) fn build(problem: &Allreduce, team: &Team, builder: &mut Builder) {
    let Allreduce { from, into, operands } = problem;
    let me = team.me();
    let halving = builder.stage(1, |b| Halving::build(operands, (*from, *into), team, b));
    let Some(place) = halving.place(me) else {
        builder.recv(team.party(me + 1), 0, operands.place(*into), &[]);
        return;
    };
    let mut done: Option<Step> = None;
    for bit in (0..halving.core.ilog2()).map(|k| 1 << k) {
        let partner = team.party(halving.rank(place ^ bit));
        let held = place & !(bit - 1);
        let wanted = held ^ bit;
        let pieces = |first: usize| operands.pieces(halving.elements(operands, &(first..first + bit)), PIECE);
        let slots = 1 + bit.ilog2() * MOST_PIECES as u32;
        let mut ends = Vec::new();
        for (slot, piece) in (slots..).zip(pieces(wanted)) {
            ends.push(builder.recv(partner, slot, operands.part(*into, &piece), &[]));
        }
        for (slot, piece) in (slots..).zip(pieces(held)) {
            ends.push(builder.send(partner, slot, operands.part(*into, &piece), done.as_slice()));
        }
        done = Some(builder.join(&ends));
    }
    if me < 2 * halving.beside {
        builder.send(team.party(me - 1), 0, operands.place(*into), done.as_slice());
    }
}
