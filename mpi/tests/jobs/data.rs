//! Messages of derived types.

use crate::point::{INT, WORLD, into, out, pattern, rank, recv};
use nmad_mpi::api;
use nmad_mpi::datatype::Form;
use nmad_mpi::{Status, Type};

/// `count` blocks of `len` numbers, `stride` numbers apart.
fn vector(count: i64, len: i64, stride: i64) -> Type {
    let mut made = api::type_vector(Form::Large, count, len, stride, INT).unwrap();
    api::type_commit(&mut made).unwrap();
    made
}

/// From a vector into another one, and into contiguous memory.
fn exchange(blocks: usize, len: usize) {
    let (wide, narrow) = (vector(blocks as i64, len as i64, 3 * len as i64), (blocks * len) as i64);
    let close = vector(blocks as i64, len as i64, len as i64 + 1);
    if rank() == 0 {
        let data = pattern(3 * blocks * len, 1);
        api::send(out(&data), 1, wide, 1, 0, WORLD).unwrap();
        api::send(out(&data), 1, wide, 1, 1, WORLD).unwrap();
        api::send(out(&data), narrow, INT, 1, 2, WORLD).unwrap();
        return;
    }
    let data = pattern(3 * blocks * len, 1);
    let sent: Vec<i32> = data.chunks(3 * len).flat_map(|block| &block[..len]).copied().collect();
    assert!(recv(blocks * len, 0, 0, WORLD).0 == sent);
    for (tag, sent) in [(1, &sent[..]), (2, &data[..blocks * len])] {
        let (mut buffer, mut status) = (vec![-5; blocks * (len + 1)], Status::EMPTY);
        api::recv(into(&mut buffer), 1, close, 0, tag, WORLD, Some(&mut status)).unwrap();
        assert_eq!(status.count_bytes, 4 * narrow);
        for (block, sent) in buffer.chunks(len + 1).zip(sent.chunks(len)) {
            assert!(block[..len] == *sent && block[len] == -5, "gaps are left alone");
        }
    }
}

pub fn gaps() {
    for (blocks, len) in [(1, 1), (3, 1), (10, 7), (1000, 1), (50, 300)] {
        exchange(blocks, len);
    }
}

pub fn large() {
    for (blocks, len) in [(100, 10_000), (20_000, 16), (3, 300_000)] {
        exchange(blocks, len);
    }
}
