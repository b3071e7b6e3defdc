//! The interface of a strategy, and the registry from which one is chosen by name.

use super::builder::PacketBuilder;
use super::{aggregate, aggregate_fastest, auto, dichotomy, fifo, greedy};
use super::{iso_split, ratio_split, split, weighted};
use crate::clock::{Duration, Instant};
use crate::collect::window::{Scope, Window};
use crate::packet::{PeerId, RailId, StrategyId};
use crate::profile::forecast::Forecast;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
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

    /// Whether what is not yet on a rail shall be shared out anew when a rail with nothing left to do would
    /// finish it earlier. Such a strategy's shares are handed out in chunks that leave something to revise.
    fn revises(&self) -> bool {
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

/// Makes a fresh strategy; each peer has its own.
pub type Maker = Arc<dyn Fn() -> Box<dyn Strategy> + Send + Sync>;

/// The strategies known by name.
#[derive(Clone)]
pub struct Registry(Vec<(String, Maker)>);

impl PartialEq for Registry {
    fn eq(&self, other: &Self) -> bool {
        let same = |((name, make), (other, made)): (&(String, Maker), &(String, Maker))| {
            name == other && Arc::ptr_eq(make, made)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl Default for Registry {
    fn default() -> Self {
        let makers: [fn() -> Box<dyn Strategy>; 10] = [
            || Box::new(fifo::Fifo),
            || Box::new(aggregate::Aggregate),
            || Box::new(greedy::Greedy),
            || Box::new(aggregate_fastest::AggregateFastest),
            || Box::new(iso_split::IsoSplit),
            || Box::new(ratio_split::RatioSplit),
            || Box::new(dichotomy::Dichotomy),
            || Box::new(weighted::Weighted),
            || Box::new(split::Split),
            || Box::new(auto::Auto::default()),
        ];
        let named = |make: fn() -> Box<dyn Strategy>| (make().name().to_string(), Arc::new(make) as Maker);
        Registry(makers.into_iter().map(named).collect())
    }
}

impl Registry {
    /// Adds a strategy under its own name, which must not change; a later one of the same name wins.
    pub fn add(&mut self, make: impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static) {
        let name = make().name().to_string();
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some(known) => known.1 = Arc::new(make),
            None => self.0.push((name, Arc::new(make))),
        }
    }

    /// Makes the strategy of that name.
    ///
    /// # Errors
    /// No strategy has that name; the error lists those there are.
    pub fn make(&self, name: &str) -> Result<Box<dyn Strategy>, UnknownStrategy> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, make)| make()).ok_or_else(|| self.unknown(name))
    }

    /// The place of the strategy of that name, by which messages name it.
    ///
    /// # Errors
    /// No strategy has that name, or it is behind 254 others.
    pub fn place(&self, name: &str) -> Result<StrategyId, UnknownStrategy> {
        let place = self.0.iter().position(|(other, _)| other == name);
        place.and_then(StrategyId::at).ok_or_else(|| self.unknown(name))
    }

    /// Makes the strategy at that place.
    pub(crate) fn make_at(&self, place: StrategyId) -> Option<Box<dyn Strategy>> {
        self.0.get(place.place()).map(|(_, make)| make())
    }

    fn unknown(&self, name: &str) -> UnknownStrategy {
        UnknownStrategy { name: name.to_string(), known: self.names().collect::<Vec<_>>().join(", ") }
    }

    /// Names in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A strategy was asked for that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownStrategy {
    /// The name that was asked for.
    pub name: String,
    /// What there is.
    pub known: String,
}

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no strategy '{}' (known: {})", self.name, self.known)
    }
}

impl core::error::Error for UnknownStrategy {}

#[cfg(test)]
mod tests {
    use super::{
        Forecast, Instant, PacketBuilder, PeerId, RailId, RailView, Registry, Strategy, Vec, Window,
    };
    use crate::collect::window::Entry;
    use crate::packet::Packet;
    use crate::schedule::builder::Bounds;
    use alloc::format;
    use alloc::vec;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    const BOUNDS: Bounds =
        Bounds { len: 1 << 20, in_place_min: 0, block_min: 0, aggregate_max: usize::MAX, gather: 0 };

    /// The rail that takes a message when each is asked in turn, as a caller that waits asks them.
    fn taken_by(strategy: &mut dyn Strategy, now: Instant, rails: &[RailView]) -> Option<RailId> {
        let mut window = Window::new(PeerId(1));
        window.submit(None, Entry::control(vec![0; 40]));
        let rivals =
            |rail: &RailView| rails.iter().filter(|other| other.rail != rail.rail).copied().collect();
        let mut asked = rails.iter().filter(|rail| {
            let rivals: Vec<RailView> = rivals(rail);
            let mut packet = PacketBuilder::new(Packet::default(), BOUNDS, Vec::new());
            strategy.fill(now, &RailView { rivals: &rivals, ..**rail }, &mut window, &mut packet);
            window.is_empty()
        });
        asked.next().map(|rail| rail.rail)
    }

    proptest! {
        #[test]
        fn what_is_alone_leaves_where_it_would_have_been_taken(
            rails in prop::collection::vec((0..200_u64, 1..50_u64, 1..10_u64), 1..4),
            (primary, fastest) in (0..4_usize, 0..4_usize),
        ) {
            let now = Instant::from_ns(100_000);
            let forecast = |&(_, us, gb): &(u64, u64, u64)| Forecast::nominal(us * 1000, gb * 500_000_000, 1);
            let forecasts: Vec<Forecast> = rails.iter().map(forecast).collect();
            let view = |index: usize| RailView {
                rail: RailId(index as u8),
                wire: RailId(index as u8),
                idle_at: Instant::from_ns(rails[index].0 * 1000),
                bandwidth: rails[index].2 * 500_000_000,
                latency_ns: rails[index].1 * 1000,
                primary: index == primary % rails.len(),
                fastest: index == fastest % rails.len(),
                forecast: &forecasts[index],
                rivals: &[],
            };
            let views: Vec<RailView> = (0..rails.len()).map(view).collect();
            let registry = Registry::default();
            for name in registry.names() {
                let mut strategy = registry.make(name).expect("it is there");
                let chosen = strategy.lone(now, 0, &views);
                prop_assert!(chosen.is_some(), "{}", format!("{name} lets what is alone pass"));
                prop_assert_eq!(chosen, taken_by(&mut *strategy, now, &views), "{}", name);
            }
        }
    }
}
