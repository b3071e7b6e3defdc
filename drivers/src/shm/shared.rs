//! State that two processes share for one link: the segment, and access to each other's memory.

use crate::node::Segment;
use crate::node::across::Process;
use crate::shm::layout::{BOUNCE, End, Ring, RingOf};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Reason for ending a link whose peer reports an impossible number of consumed cells.
pub const IMPOSSIBLE: &str = "broke the protocol: took cells that were not there";

/// The shared segment, seen from one of the two processes.
#[derive(Debug)]
pub struct Shared {
    pub segment: Segment,
    pub end: End,
    /// The peer's process; none: its memory cannot be accessed.
    pub process: Option<Process>,
    /// There are more processes than cores.
    pub is_oversubscribed: bool,
    ours: Ring,
    theirs: Ring,
}

/// The error of a copy.
#[derive(Debug)]
pub enum Obstacle {
    /// The system does not let this process access the peer's memory, though it may have done so before.
    /// The peer can still copy, or both through bounce buffers.
    Denied(io::Error),
    /// The link cannot be used any more.
    Fatal(String),
}

/// Returns whether the system denied the access itself, whatever the memory.
fn is_denial(e: &io::Error) -> bool {
    matches!(Errno::from_io_error(e), Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS))
}

impl Obstacle {
    /// Classifies the system's error; `what` names the attempt, for example "read from".
    pub fn of(what: &str, e: io::Error) -> Obstacle {
        let hint = match Errno::from_io_error(&e) {
            _ if is_denial(&e) => return Obstacle::Denied(e),
            Some(Errno::FAULT) => " (is all memory of the message there, and may be written where it goes?)",
            Some(Errno::SRCH) => " (has it died?)",
            _ => "",
        };
        Obstacle::Fatal(format!("cannot be {what}: {e}{hint}"))
    }
}

impl From<String> for Obstacle {
    fn from(why: String) -> Obstacle {
        Obstacle::Fatal(why)
    }
}

impl Shared {
    pub fn new(segment: Segment, end: End, process: Option<Process>) -> Shared {
        let (ours, theirs) = (end.ring(), end.other().ring());
        Shared { segment, end, process, is_oversubscribed: false, ours, theirs }
    }

    /// Publishes whether this side can access the peer's memory.
    pub fn tell_access(&self) {
        let can = if self.process.is_some() { 1 } else { 2 };
        self.segment.word(self.end.can()).store(can, Ordering::Release);
    }

    /// Returns whether the peer can access our memory; false while the peer has not published it.
    pub fn peer_can(&self) -> bool {
        self.segment.word(self.end.other().can()).load(Ordering::Acquire) == 1
    }

    /// Returns whether the two processes ran on cores that share a cache when the link was opened, as far
    /// as the system reports that.
    pub fn is_near(&self) -> bool {
        let cache = |end: End| self.segment.word(end.probe() + 24).load(Ordering::Relaxed);
        cache(self.end) == cache(self.end.other())
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

    /// A range of the peer's bounce buffer, as a cell names it.
    ///
    /// # Errors
    /// The range is outside of the bounce buffer.
    pub fn bounced(&self, start: u32, len: usize) -> Result<&[u8], String> {
        if start > BOUNCE || len > (BOUNCE - start) as usize {
            return Err("broke the protocol: range outside of its bounce buffer".into());
        }
        Ok(self.segment.bytes(self.end.other().bounce(start), len))
    }

    /// Answers a question of the peer about the duration of a transfer ([`crate::shm::selector`]).
    pub fn answer(&self, question: u32, took: Duration) {
        let ns = u32::try_from(took.as_nanos()).unwrap_or(u32::MAX);
        let word = self.segment.word(self.end.answer());
        word.store(u64::from(question) << 32 | u64::from(ns), Ordering::Release);
    }

    /// The peer's answer to a question; none if it has not answered yet.
    pub fn answered(&self, question: u32) -> Option<Duration> {
        let word = self.segment.word(self.end.other().answer()).load(Ordering::Acquire);
        let ns = word & u64::from(u32::MAX);
        (word >> 32 == u64::from(question)).then(|| Duration::from_nanos(ns))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::shm::layout::LEN;

    /// Both ends of one link.
    pub fn pair() -> [Shared; 2] {
        let (opened, fd) = Segment::create(LEN).expect("the system has memory");
        let answered = Segment::adopt(fd, LEN).expect("it is there");
        [Shared::new(opened, End::Opened, None), Shared::new(answered, End::Answered, None)]
    }
}
