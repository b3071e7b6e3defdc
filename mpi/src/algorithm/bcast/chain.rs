//! Broadcast along a chain, in pieces: each rank passes one piece on while the next one arrives.
//!
//! Takes (n - 2 + pieces) times what a piece takes: best for long messages and few ranks.

use super::{Bcast, PIECE};
use crate::algorithm::choice::Problem;
use crate::algorithm::cost::Cost;
use crate::algorithm::schedule::{Builder, SLOTS, Step};
use crate::algorithm::team::Team;
use std::ops::Range;

pub(super) fn cost(problem: &Bcast, team: &Team, cost: &Cost) -> f64 {
    let pieces = pieces(problem.len()).count();
    let piece = problem.len().div_ceil(pieces.max(1) as u64);
    let hops = team.size().saturating_sub(2) as f64 * cost.hop(team, piece);
    // Sending in pieces takes no less time than sending the whole, which the engine divides by itself.
    hops + cost.exchange_row(team, pieces, piece).max(cost.hop(team, problem.len()))
}

pub(super) fn build(problem: &Bcast, team: &Team, builder: &mut Builder) {
    let (size, root) = (team.size(), problem.root);
    if size == 1 {
        return;
    }
    let place = (team.me() + size - root) % size;
    let party = |place: usize| team.party((place + root) % size);
    let is_root = place == 0;
    let row = match (problem.data.is_contiguous(), is_root) {
        (true, _) => problem.data.clone(),
        (false, true) => builder.gathered(&problem.data),
        (false, false) => {
            crate::algorithm::place::Place::bytes(builder.scratch(problem.len()), problem.len())
        }
    };
    builder.round();
    let mut arrivals: Vec<Step> = Vec::new();
    if !is_root {
        for (slot, piece) in (0..).zip(pieces(problem.len())) {
            arrivals.push(builder.recv(party(place - 1), slot, row.slice(piece), &[]));
        }
    }
    if place + 1 < size {
        for (slot, piece) in (0..).zip(pieces(problem.len())) {
            let after: Vec<Step> = arrivals.get(slot as usize).copied().into_iter().collect();
            builder.send(party(place + 1), slot, row.slice(piece), &after);
        }
    }
    if !is_root && !problem.data.is_contiguous() {
        builder.round();
        builder.copy(row, problem.data.clone(), &[]);
    }
}

/// The pieces of a message, the same on all ranks; at least one.
pub(in crate::algorithm) fn pieces(len: u64) -> impl Iterator<Item = Range<u64>> {
    let piece = PIECE.max(len.div_ceil(u64::from(SLOTS)));
    let count = len.div_ceil(piece).max(1);
    (0..count).map(move |index| index * piece..((index + 1) * piece).min(len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::cost::Curve;
    use crate::algorithm::place::{Buffer, Place, Spot};

    #[test]
    fn pieces_are_not_predicted_to_be_faster_than_the_whole() {
        // Long messages take more for each byte than those of the length of a piece.
        let near = Curve::new([200.0, 400.0, 1200.0, 4000.0, 13e3, 210e3, 1.7e6]);
        let cost_of = Cost { near, ..Cost::default() };
        let data = Place::bytes(Spot::start(Buffer::Send), 1 << 20);
        let team = Team::new(&[0; 2], 0);
        assert!(cost(&Bcast { data, root: 0 }, &team, &cost_of) >= cost_of.hop(&team, 1 << 20));
    }
}
