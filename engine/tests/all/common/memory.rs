//! User memory that detects accesses outside of its request.
//!
//! Buffers live as long as this table. A buffer is *in use* while a request uses it; afterwards its
//! contents are recorded (a receive) or overwritten (a send), so that a late write, or a late read, is
//! detected.
#![allow(dead_code)]

use nmad_engine::{Segment, Segments};
use std::collections::BTreeMap;

/// Guard bytes on both sides of a buffer.
const FENCE: usize = 24;
const BLANK: u8 = 0xA5;

/// Index of a buffer in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferId(usize);

struct Buffer {
    bytes: *mut [u8],
    lent: bool,
    /// The contents after a receive.
    kept: Option<Vec<u8>>,
}

/// All buffers of one run.
#[derive(Default)]
pub struct Memory {
    buffers: Vec<Buffer>,
    /// First byte and length of the buffers in use.
    lent: BTreeMap<usize, usize>,
}

// SAFETY: the table owns its buffers; tests use them from one thread at a time.
unsafe impl Send for Memory {}

impl Memory {
    /// Makes a buffer with `content` for a request, in pieces of `piece` bytes (0: in one).
    pub fn lend(&mut self, content: &[u8], piece: usize) -> (BufferId, Segments) {
        self.lend_in_turns(content, &[if piece == 0 { content.len().max(1) } else { piece }])
    }

    /// Makes a buffer with `content` for a request, in pieces of these lengths in turns.
    pub fn lend_in_turns(&mut self, content: &[u8], lens: &[usize]) -> (BufferId, Segments) {
        let mut bytes = vec![BLANK; content.len() + 2 * FENCE];
        bytes[FENCE..FENCE + content.len()].copy_from_slice(content);
        let bytes = Box::into_raw(bytes.into_boxed_slice());
        let start = bytes.cast::<u8>().wrapping_add(FENCE);
        self.buffers.push(Buffer { bytes, lent: true, kept: None });
        if !content.is_empty() {
            self.lent.insert(start as usize, content.len());
        }
        let (mut list, mut at) = (Vec::new(), 0);
        for len in lens.iter().cycle() {
            let len = *len.min(&(content.len() - at));
            list.push(Segment { start: start.wrapping_add(at), len });
            at += len;
            if at == content.len() {
                break;
            }
        }
        // SAFETY: the buffer lives as long as the table, and only this request uses it meanwhile.
        (BufferId(self.buffers.len() - 1), unsafe { Segments::from_list(&list) })
    }

    /// Makes an empty buffer to receive into.
    pub fn lend_blank(&mut self, len: usize, piece: usize) -> (BufferId, Segments) {
        self.lend(&vec![BLANK; len], piece)
    }

    /// Records that the request that used the buffer has ended.
    pub fn end(&mut self, id: BufferId, sent: bool) {
        let buffer = &mut self.buffers[id.0];
        assert!(std::mem::replace(&mut buffer.lent, false), "a buffer was given back twice");
        self.lent.remove(&(buffer.bytes.cast::<u8>() as usize + FENCE));
        // SAFETY: the table owns the buffer and its request has ended.
        let bytes = unsafe { &mut *buffer.bytes };
        if sent {
            let len = bytes.len();
            bytes[FENCE..len - FENCE].fill(0xDD);
        }
        buffer.kept = Some(bytes.to_vec());
    }

    /// The bytes of a buffer whose request has ended.
    pub fn content(&self, id: BufferId) -> &[u8] {
        // SAFETY: the table owns the buffer; its request has ended.
        let bytes = unsafe { &*self.buffers[id.0].bytes };
        &bytes[FENCE..bytes.len() - FENCE]
    }

    /// Whether the buffer contains `head`, followed by its previous contents.
    pub fn holds(&self, id: BufferId, head: &[u8]) -> bool {
        let content = self.content(id);
        let (a, b) = content.split_at(head.len().min(content.len()));
        a == &head[..a.len()] && b.iter().all(|&byte| byte == BLANK)
    }

    /// Checks that a driver may read or write these segments now: memory of requests that run, or of the
    /// engine's own.
    pub fn check_lent(&self, segments: &Segments) {
        let is_in = |start: *mut u8, buffer: &Buffer| {
            let first = buffer.bytes.cast::<u8>();
            (first..first.wrapping_add(buffer.bytes.len())).contains(&start)
        };
        let is_own = |start| !self.buffers.iter().any(|buffer| is_in(start, buffer));
        let is_allowed = self.is_lent(segments) || segments.iter().all(|piece| is_own(piece.start));
        assert!(is_allowed, "a rail touches memory whose request has ended");
    }

    /// Whether all of this memory belongs to running requests.
    pub fn is_lent(&self, segments: &Segments) -> bool {
        segments.iter().all(|piece| {
            let start = piece.start as usize;
            let found = self.lent.range(..=start).next_back();
            found.is_some_and(|(&first, &len)| start + piece.len <= first + len)
        })
    }

    /// The memory at an address that a peer has sent.
    pub fn at(&self, address: u64, len: u64) -> Segments {
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: a part of one of the buffers, as the next line checks before any access.
        let segments = unsafe { Segments::from_list(&[Segment { start, len: len as usize }]) };
        assert!(self.is_lent(&segments), "a rail reads memory whose request has ended");
        segments
    }

    /// Checks all guard bytes and the buffers of all completed requests.
    pub fn check(&self) {
        for (index, buffer) in self.buffers.iter().enumerate() {
            // SAFETY: the table owns the buffer; no other thread runs at the moment.
            let bytes = unsafe { &*buffer.bytes };
            let fences = bytes[..FENCE].iter().chain(&bytes[bytes.len() - FENCE..]);
            assert!(fences.into_iter().all(|&b| b == BLANK), "a fence of buffer {index} is broken");
            let touched = buffer.kept.as_ref().is_some_and(|kept| kept[..] != *bytes);
            assert!(!touched, "buffer {index} was written after its request had ended");
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for buffer in &self.buffers {
            // SAFETY: made by Box::into_raw in `lend`, freed once, here.
            drop(unsafe { Box::from_raw(buffer.bytes) });
        }
    }
}
