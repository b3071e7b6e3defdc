//! The rail over which lone messages take the short way, and the one from which packets come
//! ([`crate::engine::short_way`]).

use crate::packet::RailId;

/// The only rail to a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    pub(crate) rail: RailId,
    /// Place of its link among those of the peer.
    pub(crate) place: usize,
    /// Messages shorter than this may go past the window; none, if the strategy wants to see them all.
    pub(crate) below: u64,
    /// The driver injects messages, and nothing has to be remembered of them.
    pub(crate) injects: bool,
}

/// Where packets came from last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// Place of the link.
    pub(crate) place: usize,
    /// Packets one after the other.
    pub(crate) times: u8,
}

impl Heard {
    #[inline]
    pub(crate) fn note(&mut self, place: usize) {
        let times = if self.place == place { self.times.saturating_add(1) } else { 1 };
        *self = Heard { place, times };
    }
}
