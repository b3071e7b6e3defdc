//! Virtual topologies: the neighbours of each rank, in communicators made for them.

use crate::comms::greet;
use crate::point::{WORLD, rank, size};
use nmad_mpi::api;
use nmad_mpi::constant::{PROC_NULL, TopologyKind};
use nmad_mpi::{Class, Comm, Info};

/// Six processes: a grid of 2 by 3 and one that is left over.
pub fn grid() {
    let grid = api::cart_create(WORLD, &[2, 3], &[false, true], true).unwrap();
    assert_eq!(grid.is_null(), rank() >= 6);
    if rank() < 6 {
        greet(grid);
        assert_eq!(api::topo_test(grid), Ok(TopologyKind::Cart));
        let (dims, periods, coords) = api::cart_get(grid).unwrap();
        assert_eq!((dims, periods, &coords), (vec![2, 3], vec![false, true], &vec![rank() / 3, rank() % 3]));
        assert_eq!(api::cart_rank(grid, &[coords[0], coords[1] - 3]), Ok(rank()));
        let up = if rank() < 3 { PROC_NULL } else { rank() - 3 };
        assert_eq!(api::cart_shift(grid, 0, 1).unwrap().0, up);

        let row = api::cart_sub(grid, &[false, true]).unwrap();
        assert_eq!((api::comm_size(row), api::comm_rank(row)), (Ok(3), Ok(coords[1])));
        assert_eq!(api::cart_get(row).unwrap().1, [true]);
        greet(row);
        let alone = api::cart_sub(grid, &[false, false]).unwrap();
        assert_eq!((api::comm_size(alone), api::cartdim_get(alone)), (Ok(1), Ok(0)));

        let copy = api::comm_dup(grid).unwrap();
        assert_eq!(api::cart_coords(copy, 5), Ok(vec![1, 2]));
        assert_eq!(api::graphdims_get(grid).unwrap_err().class(), Class::TOPOLOGY);
    }
    assert_eq!(api::topo_test(WORLD), Ok(TopologyKind::None));
    assert_eq!(api::cart_create(WORLD, &[4, 4], &[true; 2], false).unwrap_err().class(), Class::ARG);
    assert_eq!(api::cart_map(WORLD, &[2], &[true]).unwrap(), if rank() < 2 { rank() } else { -32766 });
}

/// A line of processes as a graph that all know.
pub fn graph() {
    let last = size() - 1;
    let near = |me: i32| [me - 1, me + 1].into_iter().filter(move |to| (0..=last).contains(to));
    let edges: Vec<i32> = (0..=last).flat_map(near).collect();
    let index: Vec<i32> = (0..=last).map(|me| (0..=me).map(|i| near(i).count() as i32).sum()).collect();
    let line = api::graph_create(WORLD, &index, &edges, false).unwrap();
    greet(line);
    assert_eq!(api::graphdims_get(line), Ok((size(), 2 * last)));
    assert_eq!(api::graph_neighbors(line, rank()), Ok(near(rank()).collect()));
    assert_eq!(api::graph_get(line), Ok((index, edges)));
    assert!(api::graph_create(WORLD, &[], &[], false).unwrap().is_null());
}

fn check_ring(ring: Comm, weighted: bool) {
    greet(ring);
    let (before, behind) = ((rank() + size() - 1) % size(), (rank() + 1) % size());
    assert_eq!(api::dist_graph_neighbors_count(ring), Ok((1, 1, weighted)));
    let [(sources, into), (destinations, out)] = api::dist_graph_neighbors(ring).unwrap();
    assert_eq!((sources, destinations), (vec![before], vec![behind]));
    assert_eq!((into, out), (weighted.then(|| vec![before + 7]), weighted.then(|| vec![rank() + 7])));
}

/// A ring: everybody gives the own edges, or one gives all of them.
pub fn distributed() {
    let (me, size) = (rank(), size());
    let (before, behind) = ([(me + size - 1) % size], [(me + 1) % size]);
    let ring = api::dist_graph_create_adjacent(
        WORLD,
        &before,
        Some(&[before[0] + 7]),
        &behind,
        Some(&[me + 7]),
        Info::NULL,
        true,
    );
    check_ring(ring.unwrap(), true);

    let everybody: Vec<i32> = if me == 1 { (0..size).collect() } else { Vec::new() };
    let next: Vec<i32> = everybody.iter().map(|from| (from + 1) % size).collect();
    let weights: Vec<i32> = everybody.iter().map(|from| from + 7).collect();
    let degrees = vec![1; everybody.len()];
    for weights in [Some(&weights[..]), None] {
        let ring = api::dist_graph_create(WORLD, &everybody, &degrees, &next, weights, Info::NULL, false);
        check_ring(ring.unwrap(), weights.is_some());
    }
}

/// One process gives wrong edges: nobody hangs.
pub fn wrong() {
    let neighbour = if rank() == 1 { [size()] } else { [0] };
    let class = |result: nmad_mpi::Result<Comm>| result.unwrap_err().class();
    let expected = if rank() == 1 { Class::RANK } else { Class::ARG };
    let adjacent = api::dist_graph_create_adjacent(WORLD, &neighbour, None, &[], None, Info::NULL, false);
    assert_eq!(class(adjacent), expected);
    let any = api::dist_graph_create(WORLD, &[rank()], &[1], &neighbour, None, Info::NULL, false);
    assert_eq!(class(any), expected);
    greet(WORLD);
}
