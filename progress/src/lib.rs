//! Progress: runs the pump of a node, in calls of the application and in a helper thread.
//!
//! A [`Node`] holds the engine and its rails behind a lock. A thread that works with a rail takes it out of
//! its place and releases the lock meanwhile, so several threads post at once. Threads that submit or wait
//! turn the pump themselves, which is the fastest way. While they compute, a helper thread turns it (the
//! manager of P3): `helper` is the thread, `policy` decides its next step, `cores` finds idle cores. On an
//! idle core the helper also posts for other threads (`standby`), with `worker` threads on further cores.
//! This work waits as tasklets in queues of the cores that share a cache or a socket (`tasklet`,
//! `topology`, `offers`), and so do pieces of large copies and reductions (`share`, `split`). Where every
//! core computes, threads of higher priority sleep (`on_call`); `measure` says what handing over takes. A
//! waiting thread polls, then sleeps, and yields its core only to ranks of its job (`core_sharing`). This
//! layer knows rails only as drivers to be polled; it must never know which networks they belong to.
#![deny(unsafe_code)]

mod access;
mod apart;
mod aside;
mod bounded;
mod change;
pub mod clock;
mod core_sharing;
mod cores;
mod demand;
mod drive;
mod helped;
mod helper;
mod idle;
mod lock;
mod locked;
#[cfg(test)]
mod loom;
mod measure;
mod node;
mod offers;
mod on_call;
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
mod state;
mod tasklet;
mod topology;
mod watch;
mod worker;

pub use bounded::UnknownRequest;
pub use core_sharing::Sharing;
pub use cores::go_to;
pub use drive::Step;
pub use helped::{Doing, Helped};
pub use locked::{Outcome, Tell};
pub use measure::{Other, hand_offs};
pub use node::Node;
pub use offers::{Offered, Offers};
pub use pause::Patience;
pub use receipts::{OnReceipt, Purpose};
pub use service::{Served, Service};
pub use setting::{Progress, list as list_cores, own_cores};
pub use signals::spawn;
pub use tasklet::Priority;
pub use topology::Topology;
pub use watch::Armed;
