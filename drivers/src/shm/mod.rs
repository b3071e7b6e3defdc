//! Shared memory inside one node: a driver of the room below the engine.
//!
//! Two processes share a segment that has no name. In it each writes a ring of cache lines that the other
//! reads ([`ring`]): a small packet moves one line, one of up to 296 B of data a few in a row. A longer one
//! lies in an area beside the ring, written through the caches or past them, as is faster ([`far`]).
//!
//! A message of up to 256 KiB that does not fit into a packet follows its announcement at once, in parts
//! through the area, which one core fills while the other empties it ([`stream`]): before it is known where
//! the bytes go, only the receiver can put them there.
//!
//! Larger data goes that way too, or is copied straight from process to process by both cores at once, as is
//! faster ([`pace`]): the sender *pushes* with process_vm_writev from one end of a chunk, the receiver
//! *pulls* with process_vm_readv from the other, and each takes the next piece when it has nothing else to do
//! ([`claim`]). So the split is decided piece by piece, as late as can be, and a side that computes leaves it
//! all to the other. To the engine the two are one rail: two of them would have to be split in advance, would
//! open each landing twice, and would make the engine keep what it sends, although they could only die
//! together. Where the system does not let either process access the other's memory, which is tried when a
//! link opens, the bytes go through the area in pieces, which both copy at once.
//!
//! A message whose sender and receiver both wait for it may stay where it is instead until it was copied
//! ([`loan`]).
//!
//! It knows headers, never frames; it trusts nobody who does not know the secret of the job.

pub mod across;
mod address;
mod area;
mod barrier;
mod bell;
mod board;
mod cell;
mod claim;
mod config;
#[cfg(test)]
mod crowd;
mod duel;
mod effort;
mod exchange;
mod far;
mod home;
mod lag;
mod layout;
mod lend;
mod link;
mod loan;
#[cfg(test)]
mod loom;
mod offer;
mod opening;
mod pace;
mod peers;
mod pulling;
mod pushing;
mod quiet;
mod rail;
mod read;
mod ring;
#[allow(unsafe_code)]
mod segment;
mod shared;
mod stream;
#[allow(unsafe_code)]
mod sys;
#[cfg(test)]
mod tests;
mod word;
mod write;

pub use config::ShmConfig;
pub use rail::ShmRail;
pub use segment::Segment;

use rustix::time::{ClockId, clock_gettime};

/// Longest packet in bytes: 32 KiB of data and its headers.
const PACKET: usize = 36 << 10;

/// Longest message that is pushed, as much as the area holds. Longer ones go straight from memory to memory
/// where that is faster, and then a receiver who has promised his memory is worth more.
///
/// With more ranks than cores nothing is pushed that could be copied across: a message often comes while its
/// receiver does not run, and so before he has asked for it; what is pushed then is copied once more, to
/// memory made for it (4 ranks on 2 cores of a Xeon, all to all: 128 KiB in 130 us instead of 225, 64 KiB in
/// 72 instead of 110).
const PUSH: u64 = layout::AREA as u64;

/// Milliseconds of a clock that is cheap to read.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}
