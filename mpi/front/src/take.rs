//! Arguments of C for the core: checked as far as their kind says, with an error that names the argument.

use crate::abi::{Abi, Kind, Numbers, Weights};
use crate::codes;
use nmad_mpi::Status;
use nmad_mpi::api::{self, Code};
use nmad_mpi::constant::{IN_PLACE, SplitType, ThreadLevel, UNDEFINED};
use nmad_mpi::error::{Class, Error, Result};
use nmad_mpi::handle::{
    Comm, Errhandler, File, Group, Info, KEYVALS, Keyval, Message, Op, Request, Session, Type, Win,
};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};

/// Lists of arguments: short ones need no memory of their own.
pub(crate) type List<T> = SmallVec<[T; 16]>;

macro_rules! handles {
    ($($name:ident: $handle:ident, $kind:ident, $class:ident;)*) => {$(
        #[inline]
        pub(crate) fn $name<A: Abi>(name: &str, handle: A::Handle) -> Result<$handle> {
            match A::decode(Kind::$kind, handle) {
                Some(index) => Ok($handle(index)),
                None => Err(no_handle::<A>(name, handle, Class::$class)),
            }
        }
    )*};
}

handles! {
    comm: Comm, Comm, COMM;
    group: Group, Group, GROUP;
    datatype: Type, Type, TYPE;
    op: Op, Op, OP;
    request: Request, Request, REQUEST;
    info: Info, Info, INFO;
    errhandler: Errhandler, Errhandler, ERRHANDLER;
    message: Message, Message, REQUEST;
    session: Session, Session, SESSION;
    win: Win, Win, WIN;
}

/// A file.
pub(crate) fn file<A: Abi>(name: &str, file: A::File) -> Result<File> {
    let handle = A::file_in(file);
    match A::decode(Kind::File, handle) {
        Some(index) => Ok(File(index)),
        None => Err(no_handle::<A>(name, handle, Class::FILE)),
    }
}

/// A datatype that may mean nothing: a handle of no datatype is [`Type::INVALID`], which the core refuses
/// where the type is needed.
#[inline]
pub(crate) fn any_datatype<A: Abi>(handle: A::Handle) -> Type {
    A::decode(Kind::Type, handle).map_or(Type::INVALID, Type)
}

#[cold]
fn no_handle<A: Abi>(name: &str, handle: A::Handle, class: Class) -> Error {
    let what = class.meaning().unwrap_or_default().trim_start_matches("invalid ");
    class.error(format!("argument {name}: {handle:#x} is not the handle of a {what}"))
}

#[cold]
fn null(name: &str) -> Error {
    Class::ARG.error(format!("argument {name} is NULL"))
}

#[cold]
#[inline(never)]
fn nowhere(name: &str) -> Error {
    Class::ARG.error(format!("argument {name} is NULL: there is no place for the answer"))
}

/// Checks that there is a place for an answer.
#[inline]
pub(crate) fn place<T>(name: &str, to: *const T) -> Result<()> {
    if to.is_null() { Err(nowhere(name)) } else { Ok(()) }
}

/// Checks that there are places for answers, unless there is no room for any.
pub(crate) fn places<T>(name: &str, to: *const T, room: usize) -> Result<()> {
    if room == 0 { Ok(()) } else { place(name, to) }
}

/// What a pointer points to.
#[inline]
pub(crate) fn read<T: Copy>(name: &str, from: *const T) -> Result<T> {
    if from.is_null() {
        return Err(null(name));
    }
    // SAFETY: the program passes a pointer to a value, as the standard says.
    Ok(unsafe { from.read_unaligned() })
}

macro_rules! plain {
    ($($name:ident: $value:ty;)*) => {$(
        #[inline]
        pub(crate) fn $name<A: Abi>(_: &str, value: impl Into<$value>) -> Result<$value> {
            Ok(value.into())
        }
    )*};
}

plain! {
    int: i32;
    count: i64;
    displ: i64;
    bytes: i64;
    aint: i64;
    wide: i64;
    offset: i64;
}

/// Three numbers.
pub(crate) fn triple<A: Abi>(_: &str, value: [i32; 3]) -> Result<[i32; 3]> {
    Ok(value)
}

/// How many elements there are.
#[inline]
pub(crate) fn some(name: &str, count: impl Into<i64>) -> Result<i64> {
    let count = count.into();
    if count < 0 { Err(negative(name, count)) } else { Ok(count) }
}

#[cold]
fn negative(name: &str, count: i64) -> Error {
    Class::COUNT.error(format!("argument {name} is {count}: it must not be negative"))
}

/// How long lists are.
#[inline]
pub(crate) fn length(name: &str, count: i64) -> Result<usize> {
    // Groups and topologies have other classes for it, but all name the argument.
    usize::try_from(count).map_err(|_| {
        let class = if name.contains("count") { Class::COUNT } else { Class::ARG };
        class.error(format!("argument {name} is {count}: it must not be negative"))
    })
}

/// A flag.
pub(crate) fn bool<A: Abi>(_: &str, value: i32) -> Result<bool> {
    Ok(value != 0)
}

/// A rank.
#[inline]
pub(crate) fn rank<A: Abi>(_: &str, rank: i32) -> Result<i32> {
    Ok(A::rank_in(rank))
}

/// A tag.
#[inline]
pub(crate) fn tag<A: Abi>(_: &str, tag: i32) -> Result<i32> {
    Ok(A::tag_in(tag))
}

fn number<A: Abi>(group: Numbers, name: &str, number: i32) -> Result<i32> {
    let known = A::number_in(group, number);
    known
        .ok_or_else(|| Class::ARG.error(format!("argument {name}: {number} is none of the constants for it")))
}

macro_rules! constants {
    ($($name:ident: $group:ident;)*) => {$(
        pub(crate) fn $name<A: Abi>(name: &str, value: i32) -> Result<i32> {
            number::<A>(Numbers::$group, name, value)
        }
    )*};
}

/// Where a view of a file begins.
pub(crate) fn start<A: Abi>(_: &str, offset: i64) -> Result<i64> {
    Ok(A::displacement(offset))
}

/// From where a file pointer is set.
pub(crate) fn whence<A: Abi>(name: &str, value: i32) -> Result<i32> {
    number::<A>(Numbers::Seek, name, value)
}

constants! {
    order: Order;
    variable: Variable;
    distribution: Distribution;
    typeclass: TypeClass;
}

/// The type of a lock.
pub(crate) fn lock<A: Abi>(name: &str, value: i32) -> Result<i32> {
    let unknown = || Class::LOCKTYPE.error(format!("argument {name}: {value} is no type of locks"));
    A::number_in(Numbers::Lock, value).ok_or_else(unknown)
}

/// What a program says about an epoch: bits.
///
/// # Errors
/// A bit is none of the constants for it.
pub(crate) fn assertion<A: Abi>(name: &str, bits: i32) -> Result<i32> {
    all_bits::<A>(Numbers::Assertion, bits)
        .map_err(|bit| Class::ASSERT.error(format!("argument {name}: {bit} is no assertion about an epoch")))
}

/// How a file is opened: bits.
///
/// # Errors
/// A bit is none of the constants for it.
pub(crate) fn amode<A: Abi>(name: &str, bits: i32) -> Result<i32> {
    all_bits::<A>(Numbers::OpenMode, bits)
        .map_err(|bit| Class::AMODE.error(format!("argument {name}: {bit} is no way to open a file")))
}

/// Bits of a group; the error is one that the group does not have.
fn all_bits<A: Abi>(group: Numbers, bits: i32) -> std::result::Result<i32, i32> {
    let bit = |shift: u32| bits & (1_i32 << shift);
    let each = (0..i32::BITS).map(bit).filter(|&bit| bit != 0);
    each.map(|bit| A::number_in(group, bit).ok_or(bit)).try_fold(0, |all, bit| Ok(all | bit?))
}

/// A handle of the tools interface.
pub(crate) fn tool<A: Abi>(_: &str, handle: *mut c_void) -> Result<usize> {
    Ok(handle.addr())
}

/// A handle of a performance variable, or all of them.
pub(crate) fn pvar_handle<A: Abi>(_: &str, handle: *mut c_void) -> Result<usize> {
    Ok(if handle.cast_const() == A::all_handles() { api::ALL_HANDLES } else { handle.addr() })
}

/// What a function for events may do.
pub(crate) fn safety<A: Abi>(name: &str, value: i32) -> Result<api::Safety> {
    let level = number::<A>(Numbers::Safety, name, value)?;
    let known = api::LEVELS.into_iter().find(|known| *known as i32 == level);
    Ok(known.expect("all numbers of the group are known"))
}

/// The argument of a distribution.
pub(crate) fn darg<A: Abi>(_: &str, value: i32) -> Result<i32> {
    Ok(A::number_in(Numbers::Darg, value).unwrap_or(value))
}

/// A thread level.
pub(crate) fn thread<A: Abi>(name: &str, level: i32) -> Result<ThreadLevel> {
    use ThreadLevel::{Funneled, Multiple, Serialized, Single};
    let level = number::<A>(Numbers::Thread, name, level)?;
    let known = [Single, Funneled, Serialized, Multiple].into_iter().find(|known| *known as i32 == level);
    Ok(known.expect("all numbers of the group are known"))
}

/// How a communicator is split; none: MPI_UNDEFINED.
pub(crate) fn split<A: Abi>(name: &str, split: i32) -> Result<Option<SplitType>> {
    use SplitType::{HwGuided, HwUnguided, Neighborhood, ResourceGuided, Shared};
    if split == UNDEFINED {
        return Ok(None);
    }
    let split = number::<A>(Numbers::Split, name, split)?;
    let all = [Shared, HwUnguided, HwGuided, ResourceGuided, Neighborhood];
    Ok(all.into_iter().find(|known| *known as i32 == split))
}

/// Attribute keys of the standard have numbers from here on.
pub(crate) const PREDEFINED_KEYVALS: i32 = 500;

/// An attribute key.
pub(crate) fn keyval<A: Abi>(name: &str, keyval: i32) -> Result<Keyval> {
    match A::number_in(Numbers::Keyval, keyval) {
        Some(0) => Ok(Keyval::NULL),
        Some(number) => Ok(Keyval((number - PREDEFINED_KEYVALS) as u32)),
        None => {
            let index = u32::try_from(keyval).ok().filter(|&index| index >= KEYVALS);
            let unknown = || Class::KEYVAL.error(format!("argument {name}: {keyval} is no attribute key"));
            index.map(Keyval).ok_or_else(unknown)
        }
    }
}

/// An error class, or a code that the program has added.
pub(crate) fn class<A: Abi>(name: &str, number: i32) -> Result<Class> {
    known(name, number, codes::class_in::<A>(number))
}

/// An error code.
pub(crate) fn code<A: Abi>(name: &str, number: i32) -> Result<Code> {
    let code = codes::code_in::<A>(number);
    known(name, number, code.class).map(|_| code)
}

fn known(name: &str, number: i32, class: Class) -> Result<Class> {
    match class {
        codes::NO_CLASS => {
            Err(Class::ARG.error(format!("argument {name}: {number} is no error class and no error code")))
        }
        class => Ok(class),
    }
}

/// A string.
pub(crate) fn string<'a>(name: &str, from: *const c_char) -> Result<Cow<'a, str>> {
    if from.is_null() {
        return Err(null(name));
    }
    // SAFETY: the program passes a string that ends with a zero.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy())
}

/// A status of the program.
pub(crate) fn status<A: Abi>(name: &str, from: *const A::Status) -> Result<Status> {
    if from.is_null() || A::is_ignore(from) {
        return Err(Class::ARG
            .error(format!("argument {name} is MPI_STATUS_IGNORE: there is nothing to read or set")));
    }
    // SAFETY: the program passes a pointer to a status.
    Ok(A::status_in(unsafe { &*from }))
}

/// A status to fill in, if the program wants it.
#[inline]
pub(crate) fn room_for_status<A: Abi>(status: *const A::Status) -> Option<Status> {
    (!A::is_ignore(status) && !status.is_null()).then_some(Status::SENT)
}

/// Statuses to fill in, if the program wants them.
pub(crate) fn room_for_statuses<A: Abi>(statuses: *const A::Status, count: usize) -> Option<List<Status>> {
    (!A::is_ignore(statuses) && !statuses.is_null()).then(|| SmallVec::from_elem(Status::SENT, count))
}

/// A list; NULL is one without entries.
#[inline]
pub(crate) fn list<T: Copy, U: Copy>(
    name: &str,
    from: *const T,
    count: usize,
    take: impl Fn(T) -> Result<U>,
) -> Result<List<U>> {
    if from.is_null() && count > 0 {
        return Err(Class::ARG.error(format!("argument {name} is NULL, but has {count} entries")));
    }
    // SAFETY: the program passes a list of this length, or none at all.
    let list = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(from, count) } };
    let Some((&first, others)) = list.split_first() else { return Ok(List::new()) };
    // Fill the list with the first value: a list that has its length needs no check of its capacity per
    // element.
    let mut taken = List::from_elem(take(first)?, count);
    for (place, &each) in taken[1..].iter_mut().zip(others) {
        *place = take(each)?;
    }
    Ok(taken)
}

/// How many processes ranks of the communicator name.
pub(crate) fn peers(comm: Comm) -> Result<usize> {
    let size = if api::comm_test_inter(comm)? { api::comm_remote_size(comm)? } else { api::comm_size(comm)? };
    Ok(size as usize)
}

/// How many processes are in the local group.
pub(crate) fn members(comm: Comm) -> Result<usize> {
    Ok(api::comm_size(comm)? as usize)
}

/// As [`peers`] at the root, none elsewhere.
pub(crate) fn peers_at_root(comm: Comm, root: i32) -> Result<usize> {
    api::peers_at_root(comm, root)
}

/// As [`peers`], none if the send buffer is MPI_IN_PLACE.
pub(crate) fn sends<A: Abi>(comm: Comm, sendbuf: *const c_void) -> Result<usize> {
    if A::buffer(sendbuf.cast_mut()).cast_const() == IN_PLACE { Ok(0) } else { peers(comm) }
}

/// How many neighbours data comes from.
pub(crate) fn sources(comm: Comm) -> Result<usize> {
    api::neighbor_counts(comm).map(|(sources, _)| sources)
}

/// How many neighbours data goes to.
pub(crate) fn targets(comm: Comm) -> Result<usize> {
    api::neighbor_counts(comm).map(|(_, targets)| targets)
}

/// The dimensions of a Cartesian topology.
pub(crate) fn cartdims(comm: Comm) -> Result<usize> {
    Ok(api::cartdim_get(comm)? as usize)
}

/// The weights of edges, if they have some.
pub(crate) fn weights<A: Abi>(name: &str, from: *const i32, count: usize) -> Result<Option<List<i32>>> {
    match A::weights(from) {
        Weights::Unweighted => Ok(None),
        Weights::Empty => Ok(Some(List::new())),
        Weights::List(from) => list(name, from, count, Ok).map(Some),
    }
}

/// The sum of a list, as a length.
pub(crate) fn sum(list: &[i32]) -> usize {
    list.iter().map(|&each| usize::try_from(each).unwrap_or(0)).sum()
}

/// The last entry of a list, as a length.
pub(crate) fn last(list: &[i32]) -> usize {
    list.last().map_or(0, |&last| usize::try_from(last).unwrap_or(0))
}
