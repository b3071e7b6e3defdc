//! What a binary interface is.

use nmad_mpi::Status;
use nmad_mpi::error::Class;
use std::ffi::c_void;
use std::fmt::LowerHex;

/// Kinds of handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Communicators.
    Comm,
    /// Groups.
    Group,
    /// Datatypes.
    Type,
    /// Operators.
    Op,
    /// Requests.
    Request,
    /// Info objects.
    Info,
    /// Error handlers.
    Errhandler,
    /// Messages that were matched.
    Message,
    /// Sessions.
    Session,
    /// Windows.
    Win,
    /// Files.
    File,
}

/// Groups of numbers that are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Thread levels.
    Thread,
    /// How objects compare.
    Comparison,
    /// Kinds of topologies.
    Topology,
    /// How communicators are split.
    Split,
    /// How datatypes were made.
    Combiner,
    /// Orders of arrays.
    Order,
    /// Distributions of arrays.
    Distribution,
    /// Classes of types.
    TypeClass,
    /// The default argument of a distribution.
    Darg,
    /// Attribute keys.
    Keyval,
    /// Types of locks.
    Lock,
    /// How windows were made.
    Flavor,
    /// Memory models of windows.
    Model,
    /// What a program says about an epoch: one bit.
    Assertion,
    /// For whom a variable is.
    Verbosity,
    /// To what a variable is bound.
    Binding,
    /// When a variable can be set.
    Scope,
    /// Kinds of performance variables.
    Variable,
    /// What functions for events may do.
    Safety,
    /// How events of a source are ordered.
    Source,
    /// How a file is opened: one bit.
    OpenMode,
    /// From where a file pointer is set.
    Seek,
}

/// What a list of weights is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// There are no weights.
    Unweighted,
    /// There are weights, but no edges.
    Empty,
    /// They are here.
    List(*const i32),
}

/// A binary interface: the types and numbers of its `mpi.h`.
pub trait Abi: Sized + 'static {
    /// A handle, of whatever kind.
    type Handle: Copy + PartialEq + LowerHex + Send + Sync;
    /// A status: numbers and nothing else.
    type Status: Copy;
    /// A handle of a file, which is a pointer in both interfaces.
    type File: Copy;

    /// `MPI_MAX_PROCESSOR_NAME`, and so on.
    const MAX_PROCESSOR_NAME: usize;
    /// See [`Abi::MAX_PROCESSOR_NAME`].
    const MAX_OBJECT_NAME: usize;
    /// See [`Abi::MAX_PROCESSOR_NAME`].
    const MAX_ERROR_STRING: usize;
    /// See [`Abi::MAX_PROCESSOR_NAME`].
    const MAX_INFO_KEY: usize;
    /// See [`Abi::MAX_PROCESSOR_NAME`].
    const MAX_LIBRARY_VERSION_STRING: usize;
    /// See [`Abi::MAX_PROCESSOR_NAME`].
    const MAX_PORT_NAME: usize;
    /// See [`Abi::MAX_PROCESSOR_NAME`].
    const MAX_DATAREP_STRING: usize;
    /// What `MPI_Abi_get_version` answers.
    const VERSION: (i32, i32);
    /// `MPI_ERR_LASTCODE`: codes that programs add follow it.
    const LAST_CODE: i32;

    /// The index of a handle of this kind; none if it is not one.
    fn decode(kind: Kind, handle: Self::Handle) -> Option<u32>;
    /// The handle of an index.
    fn encode(kind: Kind, index: u32) -> Self::Handle;
    /// The handle of a file as those of other kinds.
    fn file_in(file: Self::File) -> Self::Handle;
    /// The handle of a file as programs have it.
    fn file_out(handle: Self::Handle) -> Self::File;
    /// An offset in a file; the core's number of MPI_DISPLACEMENT_CURRENT is that of the standard.
    fn displacement(offset: i64) -> i64;
    /// The number of a handle.
    fn to_int(handle: Self::Handle) -> i32;
    /// The handle of a number.
    fn from_int(number: i32) -> Self::Handle;

    /// A buffer, with the core's constants.
    fn buffer(buffer: *mut c_void) -> *mut c_void;
    /// A buffer that a program attached, with its own constants.
    fn buffer_out(buffer: *mut c_void) -> *mut c_void;
    /// What a list of weights is.
    fn weights(list: *const i32) -> Weights;
    /// `MPI_T_PVAR_ALL_HANDLES`.
    fn all_handles() -> *const c_void;
    /// Whether a function of attributes is the one that copies them.
    fn is_dup(function: *const c_void) -> bool;

    /// A rank, in the core's numbers; those that are no constants stay.
    fn rank_in(rank: i32) -> i32;
    /// A rank of the core's.
    fn rank_out(rank: i32) -> i32;
    /// A tag, in the core's numbers; those that are no constants stay.
    fn tag_in(tag: i32) -> i32;
    /// A tag of the core's.
    fn tag_out(tag: i32) -> i32;
    /// A number of a group; none if it is not one.
    fn number_in(group: Numbers, number: i32) -> Option<i32>;
    /// A number of the core's, if this interface has it.
    fn number_out(group: Numbers, number: i32) -> Option<i32>;
    /// An error class of the standard; none if it is not one.
    fn class_in(number: i32) -> Option<i32>;
    /// An error class of the standard.
    fn class_out(class: Class) -> Option<i32>;

    /// A status, except for its error.
    fn status_in(status: &Self::Status) -> Status;
    /// Fills in a status, except for its error.
    fn status_out(status: &mut Self::Status, from: &Status);
    /// The error code in a status.
    fn error(status: &mut Self::Status) -> &mut i32;
    /// Whether this means that nobody wants the status.
    fn is_ignore(status: *const Self::Status) -> bool;
}

/// Translates a rank or tag from one numbering into the other; `to` and `back` translate the constants. A
/// number that is no constant stays none: if it is a constant of the other numbering, it is mapped to a
/// number that is none there, and comes back from that.
#[inline]
pub fn translated(number: i32, to: impl Fn(i32) -> Option<i32>, back: impl Fn(i32) -> Option<i32>) -> i32 {
    if number >= 0 {
        return number;
    }
    to(number).unwrap_or_else(|| {
        // Constants are as many here as there: the way back ends at a number that is one here only.
        std::iter::successors(Some(number), |&number| back(number)).last().unwrap_or(number)
    })
}

/// The part of an [`Abi`] that is in the generated module `numbers`.
#[macro_export]
macro_rules! numbers {
    ($numbers:ident) => {
        const MAX_PROCESSOR_NAME: usize = $numbers::MAX_PROCESSOR_NAME;
        const MAX_OBJECT_NAME: usize = $numbers::MAX_OBJECT_NAME;
        const MAX_ERROR_STRING: usize = $numbers::MAX_ERROR_STRING;
        const MAX_INFO_KEY: usize = $numbers::MAX_INFO_KEY;
        const MAX_PORT_NAME: usize = $numbers::MAX_PORT_NAME;
        const MAX_DATAREP_STRING: usize = $numbers::MAX_DATAREP_STRING;
        const MAX_LIBRARY_VERSION_STRING: usize = $numbers::MAX_LIBRARY_VERSION_STRING;

        #[inline]
        fn rank_in(rank: i32) -> i32 {
            $crate::translated(rank, $numbers::rank_in, $numbers::rank_out)
        }

        #[inline]
        fn rank_out(rank: i32) -> i32 {
            $crate::translated(rank, $numbers::rank_out, $numbers::rank_in)
        }

        #[inline]
        fn tag_in(tag: i32) -> i32 {
            $crate::translated(tag, $numbers::tag_in, $numbers::tag_out)
        }

        #[inline]
        fn tag_out(tag: i32) -> i32 {
            $crate::translated(tag, $numbers::tag_out, $numbers::tag_in)
        }

        fn number_in(group: $crate::Numbers, number: i32) -> Option<i32> {
            $crate::numbers!(@pick group, number, $numbers, thread_in, comparison_in, topology_in, split_in,
                combiner_in, order_in, distribution_in, typeclass_in, darg_in, keyval_in, lock_in,
                flavor_in, model_in, assertion_in, verbosity_in, binding_in, scope_in, variable_in,
                safety_in, source_in, openmode_in, seek_in)
        }

        fn number_out(group: $crate::Numbers, number: i32) -> Option<i32> {
            $crate::numbers!(@pick group, number, $numbers, thread_out, comparison_out, topology_out,
                split_out, combiner_out, order_out, distribution_out, typeclass_out, darg_out, keyval_out,
                lock_out, flavor_out, model_out, assertion_out, verbosity_out, binding_out, scope_out,
                variable_out, safety_out, source_out, openmode_out, seek_out)
        }

        fn class_in(number: i32) -> Option<i32> {
            $numbers::class_in(number)
        }

        fn class_out(class: $crate::Class) -> Option<i32> {
            $numbers::class_out(class.0)
        }
    };
    (@pick $group:ident, $number:ident, $numbers:ident, $thread:ident, $comparison:ident, $topology:ident,
        $split:ident, $combiner:ident, $order:ident, $distribution:ident, $class:ident, $darg:ident,
        $keyval:ident, $lock:ident, $flavor:ident, $model:ident, $assertion:ident, $verbosity:ident,
        $binding:ident, $scope:ident, $variable:ident, $safety:ident, $source:ident,
        $openmode:ident, $seek:ident) => {
        match $group {
            $crate::Numbers::Thread => $numbers::$thread($number),
            $crate::Numbers::Comparison => $numbers::$comparison($number),
            $crate::Numbers::Topology => $numbers::$topology($number),
            $crate::Numbers::Split => $numbers::$split($number),
            $crate::Numbers::Combiner => $numbers::$combiner($number),
            $crate::Numbers::Order => $numbers::$order($number),
            $crate::Numbers::Distribution => $numbers::$distribution($number),
            $crate::Numbers::TypeClass => $numbers::$class($number),
            $crate::Numbers::Darg => $numbers::$darg($number),
            $crate::Numbers::Keyval => $numbers::$keyval($number),
            $crate::Numbers::Lock => $numbers::$lock($number),
            $crate::Numbers::Flavor => $numbers::$flavor($number),
            $crate::Numbers::Model => $numbers::$model($number),
            $crate::Numbers::Assertion => $numbers::$assertion($number),
            $crate::Numbers::Verbosity => $numbers::$verbosity($number),
            $crate::Numbers::Binding => $numbers::$binding($number),
            $crate::Numbers::Scope => $numbers::$scope($number),
            $crate::Numbers::Variable => $numbers::$variable($number),
            $crate::Numbers::Safety => $numbers::$safety($number),
            $crate::Numbers::Source => $numbers::$source($number),
            $crate::Numbers::OpenMode => $numbers::$openmode($number),
            $crate::Numbers::Seek => $numbers::$seek($number),
        }
    };
}

/// A status without contents.
pub(crate) fn blank<A: Abi>() -> A::Status {
    // SAFETY: statuses are numbers and nothing else, see `Abi::Status`.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn every_number_is_found_again_and_only_constants_become_constants() {
        let pairs = [(-2, -1), (-1, -3), (-3, -4)];
        let to = |number| pairs.iter().find(|pair| pair.0 == number).map(|pair| pair.1);
        let back = |number| pairs.iter().find(|pair| pair.1 == number).map(|pair| pair.0);
        for number in -8..4 {
            let there = translated(number, to, back);
            assert_eq!(translated(there, back, to), number);
            assert_eq!(to(number).is_some(), back(there).is_some(), "{number}");
        }
        assert_eq!([-4, -5, 7].map(|number| translated(number, to, back)), [-2, -5, 7]);
    }
}
