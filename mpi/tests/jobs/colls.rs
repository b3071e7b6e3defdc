//! Collectives.

use crate::point::{INT, WORLD, into, out, rank, size};
use nmad_mpi::constant::IN_PLACE;
use nmad_mpi::{Class, Comm, Info, Op, Request, Result, Type, api};
use std::ffi::c_void;

/// MPI_SUM
pub const SUM: Op = Op(1);
const FLOAT: Type = Type(0x10);

/// The three forms of a collective do the same. Each gets a receive buffer that holds what `fresh` says.
fn all_forms(
    fresh: &[i32],
    expected: &[i32],
    blocking: impl Fn(*mut c_void) -> Result<()>,
    nonblocking: impl Fn(*mut c_void) -> Result<Request>,
    persistent: impl Fn(*mut c_void) -> Result<Request>,
) {
    let mut buffer = fresh.to_vec();
    for _ in 0..3 {
        buffer.copy_from_slice(fresh);
        blocking(into(&mut buffer)).unwrap();
        assert_eq!(buffer, expected, "blocking");
    }
    for _ in 0..2 {
        buffer.copy_from_slice(fresh);
        let mut request = nonblocking(into(&mut buffer)).unwrap();
        api::wait(&mut request, None).unwrap();
        assert_eq!(buffer, expected, "nonblocking");
    }
    let mut request = persistent(into(&mut buffer)).unwrap();
    for _ in 0..3 {
        buffer.copy_from_slice(fresh);
        api::start(request).unwrap();
        api::wait(&mut request, None).unwrap();
        assert_eq!(buffer, expected, "persistent");
    }
    api::request_free(&mut request).unwrap();
}

macro_rules! forms {
    (
        $fresh:expr, $expected:expr,
        |$buffer:ident| $blocking:ident $nonblocking:ident $persistent:ident
        ($($argument:expr),*) on $comm:expr
    ) => {
        all_forms(
            &$fresh,
            &$expected,
            |$buffer| api::$blocking($($argument,)* $comm),
            |$buffer| api::$nonblocking($($argument,)* $comm),
            |$buffer| api::$persistent($($argument,)* $comm, Info::NULL),
        )
    };
}

/// What moves data.
pub fn moves() {
    let (me, n) = (rank(), size());
    let all: Vec<i32> = (0..n).collect();
    let root = n - 1;
    let none = vec![-1; n as usize];
    forms!([-1], [-1], |_b| barrier ibarrier barrier_init() on WORLD);
    let before = if me == root { [7, 8, 9] } else { [-1; 3] };
    forms!(before, [7, 8, 9], |b| bcast ibcast bcast_init(b, 3, INT, root) on WORLD);
    let at_root = if me == root { all.clone() } else { none.clone() };
    let own = [me];
    forms!(none, at_root, |b| gather igather gather_init(out(&own), 1, INT, b, 1, INT, root) on WORLD);
    forms!([-1], own, |b| scatter iscatter scatter_init(out(&all), 1, INT, b, 1, INT, root) on WORLD);
    forms!(none, all, |b| allgather iallgather allgather_init(out(&own), 1, INT, b, 1, INT) on WORLD);
    let mut in_place = none.clone();
    in_place[me as usize] = me;
    forms!(in_place, all, |b| allgather iallgather allgather_init(
        IN_PLACE, 0, Type::NULL, b, 1, INT
    ) on WORLD);
    let parcels: Vec<i32> = (0..n).map(|to| 100 * me + to).collect();
    let arrived: Vec<i32> = (0..n).map(|from| 100 * from + me).collect();
    forms!(none, arrived, |b| alltoall ialltoall alltoall_init(out(&parcels), 1, INT, b, 1, INT) on WORLD);
    forms!(parcels, arrived, |b| alltoall ialltoall alltoall_init(IN_PLACE, 0, INT, b, 1, INT) on WORLD);
}

/// Blocks of different sizes: rank r has r elements.
pub fn vectors() {
    let (me, n) = (rank(), size());
    let counts: Vec<i64> = (0..i64::from(n)).collect();
    let displacements: Vec<i64> = counts.iter().map(|count| count * (count - 1) / 2).collect();
    let all: Vec<i32> = (0..n).flat_map(|rank| vec![rank; rank as usize]).collect();
    let (own, none) = (vec![me; me as usize], vec![-1; all.len()]);
    let (c, d) = (&counts[..], &displacements[..]);
    let count = i64::from(me);
    let at_root = if me == 0 { all.clone() } else { none.clone() };
    forms!(none, at_root, |b| gatherv igatherv gatherv_init(out(&own), count, INT, b, c, d, INT, 0) on WORLD);
    let fresh = vec![-1; own.len()];
    forms!(fresh, own, |b| scatterv iscatterv scatterv_init(out(&all), c, d, INT, b, count, INT, 0) on WORLD);
    forms!(none, all, |b| allgatherv iallgatherv allgatherv_init(
        out(&own), count, INT, b, c, d, INT
    ) on WORLD);
    // Everybody sends as many as its rank to everybody.
    let (sent, zeros) = (vec![count; n as usize], vec![0; n as usize]);
    forms!(none, all, |b| alltoallv ialltoallv alltoallv_init(
        out(&own), &sent, &zeros, INT, b, c, d, INT
    ) on WORLD);
    let bytes: Vec<i64> = displacements.iter().map(|d| 4 * d).collect();
    let types = vec![INT; n as usize];
    forms!(none, all, |b| alltoallw ialltoallw alltoallw_init(
        out(&own), &sent, &zeros, &types, b, c, &bytes, &types
    ) on WORLD);
}

/// What combines data.
pub fn reductions() {
    let (me, n) = (rank(), size());
    let (own, sum) = ([me, 1], [n * (n - 1) / 2, n]);
    let at_root = if me == 1 { sum } else { [-1; 2] };
    forms!([-1; 2], at_root, |b| reduce ireduce reduce_init(out(&own), b, 2, INT, SUM, 1) on WORLD);
    let nowhere = std::ptr::null_mut();
    for _ in 0..4 {
        let mut result = [-1; 2];
        let buffer = if me == 1 { into(&mut result) } else { nowhere };
        api::reduce(out(&own), buffer, 2, INT, SUM, 1, WORLD).unwrap();
        assert_eq!(result, at_root, "only the root has a receive buffer");
    }
    forms!([-1; 2], sum, |b| allreduce iallreduce allreduce_init(out(&own), b, 2, INT, SUM) on WORLD);
    forms!(own, sum, |b| allreduce iallreduce allreduce_init(IN_PLACE, b, 2, INT, SUM) on WORLD);
    let up_to = [(me + 1) * me / 2, me + 1];
    forms!([-1; 2], up_to, |b| scan iscan scan_init(out(&own), b, 2, INT, SUM) on WORLD);
    let before = if me == 0 { [-1; 2] } else { [me * (me - 1) / 2, me] };
    forms!([-1; 2], before, |b| exscan iexscan exscan_init(out(&own), b, 2, INT, SUM) on WORLD);
    let vector: Vec<i32> = (0..n).map(|part| part + me).collect();
    let part = [n * me + n * (n - 1) / 2];
    forms!([-1], part, |b| reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init(
        out(&vector), b, 1, INT, SUM
    ) on WORLD);
    let ones = vec![1; n as usize];
    forms!([-1], part, |b| reduce_scatter ireduce_scatter reduce_scatter_init(
        out(&vector), b, &ones, INT, SUM
    ) on WORLD);
}

/// Long data, by whatever algorithm suits it.
pub fn long() {
    let (me, n) = (rank(), size());
    let count = 400_003;
    let own: Vec<i32> = (0..count).map(|index| index ^ me).collect();
    let sum: Vec<i32> = (0..count).map(|index| (0..n).map(|rank| index ^ rank).sum()).collect();
    let all = i64::from(count);
    let block = count / n;
    // By messages at first, then through shared memory.
    for _ in 0..3 {
        let (mut result, mut in_place) = (vec![0; count as usize], own.clone());
        api::allreduce(out(&own), into(&mut result), all, INT, SUM, WORLD).unwrap();
        assert!(result == sum);
        api::allreduce(IN_PLACE, into(&mut in_place), all, INT, SUM, WORLD).unwrap();
        assert!(in_place == sum);
        result.fill(-1);
        api::reduce(out(&own), into(&mut result), all, INT, SUM, n - 1, WORLD).unwrap();
        assert!(if me == n - 1 { result == sum } else { result.iter().all(|&value| value == -1) });
        let part = &sum[(me * block) as usize..((me + 1) * block) as usize];
        let scatter = api::reduce_scatter_block;
        scatter(out(&own), into(&mut result), i64::from(block), INT, SUM, WORLD).unwrap();
        assert!(result.starts_with(part));
        in_place.copy_from_slice(&own);
        scatter(IN_PLACE, into(&mut in_place), i64::from(block), INT, SUM, WORLD).unwrap();
        assert!(in_place.starts_with(part));
    }
    let mut copy = own.clone();
    api::bcast(into(&mut copy), all, INT, 1, WORLD).unwrap();
    assert!(copy.iter().zip(0..).all(|(&value, index)| value == index ^ 1));
    let mut parcels = vec![0; (block * n) as usize];
    let each = i64::from(block);
    api::alltoall(out(&own), each, INT, into(&mut parcels), each, INT, WORLD).unwrap();
    for (from, part) in (0..n).zip(parcels.chunks_exact(block as usize)) {
        assert!(part.iter().zip(me * block..).all(|(&value, index)| value == index ^ from));
    }
}

/// Many at once, waited for in another order, while persistent ones are started in different orders.
pub fn at_once() {
    let (me, n) = (rank(), size());
    let own = [me];
    let mut sums = [[0]; 8];
    let begin = |sum: &mut [i32; 1]| api::iallreduce(out(&own), into(sum), 1, INT, SUM, WORLD).unwrap();
    let mut requests: Vec<Request> = sums.iter_mut().map(begin).collect();
    let mut kept = [[0]; 2];
    let init = |sum: &mut [i32; 1]| {
        api::allreduce_init(out(&own), into(sum), 1, INT, SUM, WORLD, Info::NULL).unwrap()
    };
    let mut persistent: Vec<Request> = kept.iter_mut().map(init).collect();
    if me % 2 == 0 {
        persistent.reverse();
    }
    persistent.iter_mut().for_each(|request| api::start(*request).unwrap());
    requests.iter_mut().rev().for_each(|request| api::wait(request, None).unwrap());
    persistent.iter_mut().for_each(|request| api::wait(request, None).unwrap());
    persistent.iter_mut().for_each(|request| api::request_free(request).unwrap());
    let sum = [n * (n - 1) / 2];
    assert_eq!((sums, kept), ([sum; 8], [sum; 2]));
}

/// More nonblocking collectives of short data at once than a rank has places for, blocking ones among them,
/// and one rank that is elsewhere meanwhile.
pub fn short_and_many() {
    let (me, n) = (rank(), size());
    let wait = |request: &mut Request| api::wait(request, None).unwrap();
    (0..8).for_each(|_| api::barrier(WORLD).unwrap());
    for round in 0..200 {
        let own = [me + round];
        let sum = n * (n - 1) / 2 + n * round;
        let (mut sums, mut told, mut all) =
            ([[0]; 20], [if me == 1 { round } else { -1 }], vec![-1; n as usize]);
        let begin = |sum: &mut [i32; 1]| api::iallreduce(out(&own), into(sum), 1, INT, SUM, WORLD).unwrap();
        let mut requests: Vec<Request> = sums.iter_mut().map(begin).collect();
        requests.push(api::ibarrier(WORLD).unwrap());
        requests.push(api::ibcast(into(&mut told), 1, INT, 1, WORLD).unwrap());
        requests.push(api::iallgather(out(&own), 1, INT, into(&mut all), 1, INT, WORLD).unwrap());
        match round % 4 {
            // The others wait for what this rank is to do while it is in no call.
            0 if me == round / 4 % n => std::thread::sleep(std::time::Duration::from_millis(3)),
            1 => {
                let mut result = [0];
                api::allreduce(out(&own), into(&mut result), 1, INT, SUM, WORLD).unwrap();
                assert_eq!(result, [sum]);
            }
            2 => requests.reverse(),
            _ => {}
        }
        requests.iter_mut().for_each(wait);
        let theirs: Vec<i32> = (round..round + n).collect();
        assert_eq!((sums, told, all), ([[sum]; 20], [round], theirs));
    }
}

/// Blocking and nonblocking ones are matched apart, also where shared memory is made for them in between:
/// mpi4py's tests call them in another order on one rank.
pub fn matched_apart() {
    let (me, n) = (rank(), size());
    for before in 0..8 {
        let mut comm = api::comm_dup(WORLD).unwrap();
        (0..before).for_each(|_| api::barrier(comm).unwrap());
        for root in 0..n {
            let (own, mut result) = ([me], [0]);
            if me != root {
                api::barrier(comm).unwrap();
            }
            let mut request = api::iallreduce(out(&own), into(&mut result), 1, INT, SUM, comm).unwrap();
            if me == root {
                api::barrier(comm).unwrap();
            }
            api::wait(&mut request, None).unwrap();
            assert_eq!(result, [n * (n - 1) / 2]);
        }
        api::comm_free(&mut comm).unwrap();
    }
}

/// An operator of the program's that is not commutative.
pub fn user_operator() {
    let (me, n) = (rank(), size());
    let op = api::op_create(Box::new(crate::operator::last_not_zero), false);
    let own = [me + 1, if me == 1 { 5 } else { 0 }];
    let mut result = [0; 2];
    api::allreduce(out(&own), into(&mut result), 2, INT, op, WORLD).unwrap();
    assert_eq!(result, [n, 5]);
    let mut request = api::ireduce(out(&own), into(&mut result), 2, INT, op, 0, WORLD).unwrap();
    api::wait(&mut request, None).unwrap();
    assert_eq!(result, [n, 5]);
}

/// Between two groups, data goes to the other one.
pub fn between_groups() {
    let me = rank();
    let inter = crate::inter::halves().1;
    let ours = |of: i32| (0..size()).filter(|rank| rank % 2 == of).collect::<Vec<i32>>();
    let theirs = ours(1 - me % 2);
    let own = [me];
    api::barrier(inter).unwrap();
    let sum: i32 = theirs.iter().sum();
    forms!([-1], [sum], |b| allreduce iallreduce allreduce_init(out(&own), b, 1, INT, SUM) on inter);
    let none = vec![-1; theirs.len()];
    forms!(none, theirs, |b| allgather iallgather allgather_init(out(&own), 1, INT, b, 1, INT) on inter);
    let parcels: Vec<i32> = theirs.iter().map(|to| 100 * me + to).collect();
    let arrived: Vec<i32> = theirs.iter().map(|from| 100 * from + me).collect();
    forms!(none, arrived, |b| alltoall ialltoall alltoall_init(out(&parcels), 1, INT, b, 1, INT) on inter);
    // Rank 1 of the job is rank 0 of its half.
    let root = match me {
        1 => nmad_mpi::constant::ROOT,
        _ if me % 2 == 1 => nmad_mpi::constant::PROC_NULL,
        _ => 0,
    };
    let told = if me % 2 == 0 || me == 1 { [3] } else { [-1] };
    let before = if me == 1 { [3] } else { [-1] };
    forms!(before, told, |b| bcast ibcast bcast_init(b, 1, INT, root) on inter);
    let evens: i32 = ours(0).iter().sum();
    let result = if me == 1 { [evens] } else { [-1] };
    forms!([-1], result, |b| reduce ireduce reduce_init(out(&own), b, 1, INT, SUM, root) on inter);
    let all = if me == 1 { theirs.clone() } else { vec![-1; theirs.len()] };
    forms!(none, all, |b| gather igather gather_init(out(&own), 1, INT, b, 1, INT, root) on inter);
}

/// In a ring of two ranks in each dimension, blocks sent down are received from above.
pub fn neighbors() {
    let me = rank();
    let grid = api::cart_create(WORLD, &[2, 2], &[true, true], false).unwrap();
    let coordinates = api::cart_coords(grid, me).unwrap();
    let other = |dimension: usize| {
        let mut there = coordinates.clone();
        there[dimension] = 1 - there[dimension];
        api::cart_rank(grid, &there).unwrap()
    };
    let (a, b) = (other(0), other(1));
    let own = [10 * me, 10 * me + 1, 10 * me + 2, 10 * me + 3];
    let arrived = [10 * a + 1, 10 * a, 10 * b + 3, 10 * b + 2];
    forms!([-1; 4], arrived, |buffer| neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init(
        out(&own), 1, INT, buffer, 1, INT
    ) on grid);
    let mine = [me];
    forms!([-1; 4], [a, a, b, b], |buffer| neighbor_allgather ineighbor_allgather neighbor_allgather_init(
        out(&mine), 1, INT, buffer, 1, INT
    ) on grid);
    let error = api::neighbor_allgather(out(&own), 1, INT, into(&mut [0; 4]), 1, INT, WORLD).unwrap_err();
    assert_eq!(error.class(), Class::TOPOLOGY, "{error}");
}

/// With the check on, ranks that call different things all find out.
pub fn mismatches() {
    let me = rank();
    let mut data = [me; 4];
    let told = |result: Result<()>, class: Class, words: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        assert!(error.text().contains(words), "{error}");
    };
    told(api::bcast(into(&mut data), 4, INT, me % 2, WORLD), Class::ROOT, "root");
    told(api::bcast(into(&mut data), 4 - i64::from(me % 2), INT, 0, WORLD), Class::COUNT, "bytes");
    let mixed = match me {
        0 => api::barrier(WORLD),
        _ => api::bcast(into(&mut data), 1, INT, 0, WORLD),
    };
    told(mixed, Class::NOT_SAME, "MPI_Barrier");
    let mixed = match me {
        0 => api::barrier(WORLD),
        _ => api::ibarrier(WORLD).and_then(|mut request| api::wait(&mut request, None)),
    };
    told(mixed, Class::NOT_SAME, "MPI_Ibarrier");
    let made = if me == 0 { api::comm_dup(WORLD) } else { api::comm_split(WORLD, 0, 0) };
    told(made.map(drop), Class::NOT_SAME, "MPI_Comm_split");
    let op = if me == 0 { SUM } else { Op(2) };
    let own = [me];
    told(api::allreduce(out(&own), into(&mut data), 1, INT, op, WORLD), Class::OP, "operators");
    // A schedule of the blocking call is not taken for one that does not block.
    api::barrier(WORLD).unwrap();
    let mixed = match me {
        0 => api::barrier(WORLD),
        _ => api::ibarrier(WORLD).and_then(|mut request| api::wait(&mut request, None)),
    };
    told(mixed, Class::NOT_SAME, "MPI_Ibarrier");
    let grid = api::cart_create(WORLD, &[1, me.min(1) + 1], &[false; 2], false);
    told(grid.map(drop), Class::ARG, "different dims");
    let all = api::comm_group(WORLD).unwrap();
    let group = if me == 0 { api::group_incl(all, &[0]).unwrap() } else { all };
    told(api::comm_create(WORLD, group).map(drop), Class::GROUP, "gives a group of 3 processes");
    // Groups of their own are right.
    let own_group = api::group_incl(all, &[me]).unwrap();
    assert_eq!(api::comm_size(api::comm_create(WORLD, own_group).unwrap()), Ok(1));
    // An error found only after the exchange does not advise the check that runs already.
    let counts: Vec<i64> = (0..i64::from(size())).map(|rank| 1 + i64::from(me == 0 && rank == 1)).collect();
    let (from, places) = ([me; 8], [0, 2, 4]);
    let late = api::gatherv(out(&from), 1, INT, into(&mut [0; 8]), &counts, &places, INT, 0, WORLD);
    if let (0, error) = (me, late) {
        let error = error.unwrap_err();
        assert_eq!(error.class(), Class::TRUNCATE, "{error}");
        assert!(!error.text().contains("NMAD_MPI_CHECK"), "{error}");
    }
    // And what matches goes on.
    api::allreduce(out(&own), into(&mut data), 1, INT, SUM, WORLD).unwrap();
    assert_eq!(data[0], size() * (size() - 1) / 2);
}

/// The same byte must not be sent and received, which is looked for in the checking mode.
pub fn overlapping() {
    let (mut data, other) = ([rank(); 8], 1 - rank());
    let at = |index: usize, data: &mut [i32]| data[index..].as_mut_ptr();
    let refused = |result: Result<()>| {
        let error = result.unwrap_err();
        assert!(error.class() == Class::BUFFER && error.text().contains("both sent and received"), "{error}");
    };
    let (first, second) = (at(0, &mut data), at(1, &mut data));
    refused(api::allreduce(first.cast(), second.cast(), 2, INT, SUM, WORLD));
    refused(api::allgather(second.cast(), 2, INT, first.cast(), 2, INT, WORLD));
    refused(api::alltoallv(first.cast(), &[1; 2], &[0, 6], INT, second.cast(), &[1; 2], &[0, 5], INT, WORLD));
    refused(api::sendrecv(first.cast(), 4, INT, other, 0, second.cast(), 4, INT, other, 0, WORLD, None));
    refused(api::isendrecv(first.cast(), 4, INT, other, 0, second.cast(), 4, INT, other, 0, WORLD).map(drop));
    // Every second number is sent, and those between are received.
    let mut second_each = api::type_vector(nmad_mpi::datatype::Form::Int, 4, 1, 2, INT).unwrap();
    api::type_commit(&mut second_each).unwrap();
    let (pairs, each) = (second_each, 1);
    api::sendrecv(first.cast(), each, pairs, other, 0, second.cast(), each, pairs, other, 0, WORLD, None)
        .unwrap();
    assert_eq!(data, std::array::from_fn(|index| if index % 2 == 0 { rank() } else { other }));
    api::allreduce(first.cast(), at(4, &mut data).cast(), 4, INT, SUM, WORLD).unwrap();
}

/// Two groups that call different collectives get an error that says so.
pub fn mismatches_between_groups() {
    let (_, inter) = crate::inter::halves();
    let (is_odd, first) = (rank() % 2 == 1, api::comm_rank(inter) == Ok(0));
    let mut data = [0; 8];
    let told = |result: Result<()>, class: Class, words: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        assert!(error.text().contains(words), "{error}");
    };
    // The first odd rank is the root.
    let root = match (is_odd, first) {
        (true, true) => nmad_mpi::constant::ROOT,
        (true, false) => nmad_mpi::constant::PROC_NULL,
        (false, _) => 0,
    };
    told(api::bcast(into(&mut data), 1, INT, 0, inter), Class::ROOT, "no rank gives MPI_ROOT");
    told(api::bcast(into(&mut data), 1 + i64::from(is_odd), INT, root, inter), Class::COUNT, "bytes");
    let mixed = if is_odd { api::barrier(inter) } else { api::bcast(into(&mut data), 1, INT, 0, inter) };
    told(mixed, Class::NOT_SAME, "of the other group");
    let own = [1; 8];
    let datatype = if is_odd { FLOAT } else { INT };
    told(
        api::reduce(out(&own), into(&mut data), 1, datatype, SUM, root, inter),
        Class::TYPE,
        "of the other group",
    );
    let count = 1 + i64::from(is_odd);
    told(api::allreduce(out(&own), into(&mut data), count, INT, SUM, inter), Class::COUNT, "bytes");
    let merged = api::intercomm_merge(inter, rank() < 2);
    told(merged.map(drop), Class::ARG, "different high");
    // What a group sends the other one receives, which need not be as much in both directions.
    let back = 3 - count;
    api::allgather(out(&own), count, INT, into(&mut [0; 8]), back, INT, inter).unwrap();
    told(
        api::allgather(out(&own), 1, INT, into(&mut [0; 8]), count, INT, inter),
        Class::COUNT,
        "of the other group",
    );
    api::bcast(into(&mut data), 1, INT, root, inter).unwrap();
    api::reduce(out(&own), into(&mut data), 1, INT, SUM, root, inter).unwrap();
    api::barrier(inter).unwrap();
}

/// Invalid arguments are named.
pub fn arguments() {
    let mut data = [0; 2];
    let class = |result: Result<()>| result.unwrap_err().class();
    assert_eq!(class(api::bcast(into(&mut data), 1, INT, size(), WORLD)), Class::ROOT);
    assert_eq!(class(api::bcast(into(&mut data), -1, INT, 0, WORLD)), Class::COUNT);
    assert_eq!(class(api::bcast(into(&mut data), 1, Type::NULL, 0, WORLD)), Class::TYPE);
    assert_eq!(class(api::bcast(into(&mut data), 1, INT, 0, Comm::NULL)), Class::COMM);
    assert_eq!(class(api::bcast(IN_PLACE.cast_mut(), 1, INT, 0, WORLD)), Class::BUFFER);
    assert_eq!(class(api::allreduce(out(&[1]), into(&mut data), 1, INT, Op::NULL, WORLD)), Class::OP);
    let few = api::allgatherv(out(&[1]), 1, INT, into(&mut data), &[1], &[0], INT, WORLD);
    assert_eq!(class(few), Class::ARG);
}

/// Buffers that cannot be are refused by all ranks alike, on every way that a collective may take: schedules
/// first, later the board and the pool.
pub fn buffers() {
    let (own, mut other) = (vec![1; 4096], vec![0; 4096 * size() as usize]);
    let mut both = other.clone();
    let (none, out_of, same) = (std::ptr::null(), out(&own), into(&mut both));
    let refused = |answer: Result<()>| assert_eq!(answer.unwrap_err().class(), Class::BUFFER);
    for _ in 0..6 {
        for count in [1, 4096] {
            let result = into(&mut other);
            let nothing = std::ptr::null_mut();
            for (from, to) in [(none, result), (out_of, nothing), (same.cast_const(), same)] {
                refused(api::allreduce(from, to, count, INT, SUM, WORLD));
                refused(api::iallreduce(from, to, count, INT, SUM, WORLD).map(drop));
                refused(api::scan(from, to, count, INT, SUM, WORLD));
                refused(api::reduce_scatter_block(from, to, count, INT, SUM, WORLD));
                refused(api::allgather(from, count, INT, to, count, INT, WORLD));
                refused(api::alltoall(from, count, INT, to, count, INT, WORLD));
                refused(api::reduce_local(from, to, count, INT, SUM));
            }
            refused(api::reduce(none, result, count, INT, SUM, 0, WORLD));
            refused(api::bcast(nothing, count, INT, 0, WORLD));
            // Nothing is read or written: nothing has to be there.
            api::allreduce(none, nothing, 0, INT, SUM, WORLD).unwrap();
            let first = if rank() == 0 { nothing } else { result };
            api::exscan(out_of, first, count, INT, SUM, WORLD).unwrap();
            // The ranks that call the same get the sum.
            api::allreduce(out_of, result, count, INT, SUM, WORLD).unwrap();
            assert_eq!(other[..count as usize], vec![size(); count as usize]);
        }
    }
}
