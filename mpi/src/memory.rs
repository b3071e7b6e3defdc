//! Pointers of the program, and what may be done with them. All of the `unsafe` code that touches the
//! program's memory is here.
//!
//! They come from callers of MPI, who promise what the standard asks of every buffer: it is valid for the
//! count and the type that are given with it, and left alone until the operation is complete.

use crate::constant::IN_PLACE;
use crate::datatype::{Basic, Datatype, Scalar};
use crate::error::{Class, Error, Result};
use crate::op::{Op, Predefined};
use newmadeleine::engine::memory::{Tile, copy_overlapping};
use newmadeleine::{Segments, huge};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Nothing of a program lies in the first page: `NULL`, or a constant that stands for a buffer elsewhere.
#[inline]
pub(crate) fn is_nowhere(start: *const c_void) -> bool {
    start.addr() < 4096
}

/// No data can be where this buffer says.
#[cold]
pub(crate) fn nowhere(buffer: *const c_void) -> Error {
    Class::BUFFER.error(match buffer {
        IN_PLACE => "the buffer is MPI_IN_PLACE, which means nothing here",
        _ => "the buffer is NULL (or MPI_BOTTOM, and the datatype has no absolute addresses)",
    })
}

/// A buffer of the program's, and the offset of the first byte in it that is used, if any is.
pub(crate) type Used = (*const c_void, Option<i64>);

/// Where data begins in a buffer, if there is any.
#[inline]
fn start((buffer, first): Used) -> Option<*const c_void> {
    Some(buffer.wrapping_byte_offset(first? as isize))
}

/// Checks that there is memory where data comes from and where it goes to, and that it is not the same. What
/// is asked depends on one call's arguments alone: the answer is the same on every path that it may take.
#[inline]
pub(crate) fn check_buffers(from: Used, into: Used) -> Result<()> {
    check_places(from, into)?;
    refuse_same(from, into)
}

/// Checks that there is memory where data comes from and where it goes to.
#[inline]
pub(crate) fn check_places(from: Used, into: Used) -> Result<()> {
    for each in [from, into] {
        if start(each).is_some_and(is_nowhere) {
            return Err(nowhere(each.0));
        }
    }
    Ok(())
}

/// Refuses data to send that begins where received data does. In a collective whose ranks all send and
/// receive, it is asked about what all of them give alike (the first byte of all blocks, a rank's own block),
/// so that none begins what another one refuses.
#[inline]
pub(crate) fn refuse_same(from: Used, into: Used) -> Result<()> {
    let (read, written) = (start(from), start(into));
    if read.is_some() && read == written { Err(same()) } else { Ok(()) }
}

#[cold]
fn same() -> Error {
    Class::BUFFER
        .error("both buffers are at the same address: give two, or MPI_IN_PLACE where the standard allows it")
}

/// Copies bytes of the program's; the two may overlap.
#[inline(always)]
pub(crate) fn copy(from: *const c_void, to: *mut c_void, len: usize) {
    // SAFETY: the caller's promise, see above.
    unsafe { copy_overlapping(from.cast(), to.cast(), len) };
}

/// Changes a word of the program's in one step, against other threads, processes and network adapters; what
/// was there before. Its address is a multiple of eight.
pub(crate) fn change_word(at: *mut c_void, mut change: impl FnMut(u64) -> u64) -> u64 {
    // SAFETY: the caller's promise, see above; whoever else accesses it meanwhile does so in one step, too.
    let word = unsafe { AtomicU64::from_ptr(at.cast()) };
    let mut old = word.load(Ordering::Relaxed);
    while let Err(now) = word.compare_exchange_weak(old, change(old), Ordering::SeqCst, Ordering::Relaxed) {
        old = now;
    }
    old
}

/// A word that threads and processes change in one step. Its address is a multiple of eight.
pub(crate) fn load_word(at: *mut c_void) -> u64 {
    // SAFETY: as above.
    unsafe { AtomicU64::from_ptr(at.cast()) }.load(Ordering::SeqCst)
}

/// Sets a word that threads and processes change in one step, as [`load_word`].
pub(crate) fn store_word(at: *mut c_void, value: u64) {
    // SAFETY: as above.
    unsafe { AtomicU64::from_ptr(at.cast()) }.store(value, Ordering::SeqCst);
}

/// Whether bytes of the program's are the same.
#[inline(always)]
pub(crate) fn is_same(one: *const c_void, other: *const c_void, len: usize) -> bool {
    // SAFETY: the caller's promise, see above.
    let [one, other] = [one, other].map(|at| unsafe { slice::from_raw_parts(at.cast::<u8>(), len) });
    one == other
}

/// Memory of a message: `len` contiguous bytes.
#[inline]
pub(crate) fn contiguous(start: *const c_void, len: usize) -> Segments {
    // SAFETY: the caller's promise, see above.
    unsafe { Segments::from_raw(start.cast_mut().cast(), len) }
}

/// Memory of an access: a word that is kept until it has ended.
pub(crate) fn word(word: &mut u64) -> Segments {
    contiguous(std::ptr::from_mut(word).cast(), size_of::<u64>())
}

/// Memory of a message: `count` pieces of `len` bytes, their begins `stride` bytes apart.
pub(crate) fn strided(start: *const c_void, len: usize, stride: isize, count: usize) -> Segments {
    // SAFETY: the caller's promise, see above; pieces of a receive do not overlap.
    unsafe { Segments::from_strided(start.cast_mut().cast(), len, stride, count) }
}

/// Memory of a message: `count` elements of several pieces.
pub(crate) fn tiled(tile: &Arc<Tile>, start: *const c_void, count: usize) -> Segments {
    // SAFETY: the caller's promise, see above; pieces of a receive do not overlap.
    unsafe { Segments::from_tile(tile, start.cast_mut().cast(), count) }
}

/// Memory allocated for the program: by its address, what was asked of the system.
static ALLOCATED: Mutex<BTreeMap<usize, Layout>> = Mutex::new(BTreeMap::new());
/// Enough for every type and for vector instructions.
const ALIGNMENT: usize = 64;

/// Whether private memory of `len` bytes is of huge pages: the system gives them, and it has one at least.
pub(crate) fn has_huge_pages(len: usize) -> bool {
    huge::page(huge::Kind::Private).is_some_and(|page| len >= page)
}

fn allocated() -> MutexGuard<'static, BTreeMap<usize, Layout>> {
    ALLOCATED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn layout(len: usize, unit: usize) -> Option<Layout> {
    let huge = huge::page(huge::Kind::Private).filter(|_| has_huge_pages(len));
    Layout::from_size_align(len.max(1), huge.unwrap_or(ALIGNMENT).max(unit)).ok()
}

/// Memory for the program at a multiple of `unit` bytes, which is a power of two; of huge pages if it is
/// long.
pub(crate) fn allocate(len: usize, unit: usize) -> Option<*mut c_void> {
    let layout = layout(len, unit)?;
    // SAFETY: the layout has a size.
    let start = unsafe { std::alloc::alloc(layout) };
    if start.is_null() {
        return None;
    }
    if has_huge_pages(len) {
        huge::ask(start, len);
    }
    allocated().insert(start.expose_provenance(), layout);
    Some(start.cast())
}

/// Takes memory back; false: it is not ours.
pub(crate) fn release(start: *mut c_void) -> bool {
    let Some(layout) = allocated().remove(&start.addr()) else { return false };
    // SAFETY: allocated with this layout, and taken off the list once.
    unsafe { std::alloc::dealloc(start.cast(), layout) };
    true
}

/// What packed data look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// As in memory.
    Native,
    /// As the standard fixes it.
    External32,
}

/// Checks that there can be elements at a buffer.
fn somewhere(buffer: *const c_void, count: i64, datatype: &Datatype) -> Result<()> {
    check_buffers((buffer, datatype.first(count)), (buffer, None))
}

/// Packs elements into a buffer of `len` bytes, from `position` on.
pub(crate) fn pack(
    representation: Representation,
    buffer: *const c_void,
    (count, datatype): (i64, &Datatype),
    (room, len): (*mut c_void, usize),
    position: &mut i64,
) -> Result<()> {
    somewhere(buffer, count, datatype)?;
    let room = if len == 0 { NonNull::dangling().as_ptr() } else { room.cast::<u8>() };
    // SAFETY: the caller's promise, see above.
    unsafe {
        let room = slice::from_raw_parts_mut(room, len);
        match representation {
            Representation::Native => datatype.pack(buffer, count, room, position),
            Representation::External32 => datatype.pack_external(buffer, count, room, position),
        }
    }
}

/// Unpacks elements from a buffer of `len` bytes, from `position` on.
pub(crate) fn unpack(
    representation: Representation,
    (packed, len): (*const c_void, usize),
    position: &mut i64,
    buffer: *mut c_void,
    (count, datatype): (i64, &Datatype),
) -> Result<()> {
    somewhere(buffer, count, datatype)?;
    let packed = if len == 0 { NonNull::dangling().as_ptr() } else { packed.cast::<u8>().cast_mut() };
    // SAFETY: the caller's promise, see above.
    unsafe {
        let packed = slice::from_raw_parts(packed, len);
        match representation {
            Representation::Native => datatype.unpack(packed, position, buffer, count),
            Representation::External32 => datatype.unpack_external(packed, position, buffer, count),
        }
    }
}

/// `inout[i] = input[i] op inout[i]`
pub(crate) fn reduce(
    op: &Op,
    input: *const c_void,
    inout: *mut c_void,
    (count, datatype): (i64, &Datatype),
) -> Result<()> {
    // SAFETY: the caller's promise, see above.
    unsafe { op.reduce(input, inout, count, datatype) }
}

/// The same with a predefined operator and a type that it allows.
pub(crate) fn combine(
    (op, basic): (Predefined, Basic),
    input: *const c_void,
    inout: *mut c_void,
    count: i64,
) {
    // SAFETY: the caller's promise, see above.
    unsafe { op.reduce(basic, input, inout, count) }
}

/// Reads a signed integer of the program's; of a longer one the lower 64 bits.
pub(crate) fn read_integer(at: *const c_void, scalar: Scalar) -> i64 {
    // SAFETY: the caller's promise, see above.
    unsafe {
        match scalar.size() {
            1 => i64::from(at.cast::<i8>().read_unaligned()),
            2 => i64::from(at.cast::<i16>().read_unaligned()),
            4 => i64::from(at.cast::<i32>().read_unaligned()),
            8 => at.cast::<i64>().read_unaligned(),
            _ => at.cast::<i128>().read_unaligned() as i64,
        }
    }
}

/// Writes a signed integer of the program's; of a shorter one the lowest bits.
pub(crate) fn write_integer(at: *mut c_void, scalar: Scalar, value: i64) {
    // SAFETY: the caller's promise, see above.
    unsafe {
        match scalar.size() {
            1 => at.cast::<i8>().write_unaligned(value as i8),
            2 => at.cast::<i16>().write_unaligned(value as i16),
            4 => at.cast::<i32>().write_unaligned(value as i32),
            8 => at.cast::<i64>().write_unaligned(value),
            _ => at.cast::<i128>().write_unaligned(i128::from(value)),
        }
    }
}
