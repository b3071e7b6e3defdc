//! What decisions know of times that were observed.
//!
//! **The model.** An observed time is a base cost plus noise that only adds: a scheduler takes the core, a
//! receiver polls late, a queue is full. A host has phases in which everything is slower. A change of the
//! hardware, or of its use, is a change of the base. So a base cost is a low quantile over the last
//! observations: single slow ones do not raise it, and it follows a change when the window has passed. No
//! mean is taken where one observation may be a thousand times as long as the others, as beside other
//! processes.
//!
//! - [`low`]: the base cost of something that is observed all the time, in constant memory (the windowed
//!   minimum of BBR, Cardwell 2017, with two halves instead of a sorted window).
//! - [`window`]: the order of the last few observations, where each is a transfer of its own.

pub(crate) mod low;
pub(crate) mod window;
