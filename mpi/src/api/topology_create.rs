//! Making communicators with a virtual topology. Ranks are never reordered, which the standard leaves to
//! the library.

use crate::algorithm::check::{Operation, number};
use crate::collective::announce;
use crate::comm::arrange;
use crate::error::Result;
use crate::handle::{Comm, Info};
use crate::topology::DistGraph;

/// `MPI_Cart_create`; the null handle for processes that are not in the grid.
///
/// # Errors
/// There is no such communicator, a dimension is not positive, or the grid is larger than the communicator.
pub fn cart_create(comm: Comm, dims: &[i32], periods: &[bool], reorder: bool) -> Result<Comm> {
    announce(Operation::CartCreate, comm, Ok(()), |()| [number(dims), number(periods), number(reorder)])?;
    arrange::cart(comm, dims, periods)
}

/// `MPI_Cart_sub`
///
/// # Errors
/// The communicator has no Cartesian topology.
pub fn cart_sub(comm: Comm, remain: &[bool]) -> Result<Comm> {
    announce(Operation::CartSub, comm, Ok(()), |()| [number(remain), None, None])?;
    arrange::sub(comm, remain)
}

/// `MPI_Graph_create`; the null handle for processes that are not in the graph.
///
/// # Errors
/// There is no such communicator, `index` and `edges` do not fit, or the graph is larger than the
/// communicator.
pub fn graph_create(comm: Comm, index: &[i32], edges: &[i32], reorder: bool) -> Result<Comm> {
    announce(Operation::GraphCreate, comm, Ok(()), |()| [number(index), number(edges), number(reorder)])?;
    arrange::graph(comm, index, edges)
}

/// `MPI_Dist_graph_create_adjacent`; no weights: `MPI_UNWEIGHTED`.
///
/// # Errors
/// There is no such communicator or rank, or a weight is negative, here or in another process.
pub fn dist_graph_create_adjacent(
    comm: Comm,
    sources: &[i32],
    source_weights: Option<&[i32]>,
    destinations: &[i32],
    destination_weights: Option<&[i32]>,
    _info: Info,
    reorder: bool,
) -> Result<Comm> {
    let has_weights = source_weights.is_some() || destination_weights.is_some();
    announce(Operation::DistGraphCreateAdjacent, comm, Ok(()), |()| {
        [number(reorder), number(has_weights), None]
    })?;
    arrange::adjacent(comm, (sources, source_weights), (destinations, destination_weights))
}

/// `MPI_Dist_graph_create`; no weights: `MPI_UNWEIGHTED`.
///
/// # Errors
/// There is no such communicator or rank, the lists do not fit to each other, or a weight is negative,
/// here or in another process.
pub fn dist_graph_create(
    comm: Comm,
    sources: &[i32],
    degrees: &[i32],
    destinations: &[i32],
    weights: Option<&[i32]>,
    _info: Info,
    reorder: bool,
) -> Result<Comm> {
    announce(Operation::DistGraphCreate, comm, Ok(()), |()| {
        [number(reorder), number(weights.is_some()), None]
    })?;
    let edges = |size| DistGraph::edges(size, sources, degrees, destinations, weights);
    arrange::distributed(comm, edges, weights.is_some())
}
