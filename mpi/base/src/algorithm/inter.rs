//! Collectives on intercommunicators: data goes from one group to the other (MPI 6.2.3).
//!
//! The *leader* of a group is its rank 0. Most collectives lead over the leaders; collectives with a block
//! for each pair of ranks send straight from rank to rank.

use super::barrier;
use super::bcast::Bcast;
use super::choice::{Context, Problem};
use super::operands::Operands;
use super::place::{Blocks, Place, Spot};
use super::reduce::Reduce;
use super::scatter::Scatter;
use super::schedule::Builder;
use super::team::Team;

/// The two groups, seen from one rank.
#[derive(Debug, Clone)]
pub struct Groups<'a> {
    /// Ours.
    pub local: &'a Team,
    /// Ranks of the other.
    pub remote: usize,
}

/// Which part a rank plays in a collective with a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The root itself.
    Root,
    /// In the group of the root.
    Bystander,
    /// In the other group; the root has this rank in its own.
    Peer(usize),
}

impl Groups<'_> {
    fn party(&self, rank: usize) -> u32 {
        (self.local.size() + rank) as u32
    }

    fn leads(&self) -> bool {
        self.local.me() == 0
    }

    fn remotes(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.remote
    }

    /// Nobody leaves before everybody of the other group has come.
    pub fn barrier(&self, builder: &mut Builder) {
        builder.stage(1, |builder| barrier::come(self.local, builder));
        if self.leads() {
            self.exchange(&NOTHING, &NOTHING, builder);
        }
        builder.stage(2, |builder| barrier::leave(self.local, builder));
    }

    /// The root's data goes to all of the other group.
    pub fn bcast(&self, role: Role, data: &Place, context: &Context<'_>, builder: &mut Builder) {
        match role {
            Role::Bystander => {}
            Role::Root => {
                builder.send(self.party(0), 0, data.clone(), &[]);
            }
            Role::Peer(root) => {
                if self.leads() {
                    builder.recv(self.party(root), 0, data.clone(), &[]);
                }
                let among = Bcast { data: data.clone(), root: 0 };
                builder.stage(1, |builder| among.build(self.local, context, builder));
            }
        }
    }

    /// The blocks of the other group go to the root. `send` of its peers, `recv` of the root.
    pub fn gather(&self, role: Role, send: Option<&Place>, recv: Option<&Blocks>, builder: &mut Builder) {
        match (role, send, recv) {
            (Role::Root, _, Some(recv)) => self.remotes().for_each(|rank| {
                builder.recv(self.party(rank), 0, recv.place(rank), &[]);
            }),
            (Role::Peer(root), Some(send), _) => {
                builder.send(self.party(root), 0, send.clone(), &[]);
            }
            _ => {}
        }
    }

    /// The root's blocks go to the other group. `send` of the root, `recv` of its peers.
    pub fn scatter(&self, role: Role, send: Option<&Blocks>, recv: Option<&Place>, builder: &mut Builder) {
        match (role, send, recv) {
            (Role::Root, Some(send), _) => self.remotes().for_each(|rank| {
                builder.send(self.party(rank), 0, send.place(rank), &[]);
            }),
            (Role::Peer(root), _, Some(recv)) => {
                builder.recv(self.party(root), 0, recv.clone(), &[]);
            }
            _ => {}
        }
    }

    /// The block of each rank goes to all of the other group.
    pub fn allgather(&self, send: &Place, recv: &Blocks, builder: &mut Builder) {
        self.pairs(|_| send.clone(), recv, builder);
    }

    /// A block from each rank for each rank of the other group.
    pub fn alltoall(&self, send: &Blocks, recv: &Blocks, builder: &mut Builder) {
        self.pairs(|rank| send.place(rank), recv, builder);
    }

    fn pairs(&self, send: impl Fn(usize) -> Place, recv: &Blocks, builder: &mut Builder) {
        for rank in self.remotes() {
            builder.recv(self.party(rank), 0, recv.place(rank), &[]);
        }
        let me = self.local.me();
        for rank in self.remotes().map(|rank| (rank + me) % self.remote) {
            builder.send(self.party(rank), 0, send(rank), &[]);
        }
    }

    /// What the other group combines to goes to the root. `from` of its peers, `into` of the root.
    pub fn reduce(
        &self,
        role: Role,
        (from, into): (Spot, Spot),
        operands: &Operands,
        context: &Context<'_>,
        builder: &mut Builder,
    ) {
        match role {
            Role::Bystander => {}
            Role::Root => {
                builder.recv(self.party(0), 0, operands.place(into), &[]);
            }
            Role::Peer(root) => {
                if let Some(sum) = self.combine(from, operands, context, builder) {
                    builder.send(self.party(root), 0, operands.place(sum), &[]);
                }
            }
        }
    }

    /// Each group gets what the other combines to.
    pub fn allreduce(
        &self,
        (from, into): (Spot, Spot),
        operands: &Operands,
        context: &Context<'_>,
        builder: &mut Builder,
    ) {
        if let Some(sum) = self.combine(from, operands, context, builder) {
            self.exchange(&operands.place(sum), &operands.place(into), builder);
        }
        let bcast = Bcast { data: operands.place(into), root: 0 };
        builder.stage(2, |builder| bcast.build(self.local, context, builder));
    }

    /// Each group gets what the other combines to, in parts: `bounds` as in
    /// [`super::reduce_scatter::ReduceScatter`], of our own group. Both groups have as many elements in all.
    pub fn reduce_scatter(
        &self,
        (from, into): (Spot, Spot),
        operands: &Operands,
        bounds: &[i64],
        context: &Context<'_>,
        builder: &mut Builder,
    ) {
        let mut all = None;
        if let Some(sum) = self.combine(from, operands, context, builder) {
            let theirs = builder.scratch_elements(operands.count, operands.operator.datatype());
            self.exchange(&operands.place(sum), &operands.place(theirs), builder);
            all = Some(theirs);
        }
        let part = |rank: usize| bounds[rank]..bounds[rank + 1];
        let me = self.local.me();
        let scatter = Scatter {
            send: all.map(|all| {
                let places = (0..self.local.size()).map(|rank| operands.part(all, &part(rank)));
                Blocks::places(places.collect())
            }),
            recv: Some(operands.operator.place(into, bounds[me + 1] - bounds[me])),
            block: None,
            root: 0,
        };
        builder.stage(2, |builder| scatter.build(self.local, context, builder));
    }

    /// Combines the operands of our group at its leader: where they are there.
    fn combine(
        &self,
        from: Spot,
        operands: &Operands,
        context: &Context<'_>,
        builder: &mut Builder,
    ) -> Option<Spot> {
        let datatype = operands.operator.datatype();
        let sum = self.leads().then(|| builder.scratch_elements(operands.count, datatype));
        let reduce = Reduce { from, into: sum, operands: operands.clone(), root: 0 };
        builder.stage(1, |builder| reduce.build(self.local, context, builder));
        sum
    }

    /// Between the leaders.
    fn exchange(&self, ours: &Place, theirs: &Place, builder: &mut Builder) {
        builder.recv(self.party(0), 0, theirs.clone(), &[]);
        builder.send(self.party(0), 0, ours.clone(), &[]);
    }
}

const NOTHING: Place = Place::bytes(Spot::start(super::place::Buffer::Scratch), 0);
