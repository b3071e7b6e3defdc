//! Peers with several links, and the questions about their links that wait for a rail.

use crate::clock::{Duration, Instant};
use crate::packet::{PeerId, RailId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A question or an answer that waits for a rail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    pub(crate) to: PeerId,
    pub(crate) over: RailId,
    pub(crate) about: About,
}

/// The subject of a query.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About {
    /// The question which packets of this rail of ours have arrived.
    Ours(RailId, u32),
    /// Packets that have arrived from this rail of theirs, in answer to that question.
    Theirs(u8, u32),
}

/// Peers with several links.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) peers: Vec<PeerId>,
    /// When their links are looked at next.
    pub(crate) look_at: Instant,
    /// When somebody has to look whether it is time, or whether a query can leave.
    pub(crate) due_at: Instant,
    pub(crate) queries: VecDeque<Query>,
    /// Longest time for which a peer acknowledged nothing of what was under way to it.
    pub(crate) longest_stall: Duration,
}

impl Default for Watched {
    fn default() -> Self {
        let never = Instant::from_ns(u64::MAX);
        Watched {
            peers: Vec::new(),
            look_at: never,
            due_at: never,
            queries: VecDeque::new(),
            longest_stall: Duration::ZERO,
        }
    }
}

impl Watched {
    pub(crate) fn add(&mut self, peer: PeerId) {
        self.peers.push(peer);
        self.look_now();
    }

    /// A peer is gone for good.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.peers.retain(|each| *each != peer);
    }

    /// A question that is timed leaves as soon as its rail takes it.
    pub(crate) fn ask_timed(&mut self, to: PeerId, over: RailId, question: u32) {
        self.queries.push_back(Query { to, over, about: About::Ours(over, question) });
        self.due_at = Instant::default();
    }

    /// The next turn looks at them.
    pub(crate) fn look_now(&mut self) {
        if !self.peers.is_empty() {
            (self.look_at, self.due_at) = (Instant::default(), Instant::default());
        }
    }
}
