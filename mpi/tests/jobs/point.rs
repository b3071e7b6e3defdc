//! Point-to-point messages.

use nmad_mpi::api;
use nmad_mpi::constant::{ANY_SOURCE, ANY_TAG, IN_PLACE, PROC_NULL};
use nmad_mpi::{Class, Comm, Message, Request, Result, Status, Type};
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// MPI_INT
pub const INT: Type = Type(9);
pub const WORLD: Comm = Comm::WORLD;

pub fn rank() -> i32 {
    api::comm_rank(WORLD).unwrap()
}

pub fn size() -> i32 {
    api::comm_size(WORLD).unwrap()
}

pub fn out<T>(data: &[T]) -> *const c_void {
    data.as_ptr().cast()
}

pub fn into<T>(data: &mut [T]) -> *mut c_void {
    data.as_mut_ptr().cast()
}

/// Numbers that belong to a sender and a length.
pub fn pattern(len: usize, seed: i32) -> Vec<i32> {
    (0..len as i32).map(|i| i.wrapping_mul(7919).wrapping_add(seed)).collect()
}

/// Receives numbers; returns them and the status.
pub fn recv(len: usize, source: i32, tag: i32, comm: Comm) -> (Vec<i32>, Status) {
    let (mut data, mut status) = (vec![-1; len], Status::EMPTY);
    api::recv(into(&mut data), len as i64, INT, source, tag, comm, Some(&mut status)).unwrap();
    data.truncate(status.count_bytes as usize / 4);
    (data, status)
}

type Send = fn(*const c_void, i64, Type, i32, i32, Comm) -> Result<()>;
type Isend = fn(*const c_void, i64, Type, i32, i32, Comm) -> Result<Request>;

/// Every mode, blocking, nonblocking and persistent, small and large.
pub fn modes() {
    let other = size() - 1 - rank();
    let mut space = vec![0u8; 4 << 20];
    api::buffer_attach(into(&mut space), space.len() as i64).unwrap();
    let sends: [Send; 4] = [api::send, api::ssend, api::rsend, api::bsend];
    let isends: [Isend; 8] = [
        api::isend,
        api::issend,
        api::irsend,
        api::ibsend,
        api::send_init,
        api::ssend_init,
        api::rsend_init,
        api::bsend_init,
    ];
    for len in [0, 1, 100, 10_000, 300_000] {
        let data = pattern(len, rank());
        let arguments = |tag: i32| (out(&data), len as i64, INT, other, tag, WORLD);
        for (tag, send) in sends.into_iter().enumerate() {
            let mut buffer = vec![0; len];
            let posted = api::irecv(into(&mut buffer), len as i64, INT, other, tag as i32, WORLD);
            let (buf, count, datatype, dest, tag, comm) = arguments(tag as i32);
            send(buf, count, datatype, dest, tag, comm).unwrap();
            let mut status = Status::EMPTY;
            api::wait(&mut posted.unwrap(), Some(&mut status)).unwrap();
            assert_eq!((status.source, status.tag, status.count_bytes), (other, tag, 4 * len as i64));
            assert!(buffer == pattern(len, other));
        }
        for (tag, isend) in isends.into_iter().enumerate() {
            let (buf, count, datatype, dest, tag, comm) = arguments(100 + tag as i32);
            let mut request = isend(buf, count, datatype, dest, tag, comm).unwrap();
            let is_persistent = tag >= 104;
            if is_persistent {
                api::start(request).unwrap();
            }
            assert!(recv(len, other, tag, comm).0 == pattern(len, other));
            api::wait(&mut request, None).unwrap();
            assert_eq!(request.is_null(), !is_persistent);
            if is_persistent {
                api::request_free(&mut request).unwrap();
            }
        }
    }
    let (start, len) = api::buffer_detach().unwrap();
    assert_eq!((start, len), (into(&mut space), space.len() as i64));
}

pub fn any_source() {
    if rank() > 0 {
        let data = pattern(10, rank());
        api::send(out(&data), 10, INT, 0, 40 + rank(), WORLD).unwrap();
        return;
    }
    let mut seen = Vec::new();
    for _ in 1..size() {
        let mut probed = Status::EMPTY;
        api::probe(ANY_SOURCE, ANY_TAG, WORLD, Some(&mut probed)).unwrap();
        let (data, status) = recv(20, ANY_SOURCE, ANY_TAG, WORLD);
        assert_eq!((probed.source, probed.tag), (status.source, status.tag));
        assert_eq!((data, status.tag), (pattern(10, status.source), 40 + status.source));
        seen.push(status.source);
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..size()).collect::<Vec<_>>());
    assert_eq!(api::iprobe(ANY_SOURCE, ANY_TAG, WORLD, None), Ok(false));
}

pub fn no_process() {
    let mut status = Status::EMPTY;
    api::send(out(&[1]), 1, INT, PROC_NULL, 0, WORLD).unwrap();
    api::recv(into(&mut [0]), 1, INT, PROC_NULL, ANY_TAG, WORLD, Some(&mut status)).unwrap();
    assert_eq!(status, Status::NO_PROC);
    let mut requests = [
        api::isend(out(&[1]), 1, INT, PROC_NULL, 0, WORLD).unwrap(),
        api::irecv(into(&mut [0]), 1, INT, PROC_NULL, 0, WORLD).unwrap(),
    ];
    api::waitall(&mut requests, None).unwrap();
    assert_eq!(api::iprobe(PROC_NULL, ANY_TAG, WORLD, Some(&mut status)), Ok(true));
    let mut message = api::mprobe(PROC_NULL, ANY_TAG, WORLD, Some(&mut status)).unwrap();
    assert_eq!((message, status), (Message::NO_PROC, Status::NO_PROC));
    api::mrecv(into(&mut [0]), 1, INT, &mut message, Some(&mut status)).unwrap();
    assert_eq!((message, status), (Message::NULL, Status::NO_PROC));
}

pub fn pairs() {
    let (right, left) = ((rank() + 1) % size(), (rank() + size() - 1) % size());
    for len in [1usize, 1000, 200_000] {
        let count = len as i64;
        let (data, mut buffer) = (pattern(len, rank()), vec![0; len]);
        let (from, to) = (out(&data), into(&mut buffer));
        api::sendrecv(from, count, INT, right, 1, to, count, INT, left, 1, WORLD, None).unwrap();
        assert!(buffer == pattern(len, left));
        let mut request = api::isendrecv(from, count, INT, left, 2, to, count, INT, right, 2, WORLD).unwrap();
        let mut status = Status::EMPTY;
        api::wait(&mut request, Some(&mut status)).unwrap();
        assert!(buffer == pattern(len, right) && status.source == right);
        let mut own = pattern(len, rank());
        api::sendrecv_replace(into(&mut own), count, INT, right, 3, left, 3, WORLD, None).unwrap();
        assert!(own == pattern(len, left));
        let mut request =
            api::isendrecv_replace(into(&mut own), count, INT, left, 4, right, 4, WORLD).unwrap();
        api::wait(&mut request, None).unwrap();
        assert!(own == pattern(len, rank()), "it went there and back");
    }
}

/// Neither half of a pair begins if an argument of the other is wrong: a message that comes later is not
/// taken.
pub fn refused_pairs() {
    let (own, mut place) = ([7], [-1]);
    let (from, to) = (out(&own), into(&mut place));
    let wrong = [
        ((1, INT, 7, 0), (1, INT, 0, 0), Class::RANK),
        ((1, INT, 0, -3), (1, INT, 0, 0), Class::TAG),
        ((-1, INT, 0, 0), (1, INT, 0, 0), Class::COUNT),
        ((1, Type::NULL, 0, 0), (1, INT, 0, 0), Class::TYPE),
        ((1, INT, 0, 0), (1, INT, 7, 0), Class::RANK),
        ((1, INT, 0, 0), (1, INT, 0, -9), Class::TAG),
        ((1, INT, 0, 0), (-1, INT, 0, 0), Class::COUNT),
        ((1, INT, 0, 0), (1, Type::NULL, 0, 0), Class::TYPE),
    ];
    for (send, receive, class) in wrong {
        let ((n, of, dest, tag), (room, kind, source, wanted)) = (send, receive);
        let refused = |answer: Result<()>| assert_eq!(answer.unwrap_err().class(), class);
        refused(api::sendrecv(from, n, of, dest, tag, to, room, kind, source, wanted, WORLD, None));
        refused(api::isendrecv(from, n, of, dest, tag, to, room, kind, source, wanted, WORLD).map(drop));
        // In place there is one count and one type.
        if (n, of) == (room, kind) {
            refused(api::sendrecv_replace(to, n, of, dest, tag, source, wanted, WORLD, None));
            refused(api::isendrecv_replace(to, n, of, dest, tag, source, wanted, WORLD).map(drop));
        }
        assert_eq!(api::iprobe(ANY_SOURCE, ANY_TAG, WORLD, None), Ok(false), "nothing was sent");
    }
    api::send(out(&[42]), 1, INT, 0, 0, WORLD).unwrap();
    assert_eq!((recv(1, 0, 0, WORLD).0, place), (vec![42], [-1]));
}

pub fn buffered() {
    assert!(api::bsend(out(&[1]), 1, INT, 0, 0, WORLD).is_err(), "there is no buffer");
    let nowhere = [std::ptr::null_mut(), IN_PLACE.cast_mut()];
    for answer in nowhere.map(|start| api::buffer_attach(start, 10)) {
        assert_eq!(answer.unwrap_err().class(), Class::BUFFER);
    }
    let answer = api::comm_attach_buffer(WORLD, nowhere[0], 10);
    assert_eq!(answer.unwrap_err().class(), Class::BUFFER);
    api::buffer_attach(nowhere[0], 0).unwrap();
    assert!(api::bsend(out(&[1]), 1, INT, 0, 0, WORLD).is_err(), "there is no room in it");
    api::buffer_detach().unwrap();
    let mut space = vec![0u8; 10_000];
    api::buffer_attach(into(&mut space), space.len() as i64).unwrap();
    assert!(api::buffer_attach(into(&mut space), 10).is_err(), "there is one already");
    if rank() == 0 {
        let mut data = pattern(1000, 0);
        api::bsend(out(&data), 1000, INT, 1, 0, WORLD).unwrap();
        data.fill(0);
        api::bsend(out(&[7]), 1, INT, 1, 1, WORLD).unwrap();
        let error = api::bsend(out(&[0; 3000]), 3000, INT, 1, 2, WORLD).unwrap_err();
        assert!(error.text().contains("12000 B") && error.text().contains("10000 B"), "{error}");
        let mut request = api::buffer_iflush().unwrap();
        api::wait(&mut request, None).unwrap();
        api::bsend(out(&pattern(2000, 3)), 2000, INT, 1, 2, WORLD).unwrap();
        api::buffer_flush().unwrap();
    } else {
        for (tag, data) in [(1, vec![7]), (0, pattern(1000, 0)), (2, pattern(2000, 3))] {
            assert!(recv(2000, 0, tag, WORLD).0 == data);
        }
    }
    api::buffer_detach().unwrap();
    assert!(api::buffer_detach().is_err(), "there is none any more");
    api::comm_attach_buffer(WORLD, nmad_mpi::constant::BUFFER_AUTOMATIC, 0).unwrap();
    let data = pattern(500_000, rank());
    api::bsend(out(&data), 500_000, INT, 1 - rank(), 5, WORLD).unwrap();
    drop(data);
    assert!(recv(500_000, 1 - rank(), 5, WORLD).0 == pattern(500_000, 1 - rank()));
    api::comm_detach_buffer(WORLD).unwrap();
}

/// A message keeps its room until it has left, whichever calls wait for that.
pub fn flushed() {
    let (count, mut buffer) = (500_000, vec![0; 500_000]);
    if rank() == 1 {
        recv(1, 0, 1, WORLD);
        api::recv(into(&mut buffer), count, INT, 0, 0, WORLD, None).unwrap();
        assert!(buffer == pattern(500_000, 0));
        return;
    }
    let full = || {
        let error = api::bsend(out(&[7; 50]), 50, INT, 1, 2, WORLD).unwrap_err();
        assert!(error.class() == Class::BUFFER && error.text().contains("1 messages wait"), "{error}");
    };
    api::buffer_attach(into(&mut buffer), 4 * count + 100).unwrap();
    api::bsend(out(&pattern(500_000, 0)), count, INT, 1, 0, WORLD).unwrap();
    full();
    let mut request = api::buffer_iflush().unwrap();
    full();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| api::buffer_detach().map(drop));
        (0..1000).for_each(|_| full());
        api::send(out(&[1]), 1, INT, 1, 1, WORLD).unwrap();
        other.join().unwrap().unwrap();
    });
    api::wait(&mut request, None).unwrap();
}

/// The receiver of large messages asks for them only when it knows that their sends have ended.
pub fn early() {
    let (len, few) = (100_000, 1..4);
    if rank() == 1 {
        recv(1, 0, 0, WORLD);
        // No receive is posted for the last one until its sender waits in Finalize.
        for seed in few.rev() {
            let (data, status) = recv(len, 0, seed, WORLD);
            assert!(status.count_bytes == 4 * len as i64 && data == pattern(len, seed));
            std::thread::sleep(Duration::from_millis(20));
        }
        return;
    }
    let mut data = Vec::new();
    for seed in few {
        data = pattern(len, seed);
        api::send(out(&data), len as i64, INT, 1, seed, WORLD).unwrap();
        data.fill(-1);
    }
    api::send(out(&data), 1, INT, 1, 0, WORLD).unwrap();
}

/// A large message that was cancelled holds nobody up, though no receive ever asks for it.
pub fn never_received() {
    if rank() == 0 {
        let data = pattern(100_000, 1);
        let mut request = api::isend(out(&data), 100_000, INT, 1, 0, WORLD).unwrap();
        api::cancel(request).unwrap();
        api::wait(&mut request, None).unwrap();
    }
}

pub fn matched() {
    let lengths = [3, 2000, 400_000];
    if rank() == 0 {
        for len in lengths {
            // The second one is received before the first.
            let data = [pattern(len, 1), pattern(len, 2)];
            let send = |data: &Vec<i32>| api::isend(out(data), len as i64, INT, 1, 5, WORLD).unwrap();
            api::waitall(&mut [send(&data[0]), send(&data[1])], None).unwrap();
        }
        return;
    }
    for len in lengths {
        let mut status = Status::EMPTY;
        let mut first = api::mprobe(ANY_SOURCE, 5, WORLD, Some(&mut status)).unwrap();
        assert_eq!(status.count_bytes, 4 * len as i64);
        assert!(recv(len, 0, 5, WORLD).0 == pattern(len, 2), "the first is taken away");
        let (mut buffer, stale) = (vec![0; len], first);
        if len == 3 {
            api::mrecv(into(&mut buffer), len as i64, INT, &mut first, None).unwrap();
        } else {
            let mut request = api::imrecv(into(&mut buffer), len as i64, INT, &mut first).unwrap();
            api::wait(&mut request, None).unwrap();
        }
        assert!(first.is_null() && buffer == pattern(len, 1));
        assert!(api::mrecv(into(&mut buffer), 1, INT, &mut { stale }, None).is_err(), "it is received");
        assert_eq!(api::improbe(ANY_SOURCE, 77, WORLD, None), Ok(None));
    }
}

/// Everybody but the first computes, and calls nothing, until the first has sent a message to each: links to
/// those that computed in silence for long open nevertheless.
pub fn while_others_compute() {
    let begun = Instant::now();
    let sent = std::env::temp_dir().join(format!("nmad-test-sent-{}", std::os::unix::process::parent_id()));
    if rank() == 0 {
        // Long enough for whoever else turns the pump to rest.
        while begun.elapsed() < Duration::from_millis(400) {}
        (1..size()).for_each(|peer| api::send(out(&[peer]), 1, INT, peer, 0, WORLD).unwrap());
        std::fs::write(&sent, "").unwrap();
    } else {
        while !sent.exists() {
            assert!(begun.elapsed() < Duration::from_secs(30), "nothing was sent meanwhile");
        }
        assert_eq!(recv(1, 0, 0, WORLD).0, [rank()]);
    }
    api::barrier(WORLD).unwrap();
    if rank() == 0 {
        std::fs::remove_file(&sent).unwrap();
    }
}
