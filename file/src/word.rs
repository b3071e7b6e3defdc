//! The word that says how accesses of one process go, where that may change ([`crate::access`]).

/// A word that all processes of a file see, at first 0. It says how accesses of one process go where that may
/// change.
pub trait Word {
    /// Its value.
    fn load(&self) -> u64;
    /// Changes it in one step: what it was before.
    fn change(&self, to: impl FnMut(u64) -> u64) -> u64;

    /// Whether accesses go by owners.
    fn has_owners(&self) -> bool {
        self.load() != DIRECTLY
    }

    /// Whether owners keep data in memory.
    fn keeps(&self) -> bool {
        self.load() == BY_OWNERS
    }

    /// Has accesses go by owners; whether they did already.
    fn prefer_owners(&self) -> bool {
        self.change(|_| BY_OWNERS) != DIRECTLY
    }

    /// Owners keep nothing from now on, so that accesses may go directly when all have written what they
    /// have.
    fn begin_to_close(&self) {
        self.change(|was| if was == BY_OWNERS { CLOSING } else { was });
    }

    /// Accesses go directly, if no process has preferred owners in the meantime.
    fn close(&self) {
        self.change(|was| if was == CLOSING { DIRECTLY } else { was });
    }
}

/// Each process makes system calls of its own. If a request still reaches an owner in this state, the owner
/// performs it at once and caches nothing.
const DIRECTLY: u64 = 0;
/// All go by owners.
const BY_OWNERS: u64 = 1;
/// All go by owners, who keep nothing.
const CLOSING: u64 = 2;
