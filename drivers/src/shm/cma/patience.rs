//! Waiting for the end of the other side's copy.

use crate::shm::link::is_there;
use rustix::fd::OwnedFd;
use std::hint::spin_loop;

/// Looks at the word before a look whether the peer is still there, which is a system call: some ten
/// microseconds, in which most copies end. Half and twice matter only to the longest offers.
const LOOKS: u32 = 1000;

/// A wait for the other side, which copies. A copy takes no longer than another one, unless the peer ends in
/// it or is stopped.
#[derive(Debug, Default)]
pub(super) struct Patience {
    looks: u32,
}

impl Patience {
    /// Waits a little; true: it has lasted, and others have had the core.
    pub(super) fn rest(&mut self) -> bool {
        spin_loop();
        self.looks = self.looks.wrapping_add(1);
        let lasts = self.looks.is_multiple_of(LOOKS);
        if lasts {
            std::thread::yield_now();
        }
        lasts
    }

    /// The same; true: the peer has ended. These descriptors become readable then.
    pub(super) fn is_over(&mut self, watched: [Option<&OwnedFd>; 2]) -> bool {
        self.rest() && !is_there(watched)
    }
}
