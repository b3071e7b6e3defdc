//! Buffer for incoming bytes whose destination is not known yet.

use super::staging::NOMINAL;
use std::ops::{Deref, DerefMut, Range};

/// Size of the buffer: bytes that one read without a known destination takes.
const LEN: usize = super::PACKET;
/// Spare buffers kept for the next pushed chunks.
const SPARE: usize = 4;

/// The buffer that all links of a rail read into. A buffer with the beginning of a pushed chunk is moved to
/// the chunk's link, so that the bytes are not copied before their destination is known.
#[derive(Debug)]
pub struct Scratch {
    buffer: Box<[u8]>,
    spare: Vec<Box<[u8]>>,
    /// Memory whose pieces are shorter than this on average is filled from the buffer by copies.
    pub block_min: u64,
}

/// A part of a scratch buffer that temporarily belongs to one link.
#[derive(Debug, Default)]
pub struct Kept {
    buffer: Box<[u8]>,
    range: Range<usize>,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch { buffer: fresh(), spare: Vec::new(), block_min: NOMINAL }
    }
}

impl Scratch {
    /// Moves the buffer out, with the bytes in `range`, and replaces it by a spare one.
    pub fn detach(&mut self, range: Range<usize>) -> Kept {
        let next = self.spare.pop().unwrap_or_else(fresh);
        Kept { buffer: std::mem::replace(&mut self.buffer, next), range }
    }

    /// Takes a buffer back whose bytes are not needed any more.
    pub fn give_back(&mut self, kept: Kept) {
        if self.spare.len() < SPARE && !kept.buffer.is_empty() {
            self.spare.push(kept.buffer);
        }
    }
}

impl Kept {
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.range.clone()]
    }

    /// Removes the first `len` bytes.
    pub fn advance(&mut self, len: usize) {
        self.range.start += len;
    }
}

impl Deref for Scratch {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

fn fresh() -> Box<[u8]> {
    vec![0; LEN].into()
}
