//! The state that the engine keeps of a rail: its limits, its predicted idle time, and its counters.

use super::access::Access;
use super::driver::{Limits, Order};
use crate::clock::{Duration, Instant};
use crate::memory::{Buffer, Segments};
use crate::packet::{PeerId, RailId, RegionId};
use crate::profile::estimate::low::Low;
use crate::profile::forecast::Forecast;
use crate::profile::measured::Profile;
use crate::profile::threshold::InPlace;
use crate::schedule::builder::Built;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Assumed bandwidth in bytes per second if no rail's bandwidth is known: all rails then count the same.
pub(crate) const BANDWIDTH_GUESS: u64 = 1_000_000_000;

/// Counters of one rail since the start.
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
    /// Packets and chunks retransmitted on this rail.
    pub resent: u64,
    /// Packets and chunks of dead rails that this rail took over.
    pub replayed: u64,
    /// Bytes of these retransmissions and replays.
    pub again_bytes: u64,
    /// Packets and chunks that arrived twice.
    pub duplicates: u64,
    /// One-sided accesses to memory that peers have exposed.
    pub accesses: u64,
    /// Bytes of these accesses.
    pub access_bytes: u64,
    /// Links that either side lost or gave up and that may come back.
    pub left: u64,
    /// Links that were used again after they had been lost or given up.
    pub returned: u64,
    /// Packets received.
    pub packets_in: u64,
    /// Chunks received.
    pub chunks_in: u64,
}

impl RailCounters {
    /// Counts a chunk of `len` bytes that was sent.
    #[inline]
    pub(crate) fn left_chunk(&mut self, len: u64) {
        self.chunks += 1;
        self.chunk_bytes += len;
    }

    /// Counts a packet of `len` bytes with `entries` entries that was sent.
    #[inline]
    pub(crate) fn left(&mut self, entries: u32, len: u64) {
        self.packets += 1;
        self.entries += u64::from(entries);
        self.packet_bytes += len;
    }
}

/// A change of the receive regions of a rail.
#[derive(Debug)]
pub enum Opening {
    /// Make the memory reachable for chunks from this peer.
    Open(RegionId, PeerId, Segments),
    /// Put the chunk that this peer pushes into this receive region.
    Accept(PeerId, RegionId),
    /// Close the receive region. The engine's own buffer behind it, if any, is freed when every rail has
    /// closed the region.
    Close(RegionId, Option<Arc<Buffer>>),
}

impl Opening {
    /// Whether this ends the access of the network to memory of a request.
    pub(crate) fn frees_user_memory(&self) -> bool {
        matches!(self, Opening::Close(_, None))
    }
}

/// Greatest factor between the costs of two posts of different lengths: they take the core 0.2 to 10 us on
/// cards that the core writes to. A time slice of another process is longer than most posts by a far greater
/// factor.
const DEAREST: u64 = 64;

#[derive(Debug)]
pub(crate) struct Rail {
    pub(crate) limits: Limits,
    /// Name for the user; empty: only the number is known.
    pub(crate) name: String,
    /// The first of the rails over the same wire; this rail itself if no other uses its wire.
    pub(crate) wire: RailId,
    /// Other rails use the same wire.
    pub(crate) shares: bool,
    pub(crate) idle_at: Instant,
    /// Until when the core that posted packets alone waits for more to aggregate: as long as the posting
    /// took.
    gathers_until: Instant,
    /// Chunks were given to the rail since the last report of a post.
    has_chunks: bool,
    pub(crate) counters: RailCounters,
    pub(crate) openings: VecDeque<Opening>,
    /// Orders to connect and to close; they are served first and need no room.
    pub(crate) errands: VecDeque<Order>,
    /// Lengths from which the rail shall leave data in place, as transfers have corrected them.
    pub(crate) in_place: Option<InPlace>,
    /// One-sided accesses; they do not wait for packets.
    pub(crate) accesses: Vec<Access>,
    /// Predicted time on the wire, in nanoseconds, of the orders given since the last report of a post.
    given_ns: u64,
    /// The receiver of all orders given since the rail was last idle; `None`: several receivers.
    only: Option<PeerId>,
    /// Time of the core that posting took when it was last measured.
    post_cost: Duration,
    /// The lowest of the recent times.
    least_cost: Low,
    /// A packet that was built in advance and waits until the rail is idle.
    pub(crate) prepared: Option<Prepared>,
    /// The measured profiles, for links that are made later.
    pub(crate) profiles: Profiles,
    /// Forecast by nominal bandwidth and latency; shared by all peers.
    pub(crate) nominal: Forecast,
}

/// The measured profiles of a rail, each for some peers.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    /// The profile for all peers without one of their own.
    general: Option<Forecast>,
    /// The others. Callers pass the same `Arc` for all peers at the same distance, so these are few.
    own: Vec<Forecast>,
    /// The place of each peer's among these, from one; 0: none.
    of: Vec<u16>,
}

impl Profiles {
    /// Sets the profile for one peer, or for all.
    pub(crate) fn set(&mut self, peer: Option<PeerId>, profile: Arc<Profile>) {
        let Some(PeerId(peer)) = peer else {
            *self = Profiles { general: Some(Forecast::new(profile)), ..Profiles::default() };
            return;
        };
        let is_it = |other: &Forecast| Arc::ptr_eq(other.profile(), &profile);
        let place = self.own.iter().position(is_it).unwrap_or_else(|| {
            self.own.push(Forecast::new(profile));
            self.own.len() - 1
        });
        let peer = peer as usize;
        if self.of.len() <= peer {
            self.of.resize(peer + 1, 0);
        }
        // Beyond 65,535 profiles, a peer has the general one.
        self.of[peer] = u16::try_from(place + 1).unwrap_or(0);
    }

    /// Returns the forecast by the profile for a peer, without observations.
    pub(crate) fn of(&self, PeerId(peer): PeerId) -> Option<&Forecast> {
        let place = self.of.get(peer as usize).copied().unwrap_or(0);
        self.own.get(usize::from(place).wrapping_sub(1)).or(self.general.as_ref())
    }
}

/// Predicts when the wire of a rail becomes idle, including the orders given to other rails on that wire.
#[inline]
pub(crate) fn busy_until(rails: &[Rail], rail: RailId, now: Instant) -> Instant {
    let mine = &rails[rail.index()];
    if !mine.shares {
        return mine.busy_until(now);
    }
    let ways = rails.iter().filter(|rail| rail.wire == mine.wire);
    ways.map(|rail| rail.busy_until(now)).max().unwrap_or(now)
}

/// A packet built in advance, for one peer.
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
            in_place: None,
            accesses: Vec::new(),
            given_ns: 0,
            only: None,
            post_cost: Duration::ZERO,
            least_cost: Low::default(),
            prepared: None,
            profiles: Profiles::default(),
            nominal: Forecast::nominal(limits.latency_ns, limits.bandwidth, BANDWIDTH_GUESS),
        }
    }

    /// Whether orders are queued that need no room and do not wait.
    pub(crate) fn has_errands(&self) -> bool {
        let has_orders = !(self.errands.is_empty() && self.openings.is_empty() && self.accesses.is_empty());
        has_orders || self.in_place.is_some()
    }

    /// Predicts when the rail becomes idle, including orders of the current pass that are not posted yet.
    #[inline]
    pub(crate) fn busy_until(&self, now: Instant) -> Instant {
        match self.given_ns {
            0 => self.idle_at,
            given_ns => self.idle_at.max(now) + Duration::from_ns(given_ns),
        }
    }

    /// Records that a chunk was given to the rail: nothing can be aggregated with it.
    #[inline]
    pub(crate) fn give_chunk(&mut self) {
        self.has_chunks = true;
    }

    /// Whether the rail waits after posting packets, so that messages submitted meanwhile share a packet.
    #[inline]
    pub(crate) fn is_gathering(&self, now: Instant) -> bool {
        now < self.gathers_until
    }

    /// The clock went back: the rail counts as idle.
    pub(crate) fn restart_timers(&mut self, now: Instant) {
        self.idle_at = self.idle_at.min(now);
        self.gathers_until = self.gathers_until.min(now);
    }

    /// Records an order for a peer that takes `ns` nanoseconds on the wire.
    #[inline]
    pub(crate) fn give(&mut self, now: Instant, to: PeerId, ns: u64) {
        if self.only != Some(to) {
            let idle = self.given_ns == 0 && self.idle_at <= now;
            self.only = idle.then_some(to);
        }
        self.given_ns += ns;
    }

    /// Corrects the predicted idle time: all data but the part that takes until `at` is known to have
    /// arrived. The prediction can be too early, or too late: a traffic shaper lets bursts pass, each of
    /// which would move the predicted time further ahead. Nothing is known of data for other peers, so with
    /// several receivers the time is not moved back; it is moved forward only if `sure`.
    pub(crate) fn is_busy_until(&mut self, peer: PeerId, at: Instant, sure: bool) {
        if at > self.idle_at && sure || at < self.idle_at && self.only == Some(peer) {
            self.idle_at = at;
        }
    }

    /// Records that posting took the core from `from` to `until`. The rail is busy until the wire has
    /// carried its orders, and for as long again as the posting took, whichever ends later: posting takes
    /// at most half of the core's time. If another process had the core meanwhile, only the time counts that
    /// posting ([`DEAREST`]) or the wire can explain.
    #[inline]
    pub(crate) fn posted(&mut self, from: Option<Instant>, until: Instant) {
        let given = Duration::from_ns(core::mem::take(&mut self.given_ns));
        if let Some(from) = from {
            let took = until.since(from);
            let dearest = Duration::from_ns(DEAREST * self.least_cost.note(took).as_ns());
            self.post_cost = took.min(dearest.max(given));
        }
        let from = from.unwrap_or(until - self.post_cost);
        let core = until + self.post_cost;
        let wire = from.max(self.idle_at) + given;
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
