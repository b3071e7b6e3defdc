//! Receive regions that the peer may write into: the sender of a chunk looks up its target memory here.
//!
//! The segment has a table for each side. An entry holds the key of an open region and its position in the
//! receiver's memory: its address, or, if it consists of pieces, the address of a list of them. A region
//! for which the table has no free entry is not pushed into; its receiver pulls.
//!
//! A sender begins a chunk, which names its key, and then looks for the key in the table. A receiver that
//! closes a region removes the key and then revokes its part of the chunks that name the key ([`close`]).
//! Each side has a full fence in between, so either the sender finds no key, or the receiver finds the
//! chunk and waits for the end of the copy that has begun.

use crate::node::Segment;
use crate::node::across::{self, Process, Remote};
use crate::node::claim::{self, Round, Side};
use crate::node::word::Word;
use crate::shm::layout::{CHUNKS, End, REGIONS};
use crate::shm::shared::Shared;
use nmad_engine::memory::Segments;
use nmad_engine::packet::Key;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Upper limit of pieces in a description; more are an error.
pub const PIECES_MAX: u64 = 1 << 24;

/// Addresses and lengths of pieces, which the peer reads.
pub type List = Box<[u64]>;

/// Returns the length of pieces below which memory is scattered, on a rail without a profile: a page, since
/// the system copies each piece at the cost of one. 256 KiB in pieces of 8 B took 18 ms in a single copy and
/// 0.3 ms in two, in pieces of 2 KiB 90 and 23 us, of 4 KiB 71 and 20 (EPYC).
pub fn nominal() -> u64 {
    Segment::SHORT_PAGE as u64
}

/// Describes memory for the peer: address of the bytes or of the list of pieces, and the number of pieces.
/// The list must live as long as the peer may read it. Zero pieces mean that the memory is scattered, so
/// the peer does not access it: its pieces are shorter than `piece_min` on average.
pub fn describe(memory: &Segments, piece_min: u64) -> (u64, u64, List) {
    if memory.is_finer_than(piece_min) {
        return (0, 0, List::default());
    }
    let list: List = memory.iter().flat_map(|piece| [piece.start as u64, piece.len as u64]).collect();
    match *list {
        [] => (0, 0, list),
        [address, _] => (address, 1, list),
        _ => (list.as_ptr() as u64, list.len() as u64 / 2, list),
    }
}

/// Reads the list of pieces that the peer described.
///
/// # Errors
/// The description is inconsistent, or the memory of the peer cannot be read.
pub fn fetch(process: &Process, (address, pieces): (u64, u64), len: u64) -> std::io::Result<Remote> {
    let remote = match pieces {
        1 => Remote::new([(address, len)]),
        0 | PIECES_MAX.. => None,
        _ => {
            let mut list = vec![0; pieces as usize * 2];
            across::peek(process, address, &mut list)?;
            Remote::new(list.chunks_exact(2).map(|pair| (pair[0], pair[1])))
        }
    };
    let wrong = || std::io::Error::other("its description makes no sense");
    remote.filter(|remote| remote.len() == len).ok_or_else(wrong)
}

/// The word in the table of `end` that holds this key if the region is open.
fn key_word(segment: &Segment, end: End, key: Key) -> &AtomicU64 {
    segment.word(place_of(end, key))
}

fn place_of(end: End, key: Key) -> usize {
    end.region((key.0 % REGIONS as u64) as usize)
}

/// Enters a region of `end` into its table; false: there is no free entry.
pub fn publish(segment: &Segment, end: End, key: Key, (address, pieces): (u64, u64), len: u64) -> bool {
    let at = place_of(end, key);
    if segment.word(at).load(Ordering::Relaxed) != 0 {
        return false;
    }
    for (word, value) in [address, pieces, len].into_iter().enumerate() {
        segment.word(at + 8 + word * 8).store(value, Ordering::Relaxed);
    }
    segment.word(at).store(key.0, Ordering::Release);
    true
}

/// Result of looking up a region of the peer.
#[derive(Debug, Clone)]
pub enum Place {
    /// Its memory.
    At(Arc<Remote>),
    /// It is scattered: only the peer fills it.
    Scattered,
    /// It is not open, or was closed while it was read.
    Unknown,
}

impl Place {
    /// Returns its memory, if this side may write there.
    pub fn memory(self) -> Option<Arc<Remote>> {
        if let Place::At(memory) = self { Some(memory) } else { None }
    }
}

/// Looks up a region of `end`.
pub fn find(segment: &Segment, end: End, process: &Process, key: Key) -> Place {
    if !is_open(segment, end, key) {
        return Place::Unknown;
    }
    let at = place_of(end, key);
    let [address, pieces, len] = [8, 16, 24].map(|word| segment.word(at + word).load(Ordering::Relaxed));
    let place = match pieces {
        0 => Place::Scattered,
        _ => match fetch(process, (address, pieces), len) {
            Ok(memory) => Place::At(Arc::new(memory)),
            Err(_) => return Place::Unknown,
        },
    };
    // If the region was closed meanwhile, the entry may belong to another one, and the list may be freed
    // memory.
    if is_open(segment, end, key) { place } else { Place::Unknown }
}

/// Returns whether `end`, the peer, has a region open. Call it after [`claim::begin`].
pub fn is_open(segment: &Segment, end: End, key: Key) -> bool {
    holds_key(key_word(segment, end, key), key.0)
}

/// Returns whether a word of the table holds the key.
pub fn holds_key<W: Word>(word: &W, key: u64) -> bool {
    W::full_fence();
    word.load(Ordering::Acquire) == key
}

/// Removes a key from its word of the table.
pub fn remove_key<W: Word>(word: &W, key: u64) {
    if word.load(Ordering::Relaxed) == key {
        word.store(0, Ordering::Relaxed);
    }
    W::full_fence();
}

/// Revokes the receiver's part of the work in `word` if the chunk names this key (in `named`), or any key
/// if none is given; returns the round that was revoked.
pub fn revoke_named<W: Word>(word: &W, named: &W, key: Option<u64>) -> Option<Round> {
    let round = Round::now(word);
    let is_named = key.is_none_or(|key| named.load(Ordering::Acquire) == key);
    is_named.then(|| claim::revoke(word, round, Side::Pull)).map(|()| round)
}

/// Closes a region of this side, or all of them: the peer, if it is alive, does not write there after this.
pub fn close(b: &Shared, key: Option<Key>, lives: impl Fn() -> bool) {
    match key {
        Some(key) => remove_key(key_word(&b.segment, b.end, key), key.0),
        None => {
            (0..REGIONS).for_each(|place| b.segment.word(b.end.region(place)).store(0, Ordering::Relaxed));
            AtomicU64::full_fence();
        }
    }
    for place in 0..CHUNKS {
        let word = b.segment.word(b.end.other().claim(place));
        let named = b.segment.word(b.end.other().goes_to(place));
        if let Some(round) = revoke_named(word, named, key.map(|key| key.0)) {
            claim::wait(&lives, || !claim::is_copying(word, round, Side::Push));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::memory::Memory;
    use std::ops::Range;

    const MIN: u64 = 4 << 10;

    #[test]
    fn memory_in_short_pieces_is_not_described() {
        let memory = Memory::zeroed(64 << 10);
        let described = |len: usize| {
            let every_other: Vec<Range<usize>> =
                (0..4).map(|piece| 2 * piece * len..2 * piece * len + len).collect();
            let (_, pieces, list) = describe(&memory.pieces(&every_other), MIN);
            (pieces, list.len())
        };
        assert_eq!(
            [MIN * 2, MIN, MIN / 2, 8].map(|len| described(len as usize)),
            [(4, 8), (4, 8), (0, 0), (0, 0)]
        );
        assert_eq!(describe(&memory.segments(), MIN).1, 1, "one piece may be short");
    }
}
