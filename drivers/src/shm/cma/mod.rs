//! `cma`: single copy from process to process by process_vm_readv and process_vm_writev (cross-memory
//! attach, [`crate::node::across`]).
//!
//! - [`regions`]: receive regions that a sender may write into.
//! - [`read`]: a message that its receiver copies when a receive has matched it.
//!
//! One copy instead of two, at the cost of a page table walk in the kernel for each page. Both cores share
//! a long message: the sender pushes one half while the receiver pulls the other one
//! ([`crate::node::claim`]). Where the system does not let a process access the other's memory, which is
//! tested when a link opens, [`crate::shm::bounce`] is used instead.

mod read;
pub mod regions;
