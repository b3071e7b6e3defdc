//! Places of rails that are added to a session after it was opened.

use nmad_engine::MAX_RAILS;
use std::sync::{Mutex, MutexGuard};

/// Places behind the rails that the session opened: the number of peers of the rail in each; `None` for a
/// free place.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) first: usize,
    taken: Mutex<Vec<Option<u32>>>,
}

impl Places {
    pub(crate) fn behind(first: usize) -> Places {
        Places { first, taken: Mutex::new(vec![None; MAX_RAILS.saturating_sub(first)]) }
    }

    /// Locks and returns the places.
    pub(crate) fn taken(&self) -> MutexGuard<'_, Vec<Option<u32>>> {
        self.taken.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the number of peers of the rail in a place.
    pub(crate) fn peers(&self, place: usize) -> u32 {
        self.taken().get(place - self.first).copied().flatten().unwrap_or(0)
    }
}
