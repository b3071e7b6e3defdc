//! `cma`: single copy from process to process by process_vm_readv and process_vm_writev (cross-memory
//! attach, [`crate::node::across`]).
//!
//! - [`regions`]: receive regions that a sender may write into.
//! - [`read`]: a message that its receiver copies when a receive has matched it.
//!
//! One copy instead of two, at the price of what the system asks for each page. Both cores share a long
//! message: the sender pushes a half while the receiver pulls the other one ([`crate::node::claim`]). Where
//! the system does not let a process access the other's memory, which is tried when a link opens,
//! [`crate::shm::bounce`] serves.

mod read;
pub mod regions;
