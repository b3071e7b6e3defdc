//! Measurements of the host: memory copies, and hand-offs to another core.

use nmad_engine::{Pair, Probe};
use nmad_progress::go_to;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Size of the copied region, larger than the near caches, so that the copied data was not used lately.
const REGION: usize = 16 << 20;
/// Polls of the other core before this one yields, which another thread may need.
const LOOKS: u32 = 2_000;
/// Value that ends the other thread.
const OVER: u64 = u64::MAX;

/// Memory for copies, allocated at the first use.
pub(super) struct Host<'a> {
    memory: Option<(Vec<u8>, Vec<u8>)>,
    at: usize,
    /// Two cores for each kind of pair.
    pairs: &'a [(Pair, [usize; 2])],
}

impl<'a> Host<'a> {
    /// Makes the measurement for these cores.
    pub(super) fn new(pairs: &'a [(Pair, [usize; 2])]) -> Host<'a> {
        Host { memory: None, at: 0, pairs }
    }

    /// Measures copies; returns times in nanoseconds.
    pub(super) fn copies(&mut self, probe: &Probe) -> Vec<u64> {
        let len = (probe.len as usize).clamp(1, REGION);
        // The memory is written, so that its pages exist.
        let (from, into) = self.memory.get_or_insert_with(|| (vec![1; REGION], vec![2; REGION]));
        let mut copy = || {
            if self.at + len > REGION {
                self.at = 0;
            }
            let place = self.at..self.at + len;
            into[place.clone()].copy_from_slice(black_box(&from[place]));
            black_box(&mut *into);
            self.at += len.next_multiple_of(4096);
        };
        repeat(probe, &mut copy)
    }

    /// Measures hand-offs to a thread on the other core of such a pair, as half of a round trip; returns
    /// times in nanoseconds. Empty if there are no such cores, or no threads for them.
    pub(super) fn hand_offs(&self, probe: &Probe, pair: Pair) -> Vec<u64> {
        let Some(&(_, [from, to])) = self.pairs.iter().find(|(kind, _)| *kind == pair) else {
            return Vec::new();
        };
        // The measurement has its own threads, so the calling one keeps its mask. They spin, so they live
        // only as long as needed.
        let measure = move || {
            let mut other = Other::start(to).ok().filter(|_| go_to(&[from]))?;
            // The first hand-off waits for the start of the thread.
            other.hand_off().then(|| {
                repeat(probe, &mut || {
                    other.hand_off();
                })
            })
        };
        let times = thread::scope(|scope| {
            let thread = thread::Builder::new().name(NAME.into()).spawn_scoped(scope, measure);
            thread.ok().and_then(|thread| thread.join().ok().flatten())
        });
        times.unwrap_or_default().into_iter().map(|ns| (ns / 2).max(1)).collect()
    }
}

/// The name of the threads that measure.
const NAME: &str = "nmad-sample";

fn repeat(probe: &Probe, once: &mut dyn FnMut()) -> Vec<u64> {
    let each = || {
        let start = Instant::now();
        (0..probe.round_trips).for_each(|_| once());
        (start.elapsed().as_nanos() as u64 / u64::from(probe.round_trips.max(1))).max(1)
    };
    std::iter::repeat_with(each).take(probe.repetitions as usize).collect()
}

/// A thread that acknowledges hand-offs.
struct Other {
    shared: Arc<Slots>,
    count: u64,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Slots {
    handed: Slot,
    taken: Slot,
}

/// A cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Slot(AtomicU64);

impl Slot {
    /// Waits until the value is no longer `old`.
    fn await_change(&self, old: u64) -> u64 {
        for look in 0u32.. {
            let now = self.0.load(Ordering::Acquire);
            if now != old {
                return now;
            }
            if look < LOOKS { spin_loop() } else { thread::yield_now() }
        }
        old
    }
}

impl Other {
    fn start(core: usize) -> std::io::Result<Other> {
        let shared = Arc::<Slots>::default();
        let own = shared.clone();
        let serve = move || {
            if !go_to(&[core]) {
                own.taken.0.store(OVER, Ordering::Release);
                return;
            }
            let mut last = 0;
            while last != OVER {
                last = own.handed.await_change(last);
                own.taken.0.store(last, Ordering::Release);
            }
        };
        let thread = thread::Builder::new().name(NAME.into()).spawn(serve)?;
        Ok(Other { shared, count: 0, thread: Some(thread) })
    }

    /// Hands off once; false: there is no thread on that core.
    fn hand_off(&mut self) -> bool {
        self.shared.handed.0.store(self.count + 1, Ordering::Release);
        self.count = self.shared.taken.await_change(self.count);
        self.count != OVER
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.shared.handed.0.store(OVER, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_engine::Method;
    use nmad_progress::{Topology, own_cores};
    use rustix::thread::CpuSet;

    #[test]
    fn every_repetition_has_its_time() {
        let mut host = Host::new(&[]);
        let probe = |method, len| Probe { method, len, repetitions: 5, round_trips: 2 };
        assert_eq!(host.copies(&probe(Method::Memcpy, 1 << 20)).len(), 5);
        assert_eq!(host.copies(&probe(Method::Memcpy, u64::MAX)).len(), 5, "no more than there is");
    }

    /// Treats each core of this machine as a socket.
    #[test]
    fn hand_offs_are_measured_between_the_cores_of_each_kind_of_pair() {
        let cores = own_cores();
        let alone: Vec<Vec<usize>> = cores.iter().map(|&core| vec![core]).collect();
        let pairs = Topology::of(&alone, &alone).examples(&cores, &cores);
        let host = Host::new(&pairs);
        let probe = |pair| Probe { method: Method::HandOff(pair), len: 0, repetitions: 5, round_trips: 2 };
        let count = if cores.len() > 1 { 5 } else { 0 };
        let times = host.hand_offs(&probe(Pair::Across), Pair::Across);
        assert!(times.len() == count && times.iter().all(|&ns| ns > 0), "{times:?}");
        assert!(host.hand_offs(&probe(Pair::Cache), Pair::Cache).is_empty(), "there is no such pair");
    }

    #[test]
    fn cores_that_do_not_exist_are_not_measured() {
        let nowhere = CpuSet::MAX_CPU - 1;
        let probe = Probe { method: Method::HandOff(Pair::Cache), len: 0, repetitions: 5, round_trips: 2 };
        for pair in [[own_cores()[0], nowhere], [nowhere, own_cores()[0]]] {
            let pairs = [(Pair::Cache, pair)];
            assert!(Host::new(&pairs).hand_offs(&probe, Pair::Cache).is_empty(), "{pair:?}");
        }
    }
}
