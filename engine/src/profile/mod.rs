//! Performance profiles: measured times of rails, and the predictions and thresholds derived from them.
//!
//! - [`sample`]: the result of a probe: method, size, time and its spread.
//! - [`correction`]: the current load of a rail, from completed transfers.
//! - [`blocks`]: the cost of non-contiguous data, per block and per byte.
//! - [`curve`]: times at all sizes from samples at some, and the inverse.
//! - [`threshold`]: the size from which one method beats another (P4 section III-B).
//! - [`measured`]: a profile: samples, the results derived from them, and their origin.
//! - [`doubt`]: reasons why a profile is provisional.
//! - `learned`: a profile corrected by completed transfers, by size; `recent`: the last transfers of each
//!   kind; `learning`: transfers that are timed; `origin`: the profile from which learning starts.
//! - [`estimate`]: base costs, estimated from observed times.
//! - [`forecast`]: the predicted times of a rail to one peer, now.
//! - [`sampler`]: the plan of probes that makes a profile; `floor`: selects the results that count.
//! - [`text`]: profiles as versioned text.
//!
//! This folder handles numbers only. It never sees a rail, a window or a packet; the schedule asks it how
//! long something takes, and how much can be done within a time. It uses no clock and no files: the caller
//! passes times in and stores the text.

pub mod blocks;
pub mod correction;
pub mod curve;
pub mod doubt;
pub(crate) mod effort;
pub mod estimate;
mod floor;
pub mod forecast;
pub mod hash;
pub(crate) mod learned;
pub(crate) mod learning;
pub mod measured;
pub(crate) mod origin;
pub(crate) mod probe;
pub(crate) mod recent;
pub mod sample;
pub mod sampler;
pub mod text;
pub mod threshold;
