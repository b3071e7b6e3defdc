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

/// What a rank tells those of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Near {
    pub(super) base: i64,
    pub(super) process: i64,
    /// Where its mark is, and what is there.
    pub(super) mark: [i64; 2],
}

/// How the network reaches the memory of a rank, which it tells all others if there is any such rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    pub(super) base: i64,
    /// On which rails the network changes words while the processor does, as bits.
    pub(super) atomic: i64,
    /// By which its rails let the network reach its memory; [`NO_KEY`]: that one does not.
    pub(super) keys: [i64; MAX_RAILS],
}

/// Of a rail that exposes nothing.
const NO_KEY: i64 = -1;

pub(super) const REACH: usize = size_of::<Reach>() / size_of::<i64>();

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
fn mark() -> &'static AtomicU64 {
    static MARK: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let value = (now ^ u64::from(std::process::id()) << 40) | 1;
    // The first one stays.
    let _ = MARK.compare_exchange(0, value, Ordering::Relaxed, Ordering::Relaxed);
    &MARK
}

impl Near {
    /// This process, whose memory begins here.
    pub(super) fn own(base: Base) -> Near {
        let mark = mark();
        let place = std::ptr::from_ref(mark).expose_provenance() as i64;
        let mark = [place, mark.load(Ordering::Relaxed) as i64];
        Near { base: base.address() as i64, process: std::process::id().into(), mark }
    }

    pub(super) fn numbers(self) -> [i64; 4] {
        [self.base, self.process, self.mark[0], self.mark[1]]
    }

    pub(super) fn of(&[base, process, at, value]: &[i64; 4]) -> Near {
        Near { base, process, mark: [at, value] }
    }

    /// The process, if this one may read its memory.
    pub(super) fn readable(&self) -> Option<Process> {
        let process = Process::of(self.process as i32);
        let mut found = 0_u64;
        let into = memory::contiguous((&raw mut found).cast(), size_of::<u64>());
        let at = (self.mark[0] as u64, size_of::<u64>() as u64);
        let is_it = across::read(&process, &into, [at]).is_ok() && found == self.mark[1] as u64;
        is_it.then_some(process)
    }

    pub(super) fn base(&self) -> Base {
        Base::new(std::ptr::with_exposed_provenance_mut(self.base as usize))
    }
}

impl Reach {
    /// What the rails say of memory that begins here.
    pub(super) fn own(base: Base, exposure: &Exposure) -> Reach {
        let key = |rail: usize| exposure.keys.get(rail as u8).map_or(NO_KEY, |key| key as i64);
        let atomic = exposure.atomic.iter().fold(0, |bits, (rail, _)| bits | 1 << rail);
        Reach { base: base.address() as i64, atomic, keys: std::array::from_fn(key) }
    }

    pub(super) fn numbers(self) -> [i64; REACH] {
        let mut numbers = [self.base, self.atomic].into_iter().chain(self.keys);
        std::array::from_fn(|_| numbers.next().unwrap_or_default())
    }

    pub(super) fn of(&[base, atomic, ref keys @ ..]: &[i64; REACH]) -> Reach {
        Reach { base, atomic, keys: *keys }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rails_say_survives_being_told() {
        let mut exposure = Exposure::default();
        [(1, 7), (9, u64::from(u32::MAX))].into_iter().for_each(|(rail, key)| exposure.keys.push(rail, key));
        exposure.atomic.push(9, u64::from(u32::MAX));
        assert!(Reach::own(Base::BOTTOM, &Exposure::default()).exposure().is_empty());
        let told = Reach::of(&Reach::own(Base::BOTTOM, &exposure).numbers());
        assert_eq!(told.exposure(), exposure);
        let near = Near { base: 3, process: 4, mark: [5, 6] };
        assert_eq!(Near::of(&near.numbers()), near);
    }
}
