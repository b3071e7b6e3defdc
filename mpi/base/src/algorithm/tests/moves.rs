//! Collectives that move data.

use super::types::{numbers, types};
use super::world::{Buffers, Case, Memory, SIZES, is_tried_long, try_all};
use crate::algorithm::allgather::Allgather;
use crate::algorithm::alltoall::Alltoall;
use crate::algorithm::barrier::Barrier;
use crate::algorithm::bcast::Bcast;
use crate::algorithm::gather::Gather;
use crate::algorithm::place::{Blocks, Buffer, Place, Spot};
use crate::algorithm::scatter::Scatter;
use crate::datatype::Datatype;

/// Elements of a block; the last makes several pieces.
const COUNTS: [i64; 3] = [0, 1, 5];
const LONG: i64 = 40_001;
const FEW: [usize; 4] = [2, 3, 4, 7];

/// Elements of the block of a rank where blocks differ; some have none.
fn uneven(rank: usize) -> i64 {
    (rank as i64 * 3) % 5
}

/// Where that block begins; blocks are apart, and not in order.
fn apart(rank: usize, size: usize) -> i64 {
    (size - 1 - rank) as i64 * 6 + 1
}

fn everywhere(size: usize, memory: impl Fn(usize) -> Memory) -> Vec<Memory> {
    (0..size).map(memory).collect()
}

fn nothing(size: usize, datatype: &Datatype) -> Vec<Memory> {
    everywhere(size, |_| Memory::of(1, datatype))
}

fn send(count: i64, datatype: &Datatype) -> Place {
    Place::elements(Spot::start(Buffer::Send), count, datatype)
}

fn recv(count: i64, datatype: &Datatype) -> Place {
    Place::elements(Spot::start(Buffer::Recv), count, datatype)
}

fn blocks(size: usize, datatype: &Datatype, filled: impl Fn(usize) -> Option<(i64, Vec<i32>)>) -> Memory {
    let mut memory = Memory::of(size as i64 * 6 + 6, datatype);
    for (first, numbers) in (0..size).filter_map(filled) {
        memory.put(first, &numbers, datatype);
    }
    memory
}

fn table(buffer: Buffer, size: usize, datatype: &Datatype) -> Blocks {
    let counts: Vec<i64> = (0..size).map(uneven).collect();
    let displacements: Vec<i64> = (0..size).map(|rank| apart(rank, size)).collect();
    Blocks::uneven(buffer, &counts, &displacements, datatype)
}

#[test]
fn barrier_ends() {
    try_all(&SIZES, None, |size| {
        let buffers = Buffers { send: nothing(size, &types()[0]), recv: nothing(size, &types()[0]) };
        Case { problem: Box::new(|_| Barrier), before: buffers.clone(), after: buffers }
    });
}

fn bcast(sizes: &[usize], count: i64, datatype: &Datatype, root: impl Fn(usize) -> usize) {
    try_all(sizes, None, |size| {
        let root = root(size);
        let full = Memory::filled(&numbers(root, count), datatype);
        let empty = Memory::of(count, datatype);
        let before = everywhere(size, |rank| if rank == root { full.clone() } else { empty.clone() });
        let send = nothing(size, datatype);
        let datatype = datatype.clone();
        Case {
            problem: Box::new(move |_| Bcast { data: recv(count, &datatype), root }),
            before: Buffers { send: send.clone(), recv: before },
            after: Buffers { send, recv: everywhere(size, |_| full.clone()) },
        }
    });
}

#[test]
fn bcast_brings_the_roots_data() {
    for datatype in types() {
        for count in COUNTS {
            bcast(&SIZES, count, &datatype, |size| size / 2);
        }
        bcast(&SIZES, 9, &datatype, |_| 0);
        bcast(&SIZES, 9, &datatype, |size| size - 1);
        bcast(&FEW, LONG, &datatype, |size| size / 2);
    }
}

fn gather(count: i64, datatype: &Datatype, in_place: bool) {
    try_all(&SIZES, None, |size| {
        let root = size / 2;
        let all: Vec<i32> = (0..size).flat_map(|rank| numbers(rank, count)).collect();
        let send_before = everywhere(size, |rank| Memory::filled(&numbers(rank, count), datatype));
        let recv_before = everywhere(size, |rank| {
            let mut memory = Memory::of(size as i64 * count, datatype);
            if in_place && rank == root {
                memory.put(root as i64 * count, &numbers(root, count), datatype);
            }
            memory
        });
        let mut recv_after = recv_before.clone();
        recv_after[root].put(0, &all, datatype);
        let datatype = datatype.clone();
        Case {
            problem: Box::new(move |me| Gather {
                send: (!in_place || me != root).then(|| send(count, &datatype)),
                recv: (me == root).then(|| Blocks::even(Buffer::Recv, count, &datatype)),
                block: Some(count as u64 * datatype.size() as u64),
                root,
                left: None,
            }),
            before: Buffers { send: send_before.clone(), recv: recv_before },
            after: Buffers { send: send_before, recv: recv_after },
        }
    });
}

#[test]
fn gather_brings_all_blocks_to_the_root() {
    for datatype in types() {
        for count in COUNTS {
            gather(count, &datatype, false);
            gather(count, &datatype, true);
        }
    }
}

#[test]
fn gatherv_brings_uneven_blocks_to_their_places() {
    for datatype in types() {
        try_all(&SIZES, None, |size| {
            let root = size - 1;
            let datatype = datatype.clone();
            let of = datatype.clone();
            let own = everywhere(size, |rank| Memory::filled(&numbers(rank, uneven(rank)), &datatype));
            let before = everywhere(size, |_| blocks(size, &datatype, |_| None));
            let mut after = before.clone();
            after[root] =
                blocks(size, &datatype, |rank| Some((apart(rank, size), numbers(rank, uneven(rank)))));
            Case {
                problem: Box::new(move |me| Gather {
                    send: Some(send(uneven(me), &of)),
                    recv: (me == root).then(|| table(Buffer::Recv, size, &of)),
                    block: None,
                    root,
                    left: None,
                }),
                before: Buffers { send: own.clone(), recv: before },
                after: Buffers { send: own, recv: after },
            }
        });
    }
}

fn scatter(count: i64, datatype: &Datatype, in_place: bool) {
    try_all(&SIZES, None, |size| {
        let root = size / 2;
        let all: Vec<i32> = (0..size).flat_map(|rank| numbers(rank, count)).collect();
        let send_before = everywhere(size, |rank| match rank == root {
            true => Memory::filled(&all, datatype),
            false => Memory::of(1, datatype),
        });
        let recv_before = everywhere(size, |_| Memory::of(count, datatype));
        let recv_after = everywhere(size, |rank| match in_place && rank == root {
            true => Memory::of(count, datatype),
            false => {
                let mut memory = Memory::of(count, datatype);
                memory.put(0, &numbers(rank, count), datatype);
                memory
            }
        });
        let datatype = datatype.clone();
        Case {
            problem: Box::new(move |me| Scatter {
                send: (me == root).then(|| Blocks::even(Buffer::Send, count, &datatype)),
                recv: (!in_place || me != root).then(|| recv(count, &datatype)),
                block: Some(count as u64 * datatype.size() as u64),
                root,
            }),
            before: Buffers { send: send_before.clone(), recv: recv_before },
            after: Buffers { send: send_before, recv: recv_after },
        }
    });
}

#[test]
fn scatter_brings_each_its_block() {
    for datatype in types() {
        for count in COUNTS {
            scatter(count, &datatype, false);
            scatter(count, &datatype, true);
        }
    }
}

fn allgather(sizes: &[usize], count: i64, datatype: &Datatype, in_place: bool) {
    try_all(sizes, None, |size| {
        let all: Vec<i32> = (0..size).flat_map(|rank| numbers(rank, count)).collect();
        let own = everywhere(size, |rank| Memory::filled(&numbers(rank, count), datatype));
        let before = everywhere(size, |rank| {
            let mut memory = Memory::of(size as i64 * count, datatype);
            if in_place {
                memory.put(rank as i64 * count, &numbers(rank, count), datatype);
            }
            memory
        });
        let mut full = Memory::of(size as i64 * count, datatype);
        full.put(0, &all, datatype);
        let datatype = datatype.clone();
        Case {
            problem: Box::new(move |_| Allgather {
                send: (!in_place).then(|| send(count, &datatype)),
                recv: Blocks::even(Buffer::Recv, count, &datatype),
            }),
            before: Buffers { send: own.clone(), recv: before },
            after: Buffers { send: own, recv: everywhere(size, |_| full.clone()) },
        }
    });
}

#[test]
fn allgather_brings_all_blocks_to_all() {
    for datatype in types() {
        for in_place in [false, true] {
            COUNTS.iter().for_each(|&count| allgather(&SIZES, count, &datatype, in_place));
            if is_tried_long(&datatype, in_place) {
                allgather(&FEW, LONG, &datatype, in_place);
            }
        }
    }
}

#[test]
fn allgatherv_brings_uneven_blocks_to_their_places() {
    for (datatype, in_place) in
        types().into_iter().flat_map(|datatype| [(datatype.clone(), false), (datatype, true)])
    {
        try_all(&SIZES, None, |size| {
            let of = datatype.clone();
            let block = |rank| Some((apart(rank, size), numbers(rank, uneven(rank))));
            let own = everywhere(size, |rank| Memory::filled(&numbers(rank, uneven(rank)), &datatype));
            let before = everywhere(size, |me| {
                blocks(size, &datatype, |rank| if in_place && rank == me { block(rank) } else { None })
            });
            let full = blocks(size, &datatype, block);
            Case {
                problem: Box::new(move |me| Allgather {
                    send: (!in_place).then(|| send(uneven(me), &of)),
                    recv: table(Buffer::Recv, size, &of),
                }),
                before: Buffers { send: own.clone(), recv: before },
                after: Buffers { send: own, recv: everywhere(size, |_| full.clone()) },
            }
        });
    }
}

/// The block that goes from one rank to another.
fn parcel(from: usize, to: usize, count: i64) -> Vec<i32> {
    numbers(from * 100 + to, count)
}

fn alltoall(sizes: &[usize], count: i64, datatype: &Datatype, in_place: bool) {
    try_all(sizes, None, |size| {
        let out = |me: usize| -> Vec<i32> { (0..size).flat_map(|to| parcel(me, to, count)).collect() };
        let into = |me: usize| -> Vec<i32> { (0..size).flat_map(|from| parcel(from, me, count)).collect() };
        let own = everywhere(size, |rank| Memory::filled(&out(rank), datatype));
        let before = match in_place {
            true => own.clone(),
            false => everywhere(size, |_| Memory::of(size as i64 * count, datatype)),
        };
        let after = everywhere(size, |rank| Memory::filled(&into(rank), datatype));
        let datatype = datatype.clone();
        Case {
            problem: Box::new(move |_| Alltoall {
                send: (!in_place).then(|| Blocks::even(Buffer::Send, count, &datatype)),
                recv: Blocks::even(Buffer::Recv, count, &datatype),
                block: Some(count as u64 * datatype.size() as u64),
            }),
            before: Buffers { send: own.clone(), recv: before },
            after: Buffers { send: own, recv: after },
        }
    });
}

#[test]
fn alltoall_brings_each_block_to_its_rank() {
    for datatype in types() {
        for in_place in [false, true] {
            COUNTS.iter().filter(|count| **count > 0).for_each(|&c| alltoall(&SIZES, c, &datatype, in_place));
            if is_tried_long(&datatype, in_place) {
                alltoall(&FEW, 20_000, &datatype, in_place);
            }
        }
    }
}

#[test]
fn alltoallv_takes_blocks_of_any_size_and_type() {
    let count = |from: usize, to: usize| ((from + 2 * to) % 4) as i64;
    for datatype in types() {
        try_all(&SIZES, None, |size| {
            let own = everywhere(size, |me| {
                blocks(size, &datatype, |to| Some((apart(to, size), parcel(me, to, count(me, to)))))
            });
            let before = everywhere(size, |_| blocks(size, &datatype, |_| None));
            let after = everywhere(size, |me| {
                blocks(size, &datatype, |from| Some((apart(from, size), parcel(from, me, count(from, me)))))
            });
            let of = datatype.clone();
            let table = move |buffer, count: &dyn Fn(usize) -> i64| {
                let counts: Vec<i64> = (0..size).map(count).collect();
                let displacements: Vec<i64> = (0..size).map(|rank| apart(rank, size) * of.extent()).collect();
                Blocks::mixed(buffer, &counts, &displacements, &vec![of.clone(); size])
            };
            Case {
                problem: Box::new(move |me| Alltoall {
                    send: Some(table(Buffer::Send, &|to| count(me, to))),
                    recv: table(Buffer::Recv, &|from| count(from, me)),
                    block: None,
                }),
                before: Buffers { send: own.clone(), recv: before },
                after: Buffers { send: own, recv: after },
            }
        });
    }
}
