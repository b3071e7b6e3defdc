//! Layer 1: what the application asked.
//!
//! Requests, the matching of messages with receives, the order within a flow, incremental messages, and
//! the window of what is submitted but not yet on a rail. This layer never sees a rail, a link or a
//! packet; a rail appears only as a name that the application may dedicate a message to.

pub mod ended;
mod lists;
pub mod matching;
pub mod message;
pub mod request;
mod run;
pub mod sequence;
pub mod window;
