//! The engine's public interface: a single engine with packets written by hand, or several with rails in
//! memory. One program: linking a program per subject would take longer than the tests.

mod common;
#[path = "common/heap.rs"]
mod heap;
#[path = "common/lone.rs"]
mod lone;
#[path = "common/net.rs"]
mod net;
#[path = "common/short.rs"]
mod short;

mod accesses;
mod blocks;
mod budget;
mod cancelled;
mod claims;
mod clocks;
mod correction;
mod direct;
mod early;
mod expected;
mod failover;
mod feeding;
mod hints;
mod kept;
mod late;
mod learning;
mod leaving;
mod malformed;
mod matching;
mod messages;
mod order;
mod parallel;
mod parts;
mod pieces;
mod plan;
mod profile;
mod pushed_now;
mod pushes;
mod reads;
mod receipts;
mod regressions;
mod regressions_rails;
mod sampler;
mod shares;
mod splits;
mod strategies;
mod thresholds;
mod traffic;
