//! Driver for shared memory inside one node.
//!
//! Two processes share an anonymous segment ([`crate::node`], [`layout`]). Three transports use it:
//!
//! | module | carries | by |
//! |---|---|---|
//! | [`ring`] | packets of up to 336 B, and all control information | cells of one cache line each |
//! | [`bounce`] | longer packets, chunks | bounce buffers: one core copies in, the other copies out |
//! | [`cma`] | chunks, messages for which both sides wait | single copies by process_vm_readv and writev |
//!
//! A message of up to 336 B takes the ring. For a longer one the [`selector`] chooses between the other two
//! by measured cost; [`learnt`] stores the measurements for the next job. Parts of large messages are
//! [`chunk`]s, which both sides copy: [`crate::node::claim`] is the protocol by which each side claims
//! pieces and gives them back. Where the system does not let either process access the other's memory,
//! which is tested when a link opens, all data goes through bounce buffers. The engine sees the three as
//! one rail: as several rails, each message would have to be split in advance, whereas here both sides
//! decide piece by piece, as late as possible.
//!
//! Around them: [`rail`] is the driver, [`link`] one peer, [`opening`] the opening of links, [`home`] the
//! resources of a rail before it has links, [`wakeup`] the waking of sleeping peers.
//!
//! A tuned constant names the machine on which it was found and the effect of half and twice its value.
//! *Zen 3*, *Zen 4* and *Zen 5* are virtual machines with two cores of an EPYC, which the host moves now
//! and then: *near* cores share a cache, *far* ones do not. The spread of times there is up to a fifth.
//!
//! The driver knows headers, never frames; it trusts no peer that does not know the secret of the job.

mod address;
mod bounce;
mod chunk;
mod cma;
mod config;
mod home;
mod layout;
mod learnt;
mod link;
mod opening;
mod peers;
mod probe;
mod rail;
mod ring;
mod selector;
mod shape;
mod shared;
#[cfg(test)]
mod tests;
mod turn;
mod wakeup;

pub use address::kernel;
pub use config::ShmConfig;
pub use rail::ShmRail;
pub use wakeup::{fence_all, shares_fences};
