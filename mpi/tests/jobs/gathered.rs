//! Small accesses and partitions share packets.

use crate::point::{INT, WORLD, into, out, pattern, rank};
use nmad_mpi::api::{self, Values};
use nmad_mpi::constant::{PROC_NULL, ThreadLevel};
use nmad_mpi::{Info, Type};

/// `MPI_T_PVAR_CLASS_COUNTER`
const COUNTER: i32 = 7;

/// Packets that this process has sent.
fn packets() -> u64 {
    api::t_init_thread(ThreadLevel::Multiple).unwrap();
    let mut opened = api::t_pvar_session_create().unwrap();
    let index = api::t_pvar_get_index("nmad_rail_packets", COUNTER).unwrap();
    let (handle, _) = api::t_pvar_handle_alloc(opened, index, None).unwrap();
    let values = api::t_pvar_read(opened, handle).unwrap();
    api::t_pvar_session_free(&mut opened).unwrap();
    api::t_finalize().unwrap();
    match values {
        Values::Whole(counts) => counts.iter().sum(),
        other => panic!("packets are counted: {other:?}"),
    }
}

/// A thousand puts leave in a few packets, which one flush completes.
pub fn puts() {
    const COUNT: usize = 1000;
    const LONG: Type = Type::UNSIGNED_LONG_LONG;
    let data: Vec<u64> = (1..=COUNT as u64).collect();
    let mut memory = vec![0_u64; COUNT];
    let len = size_of_val(&memory[..]) as i64;
    let mut win = api::win_create(memory.as_mut_ptr().cast(), len, 8, Info::NULL, WORLD).unwrap();
    api::win_lock_all(0, win).unwrap();
    if rank() == 0 {
        let before = packets();
        for (index, value) in data.iter().enumerate() {
            let from = std::ptr::from_ref(value).cast();
            api::put(from, 1, LONG, 1, index as i64, 1, LONG, win).unwrap();
        }
        api::win_flush(1, win).unwrap();
        let sent = packets() - before;
        assert!(sent <= COUNT as u64 / 20, "{sent} packets");
    }
    api::win_unlock_all(win).unwrap();
    api::barrier(WORLD).unwrap();
    assert!(rank() == 0 || memory == data);
    api::win_free(&mut win).unwrap();
}

/// With all ranks locked, no packet goes to those that are not accessed, and one request to one that is.
pub fn locks() {
    const LONG: Type = Type::UNSIGNED_LONG_LONG;
    const EPOCHS: u64 = 100;
    let mut memory = [0_u64; EPOCHS as usize];
    let len = size_of_val(&memory) as i64;
    let mut win = api::win_create(memory.as_mut_ptr().cast(), len, 8, Info::NULL, WORLD).unwrap();
    let epochs = |accessed: i32| {
        let before = packets();
        for index in 0..EPOCHS {
            api::win_lock_all(0, win).unwrap();
            let from = std::ptr::from_ref(&index).cast();
            api::put(from, 1, LONG, accessed, index as i64, 1, LONG, win).unwrap();
            api::win_unlock_all(win).unwrap();
        }
        packets() - before
    };
    if rank() == 0 {
        let sent = [PROC_NULL, 0, 1].map(epochs);
        assert!(sent[..2] == [0, 0] && (EPOCHS..2 * EPOCHS).contains(&sent[2]), "{sent:?} packets");
    }
    api::barrier(WORLD).unwrap();
    assert!((0..EPOCHS).eq(memory), "{memory:?}");
    api::win_free(&mut win).unwrap();
}

/// Of many small partitions that become ready at once most leave together.
pub fn partitions() {
    const PARTS: usize = 1000;
    let (data, mut buffer) = (pattern(PARTS, 1), vec![0; PARTS]);
    let mut request = match rank() {
        0 => api::psend_init(out(&data), PARTS as i32, 1, INT, 1, 3, WORLD, Info::NULL).unwrap(),
        _ => api::precv_init(into(&mut buffer), PARTS as i32, 1, INT, 0, 3, WORLD, Info::NULL).unwrap(),
    };
    api::start(request).unwrap();
    let before = packets();
    if rank() == 0 {
        api::pready_range(0, PARTS as i32 - 1, request).unwrap();
    }
    api::wait(&mut request, None).unwrap();
    let sent = packets() - before;
    api::request_free(&mut request).unwrap();
    assert!(sent <= PARTS as u64 / 2, "{sent} packets");
    assert!(rank() == 0 || buffer == data);
}
