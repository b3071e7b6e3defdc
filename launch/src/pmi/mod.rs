//! PMI-1: the lines between a rank and its launcher, and both ends of them.
//!
//! [`mod@line`] is the grammar, [`value`] makes any text fit into it, [`client`] is a rank's end, and
//! [`server`] the launcher's, without I/O. This layer knows ranks, keys and fences; it must never know
//! how a process is started or what a value means.
//!
//! The wire (MPICH's `simple_pmi`, also spoken by `srun --mpi=pmi2`): one line `cmd=NAME key=value ...` each
//! way; blocks `mcmd=NAME ... endcmd` of several lines exist only for starting processes ([`spawn`]).

pub mod client;
pub mod line;
pub mod server;
pub mod spawn;
pub mod value;

/// The longest line that either end sends or accepts, in bytes. Hydra's own limit is 64 KiB.
pub const LINE_MAX: usize = 64 * 1024;
