//! Neighbours with their weights.

use crate::{Abi, Weights, give, take};
use nmad_mpi::api;
use nmad_mpi::error::Result;
use nmad_mpi::handle::Comm;

#[allow(clippy::too_many_arguments)]
pub(crate) fn dist_graph_neighbors<A: Abi>(
    comm: Comm,
    max_sources: usize,
    sources: *mut i32,
    source_weights: *mut i32,
    max_destinations: usize,
    destinations: *mut i32,
    destination_weights: *mut i32,
) -> Result<()> {
    take::places("sources", sources, max_sources)?;
    take::places("destinations", destinations, max_destinations)?;
    let [(from, from_weights), (to, to_weights)] = api::dist_graph_neighbors(comm)?;
    give::list(sources, max_sources, from, give::rank::<A>);
    give::list(destinations, max_destinations, to, give::rank::<A>);
    weights::<A>(source_weights, max_sources, from_weights);
    weights::<A>(destination_weights, max_destinations, to_weights);
    Ok(())
}

fn weights<A: Abi>(to: *mut i32, room: usize, weights: Option<Vec<i32>>) {
    if let (Weights::List(_), Some(weights)) = (A::weights(to), weights) {
        give::list(to, room, weights, |weight| weight);
    }
}
