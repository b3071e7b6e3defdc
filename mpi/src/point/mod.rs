//! Point-to-point messages: each is a request of the engine's.

mod attached;
pub(crate) mod buffered;
pub(crate) mod pair;
pub(crate) mod persistent;
pub(crate) mod probe;
pub(crate) mod recv;
pub(crate) mod send;

pub(crate) use attached::Attached;
