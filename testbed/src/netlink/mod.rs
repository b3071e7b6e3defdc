//! The kernel's network, as far as rails need it: devices, addresses, rate limits, loss, over rtnetlink(7).
//!
//! Spoken by hand, since a fresh machine has no `ip` and no `tc`. Everything here acts on one network
//! namespace, that of the [`Socket`]; nothing here knows what a host or a testbed is.

mod interface;
mod loss;
mod message;
mod observe;
mod shape;
mod socket;

pub(crate) use interface::{End, add_address, create_bridge, create_pair, find, set_gso_max_count};
pub(crate) use interface::{set_master, set_mtu, set_up};
pub(crate) use loss::lose;
pub use observe::RailState;
pub(crate) use observe::observe;
pub(crate) use shape::shape;
pub(crate) use socket::Socket;
