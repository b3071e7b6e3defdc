//! Layer 1: requests of the application.
//!
//! It holds requests, the matching of messages with receives, the order within a flow, incremental
//! messages, and the window of messages that are submitted but not yet on a rail. This layer never sees a
//! rail, a link or a packet; a rail appears only as an identifier to which the application may dedicate a
//! message.

pub(crate) mod early;
pub mod ended;
mod lists;
pub mod matching;
pub mod message;
pub mod request;
mod run;
pub mod sequence;
pub mod window;
