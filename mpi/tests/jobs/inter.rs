//! Intercommunicators.

use crate::comms::greet;
use crate::point::{INT, WORLD, out, rank, recv, size};
use nmad_mpi::Comm;
use nmad_mpi::api;
use nmad_mpi::constant::{ANY_SOURCE, Comparison};

/// The even ranks and the odd ones.
pub fn halves() -> (Comm, Comm) {
    let mine = api::comm_split(WORLD, rank() % 2, rank()).unwrap();
    // The leaders are the last of their halves.
    let last = |odd: i32| (0..size()).rfind(|rank| rank % 2 == odd).unwrap();
    let leader = api::comm_size(mine).unwrap() - 1;
    let inter = api::intercomm_create(mine, leader, WORLD, last(1 - rank() % 2), 12).unwrap();
    (mine, inter)
}

/// Everybody tells everybody of the other group its rank.
fn greet_others(inter: Comm) {
    let (me, others) = (api::comm_rank(inter).unwrap(), api::comm_remote_size(inter).unwrap());
    for to in 0..others {
        api::send(out(&[me]), 1, INT, to, 8, inter).unwrap();
    }
    let mut seen: Vec<i32> = Vec::new();
    for _ in 0..others {
        let (data, status) = recv(1, ANY_SOURCE, 8, inter);
        assert_eq!(data, [status.source]);
        seen.push(status.source);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..others).collect::<Vec<_>>());
}

pub fn create_and_merge() {
    let (mine, inter) = halves();
    assert_eq!(api::comm_test_inter(inter), Ok(true));
    assert_eq!(api::comm_size(inter), api::comm_size(mine));
    assert_eq!(api::comm_remote_size(inter).unwrap() + api::comm_size(mine).unwrap(), size());
    greet_others(inter);
    // The group that says high comes last; if both do, the group of process 0 comes first.
    for (evens_high, odds_high, evens_first) in
        [(false, true, true), (true, false, false), (true, true, true)]
    {
        let is_odd = rank() % 2 == 1;
        let one = api::intercomm_merge(inter, if is_odd { odds_high } else { evens_high }).unwrap();
        greet(one);
        let before = api::comm_remote_size(inter).unwrap() * i32::from(is_odd == evens_first);
        assert_eq!(api::comm_rank(one).unwrap(), before + rank() / 2);
        assert_eq!(api::comm_compare(one, WORLD), Ok(Comparison::Similar));
    }
    assert!(api::comm_remote_size(mine).is_err() && api::intercomm_merge(mine, true).is_err());
    let error = api::intercomm_create(mine, 99, WORLD, 0, 1).unwrap_err();
    assert!(error.text().contains("99"), "{error}");
}

pub fn split() {
    let (_, inter) = halves();
    let copy = api::comm_dup(inter).unwrap();
    assert_eq!(api::comm_compare(copy, inter), Ok(Comparison::Congruent));
    greet_others(copy);
    greet_others(inter);
    // Only the even half has color 1: there is nobody for it to talk to.
    let color = i32::from(rank() == 0);
    let part = api::comm_split(inter, color, -rank()).unwrap();
    assert_eq!(part.is_null(), rank() == 0);
    if !part.is_null() {
        let (local, remote) = if rank() % 2 == 0 { (2, 3) } else { (3, 2) };
        assert_eq!((api::comm_size(part), api::comm_remote_size(part)), (Ok(local), Ok(remote)));
        greet_others(part);
    }
    let group = api::comm_group(inter).unwrap();
    let first = api::group_incl(group, &[0]).unwrap();
    let pair = api::comm_create(inter, first).unwrap();
    assert_eq!(pair.is_null(), rank() > 1);
    if !pair.is_null() {
        greet_others(pair);
    }
}
