//! Reduce along a chain or a binary tree, in pieces: each rank combines one piece while the next one arrives.
//!
//! On a chain each rank combines all bytes once, and the last piece takes n - 1 hops; on a binary tree twice,
//! and it takes log2 n. The length of pieces is the one that is predicted to be best.

use super::Reduce;
use crate::algorithm::cost::Cost;
use crate::algorithm::levels::Links;
use crate::algorithm::operands::MOST_PIECES;
use crate::algorithm::schedule::{Builder, Step};
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
        let least = len.div_ceil(MOST_PIECES);
        let lengths = PIECES.map(|power| 1u64 << power).chain([least]);
        let fitting = lengths.filter(|&piece| piece >= least.max(1 << PIECES.start) && piece < len);
        let with = |piece: u64| Pipeline { arity, piece, cost: predicted(arity, (len, piece), team, cost) };
        let whole = with(len.max(1));
        fitting.map(with).fold(whole, |best, next| if next.cost < best.cost { next } else { best })
    }

    /// The tree ends at the root. On a chain each rank receives from the next higher one, so that an
    /// arriving operand is the right one.
    pub(super) fn build(&self, problem: &Reduce, team: &Team, builder: &mut Builder) {
        relay(problem, &Links::of_tree(team, problem.root, self.arity), self.piece, builder);
    }
}

/// Combines pieces of the children with ours, and passes each on as soon as it is complete.
pub(super) fn relay(problem: &Reduce, links: &Links, piece: u64, builder: &mut Builder) {
    let operands = &problem.operands;
    let pieces = operands.pieces(0..operands.count, piece);
    let sum = if links.children.is_empty() { problem.from } else { problem.result(builder) };
    let mut sums: Vec<Option<Step>> = vec![None; pieces.len()];
    for (number, &child) in links.children.iter().enumerate() {
        // The operands of the first child become the sum.
        let theirs = if number == 0 { sum } else { problem.scratch(builder) };
        let from = if number == 0 { problem.from } else { theirs };
        for (slot, piece) in pieces.iter().enumerate() {
            let place = operands.part(theirs, piece);
            let arrived = builder.recv(child, slot as u32, place, &[]);
            let after: Vec<Step> = sums[slot].into_iter().chain([arrived]).collect();
            let (from, into) = (operands.at(from, piece.start), operands.at(sum, piece.start));
            sums[slot] = Some(builder.reduce(from, into, piece.end - piece.start, &after));
        }
    }
    let Some(parent) = links.parent else { return problem.deliver(sum, builder) };
    for (slot, piece) in pieces.iter().enumerate() {
        builder.send(parent, slot as u32, operands.part(sum, piece), sums[slot].as_slice());
    }
}

fn predicted(arity: usize, (len, piece): (u64, u64), team: &Team, cost: &Cost) -> f64 {
    let count = len.div_ceil(piece).clamp(1, MOST_PIECES);
    let depth = if arity == 1 { team.size() - 1 } else { team.size().max(1).ilog2() as usize };
    let hop = if arity == 1 { cost.pass(team, piece) } else { cost.hop(team, piece) };
    // Each rank receives a piece from each of its children, combines them, and sends one.
    let branches = arity as f64;
    let second = (branches - 1.0) * cost.stream(team, [1, 0], (2, piece));
    let step = hop + branches * cost.reduce_alone(piece) + second;
    let streamed = depth as f64 * step + cost.reducing_stream(team, [arity, 1], (count, piece));
    // Each piece is copied and reduced.
    streamed.max(cost.through_memory(team, arity, 2 * len))
}
