//! Broadcast along a tree: each rank passes all of the data on.

use super::Bcast;
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::Team;
use crate::algorithm::tree::Binomial;

/// The binomial tree: ceil(log2 n) hops.
pub(super) fn binomial(problem: &Bcast, team: &Team, builder: &mut Builder) {
    let (size, root) = (team.size(), problem.root);
    let tree = Binomial::of(size, (team.me() + size - root) % size);
    let party = |rank: usize| team.party((rank + root) % size);
    let arrived = tree.parent.map(|parent| builder.recv(party(parent), 0, problem.data.clone(), &[]));
    // The largest subtree first.
    for &(child, _) in tree.children.iter().rev() {
        builder.send(party(child), 0, problem.data.clone(), arrived.as_slice());
    }
}

/// The root sends to all: one hop.
pub(super) fn flat(problem: &Bcast, team: &Team, builder: &mut Builder) {
    if team.me() != problem.root {
        builder.recv(team.party(problem.root), 0, problem.data.clone(), &[]);
        return;
    }
    for rank in team.others() {
        builder.send(team.party(rank), 0, problem.data.clone(), &[]);
    }
}
