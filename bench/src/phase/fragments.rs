//! Messages that the program cuts (P5 section 5.2), in a pattern.

use super::pattern::{Pattern, Step};

/// The pattern with sends that are longer than a fragment cut, and with a receive for each piece.
pub(super) fn cut(pattern: &Pattern, fragment: u64) -> Pattern {
    let rank = |to: usize| {
        let mut taken = vec![0; pattern.ranks.len()];
        let mut steps = Vec::new();
        // Receives that the receive of the latest message has become.
        let mut receives = 1;
        for step in &pattern.ranks[to] {
            match *step {
                Step::Recv(from) => {
                    let len = lengths(pattern, from, to).nth(taken[from]).unwrap_or(0);
                    taken[from] += 1;
                    receives = len.div_ceil(fragment).max(1);
                    steps.extend((0..receives).map(|_| Step::Recv(from)));
                }
                // The call that posted the receive is made for each fragment.
                Step::Call(ns) => {
                    steps.push(Step::Call(ns * receives));
                    receives = 1;
                }
                Step::Send { to, len, blocks, .. } if len > fragment => {
                    steps.extend((0..len.div_ceil(fragment)).map(|index| {
                        let len = fragment.min(len - index * fragment);
                        Step::Send { to, len, blocks, way: None, carried: None }
                    }));
                }
                step => {
                    steps.push(step);
                    receives = 1;
                }
            }
        }
        steps
    };
    Pattern { ranks: (0..pattern.ranks.len()).map(rank).collect() }
}

/// The lengths of the messages from one rank to another, in their order.
fn lengths(pattern: &Pattern, from: usize, to: usize) -> impl Iterator<Item = u64> + '_ {
    pattern.ranks[from].iter().filter_map(move |step| match *step {
        Step::Send { to: other, len, .. } if other == to => Some(len),
        _ => None,
    })
}
