//! Collectives of communicators: arguments become schedules ([`crate::algorithm`]), which run on the engine.
//!
//! One function for each operation checks its arguments and makes a [`call::Ready`], from which all three
//! forms of the standard follow: blocking, nonblocking, persistent. This module joins what
//! [`crate::algorithm`] must not know: communicators, requests, the session.

mod agreement;
mod arguments;
mod call;
mod desk;
mod direct;
mod measure;
mod meeting;
pub(crate) mod moves;
pub(crate) mod neighbors;
mod port;
mod posted;
pub(crate) mod reductions;
mod running;
mod sequence;
mod settings;
mod shared;
mod team;
mod trial;
pub(crate) mod vectors;

pub(crate) use agreement::agree;
pub(crate) use desk::Desk;
pub(crate) use meeting::make as share_memory;
pub(crate) use sequence::{announce, refuse};
pub(crate) use settings::{explains, is_checking};
