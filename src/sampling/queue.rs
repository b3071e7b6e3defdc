//! Measures for how long this thread waited in the run queue of a core, which the kernel counts.

use std::time::Instant;

/// A count that starts when it is made.
pub(super) struct Queue {
    since: Instant,
    queued_ns: Option<u64>,
}

impl Queue {
    pub(super) fn begin() -> Queue {
        Queue { since: Instant::now(), queued_ns: queued_ns() }
    }

    /// Returns the part of the time since the beginning, zero to one; zero if the kernel does not count.
    pub(super) fn part(&self) -> f64 {
        let queued_ns = self.queued_ns.zip(queued_ns()).map_or(0, |(before, now)| now.saturating_sub(before));
        let part = queued_ns as f64 / self.since.elapsed().as_nanos().max(1) as f64;
        part.min(1.0)
    }
}

/// Reads the second number of `schedstat` (Documentation/scheduler/sched-stats.rst).
fn queued_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    /// Threads that are bound to one core have to queue for it.
    #[test]
    fn threads_that_share_a_core_wait_in_its_queue() {
        if queued_ns().is_none() {
            eprintln!("skipped: the kernel does not tell");
            return;
        }
        assert_eq!(Queue { since: Instant::now(), queued_ns: None }.part(), 0.0);
        let cores = rustix::thread::sched_getaffinity(None).expect("our cores");
        let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&core| cores.is_set(core)).expect("one");
        let seen = Arc::new(AtomicU32::new(0));
        let spin = move |seen: Arc<AtomicU32>| {
            let mut one = rustix::thread::CpuSet::new();
            one.set(first);
            rustix::thread::sched_setaffinity(None, &one).expect("it is ours");
            let queue = Queue::begin();
            let is_early = || queue.since.elapsed() < Duration::from_secs(20);
            while queue.part() == 0.0 && is_early() {}
            seen.fetch_add(1, Ordering::Relaxed);
            // The other thread has to wait for this one.
            while seen.load(Ordering::Relaxed) < 2 && is_early() {}
            queue.part()
        };
        let both = [seen.clone(), seen].map(|seen| thread::spawn(move || spin(seen)));
        let parts = both.map(|thread| thread.join().expect("no panic"));
        assert!(parts.iter().all(|&part| part > 0.0 && part <= 1.0), "{parts:?}");
    }
}
