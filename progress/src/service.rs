//! A service: work of the layer above that follows from what arrives, and asks nothing of the application.
//!
//! It is given the engine after each look at the rails, by whichever thread looks: one that waits in a call,
//! or the helper while the application computes. Nodes without a service pay one load for each look. What
//! threads in calls do themselves goes on *in the background*: it is given the engine by the helper alone,
//! while no thread is in a call.

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
