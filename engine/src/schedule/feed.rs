//! When a rail is fed: the three ways of P1 section 3.2.

/// How the window and the rails' activity are coupled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Feed {
    /// Accumulate while the rail is busy; fill the packet when it is idle. The default.
    #[default]
    Accumulate,
    /// Keep one packet prepared while the rail is busy, and give it the moment it is idle.
    Prepare,
    /// Accumulate, but run the strategy on a busy rail too once more bytes than this wait for a peer.
    Backlog(usize),
}

impl Feed {
    /// Whether a rail that is busy may be fed with `backlog` bytes waiting.
    #[inline]
    pub fn feeds_busy(self, backlog: usize) -> bool {
        matches!(self, Feed::Backlog(threshold) if backlog > threshold)
    }
}
