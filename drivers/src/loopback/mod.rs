//! The rail to oneself: a driver of the room below the engine that reaches its own process only.
//!
//! The next poll reports all posted orders; a chunk is copied once. It never opens a file or a socket.

mod rail;

pub use rail::LoopbackRail;
