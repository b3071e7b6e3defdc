//! Recursive halving: a reduction whose result is spread over the ranks (Rabenseifner 2004, after Thakur).
//!
//! The *core* are as many ranks as the largest power of two. Each rank beside it first gives its operands to
//! one of the core. For commutative operators.

use super::bcast::PIECE;
use super::cost::Cost;
use super::operands::{MOST_PIECES, Operands};
use super::place::Spot;
use super::schedule::{Builder, Step};
use super::team::{Reach, Team};
use std::ops::Range;

/// The ranks of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Halving {
    /// Ranks of the core.
    pub core: usize,
    /// Ranks beside it: of the first `2 * beside` ranks, the even ones.
    pub beside: usize,
    /// Ranks that differ in the lowest bit exchange first, and most.
    is_lowest_first: bool,
}

impl Halving {
    /// The core of `size` ranks.
    pub fn of(size: usize) -> Halving {
        let core = if size == 0 { 0 } else { 1 << size.ilog2() };
        Halving { core, beside: size - core, is_lowest_first: false }
    }

    /// The core of a team. The first round exchanges half of the vector, so it goes between ranks of a node
    /// where it can: what leaves a node then is as much as one rank has, not as much as all of them have.
    pub fn of_team(team: &Team) -> Halving {
        let halving = Halving::of(team.size());
        let [lowest, highest] = [1, halving.core / 2].map(|bit| team.leaving(Reach::Flip(bit)));
        Halving { is_lowest_first: lowest < highest, ..halving }
    }

    /// The bit in which partners of a round differ; the first round has number 1.
    fn bit(self, round: u32) -> usize {
        if self.is_lowest_first { 1 << (round - 1) } else { self.core >> round }
    }

    /// Converts between a number in the core and its exchange order: reverses the bits if lowest is first.
    fn turned(self, place: usize) -> usize {
        match self.is_lowest_first {
            true => place.reverse_bits() >> (usize::BITS - self.core.ilog2()),
            false => place,
        }
    }

    /// The number of a rank in the core; none if it is beside.
    pub fn place(self, rank: usize) -> Option<usize> {
        let place = match rank.checked_sub(2 * self.beside) {
            Some(above) => Some(self.beside + above),
            None => (rank % 2 == 1).then_some(rank / 2),
        };
        place.map(|place| self.turned(place))
    }

    /// The rank that has a number in the core.
    pub fn rank(self, place: usize) -> usize {
        let place = self.turned(place);
        if place < self.beside { 2 * place + 1 } else { place + self.beside }
    }

    /// The elements of the result that a rank has after the halving; none if it is beside.
    pub fn part_of(self, operands: &Operands, rank: usize) -> Option<Range<i64>> {
        self.place(rank).map(|place| operands.share(self.core, place))
    }

    /// Adds the halving to a schedule. `from` are our operands, `sum` gets our part of the result, and is
    /// used as memory. They may be the same.
    pub fn build(
        operands: &Operands,
        (from, sum): (Spot, Spot),
        team: &Team,
        builder: &mut Builder,
    ) -> Halving {
        let halving = Halving::of_team(team);
        let me = team.me();
        let Some(place) = halving.place(me) else {
            builder.send(team.party(me + 1), 0, operands.place(from), &[]);
            return halving;
        };
        if halving.core == 1 && from != sum {
            builder.copy(operands.place(from), operands.place(sum), &[]);
        }
        let scratch = builder.scratch_elements(operands.count, operands.operator.datatype());
        // What we have so far is in `source`; it moves to `sum` part by part.
        let mut source = from;
        let mut done: Option<Step> = None;
        if me < 2 * halving.beside {
            let into = if from == sum { scratch } else { sum };
            let arrived = builder.recv(team.party(me - 1), 0, operands.place(into), &[]);
            let (left, right) = if from == sum { (into, from) } else { (from, into) };
            done = Some(builder.reduce(left, right, operands.count, &[arrived]));
            source = sum;
        }
        let mut held = 0..halving.core;
        while held.len() > 1 {
            let middle = held.start + held.len() / 2;
            let bit = held.len() / 2;
            let (low, high) = (held.start..middle, middle..held.end);
            let (kept, given) = if place & bit == 0 { (low, high) } else { (high, low) };
            let elements = |places: &Range<usize>| halving.elements(operands, places);
            let exchange = Exchange {
                partner: team.party(halving.rank(place ^ bit)),
                slot: 1 + bit.ilog2() * MOST_PIECES as u32,
                kept: elements(&kept),
                given: elements(&given),
            };
            done = Some(exchange.build(operands, (source, sum, scratch), done, builder));
            source = sum;
            held = kept;
        }
        halving
    }

    /// The bit in which partners differ in each round of the halving, and the bytes that each sends of `len`.
    pub fn rounds(self, len: u64) -> impl Iterator<Item = (usize, u64)> {
        (1..=self.core.ilog2()).map(move |round| (self.bit(round), len >> round))
    }

    /// The elements that belong to several numbers of the core.
    pub fn elements(self, operands: &Operands, places: &Range<usize>) -> Range<i64> {
        operands.share(self.core, places.start).start..operands.share(self.core, places.end - 1).end
    }
}

/// One round: half of what we have goes to the partner, the other half is combined with the partner's.
struct Exchange {
    partner: u32,
    slot: u32,
    kept: Range<i64>,
    given: Range<i64>,
}

impl Exchange {
    /// In pieces, so that one is combined while the next one arrives.
    fn build(
        &self,
        operands: &Operands,
        (source, sum, scratch): (Spot, Spot, Spot),
        before: Option<Step>,
        builder: &mut Builder,
    ) -> Step {
        let after = before.as_slice();
        // Arriving operands may go straight into the result if our operands lie elsewhere.
        let into = if source == sum { scratch } else { sum };
        let mut ends = Vec::new();
        let kept = operands.pieces(self.kept.clone(), PIECE);
        let arrivals: Vec<Step> = (self.slot..)
            .zip(&kept)
            .map(|(slot, piece)| builder.recv(self.partner, slot, operands.part(into, piece), after))
            .collect();
        for (slot, piece) in (self.slot..).zip(operands.pieces(self.given.clone(), PIECE)) {
            ends.push(builder.send(self.partner, slot, operands.part(source, &piece), after));
        }
        for (piece, arrived) in kept.iter().zip(arrivals) {
            let (ours, theirs) = (operands.at(source, piece.start), operands.at(into, piece.start));
            let (left, right) = if source == sum { (theirs, ours) } else { (ours, theirs) };
            ends.push(builder.reduce(left, right, piece.end - piece.start, &[arrived]));
        }
        builder.join(&ends)
    }
}

/// Predicted nanoseconds of the halving.
pub fn cost(operands: &Operands, team: &Team, cost: &Cost) -> f64 {
    let (halving, len) = (Halving::of_team(team), operands.len());
    let fold = if halving.beside > 0 { cost.pass(team, len) + cost.reduce(team, len) } else { 0.0 };
    let step = |(bit, len): (usize, u64)| cost.exchange(team, Reach::Flip(bit), len) + cost.reduce(team, len);
    fold + halving.rounds(len).map(step).sum::<f64>()
}
