//! The common part of the networks of datagrams, [`udp`](crate::udp) and [`packet`](crate::packet).
//!
//! Orders are cut into datagrams ([`cut`], [`header`]) with tags that no sender off the path can guess
//! ([`seal`]), and put together again ([`assembly`]). Links are opened by a handshake that proves the secret
//! of the job and probes which length passes ([`greeting`], [`greeters`]). [`rail`] opens and closes links
//! and queues orders; a network sends datagrams, and reads them. Frames of the engine are known to neither.

pub(crate) mod assembly;
pub(crate) mod cut;
pub(crate) mod greeters;
pub(crate) mod greeting;
pub(crate) mod header;
pub(crate) mod link;
mod pads;
pub(crate) mod queue;
pub(crate) mod rail;
pub(crate) mod seal;
pub(crate) mod silence;
pub(crate) mod strays;
mod window;

/// Longest packet in bytes: 64 KiB of data and its headers.
pub(crate) const PACKET: usize = 72 << 10;
/// Longest chunk in bytes of data: with its header it leaves as one train at the usual path MTU.
pub(crate) const CHUNK: usize = 60 << 10;
