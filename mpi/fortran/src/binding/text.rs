//! Text: Fortran's has a length and blanks behind it, that of C a zero.

use std::ffi::{CString, c_char};

/// The bytes of a text of Fortran. Compilers of long ago pass its length in 32 bits, with anything above.
unsafe fn bytes<'a>(text: *const c_char, len: usize) -> &'a [u8] {
    // SAFETY: the program passes a text of this length.
    unsafe { std::slice::from_raw_parts(text.cast(), len as u32 as usize) }
}

/// Without the blanks behind it; nothing behind a zero is of interest to C.
pub(crate) unsafe fn taken(text: *const c_char, len: usize) -> CString {
    // SAFETY: the caller says so.
    in_c(unsafe { bytes(text, len) })
}

/// Without the blanks before it and behind it.
pub(crate) unsafe fn trimmed(text: *const c_char, len: usize) -> CString {
    // SAFETY: the caller says so.
    let bytes = unsafe { bytes(text, len) };
    in_c(bytes.trim_ascii_start())
}

fn in_c(bytes: &[u8]) -> CString {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let blanks = text.iter().rev().take_while(|&&byte| byte == b' ').count();
    CString::new(&text[..text.len() - blanks]).unwrap_or_default()
}

/// Room for a text of C.
pub(crate) struct Room(Vec<u8>);

impl Room {
    pub(crate) fn new(len: usize) -> Room {
        Room(vec![0; len.max(1)])
    }

    pub(crate) fn place(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Writes what is in it, as far as there is room, and blanks behind it.
    pub(crate) unsafe fn give(&self, to: *mut c_char, len: usize) {
        let text = self.0.split(|&byte| byte == 0).next().unwrap_or_default();
        // SAFETY: the program passes room for a text of this length.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), len as u32 as usize) };
        let len = text.len().min(to.len());
        to[..len].copy_from_slice(&text[..len]);
        to[len..].fill(b' ');
    }
}

/// Lowers a length to that of the room that there was.
pub(crate) unsafe fn limit(written: *mut i32, room: usize) {
    // SAFETY: the library has written it.
    unsafe { written.write(written.read().min(room as u32 as i32)) }
}
