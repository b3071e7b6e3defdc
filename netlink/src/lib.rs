//! Netlink (netlink(7)): messages to the kernel about its network, and its answers.
//!
//! The bottom of the house, beside `wire`: the testbed builds hosts and rails with it, the session asks what
//! limits an interface. It knows bytes and sockets, never what a message asks for. A fresh machine has no
//! `ip` and no `tc`, and no crate covers both rtnetlink and nftables, so the messages are written here.
#![forbid(unsafe_code)]

mod message;
mod socket;

pub use message::{Message, find_attribute, u16_at, u32_at, u64_at};
pub use socket::{Body, Socket};
