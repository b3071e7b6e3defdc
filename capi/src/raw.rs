//! Pointers from C, and what may be done with them. All of the `unsafe` code of the interface, but for its
//! exported names, is here.
//!
//! Values of these types come from C callers only, who promise what the header asks of every pointer: it is
//! NULL, or valid for what the function does with it, for as long as the header says. Here NULL is turned
//! away; the rest of the promise is what makes the safe faces of these types sound.

use crate::code::{ARGUMENT, Failure};
use newmadeleine::plugin::{RawStrategy, Table};
use newmadeleine::{Segment, Segments};
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;

/// Where an answer goes; NULL if nobody wants it.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T: Copy> Out<T> {
    /// Writes the answer, if somebody wants it.
    #[inline]
    pub fn set(self, value: T) {
        self.set_at(0, value);
    }

    /// Writes an answer into a list.
    #[inline]
    pub fn set_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: valid for writing, see above; lists have the room that the header asks for.
            unsafe { self.0.wrapping_add(index).write(value) }
        }
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Turns NULL away.
    #[inline]
    pub fn required(self, name: &str) -> Result<Self, Failure> {
        if self.0.is_null() { Err(null(name)) } else { Ok(self) }
    }

    /// Writes the first `size` bytes of the value, and zero into what is beyond it.
    pub fn set_prefix(self, value: &T, size: usize) {
        let (target, known) = (self.0.cast::<u8>(), size.min(size_of::<T>()));
        // SAFETY: the caller has room for `size` bytes; `T` is plain data.
        unsafe {
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast::<u8>(), target, known);
            target.wrapping_add(known).write_bytes(0, size - known);
        }
    }
}

/// A list that is read and written; NULL if it is empty.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct InOut<T>(*mut T);

impl<T: Copy> InOut<T> {
    /// Turns NULL away, unless there is nothing in the list.
    #[inline]
    pub fn list(self, name: &str, count: usize) -> Result<Self, Failure> {
        check_list(self.0, name, count)?;
        Ok(self)
    }

    #[inline]
    pub fn get(self, index: usize) -> T {
        // SAFETY: not NULL ([`InOut::list`]), and valid for reading, see above.
        unsafe { self.0.wrapping_add(index).read() }
    }

    #[inline]
    pub fn set(self, index: usize, value: T) {
        // SAFETY: as above, for writing.
        unsafe { self.0.wrapping_add(index).write(value) }
    }
}

/// A value or a list that is only read; NULL if there is none.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// NULL.
    pub const fn none() -> In<T> {
        In(std::ptr::null())
    }

    pub fn get(self) -> Option<T> {
        // SAFETY: NULL or valid for reading, see above.
        unsafe { self.0.as_ref().copied() }
    }

    pub fn list(self, name: &str, count: usize) -> Result<Vec<T>, Failure> {
        check_list(self.0, name, count)?;
        // SAFETY: not NULL if it is looked at, and valid for reading, see above.
        Ok((0..count).map(|index| unsafe { self.0.wrapping_add(index).read() }).collect())
    }
}

impl In<RawStrategy> {
    /// A table with all that it needs.
    pub fn table(self) -> Result<Table, Failure> {
        // SAFETY: NULL or a table as the header declares it, see above; its functions are the program's.
        unsafe { Table::read(self.0) }.map_err(|why| Failure::new(ARGUMENT, why))
    }
}

/// A text; NULL if there is none.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// None for NULL; bytes that are not UTF-8 are replaced.
    pub fn get(self) -> Option<String> {
        // SAFETY: a text that ends with a zero byte, see above.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }

    /// Turns NULL away.
    pub fn required(self, name: &str) -> Result<String, Failure> {
        self.get().ok_or_else(|| null(name))
    }
}

/// Memory of a message: data of a send (`const void *`), buffer of a receive (`void *`).
#[repr(transparent)]
pub struct Memory<P>(*mut c_void, PhantomData<P>);

/// Which way memory is used.
pub trait Use {
    /// What the header calls it.
    const NAME: &str;
}

/// `const void *`
pub struct Data;
/// `void *`
pub struct Buffer;

impl Use for Data {
    const NAME: &str = "data";
}

impl Use for Buffer {
    const NAME: &str = "buffer";
}

impl<P: Use> Memory<P> {
    #[inline]
    pub fn segments(self, len: usize) -> Result<Segments, Failure> {
        check_len(len as u64)?;
        if self.0.is_null() && len > 0 {
            return Err(null(P::NAME));
        }
        // SAFETY: the caller leaves the memory to the request until it ends, see the header.
        Ok(unsafe { Segments::from_raw(self.0.cast(), len) })
    }
}

/// `struct iovec`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct IoVec {
    start: *mut c_void,
    len: usize,
}

impl In<IoVec> {
    pub fn segments(self, count: usize) -> Result<Segments, Failure> {
        let list = self.list("the list of places", count)?;
        check_len(list.iter().fold(0, |sum: u64, place| sum.saturating_add(place.len as u64)))?;
        if let Some(index) = list.iter().position(|place| place.start.is_null() && place.len > 0) {
            return Err(null(&format!("iov_base of place {index}")));
        }
        let segment = |place: IoVec| Segment { start: place.start.cast(), len: place.len };
        let list: Vec<Segment> = list.into_iter().map(segment).collect();
        // SAFETY: as in `Memory::segments`, for every place; those of a receive do not overlap.
        Ok(unsafe { Segments::from_list(&list) })
    }
}

/// A pointer to something of ours that was looked up in the list of what lives.
///
/// The header forbids calls on a session that another thread closes; so what lives stays until the call ends.
pub fn alive<'a, T>(pointer: *mut T) -> &'a T {
    // SAFETY: [`hand_out`] has made it, and no call has freed it since.
    unsafe { &*pointer }
}

/// Gives a value away as a pointer.
pub fn hand_out<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes back a value that was handed out. The caller has removed it from the list of live values.
pub fn take_back<T>(pointer: *mut T) -> T {
    // SAFETY: made by `hand_out`; only one caller can take it off the list.
    *unsafe { Box::from_raw(pointer) }
}

/// The text behind a pointer that this library gave out.
#[cfg(test)]
pub fn text_of(text: *const c_char) -> String {
    Text(text).get().unwrap_or_default()
}

#[inline]
fn check_list<T>(list: *const T, name: &str, count: usize) -> Result<(), Failure> {
    if list.is_null() && count > 0 {
        return Err(null(name));
    }
    if count > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::new(ARGUMENT, format!("{name}: {count} entries are more than memory holds")));
    }
    Ok(())
}

fn check_len(len: u64) -> Result<(), Failure> {
    if len > i64::MAX as u64 {
        return Err(Failure::new(ARGUMENT, format!("{len} B are more than a message may have (2^63 - 1)")));
    }
    Ok(())
}

#[cold]
fn null(name: &str) -> Failure {
    Failure::new(ARGUMENT, format!("{name} is NULL"))
}
