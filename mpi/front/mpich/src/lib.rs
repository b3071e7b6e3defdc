//! `libmpi.so.12`: the binary interface of MPICH and its descendants. Handles are numbers: the highest two
//! bits say whether a handle is null (0), predefined (1) or made by the program (2), the next four its
//! kind, the lowest 26 which. Numbers of constants are MPICH's; the core's are those of the standard.

use nmad_mpi_front as front;

use front::{Class, Kind, Status, Weights, wrapper};
use std::ffi::{c_char, c_void};

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

mod fortran;
mod removed;
mod symbols;

/// This interface.
pub struct Abi;

/// `MPI_Status`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CStatus {
    count_low: i32,
    /// The rest of the count, and in the lowest bit whether it was cancelled.
    count_high_and_cancelled: i32,
    source: i32,
    tag: i32,
    error: i32,
}

const _: () = assert!(size_of::<CStatus>() == 20 && align_of::<CStatus>() == 4);

/// The bits for each kind.
const fn bits(kind: Kind) -> u32 {
    match kind {
        Kind::Comm => 0x1,
        Kind::Group => 0x2,
        Kind::Type => 0x3,
        Kind::Errhandler => 0x5,
        Kind::Op => 0x6,
        Kind::Info => 0x7,
        Kind::Win => 0x8,
        Kind::File => 0x4,
        Kind::Request | Kind::Message => 0xb,
        Kind::Session => 0xe,
    }
}

/// Where the kind is.
const KIND_SHIFT: u32 = 26;
/// What the program made.
const MADE: u32 = 2 << 30;
/// The number of no handle of any kind.
const NO_HANDLE: i32 = 1;
/// MPI_DISPLACEMENT_CURRENT
const DISPLACEMENT_CURRENT: i64 = -54_278_278;
/// Which one it is.
const INDEX: u32 = (1 << KIND_SHIFT) - 1;

/// The standard's number of a predefined handle.
fn standard(kind: Kind, handle: i32) -> Option<i32> {
    match kind {
        Kind::Comm => numbers::comm_in(handle),
        Kind::Group => numbers::group_in(handle),
        Kind::Type => numbers::type_in(handle),
        Kind::Op => numbers::op_in(handle),
        Kind::Request => numbers::request_in(handle),
        Kind::Info => numbers::info_in(handle),
        Kind::Errhandler => numbers::errhandler_in(handle),
        Kind::Message => numbers::message_in(handle),
        Kind::Session => numbers::session_in(handle),
        Kind::Win => numbers::win_in(handle),
        Kind::File => numbers::file_in(handle),
    }
}

/// The null handle of a kind in the standard, to which indices of predefined ones are added.
const fn null(kind: Kind) -> i32 {
    match kind {
        Kind::Comm => 0x100,
        Kind::Group => 0x108,
        Kind::Message => 0x128,
        Kind::Session => 0x120,
        Kind::Win => 0x110,
        Kind::File => 0x118,
        Kind::Info => 0x130,
        Kind::Errhandler => 0x140,
        Kind::Request => 0x180,
        Kind::Op => 0x20,
        Kind::Type => 0x200,
    }
}

/// The handle of a number of the standard's.
fn mpich(kind: Kind, number: i32) -> Option<i32> {
    match kind {
        Kind::Comm => numbers::comm_out(number),
        Kind::Group => numbers::group_out(number),
        Kind::Type => numbers::type_out(number),
        Kind::Op => numbers::op_out(number),
        Kind::Request => numbers::request_out(number),
        Kind::Info => numbers::info_out(number),
        Kind::Errhandler => numbers::errhandler_out(number),
        Kind::Message => numbers::message_out(number),
        Kind::Session => numbers::session_out(number),
        Kind::Win => numbers::win_out(number),
        Kind::File => numbers::file_out(number),
    }
}

impl front::Abi for Abi {
    type Handle = i32;
    type Status = CStatus;
    type File = *mut c_void;

    // mpi4py takes an answer of -1 for "not the standard's binary interface".
    const VERSION: (i32, i32) = (-1, -1);
    const LAST_CODE: i32 = 0x3fff_ffff;

    front::numbers!(numbers);

    #[inline]
    fn decode(kind: Kind, handle: i32) -> Option<u32> {
        let made = MADE | bits(kind) << KIND_SHIFT;
        let number = handle as u32;
        // Some predefined types look as if the program had made them, with indices that are too low.
        if number & !INDEX == made && number & INDEX >= 256 {
            return Some(number & INDEX);
        }
        standard(kind, handle).map(|number| (number - null(kind)) as u32)
    }

    #[inline]
    fn encode(kind: Kind, index: u32) -> i32 {
        if index >= 256 {
            return (MADE | bits(kind) << KIND_SHIFT | index) as i32;
        }
        let null = null(kind);
        mpich(kind, null + index as i32).unwrap_or_else(|| mpich(kind, null).unwrap_or(0))
    }

    fn file_in(file: *mut c_void) -> i32 {
        u32::try_from(file.addr()).map_or(NO_HANDLE, |number| number as i32)
    }

    fn file_out(handle: i32) -> *mut c_void {
        std::ptr::without_provenance_mut(handle as u32 as usize)
    }

    fn displacement(offset: i64) -> i64 {
        if offset == DISPLACEMENT_CURRENT { -1 } else { offset }
    }

    fn to_int(handle: i32) -> i32 {
        handle
    }

    fn from_int(number: i32) -> i32 {
        number
    }

    #[inline]
    fn buffer(buffer: *mut c_void) -> *mut c_void {
        match buffer.addr() as isize {
            -1 => std::ptr::without_provenance_mut(1),
            -2 => std::ptr::without_provenance_mut(2),
            _ => buffer,
        }
    }

    fn buffer_out(buffer: *mut c_void) -> *mut c_void {
        match buffer.addr() {
            2 => std::ptr::without_provenance_mut(-2_isize as usize),
            _ => buffer,
        }
    }

    fn weights(list: *const i32) -> Weights {
        match list {
            _ if std::ptr::eq(list, symbols::unweighted()) => Weights::Unweighted,
            _ if std::ptr::eq(list, symbols::weights_empty()) => Weights::Empty,
            _ => Weights::List(list),
        }
    }

    fn all_handles() -> *const c_void {
        symbols::all_handles()
    }

    fn is_dup(function: *const c_void) -> bool {
        std::ptr::eq(function, symbols::MPIR_Dup_fn as *const c_void)
    }

    #[inline]
    fn status_in(status: &CStatus) -> Status {
        // Of the count's 63 bits the highest is no sign.
        let high = i64::from(status.count_high_and_cancelled as u32 >> 1);
        Status {
            source: Self::rank_in(status.source),
            tag: Self::tag_in(status.tag),
            error: Class::SUCCESS,
            sets_error: false,
            count_bytes: high << 32 | i64::from(status.count_low as u32),
            cancelled: status.count_high_and_cancelled & 1 != 0,
        }
    }

    #[inline]
    fn status_out(status: &mut CStatus, from: &Status) {
        status.source = Self::rank_out(from.source);
        status.tag = Self::tag_out(from.tag);
        status.count_low = from.count_bytes as i32;
        status.count_high_and_cancelled = (from.count_bytes >> 32 << 1) as i32 | i32::from(from.cancelled);
    }

    fn error(status: &mut CStatus) -> &mut i32 {
        &mut status.error
    }

    #[inline]
    fn is_ignore(status: *const CStatus) -> bool {
        status.addr() == 1
    }
}
