//! Places of rails that join a session after it was opened.

use nmad_engine::MAX_RAILS;
use std::sync::{Mutex, MutexGuard};

/// Places of rails behind those that the session has opened: how many peers the rail in each has, none if it
/// is free.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) first: usize,
    taken: Mutex<Vec<Option<u32>>>,
}

impl Places {
    pub(crate) fn behind(first: usize) -> Places {
        Places { first, taken: Mutex::new(vec![None; MAX_RAILS.saturating_sub(first)]) }
    }

    /// The places, for as long as nobody else may take one.
    pub(crate) fn taken(&self) -> MutexGuard<'_, Vec<Option<u32>>> {
        self.taken.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Peers of the rail in a place.
    pub(crate) fn peers(&self, place: usize) -> u32 {
        self.taken().get(place - self.first).copied().flatten().unwrap_or(0)
    }
}
