//! Files that several processes have open: which bytes an access touches, which process owns them, and how
//! the file system is called.
//!
//! Above the engine, and below MAD-MPI and the simulator, which both run it: each says what a process has
//! ([`Asking`], [`near::Keeping`], [`handover::Together`], [`serving::Owned`]), and the steps are here. It
//! knows no type and no handle of MPI, and takes no lock of the file system.
//!
//! | module | subject |
//! |---|---|
//! | [`piece`], [`list`] | places in a file, and how processes tell each other of them |
//! | [`regions`], [`layout`] | the division of a file into regions, and their owners |
//! | [`access`], [`word`] | the way of an access of one process |
//! | [`request`], [`asking`], [`serving`], [`owner`] | such an access by owners: messages, both sides |
//! | `windows`, `map` | short pieces that are copied from and to mapped memory |
//! | `batch`, `uncached` | reads of several pieces at once, direct I/O |
//! | [`near`] | short records that wait in the memory of their process |
//! | [`handover`] | the steps that all processes take together |
//! | [`merge`] | how an owner joins the collective accesses of several processes |
//! | [`cache`], [`store`] | data in the memory of a process |
//! | [`plan`], [`hints`] | predicted costs, and hints of programs |
//! | [`disk`], [`system`], [`backing`], [`fault`] | system calls, file systems, and their errors |
#![deny(unsafe_code)]

pub mod access;
pub mod asking;
pub mod backing;
mod batch;
pub mod cache;
pub mod disk;
pub mod fault;
pub mod handover;
pub mod hints;
pub mod layout;
pub mod list;
#[allow(unsafe_code)]
mod map;
#[allow(unsafe_code)]
mod memory;
pub mod merge;
pub mod near;
pub mod owner;
mod page;
pub mod piece;
pub mod plan;
pub mod regions;
pub mod request;
pub mod serving;
pub mod store;
pub mod system;
mod uncached;
mod windows;
pub mod word;

pub use access::Way;
pub use asking::Asking;
pub use backing::Backing;
pub use cache::Cache;
pub use disk::{Disk, Opening};
pub use fault::{Cause, Fault};
pub use hints::Hints;
pub use layout::{Kind, Layout};
pub use memory::{Kept, joined};
pub use near::Near;
pub use owner::Owner;
pub use piece::{Piece, Pieces};
pub use regions::{Part, Regions};
pub use request::{Answer, Ask, Request};
pub use serving::{Desk, Reply, Serving};
pub use store::Store;
pub use system::System;
