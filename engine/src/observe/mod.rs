//! What the engine observes beside the messages: how long they take, whether receivers are late, which links
//! fall silent, and a receipt for each message on demand.

pub(crate) mod in_force;
pub(crate) mod late;
pub(crate) mod lateness;
pub(crate) mod learn;
pub(crate) mod receipt;
pub(crate) mod traffic;
pub(crate) mod watch;
