//! Memory of simulated applications: owned, guarded, and lent to the engine as segments. The only unsafe
//! file of the simulator.
//!
//! Every buffer begins as filler, with filler around and between its pieces, so that a byte written where
//! none belongs is seen. Buffers live until the end of the run: an engine that touches memory after it
//! said it was done is a finding, not undefined behaviour.
#![allow(unsafe_code)]

use nmad_engine::memory::{Segment, Segments};
use std::rc::Rc;

/// What memory holds that nobody wrote to.
pub const FILLER: u8 = 0xa5;
/// What a send buffer holds once its request is complete.
pub const POISON: u8 = 0x5a;
const GUARD: usize = 48;

/// Memory of one request: pieces in order, with guards before, between and after them.
#[derive(Debug)]
pub struct Buffer {
    start: *mut u8,
    size: usize,
    pieces: Vec<(usize, usize)>,
    /// The memory is that of another buffer.
    of: Option<Rc<Buffer>>,
}

impl Buffer {
    /// Memory with one piece for each of `lens`, all of it filler.
    pub fn new(lens: &[usize]) -> Self {
        let mut at = GUARD;
        let mut pieces = Vec::with_capacity(lens.len());
        for &len in lens {
            pieces.push((at, len));
            at += len + GUARD;
        }
        let memory = vec![FILLER; at].into_boxed_slice();
        Buffer { size: memory.len(), start: Box::into_raw(memory).cast(), pieces, of: None }
    }

    /// One piece of `len` bytes at the beginning of memory that other requests use at the same time. It holds
    /// anything, so nothing is ever wrong with it: for runs of which only the time counts.
    pub fn within(memory: &Rc<Buffer>, len: usize) -> Self {
        assert!(len + GUARD <= memory.size, "the shared memory is as long as the longest request");
        Buffer {
            start: memory.start,
            size: memory.size,
            pieces: vec![(GUARD, len)],
            of: Some(memory.clone()),
        }
    }

    /// Whether its content means nothing.
    pub fn is_shared(&self) -> bool {
        self.of.is_some()
    }

    /// Where the first piece begins.
    pub fn start(&self) -> *mut u8 {
        self.start.wrapping_add(self.pieces.first().map_or(0, |piece| piece.0))
    }

    /// Bytes of all pieces.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.1).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The contents of the pieces.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.segments().append_to(&mut bytes);
        bytes
    }

    /// The pieces as the engine takes them.
    pub fn segments(&self) -> Segments {
        let list: Vec<Segment> = self
            .pieces
            .iter()
            .map(|&(at, len)| Segment { start: self.start.wrapping_add(at), len })
            .collect();
        // SAFETY: the memory lives until this buffer is dropped, at the end of the run, after the engines;
        // the simulator runs on one thread and looks at it only between calls into the engine.
        unsafe { Segments::from_list(&list) }
    }

    /// Fills the pieces, in order, from `data`, as far as both go.
    pub fn fill(&mut self, mut data: &[u8]) {
        if self.is_shared() {
            return;
        }
        for index in 0..self.pieces.len() {
            let (at, len) = self.pieces[index];
            let (head, rest) = data.split_at(len.min(data.len()));
            self.memory_mut()[at..at + head.len()].copy_from_slice(head);
            data = rest;
        }
    }

    /// Overwrites everything, as an application may once its send is complete.
    pub fn poison(&mut self) {
        if !self.is_shared() {
            self.memory_mut().fill(POISON);
        }
    }

    /// Whether everything is still as [`Buffer::poison`] left it.
    pub fn is_poisoned(&self) -> bool {
        self.is_shared() || first_other(self.memory(), POISON).is_none()
    }

    /// Compares with `data` at the beginning and filler everywhere else; says where the first difference is.
    pub fn check(&self, mut data: &[u8]) -> Result<(), Difference> {
        if self.is_shared() {
            return Ok(());
        }
        let (mut seen, mut offset) = (0, 0);
        for &(at, len) in &self.pieces {
            self.filler(seen, at, offset)?;
            let (head, rest) = data.split_at(len.min(data.len()));
            let there = &self.memory()[at..at + head.len()];
            if let Some(i) = first_difference(there, head) {
                return Err(Difference {
                    offset: offset + i,
                    found: there[i],
                    expected: head[i],
                    outside: false,
                });
            }
            data = rest;
            seen = at + head.len();
            offset += head.len();
        }
        self.filler(seen, self.size, offset)
    }

    fn filler(&self, from: usize, to: usize, offset: usize) -> Result<(), Difference> {
        match first_other(&self.memory()[from..to], FILLER) {
            None => Ok(()),
            Some(i) => {
                let found = self.memory()[from + i];
                Err(Difference { offset: offset + i, found, expected: FILLER, outside: true })
            }
        }
    }

    fn memory(&self) -> &[u8] {
        // SAFETY: allocated with this size in `new`; nobody writes while the simulator looks.
        unsafe { std::slice::from_raw_parts(self.start, self.size) }
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else looks while the simulator writes.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.size) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.is_shared() {
            return;
        }
        // SAFETY: made by `Box::into_raw` in `new` with this size, freed once: by the buffer that owns it.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start, self.size)) });
    }
}

/// Copies memory of another simulated process, from this address on.
pub fn read(address: u64, into: &Segments) {
    let start = std::ptr::with_exposed_provenance_mut(address as usize);
    let Ok(len) = usize::try_from(into.len()) else { return };
    // SAFETY: a request to send has told the address of a buffer and its length, and buffers live until the
    // end of the run, on this thread.
    let there = unsafe { Segments::from_list(&[Segment { start, len }]) };
    into.copy_from(&there);
}

/// Where the first byte is that is not `byte`. Whole blocks are compared at once: byte by byte, long messages
/// would take much of the time of a run.
pub fn first_other(memory: &[u8], byte: u8) -> Option<usize> {
    let block = [byte; 4096];
    let wrong = memory.chunks(block.len()).position(|part| *part != block[..part.len()])?;
    let start = wrong * block.len();
    memory[start..].iter().position(|&other| other != byte).map(|at| start + at)
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b { None } else { a.iter().zip(b).position(|(a, b)| a != b) }
}

/// Where a buffer does not hold what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Bytes from the beginning of the message.
    pub offset: usize,
    /// The byte found.
    pub found: u8,
    /// The byte expected.
    pub expected: u8,
    /// The byte is none of the message: a guard, a gap, or beyond its end.
    pub outside: bool,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.outside { "outside the message, near byte" } else { "at byte" };
        write!(f, "{place} {} there is {:#04x} instead of {:#04x}", self.offset, self.found, self.expected)
    }
}
