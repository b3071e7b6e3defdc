//! Layer 2: what an idle rail carries.
//!
//! When a rail is idle it asks for its next packet; a strategy looks at the window of one peer and at the
//! view of that rail and fills the packet (P1 section 3.2), and it decides how a large body is shared out.
//! This layer sees the window and views of rails, never a driver or a link.

mod auto;
pub(crate) mod body;
pub mod builder;
pub mod feed;
mod fifo;
mod papers;
pub mod registry;
pub(crate) mod split;
pub(crate) mod strategies;
pub mod strategy;
mod together;
pub mod wire;
