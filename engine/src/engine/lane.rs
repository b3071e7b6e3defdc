//! The rail over which lone messages take the short way, and the one from which packets come
//! ([`super::short_way`]).

use crate::packet::RailId;

/// The only rail to a peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    pub(super) rail: RailId,
    /// Place of its link among those of the peer.
    pub(super) place: usize,
    /// Messages shorter than this may go past the window; none, if the strategy wants to see them all.
    pub(super) below: u64,
    /// The driver injects messages, and nothing has to be remembered of them.
    pub(super) injects: bool,
    /// Lengths of messages that a peer that waits for them may copy itself, if their senders wait as well.
    pub(super) single_copy: (u64, u64),
}

/// Where packets came from last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heard {
    /// Place of the link.
    pub(super) place: usize,
    /// Packets one after the other.
    pub(super) times: u8,
}

impl Heard {
    #[inline]
    pub(super) fn note(&mut self, place: usize) {
        let times = if self.place == place { self.times.saturating_add(1) } else { 1 };
        *self = Heard { place, times };
    }
}
