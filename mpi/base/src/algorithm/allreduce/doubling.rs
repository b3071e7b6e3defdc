//! Allreduce by recursive doubling: round k exchanges whole vectors with the rank that differs in bit k.
//!
//! The fewest rounds, ceil(log2 n), or one more on each side if n is no power of two. Always combines rows of
//! ranks in order, so it suits operators that are not commutative.

use super::Allreduce;
use crate::algorithm::choice::Problem;
use crate::algorithm::cost::Cost;
use crate::algorithm::halving::Halving;
use crate::algorithm::place::Spot;
use crate::algorithm::schedule::{Builder, Step};
use crate::algorithm::team::{Reach, Team};

/// Slots of the rounds begin here; before them, ranks beside the core give their operands and get the result.
const ROUNDS: u32 = 2;

pub(super) fn cost(problem: &Allreduce, team: &Team, cost: &Cost) -> f64 {
    let Halving { core, beside, .. } = Halving::of(team.size());
    let len = problem.len();
    let fold = if beside > 0 { 2.0 * cost.pass(team, len) + cost.reduce(team, len) } else { 0.0 };
    let exchange = |k: u32| cost.exchange(team, Reach::Flip(1 << k), len) + cost.reduce(team, len);
    fold + (0..core.ilog2()).map(exchange).sum::<f64>()
}

pub(super) fn build(problem: &Allreduce, team: &Team, builder: &mut Builder) {
    let Allreduce { from, into, operands } = problem;
    let halving = Halving::of(team.size());
    let me = team.me();
    let Some(place) = halving.place(me) else {
        let sent = builder.send(team.party(me + 1), 0, operands.place(*from), &[]);
        builder.recv(team.party(me + 1), 1, operands.place(*into), &[sent]);
        return;
    };
    let mut sum = Sum::begin(problem, team, builder);
    let folds = me < 2 * halving.beside;
    if folds {
        sum.combine(me - 1, 0, false, builder);
    }
    for round in 0..halving.core.ilog2() {
        sum.combine(halving.rank(place ^ (1 << round)), ROUNDS + round, true, builder);
    }
    let result = sum.finish(builder);
    if folds {
        builder.send(team.party(me - 1), 1, operands.place(*into), result.as_slice());
    }
}

/// The operands combined so far, and their place.
struct Sum<'a> {
    problem: &'a Allreduce,
    team: &'a Team,
    at: Spot,
    /// Other memory for a vector.
    spare: Spot,
    done: Option<Step>,
}

impl<'a> Sum<'a> {
    fn begin(problem: &'a Allreduce, team: &'a Team, builder: &mut Builder) -> Self {
        let Allreduce { from, into, operands } = problem;
        let spare = problem.scratch(builder);
        let mut sum = Sum { problem, team, at: *from, spare, done: None };
        // Operands from the left are combined into ours, so ours must lie in memory that may change.
        if from != into && (!problem.is_commutative() || team.size() == 1) {
            sum.done = Some(builder.copy(operands.place(*from), operands.place(*into), &[]));
            sum.at = *into;
        }
        sum
    }

    /// Combines ours with the partner's operands; in an exchange the partner receives ours.
    fn combine(&mut self, partner: usize, slot: u32, is_exchange: bool, builder: &mut Builder) {
        let Allreduce { from, into, operands } = self.problem;
        let is_ours = self.at != *from || from == into;
        let theirs = if is_ours { self.spare } else { *into };
        let after = self.done;
        let party = self.team.party(partner);
        let mut ends = vec![builder.recv(party, slot, operands.place(theirs), after.as_slice())];
        if is_exchange {
            ends.push(builder.send(party, slot, operands.place(self.at), after.as_slice()));
        }
        let stays = is_ours && (self.problem.is_commutative() || partner < self.team.me());
        if stays {
            self.done = Some(builder.reduce(theirs, self.at, operands.count, &ends));
        } else {
            self.done = Some(builder.reduce(self.at, theirs, operands.count, &ends));
            (self.at, self.spare) = (theirs, if is_ours { self.at } else { self.spare });
        }
    }

    /// Puts the result where it belongs.
    fn finish(self, builder: &mut Builder) -> Option<Step> {
        let Allreduce { into, operands, .. } = self.problem;
        if self.at == *into {
            return self.done;
        }
        Some(builder.copy(operands.place(self.at), operands.place(*into), self.done.as_slice()))
    }
}
