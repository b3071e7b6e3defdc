//! The strategies of one peer: the default one, and those that messages have chosen.

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
    /// Creates the strategies of this peer, without any chosen by messages.
    pub(crate) fn new(peer: PeerId, mut usual: Box<dyn Strategy>) -> Strategies {
        usual.meet(peer);
        Strategies { usual, chosen: Vec::new() }
    }

    /// Replaces the default strategy.
    pub(crate) fn replace_usual(&mut self, peer: PeerId, mut usual: Box<dyn Strategy>) {
        usual.meet(peer);
        self.usual = usual;
    }

    /// Adds the strategy that a message has chosen.
    #[cold]
    pub(crate) fn add(&mut self, peer: PeerId, chosen: StrategyId, registry: &Registry) {
        if self.chosen.iter().all(|(id, _)| *id != chosen)
            && let Some(mut made) = registry.make_at(chosen)
        {
            made.meet(peer);
            self.chosen.push((chosen, made));
        }
    }

    /// Returns the strategy of a message: the chosen one, or the default.
    #[inline]
    pub(crate) fn of(&mut self, chosen: Option<StrategyId>) -> &mut dyn Strategy {
        let found = chosen.and_then(|chosen| self.chosen.iter_mut().find(|(id, _)| *id == chosen));
        &mut **found.map_or(&mut self.usual, |(_, strategy)| strategy)
    }

    /// Tells all strategies that the profile of a rail has changed.
    pub(crate) fn relearnt(&mut self) {
        self.usual.relearnt();
        self.chosen.iter_mut().for_each(|(_, strategy)| strategy.relearnt());
    }
}
