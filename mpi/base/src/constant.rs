//! Constants of the standard, with the numbers of its binary interface.

use std::ffi::c_void;

/// From whichever rank a message comes.
pub const ANY_SOURCE: i32 = -1;
/// Whatever tag a message has.
pub const ANY_TAG: i32 = -2;
/// No process: messages to and from it end at once.
pub const PROC_NULL: i32 = -3;
/// The root of a collective between two groups names itself by this.
pub const ROOT: i32 = -4;
/// An undefined value.
pub const UNDEFINED: i32 = -32766;
/// Highest tag.
pub const TAG_UB: i32 = i32::MAX;

/// The buffer of a collective that works in place.
pub const IN_PLACE: *const c_void = std::ptr::without_provenance(1);
/// The begin of the address space.
pub const BOTTOM: *const c_void = std::ptr::null();
/// A buffer for buffered sends that the library makes as it needs it.
pub const BUFFER_AUTOMATIC: *mut c_void = std::ptr::without_provenance_mut(2);

/// Longest key of an info object, its end included, in bytes.
pub const MAX_INFO_KEY: usize = 256;
/// Longest value of an info object, its end included, in bytes.
pub const MAX_INFO_VAL: usize = 1024;
/// Longest tag of a communicator made from a group, its end included, in bytes.
pub const MAX_STRINGTAG_LEN: usize = 1024;
/// Longest name of a port, its end included, in bytes: that of the interface with the shorter one.
pub const MAX_PORT_NAME: usize = 256;
/// Longest processor name, its end included, in bytes.
pub const MAX_PROCESSOR_NAME: usize = 256;

/// What threads may do; ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum ThreadLevel {
    /// There is only one thread.
    Single = 0,
    /// Only the thread that initialised makes calls.
    Funneled = 1024,
    /// One thread at a time makes calls.
    Serialized = 2048,
    /// Any thread makes calls at any time.
    Multiple = 4096,
}

impl ThreadLevel {
    /// Its name in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            ThreadLevel::Single => "MPI_THREAD_SINGLE",
            ThreadLevel::Funneled => "MPI_THREAD_FUNNELED",
            ThreadLevel::Serialized => "MPI_THREAD_SERIALIZED",
            ThreadLevel::Multiple => "MPI_THREAD_MULTIPLE",
        }
    }
}

/// How two communicators or groups compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Comparison {
    /// The same object (communicators), or the same members in the same order (groups).
    Ident = 201,
    /// The same members in the same order, another context.
    Congruent = 202,
    /// The same members in another order.
    Similar = 203,
    /// Different members.
    Unequal = 204,
}

/// How a communicator is split by what its processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum SplitType {
    /// Processes that can share memory.
    Shared = 221,
    /// By the next smaller unit of hardware.
    HwUnguided = 222,
    /// By the unit of hardware that the info names.
    HwGuided = 223,
    /// By the resource that the info names.
    ResourceGuided = 224,
    /// By the directory that the info names; MPICH's, the standard has no number for it.
    Neighborhood = 225,
}

/// What topology a communicator has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum TopologyKind {
    /// None (MPI_UNDEFINED).
    None = -32766,
    /// Cartesian.
    Cart = 211,
    /// Graph.
    Graph = 212,
    /// Distributed graph.
    DistGraph = 213,
}
