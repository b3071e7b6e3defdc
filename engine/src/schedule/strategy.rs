//! The interface of a strategy.

use super::builder::PacketBuilder;
use crate::clock::{Duration, Instant};
use crate::collect::window::{Scope, Window};
use crate::packet::{PeerId, RailId};
use crate::profile::forecast::Forecast;
use core::fmt;
use core::ops::Deref;

/// A strategy's view of a rail to one peer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailView<'a> {
    /// The rail.
    pub rail: RailId,
    /// The first of the rails over the same NIC; this rail itself if it has a NIC of its own. A strategy
    /// that splits a body sees one rail per wire.
    pub wire: RailId,
    /// When it is predicted to be idle.
    pub idle_at: Instant,
    /// Bandwidth in bytes per second, as configured or nominal; zero if unknown.
    pub bandwidth: u64,
    /// Latency in nanoseconds, as configured or nominal; zero if unknown.
    pub latency_ns: u64,
    /// Whether it is the first open rail to this peer; strategies that use one rail use this one.
    pub primary: bool,
    /// Whether it is the open rail with the lowest latency to this peer; the primary one if latencies are
    /// unknown.
    pub fastest: bool,
    /// Forecast of transfer times, from its profile, or else from bandwidth and latency above.
    pub forecast: &'a Forecast,
    /// The other open rails to this peer; empty in [`Strategy::split`], which gets all rails.
    pub rivals: &'a [RailView<'a>],
}

impl RailView<'_> {
    /// Returns the scope of the rail's own list, and of the common list if `common`.
    pub fn scope(&self, common: bool) -> Scope {
        Scope { rail: self.rail, common }
    }

    /// Predicts the nanoseconds from now until it is idle.
    #[inline]
    pub fn busy_ns(&self, now: Instant) -> u64 {
        self.idle_at.since(now).as_ns()
    }

    /// Predicts the nanoseconds from now until it has carried a part of `len` bytes of a large message, after
    /// all data given to it before.
    #[inline]
    pub fn body_ends_ns(&self, now: Instant, len: u64) -> u64 {
        self.busy_ns(now).saturating_add(self.forecast.body_ns(len))
    }

    /// Predicts the nanoseconds from now until it has carried a message of `len` bytes in a packet, after all
    /// data given to it before.
    #[inline]
    pub fn eager_ends_ns(&self, now: Instant, len: u64) -> u64 {
        self.busy_ns(now).saturating_add(self.forecast.eager_ns(len))
    }
}

/// Returns the primary rail.
pub fn primary(rails: &[RailView]) -> Option<RailId> {
    rails.iter().find(|rail| rail.primary).map(|rail| rail.rail)
}

/// Returns the rail with the lowest latency.
pub fn fastest(rails: &[RailView]) -> Option<RailId> {
    rails.iter().find(|rail| rail.fastest).map(|rail| rail.rail)
}

/// Split of a large body over rails.
#[derive(Debug, Clone, PartialEq, Eq)]
// Shares stay on the stack during a decision; a box would need an allocation.
#[allow(clippy::large_enum_variant)]
pub enum Shares {
    /// The rail that is idle first carries all of it.
    FirstIdle,
    /// Bytes per rail, in the order of the body. An idle rail carries the rest.
    Fixed(ShareList),
}

impl Shares {
    /// Makes a split from bytes per rail, in the order of the body.
    pub fn of(shares: impl IntoIterator<Item = (RailId, u64)>) -> Shares {
        Shares::Fixed(shares.into_iter().collect())
    }

    /// Makes a split in which the primary rail carries all.
    pub(super) fn primary(len: u64, rails: &[RailView]) -> Shares {
        primary(rails).map_or(Shares::FirstIdle, |rail| Shares::of([(rail, len)]))
    }
}

/// Rails and their bytes; at most [`nmad_wire::MAX_RAILS`], further ones are dropped.
#[derive(Clone, Copy)]
pub struct ShareList {
    list: [(RailId, u64); nmad_wire::MAX_RAILS],
    count: usize,
}

impl ShareList {
    /// Adds the share of a rail.
    #[inline]
    pub fn push(&mut self, rail: RailId, len: u64) {
        if let Some(place) = self.list.get_mut(self.count) {
            *place = (rail, len);
            self.count += 1;
        }
    }
}

impl ShareList {
    /// Adds bytes to the share at this place.
    #[inline]
    pub(super) fn add_to(&mut self, place: usize, bytes: u64) {
        self.list[place].1 += bytes;
    }

    /// Corrects the longest shares until the sum is `len`, and drops empty shares.
    pub(super) fn add_up_to(&mut self, len: u64) {
        let list = &mut self.list[..self.count];
        let mut sum: u128 = list.iter().map(|share| u128::from(share.1)).sum();
        while sum != u128::from(len)
            && let Some((_, most)) = list.iter_mut().max_by_key(|share| share.1)
        {
            let others = sum - u128::from(*most);
            *most = u128::from(len).saturating_sub(others) as u64;
            sum = others + u128::from(*most);
        }
        let mut kept = 0;
        for index in 0..self.count {
            if self.list[index].1 > 0 {
                self.list.swap(index, kept);
                kept += 1;
            }
        }
        self.count = kept;
    }
}

impl Default for ShareList {
    fn default() -> Self {
        ShareList { list: [(RailId(0), 0); nmad_wire::MAX_RAILS], count: 0 }
    }
}

impl Deref for ShareList {
    type Target = [(RailId, u64)];

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.list[..self.count]
    }
}

impl FromIterator<(RailId, u64)> for ShareList {
    fn from_iter<I: IntoIterator<Item = (RailId, u64)>>(shares: I) -> Self {
        let mut list = ShareList::default();
        shares.into_iter().for_each(|(rail, len)| list.push(rail, len));
        list
    }
}

impl PartialEq for ShareList {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ShareList {}

impl fmt::Debug for ShareList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A peer with data for a rail.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'a> {
    /// The peer.
    pub peer: PeerId,
    /// Its window.
    pub window: &'a Window,
    /// Bytes of large messages that the receiver has granted and that are not yet on a rail.
    pub granted: u64,
}

/// A strategy: decides which data each rail carries. `docs/strategy.md` shows how to write one.
pub trait Strategy: Send {
    /// Returns the name that selects it.
    fn name(&self) -> &str;

    /// Sets the peer that it decides for: called once, before any other method. Not called for the strategy
    /// that chooses between peers.
    fn meet(&mut self, peer: PeerId) {
        let _ = peer;
    }

    /// Whether [`Strategy::choose`] is to be called.
    fn chooses(&self) -> bool {
        false
    }

    /// Returns which of several peers with data for a rail is served; `None`: the next one in turn. Called
    /// on the strategy of the session (`Config::strategy`), of which one more instance exists for all peers
    /// together.
    fn choose(&mut self, now: Instant, rail: RailId, peers: &[Waiting]) -> Option<PeerId> {
        let _ = (now, rail, peers);
        None
    }

    /// Takes entries from the window of one peer with [`PacketBuilder::take`] and adds them to the packet
    /// that `rail` carries next; leaves the packet empty if this rail should carry none of them now.
    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder);

    /// Returns the rail for a small message of `len` bytes that is alone in its window and sent at once,
    /// whole and alone: the one of `rails`, the open rails to the peer (at least one), whose
    /// [`Strategy::fill`] would take it. The engine then does not call `fill`. `None`: it does. With a
    /// single rail this is called only once, so the answer holds for all lengths and times.
    fn lone(&self, now: Instant, len: u64, rails: &[RailView]) -> Option<RailId> {
        let _ = (now, len, rails);
        None
    }

    /// Splits a body of `len` bytes over `rails`, the open rails to the peer (at least one).
    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares;

    /// As [`Strategy::lone`], for a message above the eager limit that fits into a packet and whose receiver
    /// is late: the rail that delivers it before `until`, when the receiver is expected to look for it.
    /// `None`: the message is split ([`Strategy::split`]).
    fn lone_in_time(&self, now: Instant, len: u64, rails: &[RailView], until: Instant) -> Option<RailId> {
        let _ = (now, len, rails, until);
        None
    }

    /// Reports that a body that [`Strategy::split`] has split over `rails` rails was carried in this time.
    fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        let _ = (len, rails, took);
    }

    /// Reports that the profile of a rail has changed after observed transfers: earlier observations are
    /// obsolete.
    fn relearnt(&mut self) {}

    /// Whether the data not yet on a rail is split again when an idle rail would finish it earlier. The
    /// shares of such a strategy are sent in chunks that leave data to split again.
    fn revises(&self) -> bool {
        false
    }

    /// Whether an eager message is split over idle rails, each part posted by another core, if that is
    /// predicted to deliver it earlier (P3 section III-B).
    fn parts_eager(&self) -> bool {
        false
    }

    /// Whether packets wait after the core has posted others on another rail, for as long as that took,
    /// unless the caller waits: messages submitted meanwhile then share one packet. Useless for a strategy
    /// that puts one message into each packet.
    fn gathers(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "strategy {}", self.name())
    }
}
