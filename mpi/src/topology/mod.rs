//! Virtual topologies (MPI 5.0, chapter 8): the neighbours of each rank. All of it is local arithmetic.
//!
//! A topology belongs to a communicator, which is made elsewhere; ranks here are ranks of that
//! communicator. This module knows no communicator and sends nothing.

mod cart;
mod dims;
mod distributed;
mod graph;

pub use cart::{Cart, Part};
pub use dims::dims_create;
pub use distributed::{DistGraph, Edge};
pub use graph::Graph;

use crate::constant::TopologyKind;

/// The topology of a communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
    /// A graph that every process knows.
    Graph(Graph),
    /// A graph of which every process knows its own edges.
    DistGraph(DistGraph),
}

impl Topology {
    /// What `MPI_Topo_test` answers.
    pub fn kind(&self) -> TopologyKind {
        match self {
            Topology::Cart(_) => TopologyKind::Cart,
            Topology::Graph(_) => TopologyKind::Graph,
            Topology::DistGraph(_) => TopologyKind::DistGraph,
        }
    }

    /// The ranks from which and to which neighbourhood collectives of `rank` send, in the order of their
    /// buffers (MPI 5.0, section 8.6). PROC_NULL stands for a missing neighbour at the border of a grid.
    pub fn neighbours(&self, rank: i32) -> Neighbours {
        let both = |list: Vec<i32>| Neighbours { sources: list.clone(), destinations: list };
        match self {
            Topology::Cart(cart) => both(cart.neighbours(rank)),
            Topology::Graph(graph) => both(graph.neighbours(rank).unwrap_or_default().to_vec()),
            Topology::DistGraph(graph) => {
                Neighbours { sources: graph.sources().to_vec(), destinations: graph.destinations().to_vec() }
            }
        }
    }
}

/// The neighbours of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// From whom it receives.
    pub sources: Vec<i32>,
    /// To whom it sends.
    pub destinations: Vec<i32>,
}
