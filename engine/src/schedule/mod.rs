//! Layer 2: scheduling, the choice of the data that each rail carries.
//!
//! When a rail is idle, a strategy fills its next packet from the window of one peer and the view of that
//! rail (P1 section 3.2); it also decides how a large body is split over rails. This layer sees the window
//! and views of rails, never a driver or a link.

mod auto;
pub(crate) mod body;
pub mod builder;
pub mod feed;
mod fifo;
pub mod lone;
mod papers;
pub mod preempt;
pub mod registry;
pub(crate) mod split;
pub(crate) mod strategies;
pub mod strategy;
pub(crate) mod together;
pub mod wire;
