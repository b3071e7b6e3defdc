//! Patterns of communication measured between two ranks, one file per pattern.
//!
//! A benchmark is an SPMD program over a [`Session`](newmadeleine::Session) of two ranks ([`Pair`]): rank 0
//! is active and measures, rank 1 is passive and plays along. Each way of moving the data is a [`Contestant`]
//! (NewMadeleine under some strategy, plain sockets over the same rails), and contestants take turns
//! ([`interleave`]), so that whatever disturbs the machine disturbs all of them. The command line parses and
//! prints; nothing is measured there.
pub mod bandwidth;
pub mod decision;
mod error;
pub mod failover;
pub mod fairness;
pub mod flow;
pub mod interference;
pub mod latency;
pub mod multiseg;
pub mod offload;
mod ours;
pub mod overlap;
mod pair;
pub mod prediction;
pub mod rate;
pub mod regret;
pub mod threads;
pub mod thresholds;
mod turns;
mod yard;

pub use error::BenchError;
pub use pair::Pair;
pub use turns::{Contestant, Entry, Kind, Row, interleave};
pub use yard::Yard;

/// What NewMadeleine is run with: nothing to choose keeps the strategy of the session.
pub type Strategies = [String];
