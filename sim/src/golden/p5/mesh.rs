//! The pattern of miniFE: a brick of hexahedra cut into boxes, and what neighbours send each other before a
//! sparse matrix is multiplied.

use super::phase::Letter;

/// From each edge, the first node of a box and the one after its last.
pub type Box3 = [[usize; 2]; 3];

/// Cuts a brick into `parts` boxes of as many nodes each, always in halves and across the longest edge. The
/// paper's partition (ParMETIS) balances rows and not messages, and so does this: boxes inside the brick have
/// more neighbours than those at its corners.
pub fn boxes(nodes: [usize; 3], parts: usize) -> Vec<Box3> {
    let mut done = Vec::new();
    let mut open = vec![(nodes.map(|count| [0, count]), parts)];
    while let Some((whole, parts)) = open.pop() {
        if parts == 1 {
            done.push(whole);
            continue;
        }
        let width = |edge: usize| whole[edge][1] - whole[edge][0];
        let edge = (0..3).max_by_key(|&edge| width(edge)).unwrap_or(0);
        let first = parts / 2;
        let at = whole[edge][0] + width(edge) * first / parts;
        let (mut left, mut right) = (whole, whole);
        (left[edge][1], right[edge][0]) = (at, at);
        open.extend([(right, parts - first), (left, first)]);
    }
    done
}

/// Bytes of a value of the vector.
pub const VALUE: usize = 8;

/// The messages of an iteration on `parts` hosts: of each pair of neighbours the nodes of the sender that are
/// next to one of the receiver's, a value of eight bytes each. A row has 27 entries, so corners count.
pub fn letters(nodes: [usize; 3], parts: usize) -> Vec<Letter> {
    let boxes = boxes(nodes, parts);
    let mut letters = Vec::new();
    for (from, own) in boxes.iter().enumerate() {
        for (to, other) in boxes.iter().enumerate().filter(|(to, _)| *to != from) {
            let next = (0..3).map(|edge| {
                let start = own[edge][0].max(other[edge][0].saturating_sub(1));
                own[edge][1].min(other[edge][1] + 1).saturating_sub(start)
            });
            let count: usize = next.product();
            if count > 0 {
                letters.push((from, to, count * VALUE));
            }
        }
    }
    letters
}
