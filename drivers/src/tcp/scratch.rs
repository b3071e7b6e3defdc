//! Where bytes arrive that have no other place yet.

use std::ops::{Deref, DerefMut, Range};

/// Bytes that one read without a known target takes.
const LEN: usize = 64 << 10;
/// Buffers that are kept for the next pushed chunks.
const SPARE: usize = 4;

/// The buffer that all links of a rail read into. One that holds the beginning of a pushed chunk is lent to
/// the chunk's link, so that the bytes need not be copied before it is known where they belong.
#[derive(Debug)]
pub struct Scratch {
    buffer: Box<[u8]>,
    spare: Vec<Box<[u8]>>,
}

/// A part of a scratch buffer that belongs to one link for a while.
#[derive(Debug, Default)]
pub struct Kept {
    buffer: Box<[u8]>,
    range: Range<usize>,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch { buffer: fresh(), spare: Vec::new() }
    }
}

impl Scratch {
    /// Lends the buffer for what lies in `range`.
    pub fn lend(&mut self, range: Range<usize>) -> Kept {
        let next = self.spare.pop().unwrap_or_else(fresh);
        Kept { buffer: std::mem::replace(&mut self.buffer, next), range }
    }

    /// The kept bytes are not needed any more.
    pub fn give_back(&mut self, kept: Kept) {
        if self.spare.len() < SPARE && !kept.buffer.is_empty() {
            self.spare.push(kept.buffer);
        }
    }
}

impl Kept {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }

    /// The first `len` of them were used.
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
