//! Copying between memory in pieces and memory in one piece. Raw pointers, as MPI gets them.
//!
//! Blocks of a vector are often 4 to 32 bytes, for which a call of `memcpy` costs more than the copy:
//! they are copied by one or two loads and stores.

use super::layout::{Run, Strided};
use super::walk::{Step, Visitor};
use nmad_engine::memory::copy;

/// The longest block that is copied without a call.
const MEDIUM: usize = 256;

/// Which way bytes go.
pub(super) trait Direction {
    /// Copies `len` bytes between `piece` (of the memory in pieces) and `stream`.
    ///
    /// # Safety
    /// Both have `len` bytes, which do not overlap; the target is writable.
    unsafe fn copy(piece: *mut u8, stream: *mut u8, len: usize);
}

/// From pieces into one.
pub(super) struct Gather;
/// From one into pieces.
pub(super) struct Scatter;

impl Direction for Gather {
    #[inline(always)]
    unsafe fn copy(piece: *mut u8, stream: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { move_bytes(piece, stream, len) }
    }
}

impl Direction for Scatter {
    #[inline(always)]
    unsafe fn copy(piece: *mut u8, stream: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { move_bytes(stream, piece, len) }
    }
}

/// # Safety
/// As `ptr::copy_nonoverlapping`.
#[inline(always)]
unsafe fn move_bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise; two moves of n bytes cover n to 2n bytes, and nothing beyond them.
    unsafe {
        match len {
            4 => move_one::<u32>(from, to, 0),
            8 => move_one::<u64>(from, to, 0),
            16 => move_one::<[u64; 2]>(from, to, 0),
            9..=15 => move_two::<u64>(from, to, len),
            17..=32 => move_two::<[u64; 2]>(from, to, len),
            5..=7 => move_two::<u32>(from, to, len),
            2..=3 => move_two::<u16>(from, to, len),
            1 => *to = *from,
            33..=MEDIUM => move_many(from, to, len),
            _ => copy(from, to, len),
        }
    }
}

/// # Safety
/// Both have a `T` at `offset`.
#[inline(always)]
unsafe fn move_one<T>(from: *const u8, to: *mut u8, offset: usize) {
    // SAFETY: the caller's promise.
    unsafe { to.add(offset).cast::<T>().write_unaligned(from.add(offset).cast::<T>().read_unaligned()) }
}

/// The first and the last `T` of `len` bytes.
///
/// # Safety
/// Both have `len` bytes, at least one `T` and at most two.
#[inline(always)]
unsafe fn move_two<T>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        move_one::<T>(from, to, 0);
        move_one::<T>(from, to, len - size_of::<T>());
    }
}

/// 32 bytes at a time; the last 32 may cover some again.
///
/// # Safety
/// Both have `len` bytes, at least 32, which do not overlap.
#[inline(always)]
unsafe fn move_many(from: *const u8, to: *mut u8, len: usize) {
    let mut offset = 0;
    while offset + 32 <= len {
        // SAFETY: the caller's promise.
        unsafe { move_one::<[u64; 4]>(from, to, offset) };
        offset += 32;
    }
    // SAFETY: the caller's promise.
    unsafe { move_one::<[u64; 4]>(from, to, len - 32) };
}

/// Copies what a walk shows until the stream is used up.
pub(super) struct Copier<D> {
    /// The address that displacements are relative to.
    base: *mut u8,
    stream: *mut u8,
    left: i64,
    direction: std::marker::PhantomData<D>,
}

impl<D: Direction> Copier<D> {
    /// # Safety
    /// `stream` has `len` bytes; the walk shows memory at `base` that may be read or written, and does
    /// not overlap.
    pub unsafe fn new(base: *mut u8, stream: *mut u8, len: i64) -> Self {
        Copier { base, stream, left: len, direction: std::marker::PhantomData }
    }

    /// Bytes of the stream that are left.
    pub fn left(&self) -> i64 {
        self.left
    }

    /// Equal blocks, whose length the compiler knows if `LEN` is not zero.
    #[inline(always)]
    fn blocks<const LEN: usize>(&mut self, strided: Strided) {
        let Strided { first, count, stride } = strided;
        let len = if LEN > 0 { LEN } else { first.len as usize };
        let mut piece = self.base.wrapping_offset(first.offset as isize);
        let mut stream = self.stream;
        for _ in 0..count {
            // SAFETY: the promise of `new`; the caller has checked that the stream has these bytes.
            unsafe { D::copy(piece, stream, len) };
            piece = piece.wrapping_offset(stride as isize);
            stream = stream.wrapping_add(len);
        }
        self.stream = stream;
        self.left -= count * len as i64;
    }
}

impl<D: Direction> Visitor for Copier<D> {
    #[inline]
    fn run(&mut self, run: Run) -> Step {
        let len = run.len.min(self.left);
        // SAFETY: the promise of `new`, and the stream has `len` bytes left.
        unsafe { D::copy(self.base.wrapping_offset(run.offset as isize), self.stream, len as usize) };
        self.stream = self.stream.wrapping_add(len as usize);
        self.left -= len;
        if self.left > 0 { Step::Continue(()) } else { Step::Break(()) }
    }

    #[inline]
    fn strided(&mut self, mut strided: Strided) -> Step {
        let first = strided.first;
        let whole = strided.count.min(self.left / first.len);
        let rest =
            (whole < strided.count).then(|| first.offset.wrapping_add(whole.wrapping_mul(strided.stride)));
        strided.count = whole;
        match first.len {
            1 => self.blocks::<1>(strided),
            2 => self.blocks::<2>(strided),
            4 => self.blocks::<4>(strided),
            8 => self.blocks::<8>(strided),
            16 => self.blocks::<16>(strided),
            24 => self.blocks::<24>(strided),
            32 => self.blocks::<32>(strided),
            64 => self.blocks::<64>(strided),
            _ => self.blocks::<0>(strided),
        }
        match rest {
            Some(offset) => self.run(Run { offset, len: first.len }),
            None if self.left > 0 => Step::Continue(()),
            None => Step::Break(()),
        }
    }
}
