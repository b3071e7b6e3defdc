//! Collectives that are called so often that algorithms are tried.

use crate::colls::SUM;
use crate::point::{INT, WORLD, into, out, rank, size};
use nmad_mpi::api;

/// Calls of each collective: more than two trials take.
const CALLS: i32 = 820;

/// All of them are right whichever algorithm they go by.
pub fn all() {
    let (me, n) = (rank(), size());
    let (count, block) = (70_000, 1_000);
    let own: Vec<i32> = (0..count).map(|index| index ^ me).collect();
    let sum: Vec<i32> = (0..count).map(|index| (0..n).map(|rank| index ^ rank).sum()).collect();
    let mut result = vec![0; count as usize];
    let all = i64::from(count);
    for call in 0..CALLS {
        result.fill(-1);
        let root = call % n;
        api::reduce(out(&own), into(&mut result), all, INT, SUM, root, WORLD).unwrap();
        assert!(me != root || result == sum, "reduce {call}");
        result.fill(-1);
        api::allreduce(out(&own), into(&mut result), all / 2, INT, SUM, WORLD).unwrap();
        assert!(result[..count as usize / 2] == sum[..count as usize / 2], "allreduce {call}");
        let each = i64::from(block);
        api::allgather(out(&own), each, INT, into(&mut result), each, INT, WORLD).unwrap();
        let right = |(place, &value): (usize, &i32)| value == (place as i32 % block) ^ (place as i32 / block);
        assert!(result[..(n * block) as usize].iter().enumerate().all(right), "allgather {call}");
        api::alltoall(out(&own), each, INT, into(&mut result), each, INT, WORLD).unwrap();
        let right = |(place, &value): (usize, &i32)| {
            value == (me * block + place as i32 % block) ^ (place as i32 / block)
        };
        assert!(result[..(n * block) as usize].iter().enumerate().all(right), "alltoall {call}");
    }
}
