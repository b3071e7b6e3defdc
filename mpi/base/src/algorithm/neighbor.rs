//! Neighbourhood collectives: blocks go along the edges of the communicator's topology (MPI 8.6).

use super::place::{Blocks, Place};
use super::schedule::Builder;

/// An edge: the rank at its other end, and which of the edges between the two it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The rank at the other end; none: it leads nowhere, and its block stays as it is.
    pub rank: Option<u32>,
    /// The same number on both ends.
    pub slot: u32,
}

/// The edges of a rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// From whom blocks come, in the order of the receive blocks.
    pub sources: Vec<Edge>,
    /// To whom blocks go, in the order of the send blocks.
    pub destinations: Vec<Edge>,
}

impl Neighbors {
    /// The neighbours in a graph. Of several edges from one rank to another the first of the one is the first
    /// of the other.
    pub fn of_graph(sources: &[Option<u32>], destinations: &[Option<u32>]) -> Neighbors {
        let numbered = |ranks: &[Option<u32>]| {
            let slot = |index: usize| ranks[..index].iter().filter(|rank| **rank == ranks[index]).count();
            (0..ranks.len()).map(|index| Edge { rank: ranks[index], slot: slot(index) as u32 }).collect()
        };
        Neighbors { sources: numbered(sources), destinations: numbered(destinations) }
    }

    /// The neighbours in a Cartesian grid: for each dimension the one below, then the one above. A block sent
    /// down is received from above, also where both neighbours are the same rank.
    pub fn of_grid(neighbors: &[Option<u32>]) -> Neighbors {
        let edges = |opposite: usize| {
            let edge = |(index, &rank): (usize, &Option<u32>)| Edge { rank, slot: (index ^ opposite) as u32 };
            neighbors.iter().enumerate().map(edge).collect()
        };
        Neighbors { sources: edges(1), destinations: edges(0) }
    }
}

/// One block for each edge, in both directions.
pub fn alltoall(neighbors: &Neighbors, send: &Blocks, recv: &Blocks, builder: &mut Builder) {
    exchange(neighbors, |index| send.place(index), recv, builder);
}

/// The same block along all edges.
pub fn allgather(neighbors: &Neighbors, send: &Place, recv: &Blocks, builder: &mut Builder) {
    exchange(neighbors, |_| send.clone(), recv, builder);
}

fn exchange(neighbors: &Neighbors, outgoing: impl Fn(usize) -> Place, recv: &Blocks, builder: &mut Builder) {
    for (index, edge) in neighbors.sources.iter().enumerate() {
        if let Some(rank) = edge.rank {
            builder.recv(rank, edge.slot, recv.place(index), &[]);
        }
    }
    for (index, edge) in neighbors.destinations.iter().enumerate() {
        if let Some(rank) = edge.rank {
            builder.send(rank, edge.slot, outgoing(index), &[]);
        }
    }
}
