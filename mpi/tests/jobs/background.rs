//! Operations go on while the program computes and makes no call.

use crate::colls::SUM;
use crate::point::{INT, WORLD, into, out, pattern, rank, recv, size};
use nmad_mpi::constant::ANY_SOURCE;
use nmad_mpi::request::general::Callbacks;
use nmad_mpi::{Class, Info, Request, Status, api};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Long enough for several steps, each of which asks its receiver.
const COUNT: usize = 50_000;
/// More than sockets hold.
const LONG: usize = 4 << 20;
/// What moves only in calls does not move at all meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// Begins an operation on what a rank has, with a place for the result.
type Begin = fn(&[i32], &mut [i32]) -> Request;

/// Collectives in which the last rank needs steps that others take after the call has returned.
const COLLECTIVES: [Begin; 4] = [
    |data, sum| api::iallreduce(out(data), into(sum), COUNT as i64, INT, SUM, WORLD).unwrap(),
    |data, sum| api::ireduce(out(data), into(sum), COUNT as i64, INT, SUM, size() - 1, WORLD).unwrap(),
    |data, sum| {
        // A barrier has no result; all ranks know what that of the others would be.
        sum.copy_from_slice(data);
        sum.iter_mut().for_each(|number| *number *= size());
        api::ibarrier(WORLD).unwrap()
    },
    |data, sum| {
        let count = COUNT as i64;
        let request = api::allreduce_init(out(data), into(sum), count, INT, SUM, WORLD, Info::NULL).unwrap();
        api::start(request).unwrap();
        request
    },
];

/// Where the last rank says that it has seen the result.
fn seen(operation: usize) -> PathBuf {
    let job = std::os::unix::process::parent_id();
    std::env::temp_dir().join(format!("nmad-test-seen-{job}-{operation}"))
}

/// Computes, without any call, until the last rank has seen the result.
fn compute(operation: usize) {
    let begun = Instant::now();
    while !seen(operation).exists() {
        (0..10_000).for_each(|_| std::hint::spin_loop());
        assert!(begun.elapsed() < PATIENCE, "operation {operation} has not moved meanwhile");
    }
}

/// Waits in the last rank, and computes in the others until that has seen the result.
fn wait_or_compute(operation: usize, wait: impl FnOnce()) {
    if rank() == size() - 1 {
        wait();
        std::fs::write(seen(operation), "").unwrap();
    } else {
        compute(operation);
        wait();
    }
    api::barrier(WORLD).unwrap();
    if rank() == 0 {
        std::fs::remove_file(seen(operation)).unwrap();
    }
}

pub fn collectives() {
    let data = vec![3; COUNT];
    for (operation, begin) in COLLECTIVES.iter().enumerate() {
        let mut sum = vec![0; COUNT];
        let mut request = begin(&data, &mut sum);
        let name = request;
        wait_or_compute(operation, || api::wait(&mut request, None).unwrap());
        if rank() == size() - 1 || operation != 1 {
            assert!(sum == vec![3 * size(); COUNT], "operation {operation}");
        }
        if request == name {
            api::request_free(&mut request).unwrap();
        }
    }
}

/// The others have to agree upon its context meanwhile.
pub fn duplicates() {
    for round in 0..3 {
        let (mut copy, mut request) = api::comm_idup(WORLD).unwrap();
        wait_or_compute(round, || api::wait(&mut request, None).unwrap());
        let (next, mut sum) = ((rank() + 1) % size(), [0]);
        api::send(out(&[rank()]), 1, INT, next, 0, copy).unwrap();
        assert_eq!(recv(1, ANY_SOURCE, 0, copy).0, [(rank() + size() - 1) % size()]);
        api::allreduce(out(&[1]), into(&mut sum), 1, INT, SUM, copy).unwrap();
        assert_eq!(sum, [size()]);
        api::comm_free(&mut copy).unwrap();
    }
}

/// Each core of the job has a thread that computes.
pub fn without_idle_cores() {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&over);
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        collectives();
    });
}

/// Persistent messages that ask their receiver, both ways, while one side computes.
pub fn persistent() {
    let peer = if rank() == 0 { size() - 1 } else { 0 };
    let (data, mut buffer) = (pattern(LONG, rank()), vec![0; LONG]);
    let mut requests = [
        api::recv_init(into(&mut buffer), LONG as i64, INT, peer, 3, WORLD).unwrap(),
        api::send_init(out(&data), LONG as i64, INT, peer, 3, WORLD).unwrap(),
    ];
    for round in 0..2 {
        api::startall(&requests).unwrap();
        wait_or_compute(round, || api::waitall(&mut requests, None).unwrap());
        assert!(buffer == pattern(LONG, peer));
    }
    requests.iter_mut().for_each(|request| api::request_free(request).unwrap());
}

/// A thread of the program's does the work of a request, and the thread that began it computes.
pub fn generalized() {
    let last = size() - 1;
    if rank() == last {
        wait_or_compute(0, || {
            api::send(out(&[5]), 1, INT, 0, 1, WORLD).unwrap();
            assert_eq!(recv(1, 0, 2, WORLD).0, [6]);
        });
        return;
    }
    let answers = || Callbacks {
        query: Box::new(|_| Class::SUCCESS),
        free: Box::new(|| Class::SUCCESS),
        cancel: Box::new(|_| Class::SUCCESS),
    };
    let mut request = api::grequest_start(answers()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            assert_eq!(recv(1, last, 1, WORLD).0, [5]);
            api::grequest_complete(request).unwrap();
            api::send(out(&[6]), 1, INT, last, 2, WORLD).unwrap();
        });
        let mut status = Status::EMPTY;
        wait_or_compute(0, || api::wait(&mut request, Some(&mut status)).unwrap());
    });
}

/// Parts of a message whose receiver computes since before the sender had a request: nobody there knows yet
/// how the sender divides it.
pub fn partitioned() {
    const PARTS: usize = 4;
    let (first, last, begun) = (0, size() - 1, seen(100));
    let (data, mut buffer) = (pattern(LONG, 1), vec![0; LONG]);
    let part = (LONG / PARTS) as i64;
    let receives = rank() == first;
    let mut request = Request::NULL;
    if receives {
        let place = into(&mut buffer);
        request = api::precv_init(place, PARTS as i32, part, INT, last, 3, WORLD, Info::NULL).unwrap();
        api::start(request).unwrap();
        std::fs::write(&begun, "").unwrap();
    }
    wait_or_compute(101, || {
        if receives {
            return api::wait(&mut request, None).unwrap();
        }
        while !begun.exists() {
            std::thread::yield_now();
        }
        let place = out(&data);
        request = api::psend_init(place, PARTS as i32, part, INT, first, 3, WORLD, Info::NULL).unwrap();
        api::start(request).unwrap();
        api::pready_range(0, PARTS as i32 - 1, request).unwrap();
        api::wait(&mut request, None).unwrap();
    });
    api::request_free(&mut request).unwrap();
    if receives {
        assert!(buffer == data);
        std::fs::remove_file(begun).unwrap();
    }
}

/// A long put and a long get that ask the target first, and then their origin computes.
pub fn accesses() {
    let (last, unit) = (size() - 1, size_of::<i32>() as i64);
    let (data, mut buffer) = (pattern(LONG, 1), vec![0; LONG]);
    // What is written to, and what is read.
    let mut memory = vec![0_i32; LONG];
    memory.extend(pattern(LONG, 2));
    let size = memory.len() as i64 * unit;
    let mut win = api::win_create(into(&mut memory), size, unit, Info::NULL, WORLD).unwrap();
    api::win_lock_all(0, win).unwrap();
    let mut requests = [Request::NULL; 2];
    if rank() == 0 {
        let count = LONG as i64;
        requests[0] = api::rput(out(&data), count, INT, last, 0, count, INT, win).unwrap();
        requests[1] = api::rget(into(&mut buffer), count, INT, last, count, count, INT, win).unwrap();
    }
    let written = |index: usize| api::win_sync(win).is_ok() && read(&memory[index]) == data[index];
    wait_or_compute(102, || {
        if rank() == 0 {
            return api::waitall(&mut requests, None).unwrap();
        }
        let begun = Instant::now();
        while rank() == last && !(0..LONG).step_by(997).all(written) {
            api::iprobe(0, 7, WORLD, None).unwrap();
            assert!(begun.elapsed() < PATIENCE, "the put has not come");
        }
    });
    if rank() == 0 {
        assert!(buffer == pattern(LONG, 2));
    }
    api::win_unlock_all(win).unwrap();
    api::win_free(&mut win).unwrap();
    if rank() == last {
        assert!(memory[..LONG] == data);
    }
}

/// A number that others may write.
fn read(number: &i32) -> i32 {
    std::hint::black_box(number).wrapping_add(0)
}
