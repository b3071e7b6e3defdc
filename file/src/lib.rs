//! Files that several processes have open: which bytes an access touches, which process owns them, and how
//! the file system is called.
//!
//! Above the engine, and below MAD-MPI and the simulator, which both run it: each says what a process has
//! ([`Asking`], [`near::Keeping`], [`handover::Together`], [`serving::Owned`]), and the steps are here. Here
//! are the places in a file ([`piece`]), the division of a file into regions and their owners ([`regions`]),
//! what processes tell each other about places ([`list`]), how an owner joins the collective accesses of
//! several processes ([`merge`]), the requests of accesses of one process ([`request`]), who asks
//! ([`asking`]), who serves them ([`serving`]) and their owner ([`owner`]), the way of such an access
//! ([`access`]), short records that wait ([`near`]), what all do together ([`handover`]), who owns what
//! ([`layout`]), the data in memory of a process ([`cache`], [`store`]), the ways that an access may go and
//! their predicted costs ([`plan`]), the hints of programs about that ([`hints`]), and the system calls
//! ([`disk`]) with their errors ([`fault`]). It knows no type and no handle of MPI, and takes no lock of the
//! file system.
#![deny(unsafe_code)]

pub mod access;
pub mod asking;
pub mod backing;
pub mod cache;
pub mod disk;
pub mod fault;
pub mod handover;
pub mod hints;
pub mod layout;
pub mod list;
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
