//! A post with a part for each rank: a table of where each part begins and where the last one ends, and the
//! parts.

use super::ring::{POSTED_MAX, Post, Ring};
use crate::error::{Class, Result};
use nmad_drivers::node::Segment as SharedMemory;
use nmad_engine::Segments;
use std::ops::Range;

/// Bytes of an entry of a table.
const ENTRY: usize = size_of::<u16>();

/// Bytes of the table for this number of parts.
const fn table_len(parts: usize) -> usize {
    (ENTRY * (parts + 1)).next_multiple_of(size_of::<u64>())
}

/// Bytes of a post with these parts.
#[inline]
pub(super) fn len(parts: &[Segments]) -> u64 {
    parts.iter().fold(table_len(parts.len()) as u64, |len, part| len.saturating_add(part.len()))
}

/// Shows parts to all, or that they are too long.
#[inline]
pub(super) fn post(ring: &Ring, memory: &SharedMemory, post: Post, parts: &[Segments]) {
    if len(parts) <= POSTED_MAX as u64 {
        let mut end = table_len(parts.len());
        for (rank, part) in parts.iter().enumerate() {
            ring.put(memory, post, ENTRY * rank, &(end as u16).to_ne_bytes());
            match part.contiguous() {
                Some(bytes) => ring.put(memory, post, end, bytes),
                None => ring.put_pieces(memory, post, end, part),
            }
            end += part.len() as usize;
        }
        ring.put(memory, post, ENTRY * parts.len(), &(end as u16).to_ne_bytes());
    }
    ring.show(memory, post);
}

/// Where the post of a rank has the part for us, as its table says.
#[inline]
pub(super) fn own_part(ring: &Ring, memory: &SharedMemory, (rank, number): (usize, u64)) -> Range<usize> {
    let entry = |index: usize| {
        let bytes = ring.posted(memory, rank, number, ENTRY * index..ENTRY * (index + 1));
        usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]))
    };
    let begin = entry(ring.me);
    begin..entry(ring.me + 1).max(begin)
}

/// Copies a part of the post of a rank.
#[inline]
pub(super) fn fetch(
    ring: &Ring,
    memory: &SharedMemory,
    (rank, number): (usize, u64),
    part: Range<usize>,
    into: &Segments,
) -> Result<()> {
    let (len, room) = (part.len(), into.len());
    if len as u64 > room {
        return Err(Class::TRUNCATE
            .error(format!("rank {rank} sends {len} bytes to this rank, which expects {room} of it")));
    }
    into.write(0, ring.posted(memory, rank, number, part));
    Ok(())
}
