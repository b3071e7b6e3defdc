//! The deterministic world: real engines on simulated rails in virtual time.
//!
//! Above the engine, beside the drivers. From a seed it draws a stage ([`scenario`]: hosts, networks,
//! faults), what the applications do ([`workload`]), and runs it ([`world`]) over simulated wires
//! ([`network`]) whose cost is a [`model`]. Oracles ([`oracle`]) stand apart and judge what they see. Seed
//! and commit are a run: the same seed gives the same events, bit for bit. Nothing here reads a clock, starts
//! a thread or opens a socket, and nothing here knows what real networks, launchers or sessions are.
#![deny(unsafe_code)]

pub mod agenda;
pub mod buffer;
pub mod canary;
pub mod cli;
pub mod cores;
pub mod death;
pub mod exposed;
pub mod faults;
pub mod files;
pub mod golden;
pub mod host;
pub mod key;
pub mod machine;
pub mod messages;
pub mod model;
pub mod network;
pub mod oracle;
pub mod outage;
pub mod payload;
pub mod rail;
mod report;
pub mod rng;
pub mod scenario;
pub mod trace;
pub mod workload;
pub mod world;

pub use canary::Canary;
pub use death::Deaths;
pub use report::{EachDeath, Report, Violation, each_death, run_seed};
pub use scenario::{Options, Scenario};
