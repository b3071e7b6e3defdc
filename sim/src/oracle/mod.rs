//! Oracles: they decide whether what happened was right. They stand apart from workloads: they see
//! submissions, completions and what is on the wires, and never why an application did something.

pub mod delivery;
pub mod fates;
pub mod files;
pub mod ledger;
pub mod liveness;
pub mod memory;
pub mod order;
pub mod stall;
pub mod ways;
pub mod wire;

/// What an oracle objects to.
pub type Objection = String;
