//! More ranks of a node than one board serves.

use crate::colls::SUM;
use crate::point::{INT, WORLD, into, out, rank, size};
use nmad_mpi::api;

/// Calls so many that boards are made, and ranks run ahead of each other.
const CALLS: i32 = 40;

/// Short blocking collectives, each with another root.
pub fn short() {
    let (me, n) = (rank(), size());
    for call in 0..CALLS {
        let (root, sum) = (call * 7 % n, n * (n - 1) / 2 + call * n);
        let mut data = [if me == root { call } else { -1 }; 40];
        api::bcast(into(&mut data), 40, INT, root, WORLD).unwrap();
        assert_eq!(data, [call; 40], "bcast {call}");
        let (own, mut total) = ([me + call; 3], [-1; 3]);
        api::allreduce(out(&own), into(&mut total), 3, INT, SUM, WORLD).unwrap();
        assert_eq!(total, [sum; 3], "allreduce {call}");
        let mut total = [-1; 3];
        api::reduce(out(&own), into(&mut total), 3, INT, SUM, root, WORLD).unwrap();
        assert_eq!(total, [if me == root { sum } else { -1 }; 3], "reduce {call}");
        api::barrier(WORLD).unwrap();
    }
}
