//! Reduce along a chain, in pieces: each rank combines one piece while the next one arrives.
//!
//! Takes (n - 2 + pieces) times what a piece takes: best for long vectors and few ranks.

use super::{PIECE, Reduce};
use crate::algorithm::schedule::{Builder, Step};
use crate::algorithm::team::Team;

/// The chain ends at the root; the rank before it on the chain is the one behind it, so that what arrives
/// is on the right.
pub(super) fn build(problem: &Reduce, team: &Team, builder: &mut Builder) {
    let (size, root, operands) = (team.size(), problem.root, &problem.operands);
    let place = (team.me() + size - root) % size;
    let party = |place: usize| team.party((place + root) % size);
    let pieces = operands.pieces(0..operands.count, PIECE);
    let is_last = place + 1 == size;
    let sum = if is_last { problem.from } else { problem.result(builder) };
    let mut sums: Vec<Step> = Vec::new();
    if !is_last {
        for (slot, piece) in (0..).zip(&pieces) {
            let arrived = builder.recv(party(place + 1), slot, operands.part(sum, piece), &[]);
            let (from, into) = (operands.at(problem.from, piece.start), operands.at(sum, piece.start));
            sums.push(builder.reduce(from, into, piece.end - piece.start, &[arrived]));
        }
    }
    if place > 0 {
        for (slot, piece) in (0..).zip(&pieces) {
            let after: Vec<Step> = sums.get(slot as usize).copied().into_iter().collect();
            builder.send(party(place - 1), slot, operands.part(sum, piece), &after);
        }
    } else {
        problem.deliver(sum, builder);
    }
}
