//! In atomic mode there is one order of whole accesses in which each read finds what was written last before.
//!
//! Which write a read has found at a place is known. What follows from it and from the times of accesses is
//! drawn as a graph of what precedes what: the write precedes the read; another write to that place that
//! precedes the read precedes the write, too; one that follows the write follows the read. A circle means
//! that there is no order.

use super::{Book, Done, Objection, What, Writer};
use nmad_file::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Which accesses are known to precede which: a row of bits for each.
struct Graph {
    rows: Vec<Vec<u64>>,
}

impl Graph {
    fn new(count: usize) -> Graph {
        Graph { rows: vec![vec![0; count.div_ceil(64)]; count] }
    }

    fn has(&self, from: usize, to: usize) -> bool {
        self.rows[from][to / 64] >> (to % 64) & 1 != 0
    }

    /// Adds that one precedes another, with all that follows; false: it was known.
    fn add(&mut self, from: usize, to: usize) -> bool {
        if self.has(from, to) {
            return false;
        }
        let mut reached = self.rows[to].clone();
        reached[to / 64] |= 1 << (to % 64);
        for place in 0..self.rows.len() {
            if place == from || self.has(place, from) {
                self.rows[place].iter_mut().zip(&reached).for_each(|(row, more)| *row |= more);
            }
        }
        true
    }

    fn circle(&self) -> Option<usize> {
        (0..self.rows.len()).find(|&place| self.has(place, place))
    }
}

/// A read that has found a write at a place to which others have written: numbers of the phase, where 0 is
/// the state at its begin.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    read: usize,
    write: usize,
    others: Vec<usize>,
    /// The place.
    at: u64,
}

/// Judges all phases of a file in atomic mode.
pub(super) fn check(book: &Book) -> Result<(), Objection> {
    let modes: BTreeSet<usize> = book.accesses.iter().filter_map(|done| done.mode).collect();
    modes.into_iter().try_for_each(|mode| phase(book, mode))
}

fn phase(book: &Book, mode: usize) -> Result<(), Objection> {
    // After a death there are accesses of which some parts are lost.
    let died = book.died.values().min().copied();
    let is_inside = |done: &Done| done.mode == Some(mode) && died.is_none_or(|died| done.begin < died);
    let inside = book.accesses.iter().enumerate().filter(|(_, done)| is_inside(done));
    let inside: Vec<(usize, &Done)> = inside.collect();
    // What a write has left that was refused in part is not known; and a length that changes is no access.
    let last = book
        .together
        .keys()
        .copied()
        .find(|step| *step > mode && matches!(book.together[step].what, What::Atomic(_)));
    let steps = book.together.range(mode..last.unwrap_or(usize::MAX));
    let is_plain = steps.into_iter().all(|(_, step)| !matches!(step.what, What::Size(_)));
    if !is_plain || book.together.values().any(|step| step.refused.1 > 0) {
        return Ok(());
    }
    order(&inside, &found(book, &inside)?)
}

/// What the reads of a phase have found.
fn found(book: &Book, inside: &[(usize, &Done)]) -> Result<BTreeSet<Found>, Objection> {
    let node: BTreeMap<usize, usize> =
        inside.iter().enumerate().map(|(node, (place, _))| (*place, node + 1)).collect();
    let mut all = BTreeSet::new();
    let died = book.died.values().min().copied();
    let is_whole = |done: &Done| died.is_none_or(|died| done.end.is_some_and(|end| end < died));
    let reads = inside.iter().filter(|(_, done)| done.access.kind == Kind::Read && is_whole(done));
    for (place, read) in reads {
        book.runs(read.access.pieces.list(), &read.found, |at, number| {
            let number = number.and_then(|number| book.writes.get(&number));
            let write = number.and_then(|place| node.get(place)).copied().unwrap_or(0);
            let those = book.writers(at).into_iter().filter_map(|writer| match writer {
                Writer::Write(place) => node.get(&place).copied(),
                _ => None,
            });
            let others: Vec<usize> = those.filter(|other| *other != write).collect();
            all.insert(Found { read: node[place], write, others, at });
            Ok(())
        })?;
    }
    Ok(all)
}

/// Looks for an order.
fn order(inside: &[(usize, &Done)], all: &BTreeSet<Found>) -> Result<(), Objection> {
    let mut graph = Graph::new(inside.len() + 1);
    for (one, (_, first)) in inside.iter().enumerate() {
        graph.add(0, one + 1);
        for (two, (_, second)) in inside.iter().enumerate() {
            if first.end.is_some_and(|end| end < second.begin) {
                graph.add(one + 1, two + 1);
            }
        }
    }
    loop {
        let mut has_grown = false;
        for Found { read, write, others, at } in all {
            has_grown |= graph.add(*write, *read);
            for other in others {
                if graph.has(*write, *other) && graph.has(*other, *read) {
                    let number = |node: usize| match node {
                        0 => "what was there before".into(),
                        node => format!("what task {} has written", inside[node - 1].1.number),
                    };
                    return Err(format!(
                        "in atomic mode task {} finds at byte {at} {}, and {} follows that and \
                         precedes the read",
                        inside[*read - 1].1.number,
                        number(*write),
                        number(*other)
                    ));
                }
                if graph.has(*other, *read) {
                    has_grown |= graph.add(*other, *write);
                }
                if graph.has(*write, *other) {
                    has_grown |= graph.add(*read, *other);
                }
            }
        }
        if let Some(node) = graph.circle() {
            let circle = (1..=inside.len()).filter(|&other| graph.has(node, other) && graph.has(other, node));
            let numbers: Vec<usize> = circle.map(|node| inside[node - 1].1.number).collect();
            return Err(format!("in atomic mode there is no order of the tasks {numbers:?}"));
        }
        if !has_grown {
            return Ok(());
        }
    }
}
