//! Long copies are shared with a helper that stands by, and with nobody where progress is switched off.

#[path = "all/common/mod.rs"]
mod common;

use common::Special;
use nmad_engine::memory::together::LEAST;
use nmad_engine::{Pair, Segments};
use nmad_progress::{Node, Progress, Sharing, own_cores};
use std::time::{Duration, Instant};

#[derive(Debug)]
struct Silent;

impl Special for Silent {}

/// Bytes of the copies: 1 MiB.
const LEN: usize = 1 << 20;
/// The test gives up after this long.
const LONG: Duration = Duration::from_secs(20);

fn segments(memory: &mut [u8]) -> Segments {
    // SAFETY: the memory outlives the copies, which end before their calls do.
    #[allow(unsafe_code)]
    unsafe {
        Segments::from_raw(memory.as_mut_ptr(), memory.len())
    }
}

/// A node whose helper has a core of its own to which it takes a nanosecond to hand something.
fn node(setting: Progress) -> Node {
    let node = common::node(Silent, Sharing::Never);
    node.set_hand_offs([Some(1); Pair::ALL.len()]);
    node.set_progress(setting).expect("it is ours");
    node
}

/// Copies, scatters and gathers; the bytes are right.
fn copy(source: &mut [u8]) {
    let (mut target, mut wide) = (vec![0; LEN], vec![0; 2 * LEN]);
    let from = segments(source);
    assert_eq!(segments(&mut target).copy_from(&from), LEN as u64);
    // SAFETY: as above; the pieces lie apart.
    #[allow(unsafe_code)]
    let apart = unsafe { Segments::from_strided(wide.as_mut_ptr(), 100, 200, LEN / 100) };
    assert!(apart.len() >= LEAST);
    assert_eq!(apart.copy_from(&from), apart.len());
    let mut gathered = Vec::new();
    apart.append_to(&mut gathered);
    assert!(target == source && gathered == source[..gathered.len()]);
    assert!(wide.chunks(200).all(|piece| piece[piece.len().min(100)..].iter().all(|byte| *byte == 0)));
}

/// One after the other: all nodes of a process help.
#[test]
fn a_helper_that_stands_by_does_a_part_of_long_copies_and_nobody_does_where_progress_is_off() {
    let mut source: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
    let off = node(Progress::Off);
    (0..50).for_each(|_| copy(&mut source));
    assert_eq!(off.helped().shared, 0);
    drop(off);
    let core = *own_cores().last().expect("this test runs on some core");
    let node = node(Progress::Dedicated(vec![core]));
    let begun = Instant::now();
    while node.helped().shared == 0 {
        copy(&mut source);
        assert!(begun.elapsed() < LONG, "{:?}", node.helped());
    }
}
