//! A service: work of the layer above that follows from what arrives, and asks nothing of the application.
//!
//! It is given the engine after each look at the rails, by whichever thread looks: one that waits in a call,
//! or the helper while the application computes. Nodes without a service pay one load for each look.

use crate::lock::Guard;
use crate::node::{Core, Node, Shared};
use nmad_engine::Engine;

/// Work that goes on when something has arrived.
pub trait Service: Send {
    /// Goes on as far as it can. The lock is held: the node must not be called.
    fn serve(&mut self, engine: &mut Engine) -> Served;
}

/// How far a service has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// Something was done, or submitted.
    pub worked: bool,
    /// There is work that no arrival announces: somebody has to ask again soon.
    pub waits: bool,
}

impl Node {
    /// Has a service go on from now on, or none. While there is one, the helper never rests.
    pub fn set_service(&self, service: Option<Box<dyn Service>>) {
        let mut core = self.shared.lock();
        core.service = service;
        core.service_waits = false;
        drop(core);
        self.helper.wake();
    }
}

impl Shared {
    /// Gives the engine to the service, which is there; true: it has done something.
    #[inline(never)]
    pub(crate) fn serve(&self, core: &mut Guard<'_, Core>) -> bool {
        let Core { engine, service, service_waits, .. } = &mut **core;
        let Some(service) = service else { return false };
        let served = service.serve(engine);
        *service_waits = served.waits;
        if served.worked {
            // Others wait for what was submitted.
            if core.may_feed() {
                self.push(core, true);
            } else if core.engine.has_news() {
                self.collect(core);
            }
        }
        served.worked
    }
}
