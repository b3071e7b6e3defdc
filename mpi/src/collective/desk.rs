//! The data of a communicator for its collectives: the nodes of its ranks, and schedules kept for later
//! calls.

use super::shared::Shared;
use super::trial::{Pick, Trials};
use crate::algorithm::check::Operation;
use crate::algorithm::neighbor::Neighbors;
use crate::algorithm::run::Run;
use crate::algorithm::team::Team;
use crate::datatype::Datatype;
use crate::op::Op;
use std::sync::{Mutex, OnceLock};

/// Runs that are kept.
const KEPT: usize = 8;
/// Scratch memory of a run that is kept, in bytes.
const KEPT_SCRATCH: usize = 4 << 20;

/// See the module.
#[derive(Default)]
pub(crate) struct Desk {
    pub(super) team: OnceLock<Team>,
    pub(super) neighbors: OnceLock<Neighbors>,
    pub(super) shared: Shared,
    pub(super) trials: Trials,
    /// Runs that have ended, the latest last.
    kept: Mutex<Vec<(Key, Run)>>,
}

/// What a schedule was built for, all but the addresses of the buffers.
#[derive(Clone)]
pub(crate) struct Key {
    pub(super) operation: Operation,
    pub(super) in_place: bool,
    pub(super) root: i32,
    pub(super) data: [Option<(i64, Datatype)>; 2],
    pub(super) op: Option<Op>,
    /// The algorithm, if measurements have decided.
    pub(super) pick: Option<Pick>,
}

impl Key {
    #[inline]
    fn matches(&self, other: &Key) -> bool {
        self.operation == other.operation
            && self.in_place == other.in_place
            && self.root == other.root
            && self.pick == other.pick
            && self.data.iter().zip(&other.data).all(|pair| match pair {
                (Some((count, datatype)), Some((other, kind))) => count == other && datatype.is_same(kind),
                (None, None) => true,
                _ => false,
            })
            && match (&self.op, &other.op) {
                (Some(op), Some(other)) => op.is_same(other),
                (None, None) => true,
                _ => false,
            }
    }
}

impl Desk {
    /// A run for the same call, if one is kept; nobody else gets it meanwhile.
    #[inline]
    pub(super) fn take(&self, key: &Key) -> Option<Run> {
        let mut kept = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let index = kept.iter().rposition(|(other, _)| other.matches(key))?;
        Some(kept.remove(index).1)
    }

    /// Keeps a run for the next such call.
    #[inline]
    pub(super) fn put(&self, key: Key, run: Run) {
        if run.schedule().scratch() > KEPT_SCRATCH {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let oldest = if kept.len() == KEPT { Some(kept.remove(0)) } else { None };
        kept.push((key, run));
        drop(kept);
        // Dropped after the lock, since freeing may take long.
        drop(oldest);
    }
}
