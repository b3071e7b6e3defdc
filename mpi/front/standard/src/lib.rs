//! `libmpi_abi.so.1`: the binary interface of MPI 5 (chapter 20). Handles are pointers that point to
//! nothing: those of the standard are numbers below 4096, and ours are index and kind in one number above.
//! The core has the numbers of this interface, so nearly everything is arithmetic.

use nmad_mpi_front as front;

use front::{Class, Kind, Status, Weights, wrapper};
use std::ffi::{c_char, c_void};
use std::fmt;

/// The numbers of this interface.
#[allow(dead_code)]
mod numbers {
    include!(concat!(env!("OUT_DIR"), "/numbers.rs"));
}

/// All symbols.
#[allow(missing_docs, non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]
mod exports {
    use super::{Abi, c_char, c_void, front, wrapper};
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

/// This interface.
pub struct Abi;

/// `MPI_Comm` and its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Handle(usize);

impl fmt::LowerHex for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// `MPI_Status`: what this library keeps in it is a count of bytes in two halves, and whether it was
/// cancelled.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CStatus {
    source: i32,
    tag: i32,
    error: i32,
    count: [i32; 2],
    cancelled: i32,
    unused: [i32; 2],
}

const _: () = assert!(size_of::<CStatus>() == 32 && align_of::<CStatus>() == 4);

/// The null handle of a kind, and which bits tell handles of the kind from others.
const fn predefined(kind: Kind) -> (usize, usize) {
    match kind {
        Kind::Comm => (0x100, 0x7),
        Kind::Group => (0x108, 0x7),
        Kind::Message => (0x128, 0x7),
        Kind::Session => (0x120, 0x7),
        Kind::Win => (0x110, 0x7),
        Kind::File => (0x118, 0x7),
        Kind::Info => (0x130, 0x7),
        Kind::Errhandler => (0x140, 0x3),
        Kind::Request => (0x180, 0x0),
        Kind::Op => (0x20, 0x1f),
        Kind::Type => (0x200, 0xff),
    }
}

/// Bits of a handle of ours that say its kind.
const KIND_BITS: u32 = 4;

impl front::Abi for Abi {
    type Handle = Handle;
    type Status = CStatus;
    type File = Handle;

    const VERSION: (i32, i32) = (1, 0);
    const LAST_CODE: i32 = 0x3fff;

    front::numbers!(numbers);

    #[inline]
    fn decode(kind: Kind, handle: Handle) -> Option<u32> {
        let (null, bits) = predefined(kind);
        if handle.0 & !bits == null {
            return Some((handle.0 & bits) as u32);
        }
        // Indices of what programs make begin at 256, so these are all above the standard's 4095.
        let is_ours = handle.0 >= 0x1000 && handle.0 & ((1 << KIND_BITS) - 1) == kind as usize;
        if is_ours { u32::try_from(handle.0 >> KIND_BITS).ok() } else { None }
    }

    #[inline]
    fn encode(kind: Kind, index: u32) -> Handle {
        let (null, bits) = predefined(kind);
        let index = index as usize;
        Handle(if index <= bits { null | index } else { index << KIND_BITS | kind as usize })
    }

    fn file_in(file: Handle) -> Handle {
        file
    }

    fn file_out(handle: Handle) -> Handle {
        handle
    }

    fn displacement(offset: i64) -> i64 {
        offset
    }

    fn to_int(handle: Handle) -> i32 {
        handle.0 as i32
    }

    fn from_int(number: i32) -> Handle {
        Handle(number as u32 as usize)
    }

    #[inline]
    fn buffer(buffer: *mut c_void) -> *mut c_void {
        buffer
    }

    fn buffer_out(buffer: *mut c_void) -> *mut c_void {
        buffer
    }

    fn weights(list: *const i32) -> Weights {
        match list.addr() {
            10 => Weights::Unweighted,
            11 => Weights::Empty,
            _ => Weights::List(list),
        }
    }

    fn all_handles() -> *const c_void {
        std::ptr::without_provenance(1)
    }

    fn is_dup(function: *const c_void) -> bool {
        function.addr() == 1
    }

    #[inline]
    fn status_in(status: &CStatus) -> Status {
        Status {
            source: status.source,
            tag: status.tag,
            error: Class::SUCCESS,
            sets_error: false,
            count_bytes: i64::from(status.count[1]) << 32 | i64::from(status.count[0] as u32),
            cancelled: status.cancelled != 0,
        }
    }

    #[inline]
    fn status_out(status: &mut CStatus, from: &Status) {
        status.source = from.source;
        status.tag = from.tag;
        status.count = [from.count_bytes as i32, (from.count_bytes >> 32) as i32];
        status.cancelled = from.cancelled.into();
    }

    fn error(status: &mut CStatus) -> &mut i32 {
        &mut status.error
    }

    #[inline]
    fn is_ignore(status: *const CStatus) -> bool {
        status.is_null()
    }
}
