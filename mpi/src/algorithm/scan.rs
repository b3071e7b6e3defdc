//! Scan and exscan: each rank gets what the ranks up to it, or before it, combine to.

use super::choice::{Algorithm, Combines, Direct, Family, Problem};
use super::cost::log2_ceil;
use super::operands::Operands;
use super::place::Spot;
use super::schedule::{Builder, Step};
use super::team::Team;

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
                        let round = cost.exchange(team, p.len()) + 2.0 * cost.reduce(team, p.len());
                        f64::from(log2_ceil(team.size())) * round
                    },
                    build: |p, team, _, builder| doubling(p, team, builder),
                },
                Algorithm {
                    name: "chain",
                    fits: |_, _| true,
                    cost: |p, team, cost| {
                        (team.size() - 1) as f64 * (cost.hop(team, p.len()) + cost.reduce(team, p.len()))
                    },
                    build: |p, team, _, builder| chain(p, team, builder),
                },
            ]
        }
    }
}

/// From rank to rank: the least work in all.
fn chain(problem: &Scan, team: &Team, builder: &mut Builder) {
    let (me, operands) = (team.me(), &problem.operands);
    // The operands that go on to the next rank: all up to ours.
    let mut up_to = problem.from;
    let mut done: Option<Step> = None;
    if me > 0 {
        let before = problem.scratch(builder);
        let arrived = builder.recv(team.party(me - 1), 0, operands.place(before), &[]);
        let ours = if problem.is_exclusive { problem.scratch(builder) } else { problem.into };
        let copied = problem.copy(problem.from, ours, &[], builder);
        done = Some(builder.reduce(before, ours, operands.count, &[arrived, copied]));
        if problem.is_exclusive {
            problem.copy(before, problem.into, &[arrived, copied], builder);
        }
        up_to = ours;
    } else if !problem.is_exclusive {
        problem.copy(problem.from, problem.into, &[], builder);
    }
    if me + 1 < team.size() {
        builder.send(team.party(me + 1), 0, operands.place(up_to), done.as_slice());
    }
}

/// Round k: with the rank that differs in bit k. Operands from the left count for our result too.
fn doubling(problem: &Scan, team: &Team, builder: &mut Builder) {
    let (size, me, operands) = (team.size(), team.me(), &problem.operands);
    let (mut all, mut theirs) = (problem.scratch(builder), problem.scratch(builder));
    problem.copy(problem.from, all, &[], builder);
    if !problem.is_exclusive {
        problem.copy(problem.from, problem.into, &[], builder);
    }
    let mut has_result = !problem.is_exclusive;
    for (round, bit) in (0..).map(|k| (k, 1 << k)).take_while(|&(_, bit)| bit < size) {
        let partner = me ^ bit;
        if partner >= size {
            continue;
        }
        builder.round();
        let sent = builder.send(team.party(partner), round, operands.place(all), &[]);
        let arrived = builder.recv(team.party(partner), round, operands.place(theirs), &[]);
        if partner > me {
            builder.reduce(all, theirs, operands.count, &[sent, arrived]);
            std::mem::swap(&mut all, &mut theirs);
            continue;
        }
        if has_result {
            builder.reduce(theirs, problem.into, operands.count, &[arrived]);
        } else {
            problem.copy(theirs, problem.into, &[arrived], builder);
            has_result = true;
        }
        builder.reduce(theirs, all, operands.count, &[sent, arrived]);
    }
}
