//! The C interface: `libnmad.so`, described by `include/nmad.h`.
//!
//! This layer stands on the session and adds nothing to what it can do: it turns pointers into values, names
//! into requests, and errors into codes. Its neighbour below is the session alone; it must never know a rail,
//! a frame or a strategy. All that a caller can get wrong ends as a code; no panic leaves.
//!
//! [`exports`] is the list of functions, in the order of the header; the file named after a group of the
//! header implements its functions. `raw` holds the pointers and all of their `unsafe` code.
#![deny(unsafe_code)]

mod code;
#[allow(unsafe_code)]
mod exports;
mod handle;
mod live;
mod loops;
mod message;
mod pieces;
mod rails;
#[allow(unsafe_code)]
mod raw;
mod session;
mod strategy;
mod table;
mod wait;
