//! Collectives of communicators: arguments become schedules ([`crate::algorithm`]), which run on the engine.
//!
//! One function for each operation checks its arguments and makes a [`call::Ready`], from which all three
//! forms of the standard follow: blocking, nonblocking, persistent. This module joins what
//! [`crate::algorithm`] must not know: communicators, requests, the session.

mod arguments;
mod call;
mod desk;
mod direct;
pub(crate) mod moves;
pub(crate) mod neighbors;
mod port;
pub(crate) mod reductions;
mod settings;
mod shared;
pub(crate) mod vectors;

pub(crate) use call::announce;
pub(crate) use desk::Desk;
pub(crate) use settings::{agree, is_checking};
pub(crate) use shared::make as share_memory;
