//! Estimates of costs from observed times, for decisions of the engine.
//!
//! **The model.** An observed time is a base cost plus noise that is never negative: the scheduler takes the
//! core, a receiver polls late, a queue is full. The base cost changes with the hardware and its use, and in
//! phases in which the whole host is slower. So it is estimated by a low quantile of the last observations:
//! single slow ones do not raise it, and it follows a change within one window. A mean is not used, since
//! beside other processes one observation may be a thousand times as long as the others.
//!
//! - [`low`]: the base cost of an action that is observed each time, in constant memory (the windowed minimum
//!   of BBR, Cardwell 2017, with two halves instead of a sorted window).
//! - [`burst`]: whether a program waits or computes after it has submitted messages.
//! - [`change`]: whether a quantity has changed, or is disturbed.
//! - [`mean`]: waits, of which the mean and the deviation count.
//! - [`window`]: quantiles of the last few observations, for transfers of which few are observed.

pub mod burst;
pub(crate) mod change;
pub(crate) mod low;
pub mod mean;
pub mod window;
