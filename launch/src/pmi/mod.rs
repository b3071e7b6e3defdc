//! PMI-1: the protocol between a rank and its launcher, with client and server.
//!
//! [`mod@line`] is the grammar, [`value`] encodes any text for it, [`delta`] shortens
//! values that resemble each other, [`client`] is the rank's side, and
//! [`server`] the launcher's side, without I/O. This layer knows ranks, keys and fences; it must never know
//! how a process is started or what a value means.
//!
//! The protocol (MPICH's `simple_pmi`, also used by `srun --mpi=pmi2`) sends one line `cmd=NAME key=value
//! ...` each way. Blocks `mcmd=NAME ... endcmd` of several lines exist only for starting processes
//! ([`spawn`]).

pub mod client;
pub mod delta;
pub mod line;
pub mod server;
pub mod spawn;
pub mod value;

/// Longest line that either side sends or accepts, in bytes. Hydra's own limit is 64 KiB.
pub const LINE_MAX: usize = 64 * 1024;
