//! Layer 3: orders to rails and their reports.
//!
//! The driver interface, the state of each rail and of each link (numbers, acknowledgements, what has to
//! be kept for sending again), receive regions of large messages and byte credits. This layer never looks
//! into a request or a window.

pub mod access;
pub mod congestion;
pub(crate) mod credit;
pub mod driver;
pub(crate) mod link;
pub mod rail;
pub(crate) mod ranges;
pub(crate) mod region;
pub(crate) mod retention;
pub(crate) mod rtt;
pub(crate) mod suspicion;
pub(crate) mod vain;
