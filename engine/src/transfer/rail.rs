//! A rail as the engine sees it: its limits, until when it is busy, and its counters.

use super::access::Access;
use super::driver::{Limits, Order};
use crate::clock::{Duration, Instant};
use crate::memory::{Buffer, Segments};
use crate::packet::{PeerId, RailId, RegionId};
use crate::profile::forecast::Forecast;
use crate::profile::measured::Profile;
use crate::schedule::builder::Built;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A bandwidth of which nothing is known for any rail, in bytes per second: then all count the same.
pub(crate) const BANDWIDTH_GUESS: u64 = 1_000_000_000;

/// What one rail has carried since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RailCounters {
    /// Packets sent.
    pub packets: u64,
    /// Bytes of packets sent, headers included.
    pub packet_bytes: u64,
    /// Entries (messages and control frames) that those packets carried.
    pub entries: u64,
    /// Chunks sent.
    pub chunks: u64,
    /// Bytes of chunks sent.
    pub chunk_bytes: u64,
    /// Packets and chunks sent again on this rail.
    pub resent: u64,
    /// Packets and chunks of dead rails that this rail took over.
    pub replayed: u64,
    /// Bytes of all these that were sent once more.
    pub again_bytes: u64,
    /// Packets and chunks that arrived twice.
    pub duplicates: u64,
    /// Accesses to memory that peers have exposed.
    pub accesses: u64,
    /// Their bytes.
    pub access_bytes: u64,
    /// Links that were lost or left, by this side or the peer, and may come back.
    pub left: u64,
    /// Links that were used again after they had been left or lost.
    pub returned: u64,
    /// Packets arrived.
    pub packets_in: u64,
    /// Chunks arrived.
    pub chunks_in: u64,
}

impl RailCounters {
    /// A chunk of `len` bytes has left.
    #[inline]
    pub(crate) fn left_chunk(&mut self, len: u64) {
        self.chunks += 1;
        self.chunk_bytes += len;
    }

    /// A packet of `len` bytes with `entries` entries has left.
    #[inline]
    pub(crate) fn left(&mut self, entries: u32, len: u64) {
        self.packets += 1;
        self.entries += u64::from(entries);
        self.packet_bytes += len;
    }
}

/// What a rail shall open or close.
#[derive(Debug)]
pub enum Opening {
    /// Make the memory reachable for chunks from this peer; answer with [`crate::Engine::opened`].
    Open(RegionId, PeerId, Segments),
    /// The chunk that this peer pushes goes there.
    Accept(PeerId, RegionId),
    /// Forget it. Memory of the engine's own that belonged to it goes when every rail has done that.
    Close(RegionId, Option<Arc<Buffer>>),
}

impl Opening {
    /// Memory of a request was reachable until then.
    pub(crate) fn frees_user_memory(&self) -> bool {
        matches!(self, Opening::Close(_, None))
    }
}

#[derive(Debug)]
pub(crate) struct Rail {
    pub(crate) limits: Limits,
    /// What the user knows it by; empty: only its number is known.
    pub(crate) name: String,
    /// The first of the rails over the same wire; itself if it has one of its own.
    pub(crate) wire: RailId,
    /// There are others.
    pub(crate) shares: bool,
    pub(crate) idle_at: Instant,
    /// Until when the core that posted packets alone pauses, for as long as that took.
    gathers_until: Instant,
    /// It was given chunks since the last report of a post.
    has_chunks: bool,
    pub(crate) counters: RailCounters,
    pub(crate) openings: VecDeque<Opening>,
    /// Connects and closes; they go first and do not wait.
    pub(crate) errands: VecDeque<Order>,
    /// Accesses to memory that peers have exposed; they do not wait for packets.
    pub(crate) accesses: Vec<Access>,
    /// What the wire takes, in nanoseconds, for what was given since the last report of a post.
    given_ns: u64,
    /// To whom everything goes that it was given since it was last idle; none if to several.
    only: Option<PeerId>,
    /// What posting took of the core, the last time that it was measured.
    post_cost: Duration,
    /// A packet that waits for the rail to be idle.
    pub(crate) prepared: Option<Prepared>,
    /// For links that are added later.
    pub(crate) profile: Option<Arc<Profile>>,
    /// By its nominal figures; all peers share it.
    pub(crate) nominal: Forecast,
}

/// When the wire of a rail will have carried what was given to it, by whichever of its rails.
#[inline]
pub(crate) fn busy_until(rails: &[Rail], rail: RailId, now: Instant) -> Instant {
    let mine = &rails[rail.index()];
    if !mine.shares {
        return mine.busy_until(now);
    }
    let ways = rails.iter().filter(|rail| rail.wire == mine.wire);
    ways.map(|rail| rail.busy_until(now)).max().unwrap_or(now)
}

/// A packet made ahead of time, for one peer.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) to: PeerId,
    pub(crate) built: Built,
}

impl Rail {
    pub(crate) fn new(limits: Limits, wire: RailId) -> Self {
        Rail {
            limits,
            name: String::new(),
            wire,
            shares: false,
            idle_at: Instant::default(),
            gathers_until: Instant::default(),
            has_chunks: false,
            counters: RailCounters::default(),
            openings: VecDeque::new(),
            errands: VecDeque::new(),
            accesses: Vec::new(),
            given_ns: 0,
            only: None,
            post_cost: Duration::ZERO,
            prepared: None,
            profile: None,
            nominal: Forecast::nominal(limits.latency_ns, limits.bandwidth, BANDWIDTH_GUESS),
        }
    }

    /// Whether there is something that needs no room and does not wait.
    pub(crate) fn has_errands(&self) -> bool {
        !(self.errands.is_empty() && self.openings.is_empty() && self.accesses.is_empty())
    }

    /// When it will have carried what was given to it, also what was given in this very pass.
    #[inline]
    pub(crate) fn busy_until(&self, now: Instant) -> Instant {
        match self.given_ns {
            0 => self.idle_at,
            given_ns => self.idle_at.max(now) + Duration::from_ns(given_ns),
        }
    }

    /// It is given chunks, which nothing could join.
    #[inline]
    pub(crate) fn give_chunk(&mut self) {
        self.has_chunks = true;
    }

    /// Whether the core that posted packets on it pauses, so that what is submitted meanwhile shares one.
    #[inline]
    pub(crate) fn is_gathering(&self, now: Instant) -> bool {
        now < self.gathers_until
    }

    /// It is given something for a peer that the wire takes `ns` nanoseconds for.
    #[inline]
    pub(crate) fn give(&mut self, now: Instant, to: PeerId, ns: u64) {
        if self.only != Some(to) {
            let idle = self.given_ns == 0 && self.idle_at <= now;
            self.only = idle.then_some(to);
        }
        self.given_ns += ns;
    }

    /// The peer is known to have all but what takes until `at`. The prediction had the rail idle earlier, or
    /// later: a shaper lets a burst pass, and without this the clock would run ahead by each. What goes to
    /// other peers is not known, so then the clock is not set back; nor is it set forward unless `sure`.
    pub(crate) fn is_busy_until(&mut self, peer: PeerId, at: Instant, sure: bool) {
        if at > self.idle_at && sure || at < self.idle_at && self.only == Some(peer) {
            self.idle_at = at;
        }
    }

    /// Posting took the core from `from` to `until`. The rail is busy until the wire has carried what it
    /// was given, and for as long again as the posting took, whichever ends later: at most half of the
    /// core's time goes into posting.
    #[inline]
    pub(crate) fn posted(&mut self, from: Option<Instant>, until: Instant) {
        let from = from.unwrap_or(until - self.post_cost);
        self.post_cost = until.since(from);
        let core = until + self.post_cost;
        let wire = from.max(self.idle_at) + Duration::from_ns(core::mem::take(&mut self.given_ns));
        self.idle_at = self.idle_at.max(core).max(wire);
        self.gathers_until = if core::mem::take(&mut self.has_chunks) { until } else { core };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn after_packets_the_core_gathers_as_long_as_posting_them_took_and_after_chunks_it_does_not() {
        let limits = Limits { bandwidth: 1_000_000_000, ..Limits::default() };
        let mut rail = Rail::new(limits, RailId(0));
        rail.give(at(0), PeerId(1), 100);
        rail.posted(Some(at(0)), at(2_000));
        assert!(rail.is_gathering(at(3_999)) && !rail.is_gathering(at(4_000)));
        assert_eq!((rail.busy_until(at(3_000)), rail.idle_at), (at(4_000), at(4_000)));
        rail.give(at(5_000), PeerId(1), 50_000);
        rail.give_chunk();
        rail.posted(Some(at(5_000)), at(10_000));
        assert!(!rail.is_gathering(at(10_001)));
        assert_eq!(rail.idle_at, at(55_000));
    }
}
