//! How long lists of handles are that no argument gives a length for. An error of these questions is found
//! again by the call itself, with the same communicator; until then the list has no entries.
#![allow(dead_code)]

use super::{c, place};
use crate::abi;
use std::ffi::c_void;

/// One entry for each process that ranks of the communicator name.
pub(crate) unsafe fn peers(comm: i32) -> usize {
    let (mut size, mut is_inter) = (0, 0);
    // SAFETY: places of ours.
    unsafe {
        let comm = abi::comm_in(comm);
        if c::PMPI_Comm_test_inter(comm, &raw mut is_inter) == 0 {
            match is_inter {
                0 => c::PMPI_Comm_size(comm, &raw mut size),
                _ => c::PMPI_Comm_remote_size(comm, &raw mut size),
            };
        }
    }
    place::length(size.into())
}

/// As [`peers`], none if the send buffer is MPI_IN_PLACE.
pub(crate) unsafe fn sends(comm: i32, buffer: *const c_void) -> usize {
    // SAFETY: the caller says so.
    if place::is_in_place(buffer) { 0 } else { unsafe { peers(comm) } }
}

/// One entry for each neighbour that data comes from.
pub(crate) unsafe fn sources(comm: i32) -> usize {
    // SAFETY: the caller says so.
    unsafe { neighbours(comm).0 }
}

/// One entry for each neighbour that data goes to.
pub(crate) unsafe fn targets(comm: i32) -> usize {
    // SAFETY: the caller says so.
    unsafe { neighbours(comm).1 }
}

// Numbers of MPI_Topo_test in the standard's interface; lists of handles of MPICH need no length.
const GRAPH: i32 = 212;
const CART: i32 = 211;
const DIST_GRAPH: i32 = 213;

unsafe fn neighbours(comm: i32) -> (usize, usize) {
    let (mut kind, mut rank, mut sources, mut targets, mut weighted) = (0, 0, 0, 0, 0);
    // SAFETY: places of ours.
    unsafe {
        let comm = abi::comm_in(comm);
        if c::PMPI_Topo_test(comm, &raw mut kind) != 0 {
            return (0, 0);
        }
        match kind {
            GRAPH => {
                c::PMPI_Comm_rank(comm, &raw mut rank);
                c::PMPI_Graph_neighbors_count(comm, rank, &raw mut sources);
                targets = sources;
            }
            CART => {
                c::PMPI_Cartdim_get(comm, &raw mut sources);
                sources *= 2;
                targets = sources;
            }
            DIST_GRAPH => {
                let (from, to) = (&raw mut sources, &raw mut targets);
                c::PMPI_Dist_graph_neighbors_count(comm, from, to, &raw mut weighted);
            }
            _ => {}
        }
    }
    (place::length(sources.into()), place::length(targets.into()))
}
