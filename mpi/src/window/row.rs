//! What ranks tell each other when a window is made.

use crate::api;
use crate::comm;
use crate::error::Result;
use crate::handle::{Comm, Type};
use crate::memory;
use newmadeleine::across::{self, Process};
use newmadeleine::engine::{Exposure, Keys, MAX_RAILS};
use nmad_rma::Base;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a rank tells all others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) size: i64,
    pub(super) unit: i64,
    pub(super) base: i64,
    pub(super) process: i64,
    /// Where its mark is, and what is there.
    pub(super) mark: [i64; 2],
    /// The first rank of its node.
    pub(super) leader: i64,
    /// Its place on the node.
    pub(super) place: i64,
    /// The ranks of its node have memory in common.
    pub(super) has_common: i64,
    /// It has no memory left.
    pub(super) failed: i64,
    /// By which its rails let the network reach its memory; [`NO_KEY`]: that one does not.
    pub(super) keys: [i64; MAX_RAILS],
    /// On which of these the network changes words while the processor does, as bits.
    pub(super) atomic: i64,
}

/// Of a rail that exposes nothing.
const NO_KEY: i64 = -1;

pub(super) const ROW: usize = size_of::<Row>() / size_of::<i64>();

/// Every rank's numbers.
pub(super) fn gather<const N: usize>(mine: [i64; N], comm: Comm) -> Result<Vec<[i64; N]>> {
    let count = comm::lookup(comm)?.local().len() as usize;
    let mut all = vec![[0; N]; count];
    let len = (N * size_of::<i64>()) as i64;
    let into = all.as_mut_ptr().cast::<c_void>();
    api::allgather(mine.as_ptr().cast(), len, Type::BYTE, into, len, Type::BYTE, comm)?;
    Ok(all)
}

/// A number in this process that others find only if they read this very process.
pub(super) fn mark() -> &'static AtomicU64 {
    static MARK: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let value = (now ^ u64::from(std::process::id()) << 40) | 1;
    // The first one stays.
    let _ = MARK.compare_exchange(0, value, Ordering::Relaxed, Ordering::Relaxed);
    &MARK
}

/// The process of a row, if this one may read its memory.
pub(super) fn readable(row: &Row) -> Option<Process> {
    let process = Process::of(row.process as i32);
    let mut found = 0_u64;
    let into = memory::contiguous((&raw mut found).cast(), size_of::<u64>());
    let at = (row.mark[0] as u64, size_of::<u64>() as u64);
    let is_it = across::read(&process, &into, [at]).is_ok() && found == row.mark[1] as u64;
    is_it.then_some(process)
}

impl Row {
    pub(super) fn numbers(&self) -> [i64; ROW] {
        let Row { size, unit, base, process, mark, leader, place, has_common, failed, keys, atomic } = *self;
        let others = [size, unit, base, process, mark[0], mark[1], leader, place, has_common, failed, atomic];
        let mut numbers = others.into_iter().chain(keys);
        std::array::from_fn(|_| numbers.next().unwrap_or_default())
    }

    pub(super) fn of(numbers: &[i64; ROW]) -> Row {
        let [size, unit, base, process, at, value, leader, place, has_common, failed, atomic, ref keys @ ..] =
            *numbers;
        let mark = [at, value];
        Row { size, unit, base, process, mark, leader, place, has_common, failed, keys: *keys, atomic }
    }

    /// With what the rails say of its memory.
    pub(super) fn exposed(self, exposure: &Exposure) -> Row {
        let key = |rail: usize| exposure.keys.get(rail as u8).map_or(NO_KEY, |key| key as i64);
        let atomic = exposure.atomic.iter().fold(0, |bits, (rail, _)| bits | 1 << rail);
        Row { keys: std::array::from_fn(key), atomic, ..self }
    }

    /// What its rails say of its memory.
    pub(super) fn exposure(&self) -> Exposure {
        let all = || (0_u8..).zip(self.keys).filter(|(_, key)| *key != NO_KEY);
        let of = |rails: &mut dyn Iterator<Item = (u8, i64)>| {
            let mut keys = Keys::default();
            rails.for_each(|(rail, key)| keys.push(rail, key as u64));
            keys
        };
        let atomic = of(&mut all().filter(|(rail, _)| self.atomic & 1 << rail != 0));
        Exposure { keys: of(&mut all()), atomic }
    }

    pub(super) fn base(&self) -> Base {
        Base::new(std::ptr::with_exposed_provenance_mut(self.base as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rails_say_survives_being_told() {
        let mut exposure = Exposure::default();
        [(1, 7), (9, u64::from(u32::MAX))].into_iter().for_each(|(rail, key)| exposure.keys.push(rail, key));
        exposure.atomic.push(9, u64::from(u32::MAX));
        let none = Row {
            size: 1,
            unit: 2,
            base: 3,
            process: 4,
            mark: [5, 6],
            leader: 7,
            place: 8,
            has_common: 9,
            failed: 10,
            keys: [NO_KEY; MAX_RAILS],
            atomic: 0,
        };
        assert!(none.exposure().is_empty());
        let told = Row::of(&none.exposed(&exposure).numbers());
        assert_eq!(told.exposure(), exposure);
        assert_eq!((told.size, told.mark, told.failed), (1, [5, 6], 10));
    }
}
