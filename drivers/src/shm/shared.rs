//! What two processes share for one link: the memory, and the way to each other's.

use super::layout::{End, RingOf};
use super::segment::Segment;
use std::sync::atomic::Ordering;

/// The memory between two processes, seen from one.
#[derive(Debug)]
pub struct Shared {
    /// The shared memory.
    pub segment: Segment,
    /// Our side of it.
    pub end: End,
    /// The peer's process; none: its memory cannot be accessed.
    pub pid: Option<i32>,
}

impl Shared {
    /// Whether the peer can access our memory, as far as it has told.
    pub fn peer_can(&self) -> bool {
        self.segment.word(self.end.other().can()).load(Ordering::Acquire) == 1
    }

    /// The ring that this side writes.
    #[inline]
    pub fn ours(&self) -> RingOf<'_> {
        RingOf(&self.segment, self.end)
    }

    /// The ring that this side reads.
    #[inline]
    pub fn theirs(&self) -> RingOf<'_> {
        RingOf(&self.segment, self.end.other())
    }
}
