//! Progress: who turns the pump, and when.
//!
//! A [`Node`] holds the engine behind a lock and each of its rails in a place that it leaves while a thread
//! works with it, so that several threads post at once. Threads that submit or wait turn the pump themselves,
//! which is the fastest way; a thread that ticks at most every millisecond turns it while they compute (P3's
//! timer trigger). Waiting spins while there is hope, then yields, then blocks. This
//! layer knows rails only as drivers to be polled; it must never know which networks they belong to.
#![deny(unsafe_code)]

mod apart;
mod bounded;
mod burst;
mod change;
pub mod clock;
mod crowd;
mod drive;
pub mod idle;
mod lock;
#[cfg(test)]
mod loom;
mod node;
mod pause;
mod receipts;
mod receive;
mod send;
mod service;
mod several;
mod tick;
mod watch;

pub use bounded::UnknownRequest;
pub use drive::Step;
pub use idle::Idle;
pub use node::{Node, Outcome, Tell};
pub use pause::Patience;
pub use receipts::OnReceipt;
pub use service::{Served, Service};
pub use watch::Armed;
