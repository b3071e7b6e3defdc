//! Scatter: each rank gets a block of the root's.

use super::board;
use super::choice::{Algorithm, Direct, Family, Memory, Problem};
use super::place::{Blocks, Place};
use super::schedule::{Builder, Step};
use super::team::Team;
use super::tree::Binomial;

/// A scatter in a team.
#[derive(Debug)]
pub struct Scatter {
    /// The blocks, at the root only.
    pub send: Option<Blocks>,
    /// Where our block goes; none if it stays where it is at the root.
    pub recv: Option<Place>,
    /// Bytes of each block; none if they differ, and only the root knows all of them.
    pub block: Option<u64>,
    /// Whose blocks they are.
    pub root: usize,
}

impl Problem for Scatter {
    const FAMILY: Family = Family::Scatter;

    fn len(&self) -> u64 {
        self.block.unwrap_or(0)
    }

    fn direct() -> &'static [Direct<Self>] {
        const {
            &[Direct {
                memory: Memory::Board,
                fits: |p, team| p.block.is_some_and(|block| board::serves(team, team.blocks(block))),
                cost: |p, team, cost| cost.post(team, team.blocks(p.len())),
            }]
        }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "flat",
                    fits: |_, _| true,
                    cost: |p, team, cost| cost.fan_out(team, team.size() - 1, p.len()),
                    build: |p, team, _, builder| flat(p, team, builder),
                },
                Algorithm {
                    name: "binomial",
                    fits: |p, _| p.block.is_some(),
                    cost: |p, team, cost| {
                        let copied = p.len() * team.size().next_power_of_two() as u64;
                        cost.tree(team, |round| p.len() << round) + cost.copy_alone(copied)
                    },
                    build: |p, team, _, builder| binomial(p, team, builder),
                },
            ]
        }
    }
}

/// The root sends to each.
fn flat(problem: &Scatter, team: &Team, builder: &mut Builder) {
    if let Some(send) = problem.send.as_ref().filter(|_| team.me() == problem.root) {
        for rank in team.others() {
            builder.send(team.party(rank), 0, send.place(rank), &[]);
        }
        if let Some(own) = &problem.recv {
            builder.copy(send.place(team.me()), own.clone(), &[]);
        }
    } else if let Some(own) = &problem.recv {
        builder.recv(team.party(problem.root), 0, own.clone(), &[]);
    }
}

/// Along a binomial tree; inner ranks get the blocks of their subtree in one message.
fn binomial(problem: &Scatter, team: &Team, builder: &mut Builder) {
    let (size, root, block) = (team.size(), problem.root, problem.len());
    let place = (team.me() + size - root) % size;
    let tree = Binomial::of(size, place);
    let Some(parent) = tree.parent else { return at_root(problem, team, &tree, builder) };
    let parent = team.party((parent + root) % size);
    let Some(own) = problem.recv.clone() else { return };
    if tree.children.is_empty() {
        builder.recv(parent, 0, own, &[]);
        return;
    }
    let rows = builder.scratch(block * tree.subtree as u64);
    let arrived = builder.recv(parent, 0, Place::bytes(rows, block * tree.subtree as u64), &[]);
    for &(child, ranks) in tree.children.iter().rev() {
        let part = rows.skip(((child - place) as u64 * block) as i64);
        let to = team.party((child + root) % size);
        builder.send(to, 0, Place::bytes(part, block * ranks as u64), &[arrived]);
    }
    builder.copy(Place::bytes(rows, block), own, &[arrived]);
}

fn at_root(problem: &Scatter, team: &Team, tree: &Binomial, builder: &mut Builder) {
    let (size, root, block) = (team.size(), problem.root, problem.len());
    let Some(send) = &problem.send else { return };
    for &(child, ranks) in tree.children.iter().rev() {
        let (first, last) = ((child + root) % size, (child + ranks - 1 + root) % size);
        let direct = if first <= last { send.range(first..last + 1) } else { None };
        let (data, after) = direct.map_or_else(
            || {
                let rows = builder.scratch(block * ranks as u64);
                let row = |index: usize| Place::bytes(rows.skip((index as u64 * block) as i64), block);
                let blocks = (0..ranks).map(|index| (send.place((first + index) % size), row(index)));
                let copies: Vec<Step> = blocks.map(|(from, into)| builder.copy(from, into, &[])).collect();
                (Place::bytes(rows, block * ranks as u64), copies)
            },
            |data| (data, Vec::new()),
        );
        builder.send(team.party(first), 0, data, &after);
    }
    if let Some(own) = &problem.recv {
        builder.copy(send.place(root), own.clone(), &[]);
    }
}
