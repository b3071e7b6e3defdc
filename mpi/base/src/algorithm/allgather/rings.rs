//! Allgather without memory of its own: blocks go straight to where they belong.

use super::Allgather;
use crate::algorithm::schedule::Builder;
use crate::algorithm::team::Team;

/// Each block goes around: n - 1 rounds, each with one block in and one out.
pub(super) fn ring(problem: &Allgather, team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    problem.place_own(team, builder);
    let (before, behind) = (team.party((me + size - 1) % size), team.party((me + 1) % size));
    let mut arrived = None;
    for round in 1..size {
        let received = problem.recv.place((me + size - round) % size);
        let sent = match round {
            1 => problem.own(team),
            _ => problem.recv.place((me + size + 1 - round) % size),
        };
        let next = builder.recv(before, round as u32, received, &[]);
        builder.send(behind, round as u32, sent, arrived.as_slice());
        arrived = Some(next);
    }
}

/// Everybody sends to everybody: one hop.
pub(super) fn flat(problem: &Allgather, team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    for distance in 1..size {
        let from = (me + size - distance) % size;
        builder.recv(team.party(from), 0, problem.recv.place(from), &[]);
    }
    for distance in 1..size {
        builder.send(team.party((me + distance) % size), 0, problem.own(team), &[]);
    }
    problem.place_own(team, builder);
}

/// Round k: twice as many blocks as before, with the rank that differs in bit k.
pub(super) fn recursive_doubling(problem: &Allgather, team: &Team, builder: &mut Builder) {
    let (size, me) = (team.size(), team.me());
    problem.place_own(team, builder);
    let blocks = |first: usize, count: usize| problem.recv.range(first..first + count);
    for (round, distance) in (0..).map(|k| (k, 1 << k)).take_while(|&(_, d)| d < size) {
        let partner = me ^ distance;
        let (Some(held), Some(wanted)) =
            (blocks(me & !(distance - 1), distance), blocks(partner & !(distance - 1), distance))
        else {
            return;
        };
        builder.round();
        builder.recv(team.party(partner), round, wanted, &[]);
        builder.send(team.party(partner), round, held, &[]);
    }
}
