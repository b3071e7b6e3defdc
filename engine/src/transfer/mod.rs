//! Layer 3: hands orders to rails and processes their reports.
//!
//! It holds the driver interface, the state of each rail and of each link (sequence numbers,
//! acknowledgements, the retransmission buffer), receive regions of large messages, and byte credits. This
//! layer never looks into a request or a window.

pub mod access;
pub(crate) mod arrivals;
pub mod congestion;
pub(crate) mod credit;
pub mod driver;
pub(crate) mod link;
pub mod rail;
pub(crate) mod ranges;
pub(crate) mod region;
pub(crate) mod retention;
pub(crate) mod rtt;
pub(crate) mod silence;
pub(crate) mod suspicion;
