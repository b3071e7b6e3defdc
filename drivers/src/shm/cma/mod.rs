//! `cma`: single copy from process to process by process_vm_readv and process_vm_writev (cross-memory
//! attach, [`crate::node::across`]).
//!
//! - [`regions`]: receive regions that a sender may write into.
//! - [`offer`]: a message whose sender and receiver both wait: it stays where it is until it was copied.
//! - [`read`]: a message that its receiver copies when a receive has matched it.
//!
//! One copy instead of two, at the price of what the system asks for each page. Both cores share a long
//! message: the sender pushes a half while the receiver pulls the other one ([`crate::node::claim`]). Where
//! the system does not let a process access the other's memory, which is tried when a link opens,
//! [`crate::shm::bounce`] serves.

pub mod offer;
mod read;
pub mod regions;

use crate::shm::selector::Choice;
use nmad_engine::memory::Segments;
use std::time::Instant;

/// A message that this side has offered, until it is known what becomes of it.
#[derive(Debug)]
pub struct Offer {
    /// Its number on the link.
    pub number: u32,
    pub data: Segments,
    pub begun: Instant,
    /// How it was chosen to offer it.
    pub choice: Choice,
}
