//! Asking virtual topologies. Making them is collective and lies with the communicators.

use crate::comm::lookup;
use crate::constant::{TopologyKind, UNDEFINED};
use crate::error::{Class, Error, Result};
use crate::handle::Comm;
use crate::topology::{self, Cart, DistGraph, Graph, Topology};
use std::sync::Arc;

#[cold]
fn absent(wanted: &str) -> Error {
    Class::TOPOLOGY.error(format!("the communicator has no {wanted} topology"))
}

fn topology_of(comm: Comm) -> Result<(Option<Arc<Topology>>, i32)> {
    let comm = lookup(comm)?;
    Ok((comm.topology().cloned(), comm.rank()))
}

/// Asks the grid of a communicator; the question gets our rank, too.
fn ask_cart<T>(comm: Comm, ask: impl FnOnce(&Cart, i32) -> Result<T>) -> Result<T> {
    match topology_of(comm)? {
        (Some(topology), rank) => match &*topology {
            Topology::Cart(cart) => ask(cart, rank),
            _ => Err(absent("Cartesian")),
        },
        _ => Err(absent("Cartesian")),
    }
}

fn ask_graph<T>(comm: Comm, ask: impl FnOnce(&Graph) -> Result<T>) -> Result<T> {
    match topology_of(comm)?.0.as_deref() {
        Some(Topology::Graph(graph)) => ask(graph),
        _ => Err(absent("graph")),
    }
}

fn ask_dist_graph<T>(comm: Comm, ask: impl FnOnce(&DistGraph) -> T) -> Result<T> {
    match topology_of(comm)?.0.as_deref() {
        Some(Topology::DistGraph(graph)) => Ok(ask(graph)),
        _ => Err(absent("distributed graph")),
    }
}

/// `MPI_Topo_test`
///
/// # Errors
/// There is no such communicator.
pub fn topo_test(comm: Comm) -> Result<TopologyKind> {
    Ok(topology_of(comm)?.0.map_or(TopologyKind::None, |topology| topology.kind()))
}

/// `MPI_Dims_create`
///
/// # Errors
/// The given dimensions do not divide the number of processes.
pub fn dims_create(nodes: i32, dims: &mut [i32]) -> Result<()> {
    topology::dims_create(nodes, dims)
}

/// `MPI_Cartdim_get`
///
/// # Errors
/// The communicator has no Cartesian topology.
pub fn cartdim_get(comm: Comm) -> Result<i32> {
    ask_cart(comm, |cart, _| Ok(cart.dims().len() as i32))
}

/// `MPI_Cart_get`: dimensions, which of them are rings, and our coordinates.
///
/// # Errors
/// The communicator has no Cartesian topology.
pub fn cart_get(comm: Comm) -> Result<(Vec<i32>, Vec<bool>, Vec<i32>)> {
    ask_cart(comm, |cart, rank| Ok((cart.dims().to_vec(), cart.periods().to_vec(), cart.coords(rank)?)))
}

/// `MPI_Cart_rank`
///
/// # Errors
/// The communicator has no Cartesian topology, or a coordinate lies outside.
pub fn cart_rank(comm: Comm, coords: &[i32]) -> Result<i32> {
    ask_cart(comm, |cart, _| cart.rank(coords))
}

/// `MPI_Cart_coords`
///
/// # Errors
/// The communicator has no Cartesian topology, or no such rank.
pub fn cart_coords(comm: Comm, rank: i32) -> Result<Vec<i32>> {
    ask_cart(comm, |cart, _| cart.coords(rank))
}

/// `MPI_Cart_shift`: source and destination.
///
/// # Errors
/// The communicator has no Cartesian topology, or no such dimension.
pub fn cart_shift(comm: Comm, direction: i32, displacement: i32) -> Result<(i32, i32)> {
    ask_cart(comm, |cart, rank| cart.shift(rank, direction, displacement))
}

/// The rank that a process keeps in a topology of `size` processes: ranks are not reordered.
fn kept_rank(comm: Comm, size: i32) -> Result<i32> {
    let comm = lookup(comm)?;
    if size > comm.local().len() {
        let text = format!("{size} processes in the topology, {} in the communicator", comm.local().len());
        return Err(Class::ARG.error(text));
    }
    Ok(if comm.rank() < size { comm.rank() } else { UNDEFINED })
}

/// `MPI_Cart_map`: our rank in the grid, or UNDEFINED.
///
/// # Errors
/// There is no such communicator, or the grid is no grid of its processes.
pub fn cart_map(comm: Comm, dims: &[i32], periods: &[bool]) -> Result<i32> {
    kept_rank(comm, Cart::new(dims, periods)?.size())
}

/// `MPI_Graph_map`: our rank in the graph, or UNDEFINED.
///
/// # Errors
/// There is no such communicator, or the graph is no graph of its processes.
pub fn graph_map(comm: Comm, index: &[i32], edges: &[i32]) -> Result<i32> {
    kept_rank(comm, Graph::new(index, edges)?.size())
}

/// `MPI_Graphdims_get`: numbers of processes and edges.
///
/// # Errors
/// The communicator has no graph topology.
pub fn graphdims_get(comm: Comm) -> Result<(i32, i32)> {
    ask_graph(comm, |graph| Ok((graph.size(), graph.edges().len() as i32)))
}

/// `MPI_Graph_get`: index and edges.
///
/// # Errors
/// The communicator has no graph topology.
pub fn graph_get(comm: Comm) -> Result<(Vec<i32>, Vec<i32>)> {
    ask_graph(comm, |graph| Ok((graph.index().to_vec(), graph.edges().to_vec())))
}

/// `MPI_Graph_neighbors_count`
///
/// # Errors
/// The communicator has no graph topology, or no such rank.
pub fn graph_neighbors_count(comm: Comm, rank: i32) -> Result<i32> {
    ask_graph(comm, |graph| Ok(graph.neighbours(rank)?.len() as i32))
}

/// `MPI_Graph_neighbors`
///
/// # Errors
/// The communicator has no graph topology, or no such rank.
pub fn graph_neighbors(comm: Comm, rank: i32) -> Result<Vec<i32>> {
    ask_graph(comm, |graph| Ok(graph.neighbours(rank)?.to_vec()))
}

/// `MPI_Dist_graph_neighbors_count`: numbers of sources and destinations, and whether edges have weights.
///
/// # Errors
/// The communicator has no distributed graph topology.
pub fn dist_graph_neighbors_count(comm: Comm) -> Result<(i32, i32, bool)> {
    ask_dist_graph(comm, |graph| {
        (graph.sources().len() as i32, graph.destinations().len() as i32, graph.is_weighted())
    })
}

/// Ranks, and weights if the edges have weights.
pub type Neighbours = (Vec<i32>, Option<Vec<i32>>);

/// `MPI_Dist_graph_neighbors`: sources with their weights, destinations with theirs.
///
/// # Errors
/// The communicator has no distributed graph topology.
pub fn dist_graph_neighbors(comm: Comm) -> Result<[Neighbours; 2]> {
    ask_dist_graph(comm, |graph| {
        let list = |ranks: &[i32], weights: Option<&[i32]>| (ranks.to_vec(), weights.map(<[i32]>::to_vec));
        [
            list(graph.sources(), graph.source_weights()),
            list(graph.destinations(), graph.destination_weights()),
        ]
    })
}

/// How many neighbours neighbourhood collectives of the communicator receive from and send to.
///
/// # Errors
/// The communicator has no topology.
pub fn neighbor_counts(comm: Comm) -> Result<(usize, usize)> {
    let neighbours = match topology_of(comm)? {
        (Some(topology), rank) => topology.neighbours(rank),
        _ => return Err(absent("virtual")),
    };
    Ok((neighbours.sources.len(), neighbours.destinations.len()))
}
