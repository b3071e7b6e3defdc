//! Measurements of the host: memory copies, and hand-offs to another core.

use nmad_engine::{Pair, Probe};
use nmad_progress::{Other, hand_offs};
use std::hint::black_box;
use std::time::Instant;

/// Size of the copied region, larger than the near caches, so that the copied data was not used lately.
const REGION: usize = 16 << 20;

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

    /// Measures hand-offs to a thread on the other core of such a pair, or preemptions of one that computes
    /// there, on the pair that is furthest apart; returns times in nanoseconds. Empty if there are no such
    /// cores, or no threads for them.
    pub(super) fn hand_offs(&self, probe: &Probe, pair: Pair) -> Vec<u64> {
        let (found, other) = match pair {
            Pair::Busy => (self.pairs.last(), Other::Computes),
            _ => (self.pairs.iter().find(|(kind, _)| *kind == pair), Other::Idle),
        };
        let Some(&(_, cores)) = found else { return Vec::new() };
        let each = (probe.round_trips as usize).max(1);
        let times = hand_offs(cores, other, each * probe.repetitions as usize);
        // The median of each repetition: one in which the system took a core away does not count.
        let median = |times: &[u64]| {
            let mut times = times.to_vec();
            times.sort_unstable();
            times[times.len() / 2]
        };
        times.chunks(each).map(median).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_engine::Method;
    use nmad_progress::{Topology, own_cores};

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
        let times = host.hand_offs(&probe(Pair::Busy), Pair::Busy);
        assert!(times.len() == count && times.iter().all(|&ns| ns > 0), "{times:?}");
    }
}
