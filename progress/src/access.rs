//! Remote memory access: exposing memory to peers, and accessing memory that peers expose.

use crate::node::Node;
use nmad_engine::{Act, Atomics, Exposure, Key, PeerId, RemoteAccess, RequestId, Segments};

impl Node {
    /// Exposes memory to the peers on every rail that can, until [`Node::conceal`].
    pub fn expose(&self, memory: &Segments) -> Exposure {
        self.with_rails(|rails| {
            let mut exposure = Exposure::default();
            for (number, rail) in (0..).zip(rails) {
                let Some(Key(key)) = rail.expose(memory.clone()) else { continue };
                exposure.keys.push(number, key);
                if rail.limits().remote == RemoteAccess::Network(Atomics::Processor) {
                    exposure.atomic.push(number, key);
                }
            }
            exposure
        })
    }

    /// Withdraws exposed memory: no peer can access it after this call.
    pub fn conceal(&self, exposure: &Exposure) {
        if exposure.is_empty() {
            return;
        }
        self.with_rails(|rails| {
            for (number, key) in exposure.keys.iter() {
                rails.get_mut(usize::from(number)).into_iter().for_each(|rail| rail.conceal(Key(key)));
            }
        });
    }

    /// Begins an access to exposed memory of a peer ([`nmad_engine::Engine::access`]).
    pub fn access(
        &self,
        to: PeerId,
        act: Act,
        there: (u64, &Exposure),
        here: &Segments,
    ) -> Option<RequestId> {
        self.submit_to(&mut self.shared.lock(), |shared, core| {
            core.now = shared.clock.now();
            let now = core.now;
            core.engine.access(now, to, act, there, here.clone())
        })
    }
}
