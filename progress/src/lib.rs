//! Progress: who turns the pump, and when.
//!
//! A [`Node`] holds the engine behind a lock and each of its rails in a place that it leaves while a thread
//! works with it, so that several threads post at once. Threads that submit or wait turn the pump themselves,
//! which is the fastest way. While they compute, a helper thread does it (P3's manager): `helper` is the
//! thread, `policy` decides what it does next, `cores` knows which cores are idle; on one of them it also
//! posts a part of what other threads send (`standby`), with workers on others (`worker`): such tasklets wait
//! in queues by the cores that share a cache or a socket (`tasklet`, `topology`), and so do pieces of large
//! copies and reductions (`share`, `split`). Waiting spins while there
//! is hope, then yields, then blocks. This layer knows rails only as drivers to be polled; it must never know
//! which networks they belong to.
#![deny(unsafe_code)]

mod access;
mod apart;
mod aside;
mod bounded;
mod burst;
mod change;
pub mod clock;
mod cores;
mod crowd;
mod drive;
mod helper;
pub mod idle;
mod lock;
mod locked;
#[cfg(test)]
mod loom;
mod node;
mod pause;
mod policy;
mod receipts;
mod receive;
mod send;
mod service;
mod setting;
mod several;
mod share;
mod shared;
mod signals;
mod slice;
mod split;
mod standby;
mod tasklet;
mod topology;
mod watch;
mod wish;
mod worker;

pub use bounded::UnknownRequest;
pub use cores::go_to;
pub use drive::Step;
pub use helper::{Doing, Helped};
pub use idle::Idle;
pub use locked::{Outcome, Tell};
pub use node::Node;
pub use pause::Patience;
pub use receipts::{OnReceipt, Purpose};
pub use service::{Served, Service};
pub use setting::{Progress, list as list_cores, own_cores};
pub use topology::Topology;
pub use watch::Armed;
