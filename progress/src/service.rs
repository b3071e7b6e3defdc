//! A service: work of the layer above that arrivals cause and that the application does not take part in,
//! for example serving one-sided accesses.
//!
//! Whichever thread polls the rails runs the service afterwards: a thread that waits in a call, or the
//! helper while the application computes. A node without a service pays one load for each poll. A
//! *background* service is for work that threads in calls do themselves: only the helper runs it, and only
//! while no thread is in a call.

use nmad_engine::Engine;

/// Work that continues when something has arrived.
pub trait Service: Send {
    /// Continues as far as possible. The caller holds the lock of the node, so this must not call the node.
    fn serve(&mut self, engine: &mut Engine) -> Served;

    /// Returns whether arrivals must be served while the application computes: the helper then never rests.
    fn needs_helper(&self) -> bool {
        true
    }
}

/// The services of a node, by name; empty ones are none.
#[derive(Default)]
pub(crate) struct Services(Vec<(&'static str, Box<dyn Service>)>);

impl Services {
    /// Returns whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets or removes the service with this name.
    pub(crate) fn set(&mut self, name: &'static str, service: Option<Box<dyn Service>>) {
        self.0.retain(|(known, _)| *known != name);
        self.0.extend(service.map(|service| (name, service)));
    }

    /// Runs each.
    pub(crate) fn serve(&mut self, engine: &mut Engine) -> Served {
        let mut all = Served::default();
        for (_, service) in &mut self.0 {
            let served = service.serve(engine);
            all = Served { worked: all.worked | served.worked, waits: all.waits | served.waits };
        }
        all
    }

    /// Returns whether one of them needs the helper.
    pub(crate) fn need_helper(&self) -> bool {
        self.0.iter().any(|(_, service)| service.needs_helper())
    }
}

/// Result of one run of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// The service did or submitted something.
    pub worked: bool,
    /// Work remains that no arrival announces, so the service must run again soon.
    pub waits: bool,
}
