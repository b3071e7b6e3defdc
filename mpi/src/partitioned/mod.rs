//! Partitioned messages (MPI 5.0, section 4.2): one message, whose parts leave when the program says that
//! they are ready and arrive one by one.
//!
//! The sender's parts are what travels, each as a message of its own, straight into its place: parts that are
//! small gather in the engine's window like all messages. How the sender divides the message, which the
//! receiver may divide otherwise, it tells once, in a *header*: those of one tag are in order, so the
//! sender's n-th request belongs to the receiver's n-th, also where one was freed before it was started. All
//! of it travels in the context of collectives, apart from what programs receive and probe.

mod incoming;
mod outgoing;

pub(crate) use incoming::Incoming;
pub(crate) use outgoing::Outgoing;

use crate::comm::Named;
use crate::error::{Class, Error, Result};
use crate::handle::Type;
use crate::message;
use crate::objects::committed;
use newmadeleine::Segments;
use newmadeleine::engine::Tag;
use std::ffi::c_void;
use std::sync::Arc;

/// Tags of partitioned messages; those of agreements and collectives have one of these bits at least as zero.
const OWN: u64 = 7 << 61;
/// Of the parts of a message; of headers without this bit.
const PART: u64 = OWN | 1 << 60;
/// Channels have numbers below.
const CHANNELS: u32 = 1 << 28;
/// Bytes of a header: channel, parts, and bytes of each.
const HEADER: usize = 24;

fn header_tag(tag: i32) -> Tag {
    Tag(OWN | tag as u64)
}

fn part_tag(channel: u32, part: u32) -> Tag {
    Tag(PART | u64::from(channel) << 32 | u64::from(part))
}

/// How a message is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts {
    count: u32,
    /// Bytes of each.
    len: u64,
}

impl Parts {
    fn total(self) -> u64 {
        u64::from(self.count) * self.len
    }

    /// The number of a part.
    ///
    /// # Errors
    /// There is no such part.
    fn index(self, part: i32) -> Result<usize> {
        let index = usize::try_from(part).ok().filter(|&index| index < self.count as usize);
        let most = self.count;
        index.ok_or_else(|| {
            Class::ARG.error(format!("there is no partition {part}: the request has {most}, from 0"))
        })
    }
}

/// What both sides are given: buffer, partitions, elements of each, type, rank, tag.
pub(crate) type Arguments = (*const c_void, i32, i64, Type, i32, i32);

/// The memory of the whole message, and how it is divided.
fn divided((buffer, partitions, count, datatype, peer, _): Arguments) -> Result<(Segments, Parts)> {
    if partitions < 1 {
        return Err(Class::ARG.error(format!("{partitions} partitions: there must be 1 at least")));
    }
    if count < 0 {
        return Err(Class::COUNT.error(format!("the count is {count}: it must not be negative")));
    }
    let too_long = || Class::COUNT.error(format!("{partitions} partitions of {count} elements are too many"));
    let all = i64::from(partitions).checked_mul(count).ok_or_else(too_long)?;
    let memory = message::with(peer, buffer, all, datatype)?;
    // A message to MPI_PROC_NULL may have no type.
    let size = committed(datatype).map_or(0, |datatype| datatype.size());
    Ok((memory, Parts { count: partitions as u32, len: (count * size) as u64 }))
}

/// One side of a partitioned message.
#[derive(Clone)]
pub(crate) enum Side {
    Out(Arc<Outgoing>),
    In(Arc<Incoming>),
}

impl Side {
    /// Its communicator.
    pub(crate) fn on(&self) -> &Named {
        match self {
            Side::Out(outgoing) => outgoing.on(),
            Side::In(incoming) => incoming.on(),
        }
    }
}

#[cold]
fn not_started() -> Error {
    Class::REQUEST.error("the request is not active: call MPI_Start before its partitions are ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_headers_and_parts_differ() {
        let mut tags = vec![header_tag(0), header_tag(i32::MAX)];
        let channels = [0, 1, CHANNELS - 1];
        tags.extend(channels.iter().flat_map(|&channel| [0, u32::MAX].map(|part| part_tag(channel, part))));
        let different: std::collections::BTreeSet<u64> = tags.iter().map(|tag| tag.0).collect();
        assert_eq!(different.len(), tags.len());
    }

    #[test]
    fn parts_have_numbers_from_zero() {
        let parts = Parts { count: 3, len: 8 };
        assert_eq!((parts.total(), parts.index(2)), (24, Ok(2)));
        assert!(parts.index(3).is_err() && parts.index(-1).is_err());
    }
}
