//! Broadcast of long messages: scatter along a binomial tree, then a ring collects the parts (van de Geijn).
//!
//! The root sends little more than the data once, whatever the number of ranks.

use super::Bcast;
use crate::algorithm::choice::Problem;
use crate::algorithm::cost::Cost;
use crate::algorithm::place::Place;
use crate::algorithm::schedule::{Builder, Step};
use crate::algorithm::team::Team;
use crate::algorithm::tree::Binomial;

pub(super) fn cost(problem: &Bcast, team: &Team, cost: &Cost) -> f64 {
    let part = problem.len().div_ceil(team.size() as u64);
    let scatter = cost.tree(team, problem.root, |round| part << round);
    scatter + (team.size() - 1) as f64 * cost.ring(team, part)
}

pub(super) fn build(problem: &Bcast, team: &Team, builder: &mut Builder) {
    let (size, root, len) = (team.size(), problem.root, problem.len());
    let place = (team.me() + size - root) % size;
    let party = |place: usize| team.party((place + root) % size);
    let row = match place {
        0 => builder.gathered(&problem.data),
        _ if problem.data.is_contiguous() => problem.data.clone(),
        _ => Place::bytes(builder.scratch(len), len),
    };
    builder.round();
    let tree = Binomial::of(size, place);
    let subtree = |place: usize, ranks: usize| bound(len, size, place)..bound(len, size, place + ranks);
    let own = subtree(place, tree.subtree);
    let scattered = tree.parent.map(|parent| builder.recv(party(parent), 0, row.slice(own), &[]));
    for &(child, ranks) in tree.children.iter().rev() {
        builder.send(party(child), 0, row.slice(subtree(child, ranks)), scattered.as_slice());
    }
    collect(&row, (place, size), party, scattered, builder);
    if place > 0 && !problem.data.is_contiguous() {
        builder.round();
        builder.copy(row, problem.data.clone(), &[]);
    }
}

/// The ring: each part goes around, except to those that have it from the scatter.
fn collect(
    row: &Place,
    (place, size): (usize, usize),
    party: impl Fn(usize) -> u32,
    scattered: Option<Step>,
    builder: &mut Builder,
) {
    let part = |index: usize| bound(row.len(), size, index)..bound(row.len(), size, index + 1);
    let has_before =
        |rank: usize, part: usize| (rank..rank + Binomial::of(size, rank).subtree).contains(&part);
    let (before, behind) = ((place + size - 1) % size, (place + 1) % size);
    let mut arrived = scattered;
    for round in 1..size {
        let (sent, received) = ((place + size + 1 - round) % size, (place + size - round) % size);
        let after = if has_before(place, sent) { scattered } else { arrived };
        if !has_before(behind, sent) {
            builder.send(party(behind), round as u32, row.slice(part(sent)), after.as_slice());
        }
        if !has_before(place, received) {
            arrived = Some(builder.recv(party(before), round as u32, row.slice(part(received)), &[]));
        }
    }
}

/// Where the part of a rank begins.
fn bound(len: u64, size: usize, index: usize) -> u64 {
    // Parts begin at cache lines, if there are so many.
    let lines = len.div_ceil(64);
    (lines * index as u64 / size as u64 * 64).min(len)
}
