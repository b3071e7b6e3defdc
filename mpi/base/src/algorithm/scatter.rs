//! Scatter: each rank gets a block of the root's.

use super::board;
use super::choice::{Algorithm, Context, Direct, Family, Memory, Problem, TWO_LEVEL};
use super::cost::Cost;
use super::place::{Blocks, Buffer, Place, Spot};
use super::schedule::{Builder, Step};
use super::team::{Levels, Team};
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

    fn data(&self, team: &Team) -> u64 {
        2 * team.blocks(self.len())
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
                        cost.tree(team, p.root, |round| p.len() << round) + cost.copy_alone(copied)
                    },
                    build: |p, team, _, builder| binomial(p, team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |p, team| p.block.is_some() && team.has_levels(),
                    cost: two_level_cost,
                    build: two_level,
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

fn two_level_cost(problem: &Scatter, team: &Team, cost: &Cost) -> f64 {
    Scatter::by_groups(problem.len(), team, cost, |block| Scatter {
        send: None,
        recv: None,
        block: Some(block),
        root: 0,
    })
}

/// The root sends one message to the leader of each other node, and each leader scatters within its node.
fn two_level(problem: &Scatter, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let (root, block, context) = (problem.root, problem.len(), context.within());
    let Levels { local, leaders } = team.levels(root);
    let send = problem.send.as_ref().filter(|_| team.me() == root);
    let rows = |start: Spot, count: usize| Blocks::rows(start, (0..count).map(|_| block));
    let own = leaders.map(|leaders| {
        let nodes: Vec<Vec<usize>> = team.groups_from(root).collect();
        let whole = send.map(|send| {
            let for_node = |ranks: &Vec<usize>| builder.gathered_blocks(send, ranks);
            let others: Vec<Place> = nodes[1..].iter().map(for_node).collect();
            Blocks::places([vec![Place::bytes(Spot::start(Buffer::Send), 0)], others].concat())
        });
        let start = builder.scratch(if send.is_none() { local.blocks(block) } else { 0 });
        let recv = send.is_none().then(|| Place::bytes(start, local.blocks(block)));
        let even = (nodes.len() * team.largest_group() == team.size()).then(|| local.blocks(block));
        let between = Scatter { send: whole, recv, block: even, root: 0 };
        builder.stage(1, |builder| between.build(&leaders, &context, builder));
        match send {
            Some(send) => send.of(&nodes[0]),
            None => rows(start, local.size()),
        }
    });
    let within = Scatter { send: own, recv: problem.recv.clone(), block: Some(block), root: 0 };
    builder.stage(2, |builder| within.build(&local, &context, builder));
}
