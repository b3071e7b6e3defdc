//! Segments: contiguous pieces of user memory that a message is made of. The only `unsafe` of the engine.
//!
//! A request borrows user memory for as long as it runs, across threads and across calls, which no Rust
//! lifetime can express for an MPI or C caller. So the promise is made once, where segments are made
//! ([`Segments::from_raw`], [`Segments::from_list`]), and everything else in the engine is safe code.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::UnsafeCell;

/// A contiguous piece of user memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First byte.
    pub start: *mut u8,
    /// Bytes.
    pub len: usize,
}

/// User memory of one message: a range of a list of pieces, in order. Cheap to clone and to slice.
#[derive(Debug, Clone)]
pub struct Segments {
    pieces: Pieces,
    len: u64,
}

#[derive(Debug, Clone)]
enum Pieces {
    One(*mut u8),
    /// A list, the index of the first piece in use, and bytes of it to skip.
    Many(Arc<[Segment]>, usize, usize),
}

// SAFETY: segments are plain addresses; who made them promised that the memory stays valid and is not
// used otherwise until the request is complete, from whatever thread the engine runs on.
unsafe impl Send for Segments {}
// SAFETY: as above; shared access to the addresses themselves is harmless.
unsafe impl Sync for Segments {}

impl Segments {
    /// No memory at all.
    pub const fn empty() -> Self {
        Segments { pieces: Pieces::One(core::ptr::null_mut()), len: 0 }
    }

    /// One contiguous piece of `len` bytes at `start`.
    ///
    /// # Safety
    /// The memory is readable (for a send) or writable and not read otherwise (for a receive) until the
    /// request that uses these segments is complete, from any thread.
    pub const unsafe fn from_raw(start: *mut u8, len: usize) -> Self {
        Segments { pieces: Pieces::One(start), len: len as u64 }
    }

    /// Several pieces, in the order of the message.
    ///
    /// # Safety
    /// As [`Segments::from_raw`], for every piece; receive pieces do not overlap.
    pub unsafe fn from_list(list: &[Segment]) -> Self {
        if let [one] = list {
            // SAFETY: the caller's promise, passed on.
            return unsafe { Self::from_raw(one.start, one.len) };
        }
        let len = list.iter().map(|s| s.len as u64).sum();
        let list: Arc<[Segment]> = list.iter().copied().filter(|s| s.len > 0).collect();
        Segments { pieces: Pieces::Many(list, 0, 0), len }
    }

    /// Bytes in all.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no byte.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Contiguous pieces that the range consists of.
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// The `len` bytes from `offset` on; both are cut to what is there.
    pub fn slice(&self, offset: u64, len: u64) -> Segments {
        let offset = offset.min(self.len);
        let len = len.min(self.len - offset);
        let pieces = match &self.pieces {
            Pieces::One(start) => Pieces::One(start.wrapping_add(offset as usize)),
            Pieces::Many(list, first, skip) => {
                let (mut index, mut skip) = (*first, *skip as u64 + offset);
                while let Some(piece) = list.get(index).filter(|p| p.len as u64 <= skip) {
                    skip -= piece.len as u64;
                    index += 1;
                }
                Pieces::Many(list.clone(), index, skip as usize)
            }
        };
        Segments { pieces, len }
    }

    /// The contiguous pieces, in order, none of them empty.
    pub fn iter(&self) -> impl Iterator<Item = Segment> + '_ {
        let (one, many, skip) = match &self.pieces {
            Pieces::One(start) => (Some(Segment { start: *start, len: self.len as usize }), &[][..], 0),
            Pieces::Many(list, first, skip) => (None, list.get(*first..).unwrap_or(&[]), *skip),
        };
        let mut left = self.len as usize;
        let tail = many.iter().enumerate().map(move |(i, piece)| {
            let skip = if i == 0 { skip } else { 0 };
            Segment { start: piece.start.wrapping_add(skip), len: piece.len - skip }
        });
        one.into_iter().chain(tail).map_while(move |piece| {
            let len = piece.len.min(left);
            left -= len;
            (len > 0).then_some(Segment { start: piece.start, len })
        })
    }

    /// Appends all bytes to `out`.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        if let Pieces::One(start) = self.pieces {
            return append(Segment { start, len: self.len as usize }, out);
        }
        for piece in self.iter() {
            append(piece, out);
        }
    }

    /// Writes `data` from `offset` on; returns how many bytes fitted.
    #[inline]
    pub fn write(&self, offset: u64, data: &[u8]) -> usize {
        if let (Pieces::One(start), 0) = (&self.pieces, offset) {
            let len = data.len().min(self.len as usize);
            fill(Segment { start: *start, len }, &data[..len]);
            return len;
        }
        let mut done = 0;
        for piece in self.slice(offset, data.len() as u64).iter() {
            fill(piece, &data[done..done + piece.len]);
            done += piece.len;
        }
        done
    }

    /// Copies from `from`, piece by piece, as many bytes as both hold; returns how many. The two may be
    /// memory of the same process only.
    pub fn copy_from(&self, from: &Segments) -> u64 {
        let mut done = 0;
        for piece in from.iter() {
            let room = self.slice(done, piece.len as u64);
            let mut start = piece.start;
            for target in room.iter() {
                // SAFETY: both pieces are valid by the promise of their makers; `copy` allows overlap.
                unsafe { core::ptr::copy(start, target.start, target.len) };
                start = start.wrapping_add(target.len);
            }
            done += room.len();
        }
        done
    }

    /// The pieces as slices to read, for drivers that gather.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + '_ {
        // SAFETY: valid for reading by the promise of the maker, for as long as the request runs; the
        // request holds these segments.
        self.iter().map(|p| unsafe { core::slice::from_raw_parts(p.start, p.len) })
    }
}

/// Memory of the engine's own, for data that arrives before anybody has asked for it.
///
/// Whoever makes segments of it keeps the buffer until no rail uses them.
#[derive(Debug)]
pub struct Buffer(Box<[UnsafeCell<u8>]>);

// SAFETY: as for segments, which are the only way to its bytes.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn new(len: usize) -> Buffer {
        let zeros: Box<[u8]> = vec![0; len].into();
        // SAFETY: a cell has the layout of what is in it; the box is rebuilt from its own pointer.
        Buffer(unsafe { Box::from_raw(Box::into_raw(zeros) as *mut [UnsafeCell<u8>]) })
    }

    pub(crate) fn segments(&self) -> Segments {
        let start = UnsafeCell::raw_get(self.0.as_ptr());
        // SAFETY: valid as long as the buffer, which its landing keeps until the rails have closed it; the
        // cells may be written through a shared reference.
        unsafe { Segments::from_raw(start, self.0.len()) }
    }
}

#[inline]
fn append(piece: Segment, out: &mut Vec<u8>) {
    if piece.len > 0 {
        // SAFETY: readable by the promise of the maker.
        out.extend_from_slice(unsafe { core::slice::from_raw_parts(piece.start, piece.len) });
    }
}

#[inline]
fn fill(piece: Segment, data: &[u8]) {
    debug_assert_eq!(piece.len, data.len());
    // SAFETY: writable by the promise of the maker, and `data` is as long as the piece.
    unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), piece.start, data.len()) };
}
