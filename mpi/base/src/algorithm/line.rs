//! The way of a cache line between two cores, measured in memory that ranks share.
//!
//! It is a property of the job: the host of a virtual machine moves cores now and then, and a line that
//! another core has written takes 0.055 us or 0.24 us then (EPYC of the fourth generation, two virtual
//! cores). Copies by the kernel of data that nobody has just written take the same time in both. So what goes
//! through the pool is predicted with this time.

use nmad_drivers::node::Segment as SharedMemory;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bytes of each rank in the memory: a line, and one apart from it, since processors fetch lines in pairs.
const APART: usize = 128;
/// Round trips of a batch, and batches. The fastest one counts, since the first one waits for a partner that
/// comes later. All of it takes 15 to 60 us.
const TURNS: u64 = 16;
const BATCHES: u64 = 4;
/// A partner that is not there after so many looks, some 100 us, is not waited for.
const LOOKS: u32 = 1 << 16;

/// Bytes that it takes for `size` ranks.
pub const fn len(size: usize) -> usize {
    size * APART
}

/// Returns the nanoseconds that a line takes from this rank to its partner, the next or the one before; zero
/// if that is not known. The memory from `base` on was zero at first.
pub fn measure(memory: &SharedMemory, base: usize, size: usize, me: usize) -> f64 {
    let partner = me ^ 1;
    if partner >= size {
        return 0.0;
    }
    let place = |rank: usize| memory.word(base + rank * APART);
    let is_there = |turn: u64| {
        (0..LOOKS).any(|_| {
            std::hint::spin_loop();
            place(partner).load(Ordering::Acquire) == turn
        })
    };
    let mut best = f64::INFINITY;
    for batch in 0..BATCHES {
        let begun = Instant::now();
        for turn in batch * TURNS + 1..=(batch + 1) * TURNS {
            if me < partner {
                place(me).store(turn, Ordering::Release);
            }
            if !is_there(turn) {
                return 0.0;
            }
            if me > partner {
                place(me).store(turn, Ordering::Release);
            }
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / (2 * TURNS) as f64);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_some_time_and_a_partner_that_does_not_come_is_not_waited_for() {
        let (memory, fd) = SharedMemory::create(len(3)).expect("shared memory");
        let other = SharedMemory::adopt(&fd, len(3)).expect("the same");
        let line_ns = std::thread::scope(|scope| {
            let other = scope.spawn(move || measure(&other, 0, 3, 1));
            let own = measure(&memory, 0, 3, 0);
            own.max(other.join().expect("measured"))
        });
        // Threads that share a core may not find each other.
        assert!((0.0..1e6).contains(&line_ns), "{line_ns}");
        assert_eq!(measure(&memory, 0, 3, 2), 0.0, "the third one has no partner");
        let (alone, _) = SharedMemory::create(len(2)).expect("shared memory");
        assert_eq!(measure(&alone, 0, 2, 1), 0.0);
    }
}
