//! Wrong calls get errors.

use crate::point::{INT, WORLD, into, out, pattern, rank, recv};
use nmad_mpi::api;
use nmad_mpi::constant::{ANY_SOURCE, ANY_TAG, PROC_NULL};
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
    let mut mine = api::create_errhandler(callback);
    let comm = api::comm_dup(WORLD).unwrap();
    api::comm_set_errhandler(comm, mine).unwrap();
    let kept = mine;
    api::errhandler_free(&mut mine).unwrap();
    expect(api::comm_set_errhandler(comm, kept), Class::ERRHANDLER, &kept.0.to_string());
    let code = api::raise(api::Object::Comm(comm), &Class::RANK.error("rank 9 is nobody"));
    assert_eq!(*SEEN.lock().unwrap(), [(comm.0, Class::RANK)]);
    assert!(api::error_string(code).unwrap().contains("rank 9 is nobody"));
    assert_eq!(api::error_class(code), Ok(Class::RANK));
    let copy = api::comm_dup(comm).unwrap();
    api::comm_call_errhandler(copy, code).unwrap();
    assert_eq!(SEEN.lock().unwrap().len(), 2, "a duplicate has the same handler");
    api::comm_set_errhandler(comm, Errhandler::RETURN).unwrap();
    api::raise(api::Object::Comm(comm), &Class::RANK.error("nobody is told"));
    assert_eq!(SEEN.lock().unwrap().len(), 2);
}

/// What `mpiexec -initial-errhandler` says.
pub fn initial() {
    for comm in [WORLD, Comm::SELF] {
        assert_eq!(api::comm_get_errhandler(comm), Ok(Errhandler::RETURN));
    }
    let copy = api::comm_dup(WORLD).unwrap();
    assert_eq!(api::comm_get_errhandler(copy), Ok(Errhandler::RETURN));
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

/// What a wait finds belongs to the communicator of the request, whatever the request is and whichever call
/// finds it.
pub fn owned() {
    let comm = api::comm_dup(WORLD).unwrap();
    let (me, mut buffer, mut told) = (rank(), [0], [1, 2]);
    let place = into(&mut buffer);
    let short = || api::irecv(place, 1, INT, ANY_SOURCE, 0, comm);
    let named = || api::irecv(place, 1, INT, me, 0, comm);
    let long = || api::send(out(&[1, 2]), 2, INT, me, 0, comm).unwrap();
    let owned = |answer: Result<()>, class: Class| {
        let error = answer.unwrap_err();
        assert_eq!((error.class(), error.comm()), (class, Some(comm)), "{error}");
    };
    for begin in [&short as &dyn Fn() -> Result<Request>, &named] {
        let mut requests = [begin().unwrap()];
        long();
        owned(api::wait(&mut requests[0], None), Class::TRUNCATE);
        requests[0] = begin().unwrap();
        long();
        owned(api::test(&mut requests[0], None).map(drop), Class::TRUNCATE);
        requests[0] = begin().unwrap();
        long();
        owned(api::waitany(&mut requests, &mut 0, None), Class::TRUNCATE);
        requests[0] = begin().unwrap();
        long();
        owned(api::waitall(&mut requests, None), Class::IN_STATUS);
        requests[0] = begin().unwrap();
        long();
        owned(api::testsome(&mut requests, &mut 0, &mut [0], None), Class::IN_STATUS);
    }
    let mut again = api::recv_init(place, 1, INT, me, 0, comm).unwrap();
    api::start(again).unwrap();
    long();
    owned(api::wait(&mut again, None), Class::TRUNCATE);
    api::request_free(&mut again).unwrap();
    long();
    let mut message = api::mprobe(me, 0, comm, None).unwrap();
    owned(api::mrecv(place, 1, INT, &mut message, None), Class::TRUNCATE);
    let count = i64::from(2 - rank());
    let mut shared = api::ibcast(into(&mut told), count, INT, 0, comm).unwrap();
    match rank() {
        0 => api::wait(&mut shared, None).unwrap(),
        _ => owned(api::wait(&mut shared, None), Class::TRUNCATE),
    }
    let mut other = Request(4711);
    assert_eq!(api::wait(&mut other, None).unwrap_err().comm(), None);
}

/// The same when the communicator is freed before: its handler is called, and its handle stands for no other
/// until then. Requests under way fail afterwards; the last kind has failed before, and the program has seen
/// that.
pub fn owned_by_the_freed() {
    let callback: api::Callback = Box::new(|object, code| SEEN.lock().unwrap().push((object, code.class)));
    let (mine, mut buffer) = (api::create_errhandler(callback), [0]);
    let place = into(&mut buffer);
    let start = |request: Request| api::start(request).map(|()| request);
    let paired = |comm| api::isendrecv(out(&[1]), 1, INT, PROC_NULL, 0, place, 1, INT, 1, 0, comm);
    let begins: [&dyn Fn(Comm) -> Result<Request>; 5] = [
        &|comm| api::irecv(place, 1, INT, 1, 0, comm),
        &|comm| api::irecv(place, 1, INT, ANY_SOURCE, 0, comm),
        &|comm| api::recv_init(place, 1, INT, 1, 0, comm).and_then(start),
        &paired,
        &|comm| api::irecv(place, 1, INT, 1, 0, comm),
    ];
    for (kind, begin) in begins.into_iter().enumerate() {
        let (mut comm, is_early) = (api::comm_dup(WORLD).unwrap(), kind == 4);
        let name = comm;
        api::comm_set_errhandler(comm, mine).unwrap();
        let tell = || api::send(out(&[1, 2]), 2, INT, 0, 0, name).unwrap();
        if rank() == 1 {
            is_early.then(tell);
            api::barrier(WORLD).unwrap();
            (!is_early).then(tell);
            api::comm_free(&mut comm).unwrap();
            continue;
        }
        let mut request = begin(comm).unwrap();
        while is_early && !api::request_get_status(request, None).unwrap() {}
        api::comm_free(&mut comm).unwrap();
        let again = || {
            let mut other = api::comm_dup(Comm::SELF).unwrap();
            let is_same = other == name;
            api::comm_free(&mut other).unwrap();
            is_same
        };
        assert!(!(0..100).any(|_| again()), "the handle is in use");
        api::barrier(WORLD).unwrap();
        let error = api::wait(&mut request, None).unwrap_err();
        assert_eq!((error.class(), error.comm()), (Class::TRUNCATE, Some(name)), "{error}");
        api::raise(api::Object::None, &error);
        assert_eq!(SEEN.lock().unwrap().pop(), Some((name.0, Class::TRUNCATE)));
        if !request.is_null() {
            api::request_free(&mut request).unwrap();
        }
        drop(error);
        assert!((0..200).any(|_| again()), "the handle is used again");
    }
}

/// A rank that waits for a process that has died does not wait for ever.
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
