//! The strategies that decide for one peer: the usual one, and those that messages have chosen for
//! themselves.

use super::registry::Registry;
use super::strategy::Strategy;
use crate::packet::{PeerId, StrategyId};
use alloc::boxed::Box;
use alloc::vec::Vec;

pub(crate) struct Strategies {
    pub(crate) usual: Box<dyn Strategy>,
    chosen: Vec<(StrategyId, Box<dyn Strategy>)>,
}

impl Strategies {
    /// The strategies for this peer, of which no message has chosen one.
    pub(crate) fn new(peer: PeerId, mut usual: Box<dyn Strategy>) -> Strategies {
        usual.meet(peer);
        Strategies { usual, chosen: Vec::new() }
    }

    /// Another strategy is the usual one from now on.
    pub(crate) fn replace_usual(&mut self, peer: PeerId, mut usual: Box<dyn Strategy>) {
        usual.meet(peer);
        self.usual = usual;
    }

    /// A message has chosen a strategy of its own.
    #[cold]
    pub(crate) fn add(&mut self, peer: PeerId, chosen: StrategyId, registry: &Registry) {
        if self.chosen.iter().all(|(id, _)| *id != chosen)
            && let Some(mut made) = registry.make_at(chosen)
        {
            made.meet(peer);
            self.chosen.push((chosen, made));
        }
    }

    /// The strategy that decides about a message: the one that it has chosen, or the usual one.
    #[inline]
    pub(crate) fn of(&mut self, chosen: Option<StrategyId>) -> &mut dyn Strategy {
        let found = chosen.and_then(|chosen| self.chosen.iter_mut().find(|(id, _)| *id == chosen));
        &mut **found.map_or(&mut self.usual, |(_, strategy)| strategy)
    }

    /// The rails behave in another way than was known.
    pub(crate) fn relearnt(&mut self) {
        self.usual.relearnt();
        self.chosen.iter_mut().for_each(|(_, strategy)| strategy.relearnt());
    }
}
