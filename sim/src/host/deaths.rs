//! A host that has the report of a death.

use super::Host;
use super::look::LOOKS;
use crate::network::lock;
use crate::workload::Plan;
use nmad_engine::packet::PeerId;
use nmad_engine::{Context, Error};
use std::collections::BTreeSet;

impl Host {
    /// The launcher reports at time `now` that `dead` has died: the host declares it failed and, if `closes`,
    /// closes the contexts that the plan names.
    pub fn learn_death(&mut self, now: u64, dead: usize, plan: &Plan, closes: bool) {
        let contexts = if closes { plan.closed.clone() } else { BTreeSet::new() };
        {
            let mut network = lock(&self.network);
            network.oracle.discards(self.id, contexts.iter().copied());
            let doing = &mut network.doing[self.id];
            doing.local_ns = doing.local_ns.max(now);
            doing.told_dead.insert(dead);
            doing.closed.extend(&contexts);
        }
        self.note(&[30, dead as u64], || format!("has the report that h{dead} died"));
        self.engine.setup().declare_failed(PeerId(dead as u32), "the launcher reports its death");
        // The next look turns the pump, as the library rouses its waiting threads then.
        self.looked = LOOKS;
        for context in contexts {
            self.engine.close_context(Context(context), Error::Revoked);
        }
        lock(&self.network).wake(self.id, now);
    }

    /// Whether the host has closed a context.
    pub(super) fn has_closed(&self, context: u32) -> bool {
        lock(&self.network).doing[self.id].closed.contains(&context)
    }
}
