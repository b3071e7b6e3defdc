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

/// Result of one run of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// The service did or submitted something.
    pub worked: bool,
    /// Work remains that no arrival announces, so the service must run again soon.
    pub waits: bool,
}
