//! The types of which a datatype consists, which contain each other: it is a tree.

use super::bounds::{Bounds, Interval};
use super::layout::Layout;
use super::{Basic, Signature};
use nmad_engine::memory::Tile;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, OnceLock};

/// A datatype: cheap to clone, and never changed but for being committed.
#[derive(Debug, Clone)]
pub struct Datatype(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) size: i64,
    pub(super) extent: i64,
    /// `count` elements are one run of memory.
    pub(super) dense: bool,
    pub(super) layout: Layout,
    /// Its pieces, for messages.
    pub(super) tile: OnceLock<Arc<Tile>>,
    pub(super) bounds: Bounds,
    pub(super) limits: Interval,
    /// Basic elements of one element.
    pub(super) elements: i64,
    pub(super) signature: Signature,
    pub(super) depth: u32,
    pub(super) structure: Structure,
    pub(super) contents: Contents,
    pub(super) committed: AtomicBool,
    pub(super) handle: AtomicU32,
}

/// A block of elements of some type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Displacement in bytes of its first element.
    pub offset: i64,
    /// Elements, each an extent behind the last.
    pub count: i64,
}

/// What a type is made of.
#[derive(Debug)]
pub enum Structure {
    Basic(Basic),
    /// The same type map as another type.
    Same(Datatype),
    /// `count` blocks of `block` elements; the blocks are `stride` bytes apart.
    Strided {
        of: Datatype,
        offset: i64,
        count: i64,
        block: i64,
        stride: i64,
    },
    Indexed {
        of: Datatype,
        blocks: Box<[Block]>,
    },
    Fields(Box<[(Block, Datatype)]>),
}

/// How a type was made; the numbers are those of the standard's binary interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum Combiner {
    Named = 101,
    Dup = 102,
    Contiguous = 103,
    Vector = 104,
    Hvector = 105,
    Indexed = 106,
    Hindexed = 107,
    IndexedBlock = 108,
    HindexedBlock = 109,
    Struct = 110,
    Subarray = 111,
    Darray = 112,
    F90Real = 113,
    F90Complex = 114,
    F90Integer = 115,
    Resized = 116,
    ValueIndex = 117,
}

/// Which of the two functions of the standard was called: with counts of `int`, or the `_c` one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Counts are `int`, displacements in bytes `MPI_Aint`.
    Int,
    /// Counts and displacements are `MPI_Count`.
    Large,
}

/// The arguments of the call that made a type, in the order of the standard.
#[derive(Debug, Clone)]
pub struct Contents {
    /// Which call.
    pub combiner: Combiner,
    /// Its form.
    pub form: Form,
    /// Arguments of type `int`.
    pub integers: Box<[i64]>,
    /// Arguments of type `MPI_Aint`; none in the large form.
    pub addresses: Box<[i64]>,
    /// Arguments of type `MPI_Count`; only in the large form.
    pub counts: Box<[i64]>,
    /// The types.
    pub types: Box<[Datatype]>,
}
