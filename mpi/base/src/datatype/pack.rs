//! Packing and unpacking in the representation of this machine (MPI 5.0, section 5.2).
//!
//! Packed data are the bytes of the type map one after another, without a header: what a receive of the same
//! signature would put into memory.

use std::ffi::c_void;

use super::Datatype;
use super::copy::{Copier, Direction, Gather, Scatter};
use super::layout::{Run, Strided};
use super::walk::Visitor;
use crate::error::{Class, Result};
use nmad_engine::memory::together::{Kind, LEAST, bytes_together, together};

impl Datatype {
    /// Copies the data of `count` elements at `buffer` to the begin of `packed`; stops when either is
    /// used up. Returns the bytes that were copied.
    ///
    /// # Safety
    /// `buffer` meets the standard's conditions for a send buffer of `count` elements.
    pub unsafe fn gather(&self, buffer: *const c_void, count: i64, packed: &mut [u8]) -> usize {
        // SAFETY: the caller's promise; the memory in pieces is only read.
        unsafe { self.copy::<Gather>(buffer.cast_mut(), count, packed.as_mut_ptr(), packed.len()) }
    }

    /// Copies `packed` to the memory of `count` elements at `buffer`; stops when either is used up.
    /// Returns the bytes that were copied.
    ///
    /// # Safety
    /// `buffer` meets the standard's conditions for a receive buffer of `count` elements.
    pub unsafe fn scatter(&self, packed: &[u8], buffer: *mut c_void, count: i64) -> usize {
        // SAFETY: the caller's promise; the packed bytes are only read.
        unsafe { self.copy::<Scatter>(buffer, count, packed.as_ptr().cast_mut(), packed.len()) }
    }

    /// # Safety
    /// As the functions above.
    unsafe fn copy<D: Direction>(
        &self,
        buffer: *mut c_void,
        count: i64,
        packed: *mut u8,
        room: usize,
    ) -> usize {
        if count <= 0 || room == 0 || self.size() == 0 {
            return 0;
        }
        let len = self.size().saturating_mul(count).min(i64::try_from(room).unwrap_or(i64::MAX));
        if len as u64 >= LEAST && len == self.size() * count {
            // SAFETY: the caller's promise, and the data fit.
            unsafe { self.copy_long::<D>(Ends { buffer: buffer.cast(), packed }, count) };
            return len as usize;
        }
        // SAFETY: the walk shows the memory of the elements, which the caller promised.
        let mut copier = unsafe { Copier::<D>::new(buffer.cast(), packed, len) };
        let _ = self.layout().walk_all(count, self.extent(), &mut copier);
        (len - copier.left()) as usize
    }

    /// The same of many bytes, all of the elements', which cores that are idle share: by blocks at equal
    /// distances, or else by elements.
    ///
    /// # Safety
    /// As the functions above.
    #[cold]
    unsafe fn copy_long<D: Direction>(&self, ends: Ends, count: i64) {
        if let Some(run) = self.run(count) {
            return bytes_together(Kind::Copy, run.len as u64, &|part| {
                let (buffer, packed) = ends.both();
                let piece = buffer.wrapping_offset(run.offset as isize).wrapping_add(part.start as usize);
                let packed = packed.wrapping_add(part.start as usize);
                // SAFETY: the caller's promise; pieces of several threads have no byte in common.
                unsafe { D::copy(piece, packed, (part.end - part.start) as usize) };
            });
        }
        let strides = self.strides(count).filter(|strided| strided.first.len > 0);
        let (units, unit) =
            strides.map_or((count, self.size()), |strided| (strided.count, strided.first.len));
        together(Kind::Pack, units as u64, unit as u64, &|part| {
            let (from, count) = (part.start as i64, (part.end - part.start) as i64);
            let (buffer, packed) = ends.both();
            let packed = packed.wrapping_offset((from * unit) as isize);
            let copier = |buffer| {
                // SAFETY: the walks below show the memory of these elements, which the caller promised;
                // pieces of several threads have no byte in common.
                unsafe { Copier::<D>::new(buffer, packed, count * unit) }
            };
            let _ = match strides {
                Some(Strided { first, stride, .. }) => {
                    let offset = first.offset.wrapping_add(from.wrapping_mul(stride));
                    copier(buffer).strided(Strided { first: Run { offset, ..first }, count, stride })
                }
                None => {
                    let buffer = buffer.wrapping_offset(from.wrapping_mul(self.extent()) as isize);
                    self.layout().walk_all(count, self.extent(), &mut copier(buffer))
                }
            };
        });
    }

    /// `MPI_Pack`: `position` is in bytes and moves on.
    ///
    /// # Errors
    /// Class ARG if the position lies outside of the room, or the data do not fit behind it.
    ///
    /// # Safety
    /// As [`Datatype::gather`].
    pub unsafe fn pack(
        &self,
        buffer: *const c_void,
        count: i64,
        room: &mut [u8],
        position: &mut i64,
    ) -> Result<()> {
        let len = self.bytes(count)?;
        let range = within(room.len(), *position, len, "the data to pack", Class::ARG)?;
        // SAFETY: the caller's promise.
        unsafe { self.gather(buffer, count, &mut room[range]) };
        *position += len;
        Ok(())
    }

    /// `MPI_Unpack`: `position` is in bytes and moves on.
    ///
    /// # Errors
    /// Class ARG if the position lies outside of the packed data, TRUNCATE if there is too little behind it.
    ///
    /// # Safety
    /// As [`Datatype::scatter`].
    pub unsafe fn unpack(
        &self,
        packed: &[u8],
        position: &mut i64,
        buffer: *mut c_void,
        count: i64,
    ) -> Result<()> {
        let len = self.bytes(count)?;
        let range = within(packed.len(), *position, len, "the elements to unpack", Class::TRUNCATE)?;
        // SAFETY: the caller's promise.
        unsafe { self.scatter(&packed[range], buffer, count) };
        *position += len;
        Ok(())
    }
}

/// Memory in pieces, and memory in one piece.
#[derive(Clone, Copy)]
struct Ends {
    buffer: *mut u8,
    packed: *mut u8,
}

// SAFETY: addresses of buffers that are lent to the call, not to a thread.
unsafe impl Sync for Ends {}

impl Ends {
    fn both(&self) -> (*mut u8, *mut u8) {
        (self.buffer, self.packed)
    }
}

/// The `len` bytes from `position` on of `room` bytes.
pub(super) fn within(
    room: usize,
    position: i64,
    len: i64,
    what: &str,
    class: Class,
) -> Result<std::ops::Range<usize>> {
    let begin = usize::try_from(position).ok().filter(|&begin| begin <= room);
    let Some(begin) = begin else {
        return Err(Class::ARG.error(format!("position {position} lies outside of a buffer of {room} bytes")));
    };
    match usize::try_from(len).ok().filter(|&len| len <= room - begin) {
        Some(len) => Ok(begin..begin + len),
        None => {
            let text = format!("{what} are {len} bytes, but only {} are left in the buffer", room - begin);
            Err(class.error(text))
        }
    }
}
