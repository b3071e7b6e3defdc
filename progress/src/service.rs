//! A service: work of the layer above that is caused by arrivals and needs no call of the application, for
//! example serving one-sided accesses.
//!
//! The thread that polls the rails runs the services after each poll: a thread that waits in a call or,
//! while the application computes, the helper thread. On a node without services this costs one load for
//! each poll. A *background* service is for work that threads in calls otherwise do themselves: only the
//! helper runs it, and only while no thread is in a call.

use nmad_engine::Engine;

/// Work that can continue after an arrival.
pub trait Service: Send {
    /// Continues as far as possible. The caller holds the lock of the node, so this must not call the node.
    fn serve(&mut self, engine: &mut Engine) -> Served;

    /// Returns whether arrivals must be served while the application computes. The helper then watches the
    /// rails and never rests.
    fn needs_helper(&self) -> bool {
        true
    }
}

/// The services of a node, by name.
#[derive(Default)]
pub(crate) struct Services(Vec<(&'static str, Box<dyn Service>)>);

impl Services {
    /// Returns whether the node has no service.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the service with this name; `None` removes it.
    pub(crate) fn set(&mut self, name: &'static str, service: Option<Box<dyn Service>>) {
        self.0.retain(|(known, _)| *known != name);
        self.0.extend(service.map(|service| (name, service)));
    }

    /// Runs all services; combines their results.
    pub(crate) fn serve(&mut self, engine: &mut Engine) -> Served {
        let mut all = Served::default();
        for (_, service) in &mut self.0 {
            let served = service.serve(engine);
            all = Served { worked: all.worked | served.worked, waits: all.waits | served.waits };
        }
        all
    }

    /// Returns whether any service needs the helper.
    pub(crate) fn need_helper(&self) -> bool {
        self.0.iter().any(|(_, service)| service.needs_helper())
    }
}

/// Result of one run of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// The service completed or submitted work.
    pub worked: bool,
    /// Work remains that can continue without an arrival, so the service must run again soon.
    pub waits: bool,
}
