//! When a rail is given packets: the three modes of P1 section 3.2.

/// How sending from the window depends on the activity of the rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Feed {
    /// Accumulate messages while the rail is busy; build the packet when it is idle. The default.
    #[default]
    Accumulate,
    /// Build one packet in advance while the rail is busy, and send it as soon as the rail is idle.
    Prepare,
    /// Accumulate, but build packets for a busy rail, too, when more bytes than this wait for a peer.
    Backlog(usize),
}

impl Feed {
    /// Whether a busy rail may be given packets with `backlog` bytes waiting.
    #[inline]
    pub fn feeds_busy(self, backlog: usize) -> bool {
        matches!(self, Feed::Backlog(threshold) if backlog > threshold)
    }
}
