//! What is wrong is said.

use crate::point::{INT, WORLD, into, out, pattern, rank, recv};
use nmad_mpi::api;
use nmad_mpi::constant::ANY_TAG;
use nmad_mpi::{Class, Comm, Errhandler, Error, Request, Result, Status, Type};
use std::sync::Mutex;

fn expect<T: std::fmt::Debug>(answer: Result<T>, class: Class, word: &str) -> Error {
    let error = answer.unwrap_err();
    assert!(error.class() == class && error.text().contains(word), "{error}");
    error
}

static SEEN: Mutex<Vec<(u32, Class)>> = Mutex::new(Vec::new());

pub fn arguments() {
    let data = [0];
    let send = |count, datatype, dest, tag, comm| api::send(out(&data), count, datatype, dest, tag, comm);
    expect(send(-1, INT, 0, 0, WORLD), Class::COUNT, "-1");
    expect(send(1, Type::NULL, 0, 0, WORLD), Class::TYPE, "MPI_DATATYPE_NULL");
    expect(send(1, Type(12345), 0, 0, WORLD), Class::TYPE, "12345");
    expect(send(1, INT, 2, 0, WORLD), Class::RANK, "rank 2");
    expect(send(1, INT, -7, 0, WORLD), Class::RANK, "0 to 1");
    expect(send(1, INT, 0, -5, WORLD), Class::TAG, "-5");
    expect(send(1, INT, 0, ANY_TAG, WORLD), Class::TAG, "-2");
    expect(send(1, INT, 0, 0, Comm::NULL), Class::COMM, "MPI_COMM_NULL");
    expect(send(1, INT, 0, 0, Comm(4711)), Class::COMM, "4711");
    expect(api::wait(&mut Request(4711), None), Class::REQUEST, "4711");
    expect(api::cancel(Request::NULL), Class::REQUEST, "MPI_REQUEST_NULL");
    expect(api::init(), Class::OTHER, "before");
    let callback: api::Callback = Box::new(|object, code| SEEN.lock().unwrap().push((object, code.class)));
    let mut mine = api::comm_create_errhandler(callback);
    let comm = api::comm_dup(WORLD).unwrap();
    api::comm_set_errhandler(comm, mine).unwrap();
    let kept = mine;
    api::errhandler_free(&mut mine).unwrap();
    expect(api::comm_set_errhandler(comm, kept), Class::ERRHANDLER, &kept.0.to_string());
    let code = api::raise(Some(comm), &Class::RANK.error("rank 9 is nobody"));
    assert_eq!(*SEEN.lock().unwrap(), [(comm.0, Class::RANK)]);
    assert!(api::error_string(code).unwrap().contains("rank 9 is nobody"));
    assert_eq!(api::error_class(code), Ok(Class::RANK));
    let copy = api::comm_dup(comm).unwrap();
    api::comm_call_errhandler(copy, code).unwrap();
    assert_eq!(SEEN.lock().unwrap().len(), 2, "a duplicate has the same handler");
    api::comm_set_errhandler(comm, Errhandler::RETURN).unwrap();
    api::raise(Some(comm), &Class::RANK.error("nobody is told"));
    assert_eq!(SEEN.lock().unwrap().len(), 2);
}

pub fn truncated() {
    if rank() == 0 {
        for len in [100, 100_000] {
            api::send(out(&pattern(len, 3)), len as i64, INT, 1, 0, WORLD).unwrap();
        }
        api::send(out(&[7]), 1, INT, 1, 0, WORLD).unwrap();
        return;
    }
    for len in [100, 100_000] {
        let (mut buffer, mut status) = (vec![0; len / 2], Status::EMPTY);
        let count = buffer.len() as i64;
        let answer = api::recv(into(&mut buffer), count, INT, 0, 0, WORLD, Some(&mut status));
        expect(answer, Class::TRUNCATE, &format!("{} B", 4 * len));
        assert!(buffer == pattern(len, 3)[..len / 2]);
        assert_eq!((status.source, status.error), (0, Class::TRUNCATE));
    }
    assert_eq!(recv(1, 0, 0, WORLD).0, [7]);
}

/// Whoever waits for a process that is gone does not wait for ever.
pub fn killed() {
    if rank() == 1 {
        std::process::abort();
    }
    loop {
        if api::barrier(WORLD).is_err() {
            // The launcher ends us when it sees the death; nothing that we do is the reason.
            std::thread::park();
        }
    }
}

pub fn abort() {
    if rank() == 1 {
        api::abort(WORLD, 3);
    }
    // Nobody sends this: the job ends nevertheless.
    recv(1, 1, 0, WORLD);
}
