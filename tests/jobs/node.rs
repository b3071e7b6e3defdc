//! Ranks of one node: shared memory between them, networks to the others.

use super::cases::open;
use super::pattern;
use newmadeleine::{Session, SessionError};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

const LARGE: usize = 16 << 20;

/// Returns whether there are more ranks on this machine than cores that they may run on, or more ranks on a
/// host than its CPU quota permits.
fn are_oversubscribed(ranks: usize, on_host: usize) -> bool {
    let set = sched_getaffinity(None).expect("the cores of this process");
    let cores = (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).count();
    cores < ranks || std::thread::available_parallelism().is_ok_and(|share| share.get() < on_host)
}

/// Two ranks on each of two hosts: each pair communicates over the expected kind of rail.
pub fn mixed() {
    let session = open();
    let me = session.rank();
    let len = 1 << 20;
    let out = pattern(len, me as usize);
    let mut into = vec![vec![0; len]; 4];
    session
        .scope(|scope| {
            for (rank, buffer) in into.iter_mut().enumerate().filter(|(rank, _)| *rank != me as usize) {
                scope.recv(rank as u32, 1, buffer)?;
                scope.send(rank as u32, 1, &out)?;
            }
            Ok(())
        })
        .unwrap();
    let right = |(rank, buffer): (usize, &Vec<u8>)| rank == me as usize || *buffer == pattern(len, rank);
    assert!(into.iter().enumerate().all(right));
    let carried = |kind: &str| -> Vec<(u32, u64)> {
        let rails = session.rails();
        let of_kind = rails.iter().filter(|rail| rail.name.starts_with(kind));
        of_kind.map(|rail| (rail.peers, rail.counters.chunk_bytes)).collect()
    };
    // One rank here, two there. Where ranks outnumber cores, the receiver reads what is in its host's memory.
    let here = if are_oversubscribed(4, 2) { 0 } else { len as u64 };
    assert_eq!(carried("shm"), [(1, here)]);
    assert_eq!(carried("tcp"), [(2, 2 * len as u64)]);
    session.close().unwrap();
}

/// The named rails carry everything between the ranks of a node.
pub fn only(session: &Session, kind: &str) {
    for rail in session.rails().iter().filter(|rail| rail.name != "loopback") {
        assert!(rail.name.starts_with(kind) && rail.counters.packets > 0, "{rail:?}");
    }
}

pub fn over_loopback_interface() {
    let session = open();
    back_and_forth(&session);
    only(&session, "tcp/lo");
    session.close().unwrap();
}

pub fn over_memory() {
    let session = open();
    back_and_forth(&session);
    only(&session, "shm");
    session.close().unwrap();
}

/// Every size from nothing to a few MiB, both ways.
fn back_and_forth(session: &Session) {
    let other = 1 - session.rank();
    for len in [0, 1, 8, 56, 100, 5_000, 40_000, 70_000, 300_000, 3_000_000] {
        let (out, mut into) = (pattern(len, session.rank() as usize), vec![0; len]);
        for tag in 0..5 {
            into.fill(0);
            if session.rank() == 0 {
                session.send(other, tag, &out).unwrap();
                session.recv(other, tag, &mut into).unwrap();
            } else {
                session.recv(other, tag, &mut into).unwrap();
                session.send(other, tag, &out).unwrap();
            }
            assert!(into == pattern(len, other as usize), "{len} B");
        }
    }
}

/// Rank 1 enters a user namespace of its own, from which rank 0's memory is out of reach.
pub fn other_namespace() {
    const AGAIN: &str = "NMAD_TEST_AGAIN";
    if std::env::var_os("PMI_RANK").is_some_and(|rank| rank == "1") && std::env::var_os(AGAIN).is_none() {
        let own = std::env::current_exe().expect("this program has a path");
        let error = Command::new("unshare").arg("--user").arg(own).env(AGAIN, "1").exec();
        println!("without a user namespace of its own: {error}");
    }
    over_memory();
}

/// The sender makes no call while a large message is on its way: the receiver gets it all the same.
pub fn sender_computes() {
    let session = open();
    let data = pattern(LARGE, 1);
    if session.rank() == 0 {
        session.recv(1, 0, &mut []).unwrap();
        session
            .scope(|scope| {
                scope.send(1, 1, &data)?;
                compute();
                Ok(())
            })
            .unwrap();
        session.send(1, 3, &[]).unwrap();
    } else {
        session.send(0, 0, &[]).unwrap();
        let mut buffer = vec![0; LARGE];
        session.recv(0, 1, &mut buffer).unwrap();
        assert!(session.probe(0, 3).is_none(), "it is here while the sender still computes");
        assert!(buffer == data);
        session.recv(0, 3, &mut []).unwrap();
    }
    session.close().unwrap();
}

/// The receiver makes no call after posting a receive: the sender brings it all the same.
pub fn receiver_computes() {
    let session = open();
    let data = pattern(LARGE, 1);
    if session.rank() == 0 {
        session.recv(1, 0, &mut []).unwrap();
        session.send(1, 1, &data).unwrap();
        assert!(session.probe(1, 3).is_none(), "it has left while the receiver still computes");
        session.recv(1, 3, &mut []).unwrap();
    } else {
        let mut buffer = vec![0; LARGE];
        session
            .scope(|scope| {
                scope.recv(0, 1, &mut buffer)?;
                scope.send(0, 0, &[])?;
                compute();
                Ok(())
            })
            .unwrap();
        assert!(buffer == data);
        session.send(0, 3, &[]).unwrap();
    }
    session.close().unwrap();
}

fn compute() {
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Rank 1 is killed while a large message flows into its memory.
pub fn killed_in_the_middle() {
    let session = open();
    if session.rank() == 1 {
        let mut buffer = vec![0; 256 << 20];
        session
            .scope(|scope| {
                let request = scope.recv(0, 1, &mut buffer)?;
                scope.send(0, 0, &[])?;
                // Each look copies at most some hundred KiB.
                for _ in 0..200 {
                    assert!(scope.test(request)?.is_none(), "still in the middle");
                }
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                    .unwrap();
                Ok(())
            })
            .unwrap();
        panic!("still alive");
    }
    super::lost::ignore_termination();
    session.recv(1, 0, &mut []).unwrap();
    let begun = Instant::now();
    let error = session.send(1, 1, &vec![7; 256 << 20]).unwrap_err();
    assert!(matches!(error, SessionError::PeerLost { rank: 1, .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
