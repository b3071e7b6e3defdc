//! What plain sockets reach: the yardstick beside every benchmark, on the same rails in the same run.
//!
//! Each baseline is a pair of functions, one per side. The two sides agree on a plan and on the address of a
//! [`Listener`] over whatever channel they have (two ranks of a NewMadeleine job send them to each other);
//! then one side connects and is the active one, the other accepts and is the passive one:
//!
//! | baseline | active side | passive side |
//! |---|---|---|
//! | half round trip of a short message | [`latency::measure`] | [`latency::answer`] |
//! | half round trip of a short datagram | [`datagram::Datagrams`] | the same |
//! | half round trip of a short frame | [`frames::Frames`] | the same |
//! | bulk, one way or back and forth | [`bandwidth::measure`] | [`bandwidth::answer`] |
//! | rate of short messages | [`rate::measure`] | [`rate::answer`] |
//! | bulk in datagrams, one way | [`trains::Trains`] | the same |
//! | bulk over several rails at once | [`rails::measure`] | [`rails::answer`] |
//!
//! Inside one node there are no sockets to compare with; [`memory`] has what bare shared memory reaches.
//!
//! "Plain" means what a careful programmer does with one thread, non-blocking sockets and user memory; which
//! options that is was measured and is written down at [`Policy`]. Every call ends within the plan's limit,
//! with `TimedOut` if the other side does not answer. This module knows nothing of NewMadeleine.
pub mod bandwidth;
pub mod datagram;
pub mod frames;
pub mod latency;
pub mod memory;
mod pace;
pub mod rails;
pub mod rate;
mod socket;
pub mod trains;
mod wait;

pub use socket::{Listener, Policy, Socket};

#[cfg(test)]
mod tests;
