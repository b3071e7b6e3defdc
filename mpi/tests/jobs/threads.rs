//! Several threads in MPI at the same time.

use crate::comms::greet;
use crate::point::{INT, WORLD, out, pattern, rank, recv};
use nmad_mpi::Comm;
use nmad_mpi::api;

const THREADS: i32 = 4;

/// Each thread talks to the same thread of the other process, blocking.
pub fn at_once() {
    let other = 1 - rank();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for (round, len) in [1, 50, 5000, 100_000].into_iter().cycle().take(40).enumerate() {
                    let data = pattern(len, round as i32);
                    let mut request = api::isend(out(&data), len as i64, INT, other, thread, WORLD).unwrap();
                    assert!(recv(len, other, thread, WORLD).0 == data);
                    api::wait(&mut request, None).unwrap();
                }
            });
        }
    });
}

/// Ping-pong of each thread with the same thread of the other process: sends that end in their call.
pub fn in_turns() {
    let (me, other) = (rank(), 1 - rank());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..2000 {
                    let len = [0, 1, 1000][round % 3];
                    let data = pattern(len, round as i32);
                    if me == 0 {
                        api::send(out(&data), len as i64, INT, other, thread, WORLD).unwrap();
                    }
                    assert!(recv(len, other, thread, WORLD).0 == data);
                    if me == 1 {
                        api::send(out(&data), len as i64, INT, other, thread, WORLD).unwrap();
                    }
                }
            });
        }
    });
}

/// Each thread duplicates a communicator of its own, again and again: numbers are agreed upon at the same
/// time.
pub fn comms() {
    let own: Vec<Comm> = (0..THREADS).map(|_| api::comm_dup(WORLD).unwrap()).collect();
    std::thread::scope(|scope| {
        for comm in own {
            scope.spawn(move || {
                for _ in 0..25 {
                    let mut copy = api::comm_dup(comm).unwrap();
                    greet(copy);
                    api::comm_free(&mut copy).unwrap();
                }
            });
        }
    });
}
