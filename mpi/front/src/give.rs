//! Answers of the core for C.

use crate::abi::{Abi, Kind, Numbers};
use crate::codes;
use crate::take::PREDEFINED_KEYVALS;
use nmad_mpi::Status;
use nmad_mpi::constant::{Comparison, ThreadLevel, TopologyKind, UNDEFINED};
use nmad_mpi::error::Class;
use nmad_mpi::handle::{
    Comm, Errhandler, File, Group, Info, KEYVALS, Keyval, Message, Op, Request, Session, Type, Win,
};
use std::ffi::{c_char, c_void};

macro_rules! handles {
    ($($name:ident: $handle:ident, $kind:ident;)*) => {$(
        #[inline]
        pub(crate) fn $name<A: Abi>(handle: $handle) -> A::Handle {
            A::encode(Kind::$kind, handle.0)
        }
    )*};
}

handles! {
    comm: Comm, Comm;
    group: Group, Group;
    datatype: Type, Type;
    op: Op, Op;
    request: Request, Request;
    info: Info, Info;
    errhandler: Errhandler, Errhandler;
    message: Message, Message;
    session: Session, Session;
    win: Win, Win;
}

/// A file.
pub(crate) fn file<A: Abi>(file: File) -> A::File {
    A::file_out(A::encode(Kind::File, file.0))
}

/// Writes the null handle of files.
#[cold]
pub(crate) fn no_file<A: Abi>(to: *mut A::File) {
    value(to, file::<A>(File::NULL));
}

/// Writes a value, unless the program does not want it.
#[inline]
pub(crate) fn value<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the program passes a pointer to a place for it.
        unsafe { to.write_unaligned(value) }
    }
}

/// Writes the null handle: there is none of what was asked for.
#[cold]
pub(crate) fn null<A: Abi>(to: *mut A::Handle, kind: Kind) {
    value(to, A::encode(kind, 0));
}

/// Counts in C.
pub(crate) trait Count: Copy {
    /// The count, MPI_UNDEFINED if there is no room for it.
    fn of(count: i64) -> Self;
}

impl Count for i32 {
    fn of(count: i64) -> i32 {
        i32::try_from(count).unwrap_or(UNDEFINED)
    }
}

impl Count for i64 {
    fn of(count: i64) -> i64 {
        count
    }
}

/// Writes a count, MPI_UNDEFINED if there is no room for it.
pub(crate) fn count<C: Count>(to: *mut C, count: i64) {
    value(to, C::of(count));
}

macro_rules! plain {
    ($($name:ident: $value:ty;)*) => {$(
        #[inline]
        pub(crate) fn $name<A: Abi>(value: $value) -> $value {
            value
        }
    )*};
}

plain! {
    int: i32;
    wide: i64;
    aint: i64;
    offset: i64;
    address: *mut c_void;
}

/// A buffer that was attached, or the constant that was given for one.
pub(crate) fn buffer<A: Abi>(buffer: *mut c_void) -> *mut c_void {
    A::buffer_out(buffer)
}

/// A handle of the tools interface.
pub(crate) fn tool<A: Abi>(handle: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(handle)
}

/// A handle of a performance variable.
pub(crate) fn pvar_handle<A: Abi>(handle: usize) -> *mut c_void {
    tool::<A>(handle)
}

/// A flag.
pub(crate) fn bool<A: Abi>(value: bool) -> i32 {
    value.into()
}

/// A rank.
#[inline]
pub(crate) fn rank<A: Abi>(rank: i32) -> i32 {
    A::rank_out(rank)
}

/// A number of a group; MPI_UNDEFINED has the same number everywhere.
pub(crate) fn number<A: Abi>(group: Numbers, number: i32) -> i32 {
    A::number_out(group, number).unwrap_or(number)
}

/// A thread level.
pub(crate) fn thread<A: Abi>(level: ThreadLevel) -> i32 {
    number::<A>(Numbers::Thread, level as i32)
}

/// How objects compare.
pub(crate) fn comparison<A: Abi>(comparison: Comparison) -> i32 {
    number::<A>(Numbers::Comparison, comparison as i32)
}

/// How a file was opened: bits.
pub(crate) fn amode<A: Abi>(bits: i32) -> i32 {
    let bit = |shift: u32| bits & (1_i32 << shift);
    (0..i32::BITS)
        .map(bit)
        .filter(|&bit| bit != 0)
        .fold(0, |all, bit| all | number::<A>(Numbers::OpenMode, bit))
}

/// What topology there is.
pub(crate) fn topology<A: Abi>(kind: TopologyKind) -> i32 {
    number::<A>(Numbers::Topology, kind as i32)
}

/// An attribute key.
pub(crate) fn keyval<A: Abi>(keyval: Keyval) -> i32 {
    match keyval {
        Keyval::NULL => number::<A>(Numbers::Keyval, 0),
        Keyval(index) if index < KEYVALS => number::<A>(Numbers::Keyval, index as i32 + PREDEFINED_KEYVALS),
        Keyval(index) => index as i32,
    }
}

/// An error class.
pub(crate) fn class<A: Abi>(class: Class) -> i32 {
    codes::class_out::<A>(class)
}

/// Writes a list, as far as there is room.
pub(crate) fn list<T, U>(to: *mut T, room: usize, from: impl IntoIterator<Item = U>, give: impl Fn(U) -> T) {
    if to.is_null() {
        return;
    }
    for (index, each) in from.into_iter().take(room).enumerate() {
        // SAFETY: the program passes a list with that much room.
        unsafe { to.add(index).write(give(each)) }
    }
}

/// Writes a string, as far as there is room, and how long it is.
pub(crate) fn string(to: *mut c_char, room: usize, text: &str, written: *mut i32) {
    let mut len = text.len().min(room - 1);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    list(to, room, text.as_bytes()[..len].iter().chain([&0]), |&byte| byte as c_char);
    value(written, len as i32);
}

/// Fills in a status; its error if the core says so.
#[inline]
pub(crate) fn status<A: Abi>(to: *mut A::Status, from: &Status) {
    // SAFETY: the program passes a place for a status; wrappers ask only if it does.
    let place = unsafe { &mut *to };
    A::status_out(place, from);
    if from.sets_error {
        *A::error(place) = codes::class_out::<A>(from.error);
    }
}

/// Fills in statuses.
pub(crate) fn statuses<A: Abi>(to: *mut A::Status, from: &[Status]) {
    for (index, each) in from.iter().enumerate() {
        // The program passes as many places as there are requests.
        status::<A>(to.wrapping_add(index), each);
    }
}
