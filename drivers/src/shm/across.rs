//! Memory of another process of this node and user, read and written in one call of the system, for layers
//! above that know where it lies.

use super::claim::Side;
use super::cma::sys::{Remote, copy};
use nmad_engine::memory::Segments;
use std::io;

/// Reads pieces (address and length, in order) of a process into memory of ours that is as long.
///
/// # Errors
/// The system does not permit it, or some of that memory is not there.
pub fn read(process: i32, into: &Segments, pieces: impl IntoIterator<Item = (u64, u64)>) -> io::Result<()> {
    copy(Side::Pull, process, into, &remote(pieces)?, 0)
}

/// Writes memory of ours to pieces (address and length, in order) of a process that are as long.
///
/// # Errors
/// As [`read`].
pub fn write(process: i32, from: &Segments, pieces: impl IntoIterator<Item = (u64, u64)>) -> io::Result<()> {
    copy(Side::Push, process, from, &remote(pieces)?, 0)
}

fn remote(pieces: impl IntoIterator<Item = (u64, u64)>) -> io::Result<Remote> {
    Remote::new(pieces).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
