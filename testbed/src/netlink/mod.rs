//! The kernel's network, as far as rails need it: devices, addresses, rate limits, loss, over rtnetlink(7).
//!
//! Messages are those of the crate `nmad-netlink`. Everything here acts on one network
//! namespace, that of the [`Socket`]; nothing here knows what a host or a testbed is.

mod interface;
mod loss;
mod observe;
mod shape;

pub(crate) use interface::{End, add_address, create_bridge, create_pair, find, remove_address};
pub(crate) use interface::{set_gso_max_count, set_master, set_mtu, set_up};
pub(crate) use loss::{lose, open_filter};
pub use observe::RailState;
pub(crate) use observe::observe;
pub(crate) use shape::shape;
