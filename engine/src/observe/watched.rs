//! Peers with several links, and the queries about their links that wait for a rail.

use crate::clock::{Duration, Instant};
use crate::packet::{PeerId, RailId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A query or an answer that waits for a rail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query {
    pub(crate) to: PeerId,
    pub(crate) over: RailId,
    pub(crate) about: About,
}

/// Contents of a query or an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About {
    /// A query which packets of this rail of ours have arrived.
    Ours(RailId, u32),
    /// The answer which packets of this rail of theirs have arrived.
    Theirs(u8, u32),
}

/// Peers with several links.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) peers: Vec<PeerId>,
    /// When their links are checked next.
    pub(crate) check_at: Instant,
    /// When [`Engine::watch`](crate::engine::Engine) has to run: a check is due or a query can be sent.
    pub(crate) due_at: Instant,
    pub(crate) queries: VecDeque<Query>,
    /// Longest time during which a peer acknowledged nothing in flight.
    pub(crate) longest_stall: Duration,
}

impl Default for Watched {
    fn default() -> Self {
        let never = Instant::from_ns(u64::MAX);
        Watched {
            peers: Vec::new(),
            check_at: never,
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

    /// Removes a peer that is lost.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.peers.retain(|each| *each != peer);
    }

    /// Adds a timed query, which is sent as soon as its rail accepts it.
    pub(crate) fn ask_timed(&mut self, to: PeerId, over: RailId, question: u32) {
        self.queries.push_back(Query { to, over, about: About::Ours(over, question) });
        self.due_at = Instant::default();
    }

    /// Makes the next pass check all peers.
    pub(crate) fn look_now(&mut self) {
        if !self.peers.is_empty() {
            (self.check_at, self.due_at) = (Instant::default(), Instant::default());
        }
    }
}
