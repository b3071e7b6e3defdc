//! Communicators.

use crate::point::{INT, WORLD, into, out, rank, recv, size};
use nmad_mpi::api::{self, Copy, Delete, Owner};
use nmad_mpi::constant::{ANY_SOURCE, ANY_TAG, Comparison, SplitType, UNDEFINED};
use nmad_mpi::{Class, Comm, Error, Group, Info, Keyval, Request, Status};

/// Everybody tells everybody of a communicator its rank.
pub fn greet(comm: Comm) {
    let (me, size) = (api::comm_rank(comm).unwrap(), api::comm_size(comm).unwrap());
    let data = [me * 10];
    let sends = (0..size).map(|to| api::isend(out(&data), 1, INT, to, 3, comm).unwrap());
    let mut sends: Vec<Request> = sends.collect();
    for from in 0..size {
        let (data, status) = recv(1, from, ANY_TAG, comm);
        assert_eq!((data, status.source), (vec![from * 10], from));
    }
    api::waitall(&mut sends, None).unwrap();
}

pub fn apart() {
    let mut copies: Vec<Comm> = (0..5).map(|_| api::comm_dup(WORLD).unwrap()).collect();
    let next = (rank() + 1) % size();
    for (number, &comm) in copies.iter().enumerate() {
        assert_eq!(api::comm_compare(comm, WORLD), Ok(Comparison::Congruent));
        assert_eq!(api::comm_compare(comm, comm), Ok(Comparison::Ident));
        api::send(out(&[number as i32]), 1, INT, next, 1, comm).unwrap();
    }
    for (number, &comm) in copies.iter().enumerate().rev() {
        assert_eq!(recv(1, ANY_SOURCE, 1, comm).0, [number as i32]);
        greet(comm);
    }
    copies.iter_mut().for_each(|comm| api::comm_free(comm).unwrap());
    assert!(copies.iter().all(|comm| comm.is_null()));
    assert!(api::comm_free(&mut { WORLD }).is_err(), "it is predefined");
}

pub fn split() {
    let me = rank();
    let color = if me == 4 { UNDEFINED } else { me % 2 };
    let comm = api::comm_split(WORLD, color, -me).unwrap();
    assert_eq!(comm.is_null(), me == 4);
    if !comm.is_null() {
        assert_eq!((api::comm_size(comm), api::comm_rank(comm)), (Ok(2), Ok(i32::from(me < 2))));
        greet(comm);
        let deeper = api::comm_split(comm, 0, 0).unwrap();
        assert_eq!(api::comm_compare(deeper, comm), Ok(Comparison::Congruent));
        greet(deeper);
    }
    let node = api::comm_split_type(WORLD, Some(SplitType::Shared), me, Info::NULL).unwrap();
    assert_eq!(api::comm_size(node), Ok(size()), "all run on this machine");
    greet(node);
    let none = api::comm_split_type(WORLD, None, me, Info::NULL).unwrap();
    assert!(none.is_null());
    assert!(api::comm_split(WORLD, -3, 0).is_err());
}

fn group(ranks: &[i32]) -> Group {
    api::group_incl(api::comm_group(WORLD).unwrap(), ranks).unwrap()
}

pub fn groups() {
    let (odd, rest) = (group(&[3, 1]), group(&[4, 0, 2]));
    let mine = if rank() % 2 == 1 { odd } else { rest };
    let comm = api::comm_create(WORLD, odd).unwrap();
    assert_eq!(comm.is_null(), rank() % 2 == 0);
    if !comm.is_null() {
        assert_eq!(api::comm_rank(comm), Ok(i32::from(rank() == 1)));
        greet(comm);
    }
    // Each group by itself, and one after the other with the same tag.
    for tag in [0, 0, 7] {
        let comm = api::comm_create_group(WORLD, mine, tag).unwrap();
        greet(comm);
    }
    for text in ["org.example.a", "org.example.b"] {
        let comm = api::comm_create_from_group(mine, text, Info::NULL, nmad_mpi::Errhandler::RETURN).unwrap();
        assert_eq!(api::comm_get_errhandler(comm), Ok(nmad_mpi::Errhandler::RETURN));
        greet(comm);
    }
    let comm = api::comm_create(WORLD, mine).unwrap();
    greet(comm);
    let all = api::comm_split(WORLD, 0, -rank()).unwrap();
    assert_eq!(api::comm_compare(all, WORLD), Ok(Comparison::Similar));
    assert_eq!(api::comm_compare(comm, WORLD), Ok(Comparison::Unequal));
}

pub fn idup() {
    let next = (rank() + 1) % size();
    let (first, one) = api::comm_idup(WORLD).unwrap();
    let (second, two) = api::comm_idup(WORLD).unwrap();
    api::comm_set_errhandler(second, nmad_mpi::Errhandler::RETURN).unwrap();
    // A message is on its way meanwhile, and a blocking call advances the others.
    api::send(out(&[5]), 1, INT, next, 9, WORLD).unwrap();
    assert_eq!(recv(1, ANY_SOURCE, 9, WORLD).0, [5]);
    let mut requests = [two, one];
    let mut statuses = [Status::EMPTY; 2];
    api::waitall(&mut requests, Some(&mut statuses)).unwrap();
    api::send(out(&[1]), 1, INT, next, 0, first).unwrap();
    api::send(out(&[2]), 1, INT, next, 0, second).unwrap();
    assert_eq!(recv(1, ANY_SOURCE, 0, second).0, [2]);
    assert_eq!(recv(1, ANY_SOURCE, 0, first).0, [1]);
}

pub fn attributes() {
    let twice = Copy::User(Box::new(|_, _, value| Ok(Some(2 * value))));
    let mut keys = [Copy::Null, Copy::Dup, twice].map(|c| api::create_keyval(Owner::Comm, c, Delete::Null));
    keys.iter().for_each(|&key| api::comm_set_attr(WORLD, key, 21).unwrap());
    assert!(api::comm_get_attr(WORLD, Keyval::APPNUM).unwrap().is_some(), "the launcher tells it");
    api::comm_set_name(WORLD, "all of them").unwrap();
    let info = api::info_create();
    api::info_set(info, "color", "green").unwrap();
    api::comm_set_info(WORLD, info).unwrap();
    let copy = api::comm_dup(WORLD).unwrap();
    assert_eq!(keys.map(|key| api::comm_get_attr(copy, key).unwrap()), [None, Some(21), Some(42)]);
    assert_eq!(api::comm_get_name(copy).unwrap(), "", "names are not copied");
    let color = |comm| api::info_get_string(api::comm_get_info(comm).unwrap(), "color").unwrap();
    assert_eq!(color(copy), None, "hints are not copied");
    assert_eq!(color(api::comm_dup_with_info(WORLD, info).unwrap()), Some("green".into()));
    assert_eq!(color(api::comm_dup_with_info(WORLD, Info::NULL).unwrap()), None);
    let (copy, mut request) = api::comm_idup(WORLD).unwrap();
    api::wait(&mut request, None).unwrap();
    assert_eq!(color(copy), None);
    keys.iter_mut().for_each(|key| api::free_keyval(Owner::Comm, key).unwrap());
}

/// More communicators, one after the other, than the numbers that are used round and round.
pub fn many() {
    for _ in 0..3000 {
        let mut comms = [(); 2].map(|()| api::comm_dup(WORLD).unwrap());
        comms.iter_mut().for_each(|comm| api::comm_free(comm).unwrap());
    }
    let comm = api::comm_dup(WORLD).unwrap();
    // A receive outlives its communicator.
    let mut buffer = [0];
    let next = (rank() + 1) % size();
    let mut request = api::irecv(into(&mut buffer), 1, INT, ANY_SOURCE, 4, comm).unwrap();
    api::send(out(&[rank()]), 1, INT, next, 4, comm).unwrap();
    api::comm_free(&mut { comm }).unwrap();
    let mut status = Status::EMPTY;
    api::wait(&mut request, Some(&mut status)).unwrap();
    assert_eq!([status.source], buffer);
}

/// As many communicators as there can be, and the error of the next one.
fn as_many_as_possible() -> (Vec<Comm>, Error) {
    let mut comms = Vec::new();
    loop {
        match api::comm_dup(Comm::SELF) {
            Ok(comm) => comms.push(comm),
            Err(error) => return (comms, error),
        }
        assert!(comms.len() < 1 << 20);
    }
}

/// A program that frees none of its communicators gets an error before memory runs out, and goes on; so do
/// the processes that make one together with it.
pub fn too_many() {
    let (mut comms, error) = match rank() {
        0 => as_many_as_possible(),
        _ => (Vec::new(), Class::OTHER.error("no context is left at rank 0")),
    };
    assert!(error.class() == Class::OTHER && error.text().contains("context"), "{error}");
    assert!(rank() > 0 || comms.len() > 60_000, "{}", comms.len());
    for _ in 0..3 {
        let error = api::comm_dup(WORLD).expect_err("one of them has no number");
        assert!(error.class() == Class::OTHER && error.text().contains("context"), "{error}");
    }
    comms.iter_mut().for_each(|comm| api::comm_free(comm).unwrap());
    api::barrier(WORLD).unwrap();
    greet(api::comm_dup(WORLD).unwrap());
}

/// Keys come and go: whether one of them has this number.
fn is_used_again(number: Keyval) -> bool {
    let mut keys: Vec<Keyval> =
        (0..1000).map(|_| api::create_keyval(Owner::Comm, Copy::Null, Delete::Null)).collect();
    let used = keys.contains(&number);
    keys.iter_mut().for_each(|key| api::free_keyval(Owner::Comm, key).unwrap());
    used
}

pub fn freed_keys() {
    let mut first = api::comm_dup(WORLD).unwrap();
    let mut key = api::create_keyval(Owner::Comm, Copy::Dup, Delete::Null);
    let number = key;
    api::comm_set_attr(first, key, 5).unwrap();
    api::free_keyval(Owner::Comm, &mut key).unwrap();
    let mut second = api::comm_dup(first).unwrap();
    assert_eq!(api::comm_get_attr(second, number), Ok(Some(5)));
    assert!(api::comm_set_attr(second, number, 6).is_err() && api::comm_get_attr(WORLD, number).is_err());
    // Numbers rest for a while even if nothing uses them.
    assert!((0..3).all(|_| !is_used_again(number)));
    api::comm_delete_attr(first, number).unwrap();
    assert!((0..3).all(|_| !is_used_again(number)), "the copy uses it");
    api::comm_free(&mut second).unwrap();
    assert!((0..3).any(|_| is_used_again(number)));
    api::comm_free(&mut first).unwrap();
}
