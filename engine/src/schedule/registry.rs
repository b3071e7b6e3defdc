//! The registry of strategies, by name.

use super::strategy::Strategy;
use super::{auto, fifo, papers, split};
use crate::packet::StrategyId;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// Function that makes a strategy; each peer has its own.
pub type Maker = Arc<dyn Fn() -> Box<dyn Strategy> + Send + Sync>;

/// The strategies by name.
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
            || Box::new(papers::aggregate::Aggregate),
            || Box::new(papers::greedy::Greedy),
            || Box::new(papers::aggregate_fastest::AggregateFastest),
            || Box::new(papers::iso_split::IsoSplit),
            || Box::new(papers::ratio_split::RatioSplit),
            || Box::new(papers::dichotomy::Dichotomy),
            || Box::new(papers::weighted::Weighted),
            || Box::new(split::Split),
            || Box::new(auto::Auto::default()),
        ];
        let named = |make: fn() -> Box<dyn Strategy>| (make().name().to_string(), Arc::new(make) as Maker);
        Registry(makers.into_iter().map(named).collect())
    }
}

impl Registry {
    /// Adds a strategy under its own name, which must not change; it replaces an earlier one of the same
    /// name.
    pub fn add(&mut self, make: impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static) {
        let name = make().name().to_string();
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some(known) => known.1 = Arc::new(make),
            None => self.0.push((name, Arc::new(make))),
        }
    }

    /// Whether a strategy has this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }

    /// Makes the strategy with this name.
    ///
    /// # Errors
    /// No strategy has this name; the error lists the known ones.
    pub fn make(&self, name: &str) -> Result<Box<dyn Strategy>, UnknownStrategy> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, make)| make()).ok_or_else(|| self.unknown(name))
    }

    /// Returns the place of the strategy with this name, by which messages refer to it.
    ///
    /// # Errors
    /// No strategy has this name, or it is registered after 254 others.
    pub fn place(&self, name: &str) -> Result<StrategyId, UnknownStrategy> {
        let place = self.0.iter().position(|(other, _)| other == name);
        place.and_then(StrategyId::at).ok_or_else(|| self.unknown(name))
    }

    /// Makes the strategy at this place.
    pub(crate) fn make_at(&self, place: StrategyId) -> Option<Box<dyn Strategy>> {
        self.0.get(place.place()).map(|(_, make)| make())
    }

    fn unknown(&self, name: &str) -> UnknownStrategy {
        UnknownStrategy { name: name.to_string(), known: self.names().collect::<Vec<_>>().join(", ") }
    }

    /// Iterates over the names in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Error: no strategy has the requested name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownStrategy {
    /// The requested name.
    pub name: String,
    /// The known names.
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
    use super::{Registry, Vec};
    use crate::clock::Instant;
    use crate::collect::window::{Entry, Window};
    use crate::packet::{PeerId, RailId};
    use crate::profile::forecast::Forecast;
    use crate::schedule::lone::taken_by;
    use crate::schedule::strategy::RailView;
    use alloc::format;
    use alloc::vec;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn lone_takes_the_rail_that_fill_would_take(
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
                let mut window = Window::new(PeerId(1));
                window.submit(None, Entry::control(vec![0; 40]));
                let taken = taken_by(&mut *strategy, now, &views, &mut window);
                prop_assert_eq!(chosen, taken, "{}", name);
            }
        }
    }
}
