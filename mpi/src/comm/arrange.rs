//! Making communicators with a virtual topology. Ranks are not reordered: the order of the launcher has
//! the processes of a node side by side, which is what grids want.

use super::create::{party, split};
use super::party::{Party, decode, encode};
use super::{Communicator, share};
use crate::error::{Class, Result};
use crate::handle::Comm;
use crate::task::block_on;
use crate::topology::{Cart, DistGraph, Edge, Graph, Topology};
use std::sync::Arc;

/// Topologies are for intracommunicators.
fn within(handle: Comm) -> Result<Arc<Communicator>> {
    let comm = share(handle)?;
    if comm.remote().is_some() {
        return Err(Class::COMM.error("an intercommunicator cannot have a topology"));
    }
    Ok(comm)
}

/// The first `size` processes in a topology; the others are in no communicator.
fn first(handle: Comm, comm: &Communicator, size: i32, topology: Topology) -> Result<Comm> {
    if size > comm.local().len() {
        let text = format!("{size} processes in the topology, {} in the communicator", comm.local().len());
        return Err(Class::ARG.error(text));
    }
    split(handle, (comm.rank() < size).then_some(0), comm.rank(), |_| Some(Arc::new(topology)))
}

/// As a grid.
pub(crate) fn cart(handle: Comm, dims: &[i32], periods: &[bool]) -> Result<Comm> {
    let (comm, cart) = (within(handle)?, Cart::new(dims, periods)?);
    first(handle, &comm, cart.size(), Topology::Cart(cart))
}

/// The parts of a grid in which only some of its dimensions are left.
pub(crate) fn sub(handle: Comm, keep: &[bool]) -> Result<Comm> {
    let comm = share(handle)?;
    let Some(Topology::Cart(cart)) = comm.topology().map(Arc::as_ref) else {
        return Err(Class::TOPOLOGY.error("the communicator has no Cartesian topology"));
    };
    let part = cart.sub(comm.rank(), keep)?;
    split(handle, Some(part.color), part.rank, |_| Some(Arc::new(Topology::Cart(part.cart))))
}

/// As a graph that everybody gives.
pub(crate) fn graph(handle: Comm, index: &[i32], edges: &[i32]) -> Result<Comm> {
    let (comm, graph) = (within(handle)?, Graph::new(index, edges)?);
    first(handle, &comm, graph.size(), Topology::Graph(graph))
}

/// Neighbours and the weights of the edges to them, if they have weights.
pub(crate) type Side<'a> = (&'a [i32], Option<&'a [i32]>);

/// As a graph of which everybody gives the own edges.
pub(crate) fn adjacent(handle: Comm, sources: Side<'_>, destinations: Side<'_>) -> Result<Comm> {
    let comm = within(handle)?;
    let graph = DistGraph::adjacent(comm.local().len(), sources, destinations);
    // A process with wrong arguments tells the others, so that none waits for one that has left.
    let wrong = block_on(party(&comm).greatest([i64::from(graph.is_err())]))?;
    let graph = graph?;
    if wrong != [0] {
        return Err(elsewhere());
    }
    everybody(handle, &comm, graph)
}

/// As a graph of which anybody gives any edges.
pub(crate) fn distributed(
    handle: Comm,
    edges: impl FnOnce(i32) -> Result<Vec<Edge>>,
    has_weights: bool,
) -> Result<Comm> {
    let comm = within(handle)?;
    let mine = edges(comm.local().len());
    let told = match &mine {
        Ok(edges) => edges.iter().flat_map(numbers).collect(),
        Err(_) => WRONG.to_vec(),
    };
    let party: Party = party(&comm);
    let all = decode(&block_on(party.collect(encode(&told)))?);
    mine?;
    let triples = all.as_chunks::<3>().0;
    if triples.contains(&WRONG) {
        return Err(elsewhere());
    }
    let edges = triples.iter().map(|&[source, destination, weight]| Edge {
        source: source as i32,
        destination: destination as i32,
        weight: weight as i32,
    });
    everybody(handle, &comm, DistGraph::gather(comm.rank(), edges, has_weights))
}

/// No edge: the arguments of a process are wrong.
const WRONG: [i64; 3] = [-1; 3];

fn numbers(edge: &Edge) -> [i64; 3] {
    [edge.source, edge.destination, edge.weight].map(i64::from)
}

fn elsewhere() -> crate::error::Error {
    Class::ARG.error("another process gave wrong edges")
}

fn everybody(handle: Comm, comm: &Communicator, graph: DistGraph) -> Result<Comm> {
    split(handle, Some(0), comm.rank(), |_| Some(Arc::new(Topology::DistGraph(graph))))
}
