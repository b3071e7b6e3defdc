//! Gather: a block of each rank goes to the root.

use super::board::{self, Ranks};
use super::choice::{Algorithm, Context, Direct, Family, Memory, Problem, TWO_LEVEL};
use super::cost::Cost;
use super::place::{Blocks, Buffer, Place, Spot};
use super::schedule::Builder;
use super::team::{Levels, Team};
use super::tree::Binomial;

/// A gather in a team.
#[derive(Debug)]
pub struct Gather {
    /// Our block; none if it is in its place at the root already.
    pub send: Option<Place>,
    /// Where blocks go, at the root only.
    pub recv: Option<Blocks>,
    /// Bytes of each block; none if they differ, and only the root knows all of them.
    pub block: Option<u64>,
    /// Who gets them.
    pub root: usize,
    /// The ranks whose blocks are still to come, of those that we know of; none: all.
    pub left: Option<Ranks>,
}

impl Gather {
    fn is_left(&self, rank: usize) -> bool {
        self.left.is_none_or(|left| left.contains(rank))
    }
}

impl Problem for Gather {
    const FAMILY: Family = Family::Gather;

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
                fits: |p, team| p.block.is_some_and(|block| board::serves(team, block)),
                cost: |p, team, cost| cost.look(team, p.len()),
            }]
        }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "flat",
                    fits: |_, _| true,
                    cost: |p, team, cost| cost.row(team, team.size() - 1, p.len()),
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
                    fits: |p, team| p.block.is_some() && p.left.is_none() && team.has_levels(),
                    cost: two_level_cost,
                    build: two_level,
                },
            ]
        }
    }
}

/// Each sends to the root.
fn flat(problem: &Gather, team: &Team, builder: &mut Builder) {
    let own = problem.send.as_ref().filter(|_| problem.is_left(team.me()));
    if let Some(recv) = problem.recv.as_ref().filter(|_| team.me() == problem.root) {
        for rank in team.others().filter(|rank| problem.is_left(*rank)) {
            builder.recv(team.party(rank), 0, recv.place(rank), &[]);
        }
        if let Some(own) = own {
            builder.copy(own.clone(), recv.place(team.me()), &[]);
        }
    } else if let Some(own) = own {
        builder.send(team.party(problem.root), 0, own.clone(), &[]);
    }
}

/// Along a binomial tree; inner ranks pass the blocks of their subtree on in one message.
fn binomial(problem: &Gather, team: &Team, builder: &mut Builder) {
    let (size, root, block) = (team.size(), problem.root, problem.len());
    let rank = |place: usize| (place + root) % size;
    let tree = Binomial::of(size, (team.me() + size - root) % size);
    let Some(parent) = tree.parent else { return at_root(problem, team, &tree, builder) };
    let Some(own) = problem.send.clone() else { return };
    if tree.children.is_empty() {
        builder.send(team.party(rank(parent)), 0, own, &[]);
        return;
    }
    let rows = builder.scratch(block * tree.subtree as u64);
    builder.copy(own, Place::bytes(rows, block), &[]);
    for &(child, ranks) in &tree.children {
        let offset = (child - (team.me() + size - root) % size) as u64 * block;
        let into = Place::bytes(rows.skip(offset as i64), block * ranks as u64);
        builder.recv(team.party(rank(child)), 0, into, &[]);
    }
    builder.round();
    builder.send(team.party(rank(parent)), 0, Place::bytes(rows, block * tree.subtree as u64), &[]);
}

fn at_root(problem: &Gather, team: &Team, tree: &Binomial, builder: &mut Builder) {
    let (size, root, block) = (team.size(), problem.root, problem.len());
    let Some(recv) = &problem.recv else { return };
    if let Some(own) = &problem.send {
        builder.copy(own.clone(), recv.place(root), &[]);
    }
    for &(child, ranks) in &tree.children {
        let (first, last) = ((child + root) % size, (child + ranks - 1 + root) % size);
        let direct = if first <= last { recv.range(first..last + 1) } else { None };
        if let Some(into) = direct {
            builder.recv(team.party(first), 0, into, &[]);
            continue;
        }
        let rows = builder.scratch(block * ranks as u64);
        let arrived = builder.recv(team.party(first), 0, Place::bytes(rows, block * ranks as u64), &[]);
        for index in 0..ranks {
            let row = Place::bytes(rows.skip((index as u64 * block) as i64), block);
            builder.copy(row, recv.place((first + index) % size), &[arrived]);
        }
    }
}

fn two_level_cost(problem: &Gather, team: &Team, cost: &Cost) -> f64 {
    Gather::by_groups(problem.len(), team, cost, |block| Gather {
        send: None,
        recv: None,
        block: Some(block),
        root: 0,
        left: None,
    })
}

/// Each node gathers at its leader, and the root gets one message from each of the others.
fn two_level(problem: &Gather, team: &Team, context: &Context<'_>, builder: &mut Builder) {
    let (root, block, context) = (problem.root, problem.len(), context.within());
    let Levels { local, leaders } = team.levels(root);
    let recv = problem.recv.as_ref().filter(|_| team.me() == root);
    let nodes: Vec<Vec<usize>> =
        if leaders.is_some() { team.groups_from(root).collect() } else { Vec::new() };
    let rows = |start: Spot, count: usize| Blocks::rows(start, (0..count).map(|_| block));
    let start = if leaders.is_some() && recv.is_none() { local.blocks(block) } else { 0 };
    let start = builder.scratch(start);
    let own = match recv {
        Some(recv) => recv.of(&nodes[0]),
        None => rows(start, local.size()),
    };
    let send = problem.send.clone();
    let within =
        Gather { send, recv: leaders.is_some().then_some(own), block: Some(block), root: 0, left: None };
    builder.stage(1, |builder| within.build(&local, &context, builder));
    let Some(leaders) = leaders else { return };
    let mut later = Vec::new();
    let whole = recv.map(|recv| {
        let of_node = |ranks: &Vec<usize>| builder.room_for_blocks(recv, ranks, &mut later);
        let others: Vec<Place> = nodes[1..].iter().map(of_node).collect();
        Blocks::places([vec![Place::bytes(Spot::start(Buffer::Recv), 0)], others].concat())
    });
    let send = recv.is_none().then(|| Place::bytes(start, local.blocks(block)));
    let even = (nodes.len() * team.largest_group() == team.size()).then(|| local.blocks(block));
    let between = Gather { send, recv: whole, block: even, root: 0, left: None };
    builder.stage(2, |builder| between.build(&leaders, &context, builder));
    for (from, into) in later {
        builder.copy(from, into, &[]);
    }
}
