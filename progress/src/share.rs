//! Shares copies, packing and reductions of large memory with idle cores, whichever thread starts them
//! ([`nmad_engine::memory::together`]).
//!
//! The work is cut into pieces, and each thread takes the next piece. A core that stands by
//! ([`crate::standby`]) receives a tasklet that takes pieces while there are some. So a core that comes
//! late, or never, delays nothing but its own piece. Equation (1) of P3, T = T_O + T_D(share), decides
//! whether to share and with how many cores; T_O is the hand-off to the furthest core that takes part, and
//! T_D comes from the measured time of such work on one core. The measured gain of sharing corrects the
//! prediction: two cores that are limited by the same memory are no faster than one.
#![allow(unsafe_code)]

use crate::cores;
use crate::split::Split;
use crate::standby::Standby;
use nmad_engine::memory::together::{Helpers, Kind, install};
use nmad_engine::profile::estimate::mean::Weight;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// Pieces for each thread. If one thread is interrupted, the others wait for its last piece at most.
const PIECES: u64 = 4;
/// The shortest piece in bytes; taking one costs as much as copying some hundred bytes.
const PIECE_MIN: u64 = 16 << 10;
/// Classes of length, each four times as long as the one before; data that fits into a cache is faster.
const CLASSES: usize = 8;
/// Every TRIAL-th time the less favoured choice is taken, to keep its measurement up to date.
const TRIAL: u32 = 32;
/// Checks for the others' last pieces before the thread yields its core, which they may need.
const LOOKS: u32 = 2_000;

/// The caller's side of shared work. Dropping it waits for the other threads, also in a panic.
struct Sharing<'s, P: FnMut(u32)> {
    standby: &'s Standby,
    split: &'s Arc<Split>,
    pause: P,
}

impl<P: FnMut(u32)> Drop for Sharing<'_, P> {
    fn drop(&mut self) {
        self.standby.withdraw(self.split);
        self.split.wait(&mut self.pause);
    }
}

/// Does the work with `count` of the cores that stand by; returns whether they did a part of it.
pub(crate) fn share(
    standby: &Standby,
    (units, step, count): (u64, u64, usize),
    work: &(dyn Fn(Range<u64>) + Sync),
    pause: impl FnMut(u32),
) -> bool {
    // SAFETY: `Sharing` is dropped before this function returns; that withdraws the offers and waits for
    // the threads that have taken one.
    let split = unsafe { Split::new(work, units, step) };
    standby.offer_share(&split, count, cores::here());
    let shared = Sharing { standby, split: &split, pause };
    let own = shared.split.work();
    drop(shared);
    assert!(!split.is_broken(), "a thread that helped has panicked");
    u64::from(own) < units.div_ceil(step)
}

/// Yields the core when the wait takes long.
fn pause(looks: u32) {
    if looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
}

/// Measurements of one kind of work in one class of length.
#[derive(Debug)]
struct Speed {
    /// Time on one core in picoseconds per byte; zero if not measured yet.
    alone_ps: AtomicU64,
    /// Measured time of shared work, in thousandths of the time that equation (1) predicts.
    excess: AtomicU64,
    turn: AtomicU32,
}

impl Speed {
    const fn new() -> Speed {
        Speed { alone_ps: AtomicU64::new(0), excess: AtomicU64::new(1_000), turn: AtomicU32::new(0) }
    }

    /// Returns how many of the cores, sorted by hand-off time, should help with work of `len` bytes, and
    /// the predicted time; `None` to work alone.
    fn decide(&self, len: u64, hand_offs_ns: &[u64]) -> Option<(usize, u64)> {
        let alone_ns = self.alone_ps.load(Ordering::Relaxed).checked_mul(len)? / 1_000;
        if alone_ns == 0 {
            return None;
        }
        let time =
            |(index, hand_off_ns): (usize, &u64)| (index + 1, hand_off_ns + alone_ns / (index as u64 + 2));
        let (count, ns) = hand_offs_ns.iter().enumerate().map(time).min_by_key(|(_, ns)| *ns)?;
        let pays = ns < alone_ns;
        let is_sure = pays && ns.saturating_mul(self.excess.load(Ordering::Relaxed)) / 1_000 < alone_ns;
        let is_trial = self.turn.fetch_add(1, Ordering::Relaxed) % TRIAL == TRIAL - 1;
        (pays && is_sure != is_trial).then_some((count, ns))
    }

    fn record_alone(&self, len: u64, took_ns: u64) {
        update_mean(&self.alone_ps, (took_ns.saturating_mul(1_000) / len.max(1)).max(1));
    }

    fn record_shared(&self, predicted_ns: u64, took_ns: u64) {
        // The limit discards cases in which the system took the core away for a while.
        update_mean(&self.excess, (took_ns.saturating_mul(1_000) / predicted_ns.max(1)).min(10_000));
    }
}

/// Updates a moving mean over about four values.
fn update_mean(mean: &AtomicU64, value: u64) {
    let before = mean.load(Ordering::Relaxed);
    mean.store(if before == 0 { value } else { Weight::Quarter.mean(before, value) }, Ordering::Relaxed);
}

/// All nodes of the process, and its measured speeds.
struct Process {
    nodes: Mutex<Vec<Weak<Standby>>>,
    speeds: [[Speed; CLASSES]; Kind::COUNT],
    /// Total time that threads spent on such work.
    worked_ns: AtomicU64,
}

static PROCESS: Process = Process {
    nodes: Mutex::new(Vec::new()),
    speeds: [const { [const { Speed::new() }; CLASSES] }; Kind::COUNT],
    worked_ns: AtomicU64::new(0),
};

/// Adds a node whose threads that stand by help from now on.
pub(crate) fn enlist(standby: &Arc<Standby>) {
    static HELPERS: &dyn Helpers = &PROCESS;
    let mut nodes = PROCESS.nodes.lock().unwrap_or_else(PoisonError::into_inner);
    nodes.retain(|node| node.strong_count() > 0);
    nodes.push(Arc::downgrade(standby));
    drop(nodes);
    install(&HELPERS);
}

impl Process {
    /// Returns a node with a thread that stands by.
    fn ready(&self) -> Option<Arc<Standby>> {
        // This never blocks: in a forked process the thread that holds the mutex may not exist.
        let nodes = self.nodes.try_lock().ok()?;
        nodes
            .iter()
            .filter(|node| node.strong_count() > 0)
            .filter_map(Weak::upgrade)
            .find(|node| node.is_ready())
    }
}

/// Returns the time that threads spent on large memory, in nanoseconds.
pub(crate) fn worked_ns() -> u64 {
    PROCESS.worked_ns.load(Ordering::Relaxed)
}

fn class(len: u64) -> usize {
    ((len.max(1).ilog2() / 2) as usize).saturating_sub(8).min(CLASSES - 1)
}

impl Helpers for Process {
    fn share(&self, kind: Kind, units: u64, unit_len: u64, work: &(dyn Fn(Range<u64>) + Sync)) {
        let len = units * unit_len;
        let speed = &self.speeds[kind as usize][class(len)];
        let node = self.ready();
        let decided = node.as_ref().and_then(|node| {
            let (count, ns) = speed.decide(len, &node.hand_offs_ns(cores::here()))?;
            Some((node, count, ns))
        });
        let begun = Instant::now();
        let took_ns = || {
            let ns = begun.elapsed().as_nanos() as u64;
            self.worked_ns.fetch_add(ns, Ordering::Relaxed);
            ns
        };
        let Some((node, count, ns)) = decided else {
            work(0..units);
            return speed.record_alone(len, took_ns());
        };
        let piece = (len / (PIECES * (count as u64 + 1))).max(PIECE_MIN);
        let is_shared = share(node, (units, piece.div_ceil(unit_len).max(1), count), work, pause);
        let took_ns = took_ns();
        if is_shared {
            speed.record_shared(ns, took_ns);
        }
    }
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
