//! Shared memory inside one node: a driver of the room below the engine.
//!
//! Two processes share a segment that has no name ([`crate::node`], [`layout`]). Three transports use it:
//!
//! | room | carries | by |
//! |---|---|---|
//! | [`ring`] | packets of up to 336 B, and word of everything else | cells of one cache line each |
//! | [`bounce`] | longer packets, chunks | bounce buffers, which one core fills and the other empties |
//! | [`cma`] | chunks, messages for which both sides wait | single copies by process_vm_readv and writev |
//!
//! A message of up to 336 B takes the ring. For a longer one the [`selector`] chooses between the other two
//! by measured cost, which [`learnt`] hands on to the next job. Parts of large messages are [`chunk`]s, which
//! both sides copy: which side copies which piece, and how either takes work back, is one protocol,
//! [`crate::node::claim`]. Where the system does not let either process access the other's memory, which is
//! tried when a link opens, bounce buffers carry everything. To the engine the three are one rail: as several
//! rails, each message would have to be split in advance, although both sides can decide piece by piece, as
//! late as can be.
//!
//! Around them: [`rail`] is the driver, [`link`] one peer, [`opening`] how a link opens, [`home`] what a rail
//! has before that, [`wakeup`] how sleepers are woken.
//!
//! A tuned constant names the machine on which it was found and the effect of half and twice its value. *Zen
//! 3*, *Zen 4* and *Zen 5* are virtual machines with two cores of an EPYC, which the host moves now and then:
//! *near* cores share a cache, *far* ones do not. The spread of times there is up to a fifth.
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
mod shared;
#[cfg(test)]
mod tests;
mod turn;
mod wakeup;

pub use config::ShmConfig;
pub use rail::ShmRail;
