//! Measurements of the host alone: copying in memory, and handing work to another core.

use nmad_engine::Probe;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Larger than near caches are, so that what is copied next was not touched lately.
const REGION: usize = 16 << 20;
/// Looks at the other core before the core is given away: there may be no other one.
const LOOKS: u32 = 2_000;
/// Tells the other thread to end.
const OVER: u64 = u64::MAX;

/// Memory, made when it is needed first.
#[derive(Default)]
pub(super) struct Host {
    memory: Option<(Vec<u8>, Vec<u8>)>,
    at: usize,
}

impl Host {
    /// Times of copies in nanoseconds.
    pub(super) fn copies(&mut self, probe: &Probe) -> Vec<u64> {
        let len = (probe.len as usize).clamp(1, REGION);
        // Written, so that the pages are there.
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

    /// Times until another thread has taken what it was handed, in nanoseconds: half of there and back. None
    /// where no thread can be had.
    pub(super) fn hand_offs(&self, probe: &Probe) -> Vec<u64> {
        // It spins, so it lives no longer than it is needed.
        let Ok(mut other) = Other::start() else { return Vec::new() };
        // Once for the start of the thread.
        other.hand_off();
        let mut times = repeat(probe, &mut || other.hand_off());
        times.iter_mut().for_each(|ns| *ns = (*ns / 2).max(1));
        times
    }
}

fn repeat(probe: &Probe, once: &mut dyn FnMut()) -> Vec<u64> {
    let each = || {
        let start = Instant::now();
        (0..probe.round_trips).for_each(|_| once());
        (start.elapsed().as_nanos() as u64 / u64::from(probe.round_trips.max(1))).max(1)
    };
    std::iter::repeat_with(each).take(probe.repetitions as usize).collect()
}

/// A thread that takes what it is handed, and says so.
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
    /// Waits until it is no longer `old`.
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
    fn start() -> std::io::Result<Other> {
        let shared = Arc::<Slots>::default();
        let own = shared.clone();
        let serve = move || {
            let mut last = 0;
            while last != OVER {
                last = own.handed.await_change(last);
                own.taken.0.store(last, Ordering::Release);
            }
        };
        let thread = thread::Builder::new().name("nmad-sample".into()).spawn(serve)?;
        Ok(Other { shared, count: 0, thread: Some(thread) })
    }

    fn hand_off(&mut self) {
        self.shared.handed.0.store(self.count + 1, Ordering::Release);
        self.count = self.shared.taken.await_change(self.count);
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

    #[test]
    fn every_repetition_has_its_time() {
        let mut host = Host::default();
        let probe = |method, len| Probe { method, len, repetitions: 5, round_trips: 2 };
        assert_eq!(host.copies(&probe(Method::Memcpy, 1 << 20)).len(), 5);
        assert_eq!(host.copies(&probe(Method::Memcpy, u64::MAX)).len(), 5, "no more than there is");
        let times = host.hand_offs(&probe(Method::HandOff, 0));
        assert!(times.len() == 5 && times.iter().all(|&ns| ns > 0), "{times:?}");
    }
}
