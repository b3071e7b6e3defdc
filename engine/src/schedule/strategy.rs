//! The interface of a strategy.

use super::builder::PacketBuilder;
use crate::clock::{Duration, Instant};
use crate::collect::window::{Scope, Window};
use crate::packet::{PeerId, RailId};
use crate::profile::forecast::Forecast;
use core::fmt;
use core::ops::Deref;

/// What a strategy knows about a rail to the peer at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailView<'a> {
    /// Which rail.
    pub rail: RailId,
    /// The first of the rails that are ways to the same NIC; itself if it has one of its own. Where a body is
    /// shared out there is one rail of each wire.
    pub wire: RailId,
    /// When it will have carried what was given to it.
    pub idle_at: Instant,
    /// Bandwidth in bytes per second, as configured or nominal; zero if unknown.
    pub bandwidth: u64,
    /// Latency in nanoseconds, as configured or nominal; zero if unknown.
    pub latency_ns: u64,
    /// First of the open rails to this peer; strategies that use one rail use this one.
    pub primary: bool,
    /// The open rail with the lowest latency to this peer; the primary one if latencies are unknown.
    pub fastest: bool,
    /// How long bytes will take on it, from its profile; without one from the two figures above.
    pub forecast: &'a Forecast,
    /// The other open rails to this peer; none where shares are decided, since all
    /// rails are told there.
    pub rivals: &'a [RailView<'a>],
}

impl RailView<'_> {
    /// The rail's own list, and the common list if `common`.
    pub fn scope(&self, common: bool) -> Scope {
        Scope { rail: self.rail, common }
    }
}

/// The primary one of some rails.
pub fn primary(rails: &[RailView]) -> Option<RailId> {
    rails.iter().find(|rail| rail.primary).map(|rail| rail.rail)
}

/// The fastest one of some rails.
pub fn fastest(rails: &[RailView]) -> Option<RailId> {
    rails.iter().find(|rail| rail.fastest).map(|rail| rail.rail)
}

/// How a large body is shared out among rails.
#[derive(Debug, Clone, PartialEq, Eq)]
// Shares live on the stack for the time of a decision; a box would be an allocation on the way.
#[allow(clippy::large_enum_variant)]
pub enum Shares {
    /// All of it goes to whichever rail is idle first.
    FirstIdle,
    /// Bytes for each rail, in the order of the body. The rest goes to a rail that is idle.
    Fixed(ShareList),
}

impl Shares {
    /// Bytes for each rail, in the order of the body.
    pub fn of(shares: impl IntoIterator<Item = (RailId, u64)>) -> Shares {
        Shares::Fixed(shares.into_iter().collect())
    }

    /// All of it goes over the primary one of some rails.
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
    /// Gives a rail bytes.
    #[inline]
    pub fn push(&mut self, rail: RailId, len: u64) {
        if let Some(place) = self.list.get_mut(self.count) {
            *place = (rail, len);
            self.count += 1;
        }
    }
}

impl ShareList {
    /// Makes the share at this place longer.
    #[inline]
    pub(super) fn add_to(&mut self, place: usize, bytes: u64) {
        self.list[place].1 += bytes;
    }

    /// Corrects the longest shares until all add up to `len`, and drops empty ones.
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

/// A peer that has something for a rail.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'a> {
    /// Which one.
    pub peer: PeerId,
    /// Its window.
    pub window: &'a Window,
    /// Bytes of large messages that the receiver has granted and that are not on a rail yet.
    pub granted: u64,
}

/// A way to decide what each rail carries. `docs/strategy.md` shows how to write one.
pub trait Strategy: Send {
    /// The name by which it is chosen.
    fn name(&self) -> &str;

    /// For which peer it decides: told once, before it is asked anything. Not told to the one that chooses
    /// between peers.
    fn meet(&mut self, peer: PeerId) {
        let _ = peer;
    }

    /// Whether [`Strategy::choose`] shall be asked.
    fn chooses(&self) -> bool {
        false
    }

    /// Which of several peers with something for a rail has its turn; none: the one whose turn it is. Asked
    /// of the strategy of the session (`Config::strategy`), of which there is one more for all peers
    /// together.
    fn choose(&mut self, now: Instant, rail: RailId, peers: &[Waiting]) -> Option<PeerId> {
        let _ = (now, rail, peers);
        None
    }

    /// Takes entries from the window of one peer and puts them into the packet that `rail` carries next;
    /// leaves the packet empty if this rail shall carry none of them now.
    /// Entries are taken with [`PacketBuilder::take`].
    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder);

    /// Over which of `rails`, the open rails to the peer (at least one), a small message of `len` bytes
    /// leaves that is alone in its window, if it leaves at once, whole and alone: the one whose
    /// [`Strategy::fill`] would take it. The engine then does not ask `fill`. None: it does. Of a rail that
    /// is the only one this is asked but once, so the answer is for all lengths and times.
    fn lone(&self, now: Instant, len: u64, rails: &[RailView]) -> Option<RailId> {
        let _ = (now, len, rails);
        None
    }

    /// Shares out a body of `len` bytes among `rails`, the open rails to the peer (at least one).
    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares;

    /// A body that [`Strategy::split`] has shared out among `rails` rails was carried in this time.
    fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        let _ = (len, rails, took);
    }

    /// Transfers have shown that a rail is another than the one that was known: forecasts have changed, and
    /// earlier observations say nothing any more.
    fn relearnt(&mut self) {}

    /// Whether what is not yet on a rail shall be shared out anew when a rail with nothing left to do would
    /// finish it earlier. Such a strategy's shares are handed out in chunks that leave something to revise.
    fn revises(&self) -> bool {
        false
    }

    /// Whether an eager message is shared out among idle rails, each part posted by another core, where that
    /// is predicted to deliver it earlier (P3 section III-B).
    fn parts_eager(&self) -> bool {
        false
    }

    /// Whether packets wait while the core rests from posting some on another rail, for as long as that took,
    /// unless the caller waits: what is submitted meanwhile then shares one packet. A strategy that puts one
    /// message into each packet gains nothing by that.
    fn gathers(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "strategy {}", self.name())
    }
}
