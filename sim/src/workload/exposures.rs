//! The memory that hosts expose, and what was drawn of accesses to it.

use super::access::{CELLS, DIGITS, NUMBERS, Number, RANGES, Touch, value};
use crate::rng::Rng;
use std::collections::BTreeMap;

/// Of a hundred runs this number have such memory.
const SHARE: u64 = 40;
/// Bytes of exposed memory of each host, at most.
const SIZE_MAX: u64 = 512 << 10;

/// A put, and the range that it writes: begin and length.
pub(super) type Written = (Number, u64, u64);

/// The accesses that were drawn so far.
pub(super) struct Exposures {
    pub(super) rng: Rng,
    len_max: u64,
    /// By target: bytes in use, and digits in use.
    used: Vec<(u64, u64)>,
    /// By origin and target: puts that are complete.
    written: BTreeMap<(usize, usize), Vec<Written>>,
    /// By origin and target, where an access is not complete: puts that are under way, or
    /// read.
    pub(super) owes: BTreeMap<(usize, usize), Vec<Written>>,
    /// Values that were written into a cell of a target.
    values: BTreeMap<(usize, u64), Vec<u64>>,
}

impl Exposures {
    /// None: this run has no exposed memory.
    pub(super) fn draw(seed: u64, hosts: usize) -> Option<Exposures> {
        let mut rng = Rng::of(seed, 10);
        rng.percent(SHARE).then(|| Exposures {
            len_max: *rng.pick(&[8, 200, 4 << 10, 64 << 10, 256 << 10]),
            rng,
            used: vec![(RANGES, 0); hosts],
            written: BTreeMap::new(),
            owes: BTreeMap::new(),
            values: BTreeMap::new(),
        })
    }

    /// Bytes that each host exposes.
    pub(super) fn sizes(&self) -> Vec<u64> {
        self.used.iter().map(|(bytes, _)| *bytes).collect()
    }

    pub(super) fn two_hosts(&mut self) -> (usize, usize) {
        let hosts = self.used.len();
        let host = self.rng.index(hosts);
        (host, (host + 1 + self.rng.index(hosts - 1)) % hosts)
    }

    /// An access; none: there is no room for it, or nothing to read.
    pub(super) fn touch(&mut self, number: Number, (host, target): (usize, usize)) -> Option<Touch> {
        let written = self.written.entry((host, target)).or_default();
        let owes = self.owes.entry((host, target)).or_default();
        Some(match self.rng.below(10) {
            // Once more to a place, which the put before has left.
            0 if !written.is_empty() => {
                let (_, at, len) = written.swap_remove(self.rng.index(written.len()));
                owes.push((number, at, len));
                Touch::Put { at, len }
            }
            0..=3 => {
                let (at, len) = (self.used[target].0, self.rng.len(self.len_max).max(1));
                if at + len > SIZE_MAX {
                    return None;
                }
                self.used[target].0 += len;
                owes.push((number, at, len));
                Touch::Put { at, len }
            }
            4 => {
                // Nobody writes there before it is complete.
                let (put, at, len) = written.pop()?;
                owes.push((put, at, len));
                Touch::Get { at, len, put }
            }
            5..=7 => {
                let digit = self.used[target].1;
                if digit == NUMBERS * DIGITS {
                    return None;
                }
                self.used[target].1 += 1;
                let fetches = self.rng.percent(40);
                Touch::Add { number: digit / DIGITS, digit: digit % DIGITS, fetches }
            }
            kind => {
                let cell = self.rng.below(CELLS);
                let values = self.values.entry((target, cell)).or_default();
                let compare = values.last().copied().unwrap_or(0);
                values.push(value(number));
                if kind == 8 { Touch::Exchange { cell } } else { Touch::Swap { cell, compare } }
            }
        })
    }

    /// All that a host has asked of another one is complete.
    pub(super) fn completed(&mut self, between: (usize, usize)) {
        let puts = self.owes.remove(&between).unwrap_or_default();
        self.written.entry(between).or_default().extend(puts);
    }
}
