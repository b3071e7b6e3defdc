//! Broadcast along a chain or a binary tree, in pieces: each rank passes one on while the next arrives.
//!
//! On a chain all bytes leave each rank once, and the first piece takes n - 1 hops; on a binary tree they
//! leave twice, and it takes log2 n. Short pieces come through sooner, long ones cost less in all: their
//! length is the one that is predicted to be best.

use super::Bcast;
use crate::algorithm::choice::Problem;
use crate::algorithm::cost::Cost;
use crate::algorithm::levels::Links;
use crate::algorithm::place::Place;
use crate::algorithm::schedule::{Builder, SLOTS, Step};
use crate::algorithm::team::Team;
use std::ops::Range;

/// The shape of the tree, the length of pieces, and what they are predicted to take.
pub(super) struct Pipeline {
    arity: usize,
    piece: u64,
    pub(super) cost: f64,
}

/// Lengths of pieces, as powers of two.
const PIECES: Range<u32> = 12..22;

impl Pipeline {
    /// The pipeline of `arity` branches with the best piece length for `len` bytes, equal on all ranks.
    pub(super) fn new(arity: usize, len: u64, (team, cost): (&Team, &Cost)) -> Pipeline {
        let least = len.div_ceil(u64::from(SLOTS));
        let lengths = PIECES.map(|power| 1u64 << power).filter(|&piece| piece >= least && piece < len);
        let with = |piece: u64| Pipeline { arity, piece, cost: predicted(arity, (len, piece), team, cost) };
        let whole = with(len.max(1));
        lengths.map(with).fold(whole, |best, next| if next.cost < best.cost { next } else { best })
    }

    pub(super) fn build(&self, problem: &Bcast, team: &Team, builder: &mut Builder) {
        if team.size() == 1 {
            return;
        }
        relay(problem, &Links::of_tree(team, problem.root, self.arity), self.piece, builder);
    }
}

/// Passes pieces on to the children, each as soon as it has come.
pub(super) fn relay(problem: &Bcast, links: &Links, piece: u64, builder: &mut Builder) {
    let row = match (problem.data.is_contiguous(), links.parent) {
        (true, _) => problem.data.clone(),
        (false, None) => builder.gathered(&problem.data),
        (false, Some(_)) => Place::bytes(builder.scratch(problem.len()), problem.len()),
    };
    builder.round();
    let mut arrivals: Vec<Step> = Vec::new();
    if let Some(parent) = links.parent {
        for (slot, piece) in (0..).zip(pieces(problem.len(), piece)) {
            arrivals.push(builder.recv(parent, slot, row.slice(piece), &[]));
        }
    }
    for (slot, piece) in (0..).zip(pieces(problem.len(), piece)) {
        let after: Vec<Step> = arrivals.get(slot as usize).copied().into_iter().collect();
        for &child in &links.children {
            builder.send(child, slot, row.slice(piece.clone()), &after);
        }
    }
    if links.parent.is_some() && !problem.data.is_contiguous() {
        builder.round();
        builder.copy(row, problem.data.clone(), &[]);
    }
}

/// The pieces of a message, the same on all ranks; at least one.
fn pieces(len: u64, piece: u64) -> impl Iterator<Item = Range<u64>> {
    let count = len.div_ceil(piece).max(1);
    (0..count).map(move |index| index * piece..((index + 1) * piece).min(len))
}

fn predicted(arity: usize, (len, piece): (u64, u64), team: &Team, cost: &Cost) -> f64 {
    let count = len.div_ceil(piece).max(1);
    let depth = if arity == 1 { team.size() - 1 } else { team.size().max(1).ilog2() as usize };
    let hop = if arity == 1 { cost.pass(team, piece) } else { cost.hop(team, piece) };
    // The second child gets each piece behind the first.
    let second = (arity - 1) as f64 * cost.stream(team, [0, 1], (2, piece));
    // Sending in pieces takes no less time than sending the whole, which the engine divides by itself.
    let first = depth.saturating_sub(1) as f64 * (hop + second);
    let streamed = cost.hop(team, piece) + second + cost.stream(team, [1, arity], (count, piece));
    (first + streamed.max(cost.hop(team, len))).max(cost.through_memory(team, arity, len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::cost::Curve;

    #[test]
    fn pieces_are_not_predicted_to_be_faster_than_the_whole() {
        // Long messages take more for each byte than those of the length of a piece.
        let near = Curve::new([200.0, 400.0, 1200.0, 4000.0, 13e3, 210e3, 1.7e6]);
        let cost = Cost { near, ..Cost::default() };
        let team = Team::new(&[0; 2], 0);
        assert!(Pipeline::new(1, 1 << 20, (&team, &cost)).cost >= cost.hop(&team, 1 << 20));
    }

    #[test]
    fn pieces_are_short_where_many_pass_them_on() {
        let cost = Cost::default();
        let piece = |ranks: u32| {
            let nodes: Vec<u32> = (0..ranks).collect();
            Pipeline::new(1, 4 << 20, (&Team::new(&nodes, 0), &cost)).piece
        };
        assert!(piece(1024) < piece(4), "{} {}", piece(1024), piece(4));
    }
}
