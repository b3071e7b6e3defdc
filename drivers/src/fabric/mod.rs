//! Rails over fabrics: the common part of the drivers for adapters with registered memory and reliable
//! delivery.
//!
//! An [`adapter::Adapter`] is the library of such a fabric, opened on one interface: [`crate::ofi`] has the
//! one for libfabric, [`crate::verbs`] that for InfiniBand and RoCE. This module has everything else:
//!
//! - links open over a TCP connection of the same interface, whose end then reports the peer's death;
//! - packets travel in registered slots, with credits so that the peer has a buffer for each;
//! - the receiver of a chunk reads it from the sender's memory (RDMA read);
//! - registrations are cached where that is safe;
//! - messages of encrypted links are encrypted in their slots ([`sealed`]), and chunks travel in messages.
//!
//! It knows headers, never frames; it trusts no process that does not know the secret of the job.

mod access;
pub(crate) mod adapter;
mod cache;
mod dispatch;
mod ends;
mod link;
mod message;
mod opening;
mod operations;
mod pinned;
pub(crate) mod rail;
mod read;
mod sealed;
#[allow(unsafe_code)]
pub(crate) mod slots;
mod traffic;
#[allow(unsafe_code)]
pub(crate) mod unmapped;
mod write;

/// Longest packet in bytes, header included.
const PACKET: usize = slots::SLOT - message::PREFIX - nmad_seal::TAG;
