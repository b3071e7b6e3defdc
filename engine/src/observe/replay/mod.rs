//! Replays of recorded observations through the estimators and choices that ship, judged by hindsight.
//!
//! A replay makes each decision when the job that was recorded made it, with what was observed until then.
//! What each alternative would have cost is taken from the observations around it, before and after
//! ([`Outcome`]). **Limits:** a trace has the costs of an alternative only where the job took it, so the
//! recorded jobs alternate between all choices; a phase that is shorter than the window of hindsight is not
//! seen; and a decision does not change what happens later.

mod bursts;
mod late;
mod outcome;
mod rails;
mod together;

pub use bursts::bursts;
pub use late::late;
pub use outcome::Outcome;
pub use rails::{latency, rails, trust};
pub use together::together;
