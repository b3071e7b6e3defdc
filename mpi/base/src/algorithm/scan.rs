//! Scan and exscan: each rank gets what the ranks up to it, or before it, combine to.

use super::bcast::{Bcast, PIECE};
use super::choice::{Algorithm, Combines, Context, Direct, Family, Problem, TWO_LEVEL};
use super::cost::{Cost, log2_ceil};
use super::operands::Operands;
use super::place::Spot;
use super::schedule::{Builder, Step};
use super::team::{Reach, Team};

/// A scan in a team.
#[derive(Debug)]
pub struct Scan {
    /// Our operands; they are not changed, unless `into` is the same.
    pub from: Spot,
    /// Where the result goes. Rank 0 has none of an exclusive scan: its memory stays as it is.
    pub into: Spot,
    /// The vectors.
    pub operands: Operands,
    /// Our own operands do not count.
    pub is_exclusive: bool,
}

impl Scan {
    fn scratch(&self, builder: &mut Builder) -> Spot {
        builder.scratch_elements(self.operands.count, self.operands.operator.datatype())
    }

    /// Our operands are where the result goes.
    fn is_in_place(&self) -> bool {
        self.from == self.into
    }

    fn copy(&self, from: Spot, into: Spot, after: &[Step], builder: &mut Builder) -> Step {
        builder.copy(self.operands.place(from), self.operands.place(into), after)
    }
}

impl Combines for Scan {
    fn operands(&self) -> &Operands {
        &self.operands
    }
}

impl Problem for Scan {
    const FAMILY: Family = Family::Scan;

    fn len(&self) -> u64 {
        self.operands.len()
    }

    fn direct() -> &'static [Direct<Self>] {
        const { &[Direct::ON_BOARD] }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "recursive_doubling",
                    fits: |_, _| true,
                    cost: |p, team, cost| {
                        let combined = 2.0 * cost.reduce(team, p.len());
                        let round = |k: u32| cost.exchange(team, Reach::Flip(1 << k), p.len()) + combined;
                        (0..log2_ceil(team.size())).map(round).sum()
                    },
                    build: |p, team, _, builder| doubling(p, team, builder),
                },
                Algorithm {
                    name: "chain",
                    fits: |_, team| team.size() > 2,
                    cost: |p, team, cost| {
                        let pieces = p.len().div_ceil(PIECE).clamp(1, super::operands::MOST_PIECES);
                        let piece = p.len() / pieces;
                        // The first piece goes from rank to rank, one of which works at a time; with the
                        // others all of them do.
                        let first = cost.pass(team, piece) + cost.reduce_alone(piece);
                        let stream = cost.reducing_stream(team, [1, 1], (pieces, piece));
                        let streamed = (team.size() - 1) as f64 * first + stream;
                        // Our operands are copied, and what arrives is copied and reduced.
                        streamed.max(cost.through_memory(team, 1, 3 * p.len()))
                    },
                    build: |p, team, _, builder| chain(p, team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |_, team| team.has_levels() && team.is_ordered_by_group(),
                    cost: two_level_cost,
                    build: two_level,
                },
            ]
        }
    }
}

/// From rank to rank, in pieces: each rank combines one piece while the next one arrives. The least work in
/// all.
fn chain(problem: &Scan, team: &Team, builder: &mut Builder) {
    let (me, operands) = (team.me(), &problem.operands);
    let passes_on = me + 1 < team.size();
    let Scan { from, into, is_exclusive, .. } = *problem;
    let lands = is_exclusive && !problem.is_in_place();
    let before = if lands || me == 0 { into } else { problem.scratch(builder) };
    // What all ranks up to ours combine to.
    let up_to = match is_exclusive {
        true if me == 0 => from,
        true => problem.scratch(builder),
        false => into,
    };
    for (slot, piece) in (0..).zip(operands.pieces(0..operands.count, PIECE)) {
        let part = |spot: Spot| operands.part(spot, &piece);
        let mut done: Vec<Step> = Vec::new();
        if up_to != from && (passes_on || !is_exclusive) {
            done.push(builder.copy(part(from), part(up_to), &[]));
        }
        if me > 0 {
            let arrived = builder.recv(team.party(me - 1), slot, part(before), &[]);
            let after: Vec<Step> = done.drain(..).chain([arrived]).collect();
            if is_exclusive && !lands {
                builder.copy(part(before), part(into), &after);
            }
            if passes_on || !is_exclusive {
                let (left, right) = (operands.at(before, piece.start), operands.at(up_to, piece.start));
                done.push(builder.reduce(left, right, piece.end - piece.start, &after));
            }
        }
        if passes_on {
            builder.send(team.party(me + 1), slot, part(up_to), &done);
        }
    }
}

/// The rounds of a rank, and its partner in each: the rank that differs in this bit.
fn rounds(rank: usize, size: usize) -> impl Iterator<Item = (u32, usize)> {
    let bits =
        (0..).take_while(move |round| 1 << round < size).map(move |round| (round, rank ^ (1 << round)));
    bits.filter(move |&(_, partner)| partner < size)
}

/// Whether what a rank has after a round counts later: it goes to a rank behind it, or to one before it that
/// needs it.
fn is_needed(rank: usize, round: u32, size: usize) -> bool {
    let later = rounds(rank, size).filter(|&(other, _)| other > round);
    later.into_iter().any(|(later, partner)| partner > rank || is_needed(partner, later, size))
}

/// Operands from the left count for our result; those from the right only for what we send later.
fn doubling(problem: &Scan, team: &Team, builder: &mut Builder) {
    let (size, me, operands) = (team.size(), team.me(), &problem.operands);
    let Scan { from, into, is_exclusive, .. } = *problem;
    // What those combine to that we have heard of. It begins with our operands, which are not changed.
    let mut all = from;
    if problem.is_in_place() {
        all = problem.scratch(builder);
        problem.copy(from, all, &[], builder);
    } else if !is_exclusive {
        problem.copy(from, into, &[], builder);
    }
    let mut has_result = !is_exclusive;
    for (round, partner) in rounds(me, size) {
        builder.round();
        let goes_on = is_needed(me, round, size);
        let sent = (partner > me || is_needed(partner, round, size))
            .then(|| builder.send(team.party(partner), round, operands.place(all), &[]));
        if partner > me && !goes_on {
            continue;
        }
        let lands = partner < me && !has_result && !problem.is_in_place();
        let theirs = if lands { into } else { problem.scratch(builder) };
        let arrived = builder.recv(team.party(partner), round, operands.place(theirs), &[]);
        if partner > me {
            builder.reduce(all, theirs, operands.count, &[arrived]);
            all = theirs;
            continue;
        }
        if has_result {
            builder.reduce(theirs, into, operands.count, &[arrived]);
        } else if !lands {
            problem.copy(theirs, into, &[arrived], builder);
        }
        has_result = true;
        if goes_on {
            let mut after: Vec<Step> = sent.into_iter().chain([arrived]).collect();
            if all == from {
                all = problem.scratch(builder);
                after.push(problem.copy(from, all, &[], builder));
            }
            builder.reduce(theirs, all, operands.count, &after);
        }
    }
}

fn two_level_cost(problem: &Scan, team: &Team, cost: &Cost) -> f64 {
    let [local, leaders] = team.shapes();
    let told = Bcast { data: problem.operands.place(problem.from), root: 0 };
    let combined = 2.0 * cost.reduce(team, problem.len()) + cost.copy(team, problem.len());
    problem.inner_cost(local, cost)
        + problem.inner_cost(leaders, cost)
        + told.inner_cost(local, cost)
        + combined
}

/// A scan within each node; the last ranks of the nodes then scan what their nodes combine to, and broadcast
/// within their node what all nodes before it combine to.
fn two_level(problem: &Scan, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let (operands, context) = (&problem.operands, context.within());
    let Scan { from, is_exclusive, .. } = *problem;
    let (local, is_first_node) = (team.levels(0).local, team.group_place() == 0);
    let scan = |from: Spot, into: Spot, is_exclusive: bool| Scan {
        from,
        into,
        operands: operands.clone(),
        is_exclusive,
    };
    // What the ranks of our node up to ours, or before it, combine to.
    let within = match is_exclusive && problem.is_in_place() {
        true => problem.scratch(builder),
        false => problem.into,
    };
    let (is_first, count) = (local.me() == 0, operands.count);
    builder.stage(1, |builder| scan(from, within, is_exclusive).build(&local, &context, builder));
    let before = problem.scratch(builder);
    if let Some(lasts) = team.lasts() {
        let mut all = within;
        if is_exclusive {
            all = problem.scratch(builder);
            let own = problem.copy(from, all, &[], builder);
            if !is_first {
                builder.reduce(within, all, count, &[own]);
            }
        }
        builder.stage(2, |builder| scan(all, before, true).build(&lasts, &context, builder));
    }
    if !is_first_node && local.size() > 1 {
        let told = Bcast { data: operands.place(before), root: local.size() - 1 };
        builder.stage(3, |builder| told.build(&local, &context, builder));
    }
    builder.round();
    let has_within = !(is_exclusive && is_first);
    if has_within && !is_first_node {
        builder.reduce(before, within, count, &[]);
        builder.round();
    }
    let result = if has_within { within } else { before };
    if (has_within || !is_first_node) && result != problem.into {
        problem.copy(result, problem.into, &[], builder);
    }
}
