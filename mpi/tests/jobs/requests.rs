//! Families of requests.

use crate::point::{INT, WORLD, into, out, pattern, rank, recv, size};
use nmad_mpi::api;
use nmad_mpi::constant::{ANY_SOURCE, UNDEFINED};
use nmad_mpi::datatype::Form;
use nmad_mpi::request::general::Callbacks;
use nmad_mpi::{Class, Request, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const COUNT: usize = 8;

/// Rank 0 receives from all others, whose messages come in another order than it has asked for them.
pub fn any_order() {
    for round in 0..6 {
        if rank() > 0 {
            for tag in (0..COUNT as i32).rev() {
                api::send(out(&pattern(50, tag)), 50, INT, 0, tag, WORLD).unwrap();
            }
            assert_eq!(recv(1, 0, 99, WORLD).0, [round]);
            continue;
        }
        let senders = size() as usize - 1;
        let mut buffers = vec![vec![0; 50]; COUNT * senders];
        let mut requests: Vec<Request> = Vec::new();
        for (place, buffer) in buffers.iter_mut().enumerate() {
            let (source, tag) = (1 + (place / COUNT) as i32, (place % COUNT) as i32);
            requests.push(api::irecv(into(buffer), 50, INT, source, tag, WORLD).unwrap());
        }
        let mut statuses = vec![Status::EMPTY; requests.len()];
        collect(round, &mut requests, &mut statuses);
        assert!(requests.iter().all(|request| request.is_null()));
        for (place, buffer) in buffers.iter().enumerate() {
            assert!(*buffer == pattern(50, (place % COUNT) as i32));
            let status = statuses[place];
            assert_eq!((status.source, status.tag), (1 + (place / COUNT) as i32, (place % COUNT) as i32));
        }
        (1..size()).for_each(|to| api::send(out(&[round]), 1, INT, to, 99, WORLD).unwrap());
    }
}

/// Ends all requests in one of six ways.
fn collect(round: i32, requests: &mut [Request], statuses: &mut [Status]) {
    let (mut index, mut indices) = (UNDEFINED, vec![0; requests.len()]);
    let mut some = vec![Status::EMPTY; requests.len()];
    let mut left = requests.len();
    while left > 0 {
        let mut status = Status::EMPTY;
        let mut count = 0;
        match round {
            0 => {
                assert_eq!(api::request_get_status_all(requests, None).map(drop), Ok(()));
                api::waitall(requests, Some(statuses)).unwrap();
                left = 0;
                continue;
            }
            1 if !api::testall(requests, Some(statuses)).unwrap() => continue,
            1 => {
                left = 0;
                continue;
            }
            2 => api::waitany(requests, &mut index, Some(&mut status)).unwrap(),
            3 if !api::testany(requests, &mut index, Some(&mut status)).unwrap() => continue,
            3 => {}
            4 => api::waitsome(requests, &mut count, &mut indices, Some(&mut some)).unwrap(),
            _ => api::testsome(requests, &mut count, &mut indices, Some(&mut some)).unwrap(),
        }
        if round < 4 {
            statuses[index as usize] = status;
            left -= 1;
        }
        for place in 0..count as usize {
            statuses[indices[place] as usize] = some[place];
            left -= 1;
        }
    }
    let mut count = 0;
    api::waitany(requests, &mut index, None).unwrap();
    api::waitsome(requests, &mut count, &mut indices, None).unwrap();
    assert_eq!((index, count), (UNDEFINED, UNDEFINED), "nothing is left to wait for");
    assert_eq!(api::testany(requests, &mut index, None), Ok(true));
}

pub fn persistent() {
    let other = 1 - rank();
    let (mut data, mut buffer) = (vec![0; 1000], vec![0; 1000]);
    let mut requests = [
        api::recv_init(into(&mut buffer), 1000, INT, other, 3, WORLD).unwrap(),
        api::send_init(out(&data), 1000, INT, other, 3, WORLD).unwrap(),
    ];
    let (mut index, kept) = (0, requests);
    api::waitany(&mut requests, &mut index, None).unwrap();
    assert_eq!(index, UNDEFINED, "none is started");
    api::waitall(&mut requests, None).unwrap();
    for round in 0..20 {
        data.copy_from_slice(&pattern(1000, rank() + 10 * round));
        api::startall(&requests).unwrap();
        assert!(api::start(requests[0]).is_err(), "it runs");
        let mut statuses = [Status::EMPTY; 2];
        api::waitall(&mut requests, Some(&mut statuses)).unwrap();
        assert_eq!((requests, statuses[0].source), (kept, other));
        assert!(buffer == pattern(1000, other + 10 * round));
    }
    requests.iter_mut().for_each(|request| api::request_free(request).unwrap());
    assert!(api::start(kept[0]).is_err(), "it is freed");
}

/// What handles stand for goes on in persistent requests when they are freed, and stand for something else.
pub fn outlived() {
    let vector = |stride| {
        let mut made = api::type_vector(Form::Int, 3, 1, stride, INT).unwrap();
        api::type_commit(&mut made).unwrap();
        made
    };
    let other = 1 - rank();
    let (mut datatype, mut comm) = (vector(2), api::comm_dup(WORLD).unwrap());
    let first = datatype;
    let (data, mut buffers, mut space) = ([0, 9, 1, 9, 2, 9], [[-1; 6]; 4], [0u8; 1000]);
    api::comm_attach_buffer(comm, into(&mut space), 1000).unwrap();
    let inits = [api::send_init, api::ssend_init, api::rsend_init, api::bsend_init];
    let mut requests = Vec::new();
    for (tag, buffer) in (0..).zip(&mut buffers) {
        let source = if tag < 2 { other } else { ANY_SOURCE };
        requests.push(api::recv_init(into(buffer), 1, datatype, source, tag, comm).unwrap());
    }
    for (tag, init) in (0..).zip(inits) {
        requests.push(init(out(&data), 1, datatype, other, tag, comm).unwrap());
    }
    api::type_free(&mut datatype).unwrap();
    api::comm_free(&mut comm).unwrap();
    while datatype != first {
        datatype = vector(1);
        if datatype != first {
            api::type_free(&mut datatype).unwrap();
        }
    }
    for _ in 0..2 {
        buffers.iter_mut().for_each(|buffer| buffer.fill(-1));
        let mut statuses = [Status::EMPTY; 8];
        api::startall(&requests).unwrap();
        api::waitall(&mut requests, Some(&mut statuses)).unwrap();
        assert_eq!(buffers, [[0, -1, 1, -1, 2, -1]; 4]);
        assert!(statuses[..4].iter().all(|status| status.source == other));
    }
    requests.iter_mut().for_each(|request| api::request_free(request).unwrap());
    api::barrier(WORLD).unwrap();
}

pub fn generalized() {
    let freed = Arc::new(AtomicU32::new(0));
    let count = freed.clone();
    let callbacks = |class: Class| {
        let freed = freed.clone();
        Callbacks {
            query: Box::new(move |status| {
                (status.tag, status.count_bytes) = (17, 12);
                class
            }),
            free: Box::new(move || {
                freed.fetch_add(1, Ordering::Relaxed);
                Class::SUCCESS
            }),
            cancel: Box::new(|complete| if complete { Class::OTHER } else { Class::SUCCESS }),
        }
    };
    let mut request = api::grequest_start(callbacks(Class::SUCCESS)).unwrap();
    assert_eq!(api::test(&mut request, None), Ok(false));
    api::cancel(request).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| api::grequest_complete(request).unwrap());
        let (mut status, mut waited) = (Status::EMPTY, request);
        api::wait(&mut waited, Some(&mut status)).unwrap();
        assert_eq!((status.tag, status.count_bytes, waited), (17, 12, Request::NULL));
    });
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let mut failing = api::grequest_start(callbacks(Class::ARG)).unwrap();
    api::grequest_complete(failing).unwrap();
    assert_eq!(api::cancel(failing).unwrap_err().class(), Class::OTHER);
    let mut statuses = [Status::EMPTY];
    let error = api::waitall(std::slice::from_mut(&mut failing), Some(&mut statuses)).unwrap_err();
    assert_eq!((error.class(), statuses[0].error), (Class::IN_STATUS, Class::ARG));
    let mut given_away = api::grequest_start(callbacks(Class::SUCCESS)).unwrap();
    let name = given_away;
    api::request_free(&mut given_away).unwrap();
    assert_eq!((count.load(Ordering::Relaxed), given_away), (2, Request::NULL));
    api::grequest_complete(name).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 3, "whoever completes what was given away ends it");
    assert_eq!(api::grequest_complete(name).unwrap_err().class(), Class::REQUEST);
    let mut complete = api::grequest_start(callbacks(Class::SUCCESS)).unwrap();
    api::grequest_complete(complete).unwrap();
    api::request_free(&mut complete).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 4);
}

pub fn cancelled() {
    if rank() == 0 {
        let mut buffer = [0];
        let mut request = api::irecv(into(&mut buffer), 1, INT, 1, 5, WORLD).unwrap();
        api::cancel(request).unwrap();
        let mut status = Status::EMPTY;
        api::wait(&mut request, Some(&mut status)).unwrap();
        assert!(status.cancelled);
        api::send(out(&[1]), 1, INT, 1, 4, WORLD).unwrap();
        assert_eq!((recv(1, 1, 5, WORLD).0, buffer), (vec![77], [0]));
    } else {
        recv(1, 0, 4, WORLD);
        api::send(out(&[77]), 1, INT, 0, 5, WORLD).unwrap();
    }
}

pub fn freed() {
    let data = pattern(500_000, rank());
    let other = 1 - rank();
    let mut request = api::isend(out(&data), 500_000, INT, other, 5, WORLD).unwrap();
    let name = request;
    api::request_free(&mut request).unwrap();
    assert!(request.is_null());
    assert_eq!(api::wait(&mut { name }, None).unwrap_err().class(), Class::REQUEST);
    assert!(recv(500_000, other, 5, WORLD).0 == pattern(500_000, other));
    // The memory is in use until the other side says that it has everything.
    api::send(out(&[1]), 1, INT, other, 6, WORLD).unwrap();
    recv(1, other, 6, WORLD);
}
