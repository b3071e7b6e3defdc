//! What two processes share for one link: the memory, and the way to each other's.

use super::layout::{End, Ring, RingOf};
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
    ours: Ring,
    theirs: Ring,
}

impl Shared {
    /// Memory that both have mapped.
    pub fn new(segment: Segment, end: End, pid: Option<i32>) -> Shared {
        Shared { segment, end, pid, ours: end.ring(), theirs: end.other().ring() }
    }

    /// Whether the peer can access our memory, as far as it has told.
    pub fn peer_can(&self) -> bool {
        self.segment.word(self.end.other().can()).load(Ordering::Acquire) == 1
    }

    /// The ring that this side writes.
    #[inline]
    pub fn ours(&self) -> RingOf<'_> {
        RingOf(&self.segment, self.ours)
    }

    /// The ring that this side reads.
    #[inline]
    pub fn theirs(&self) -> RingOf<'_> {
        RingOf(&self.segment, self.theirs)
    }
}
