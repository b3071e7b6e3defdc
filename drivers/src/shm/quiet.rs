//! How long one side of a chunk waits for the other's part in it.

use std::time::{Duration, Instant};

/// How long a side waits for the other, who would take or leave parts in the area, before it copies
/// alone: the other does not look just now. In an exchange it looks after 256 KiB that it has taken, and as
/// much that it has left.
const PATIENCE: Duration = Duration::from_micros(30);
/// The same where the other may have no core just now, for somebody who has something else to do: some turns
/// of those who share one.
const PATIENCE_IN_A_CROWD: Duration = Duration::from_micros(500);

/// Since when nothing went through the area.
#[derive(Debug, Default)]
pub struct Quiet {
    since: Option<Instant>,
    is_patient: bool,
    /// The other side has ended.
    is_final: bool,
}

impl Quiet {
    /// Whether to wait longer for the peer.
    pub fn be_patient(&mut self, is_patient: bool) {
        self.is_patient = is_patient;
    }

    /// Whether this side has something else to do, in a crowd.
    pub fn is_patient(&self) -> bool {
        self.is_patient
    }

    /// The peer has ended: what it has not left by now it never will.
    pub fn finish(&mut self) {
        self.is_final = true;
    }

    /// Something did.
    #[inline]
    pub fn end(&mut self) {
        self.since = None;
    }

    /// Nothing did, again; whether that lasts too long.
    pub fn is_long(&mut self) -> bool {
        self.lasts(if self.is_patient { PATIENCE_IN_A_CROWD } else { PATIENCE })
    }

    /// Whether that lasts too long also for somebody who has no core just now.
    pub fn is_very_long(&mut self) -> bool {
        self.lasts(PATIENCE_IN_A_CROWD)
    }

    fn lasts(&mut self, patience: Duration) -> bool {
        self.is_final || self.since.get_or_insert_with(Instant::now).elapsed() > patience
    }
}
