//! What rails were measured to do, and what follows from it.
//!
//! - [`sample`]: what a probe found: method, size, time and its spread.
//! - [`correction`]: how a rail fares now, from completed transfers.
//! - [`curve`]: times at all sizes from samples at some, and the inverse.
//! - [`threshold`]: from which size on one method beats another (P4 section III-B).
//! - [`measured`]: a profile: samples, the results derived from them, and their origin.
//! - [`doubt`]: what speaks against a profile.
//! - `learned`: a profile that completed transfers correct, by size; `recent`: the last ones of each kind;
//!   `learning`: transfers that are timed; `origin`: the profile from which they begin.
//! - [`forecast`]: what a rail to one peer will take, now.
//! - [`sampler`]: the plan of probes that makes a profile; `floor`: which of their results count.
//! - [`text`]: profiles as versioned text.
//!
//! This folder knows numbers only. It never sees a rail, a window or a packet; the schedule asks it how long
//! something takes, and how much can be done within a time. No clock, no file: who measures hands times in,
//! who stores takes text out.

pub mod correction;
pub mod curve;
pub mod doubt;
mod floor;
pub mod forecast;
pub(crate) mod learned;
pub(crate) mod learning;
pub mod measured;
pub(crate) mod origin;
pub(crate) mod recent;
pub mod sample;
pub mod sampler;
pub mod text;
pub mod threshold;
