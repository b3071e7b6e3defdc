//! The datatype itself: what can be asked of it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::bounds::{Bounds, Interval, multiply};
use super::layout::{Layout, Run};
use super::tree::{Combiner, Contents, Datatype, Inner, Structure};
use super::{Basic, Family, Signature};
use crate::error::{Class, Result};

/// How deep types may be nested: walks and the end of a type recurse.
const DEEPEST: u32 = 2000;

impl Datatype {
    /// A predefined type.
    pub fn of(basic: Basic) -> Datatype {
        Datatype::predefined(basic).clone()
    }

    /// A predefined type, for as long as the process lives. Each is made when it is used for the first
    /// time, so that the sizes of Fortran's types may be set before theirs.
    #[inline]
    pub fn predefined(basic: Basic) -> &'static Datatype {
        static TYPES: [OnceLock<Datatype>; 256] = [const { OnceLock::new() }; 256];
        TYPES[basic as usize].get_or_init(|| Datatype::from_basic(basic))
    }

    fn from_basic(basic: Basic) -> Datatype {
        let bounds = match basic.family() {
            Family::Bound => Bounds::mark(basic == Basic::LowerBound),
            _ => Bounds::basic(basic.span(), basic.extent(), basic.alignment()),
        };
        let limits = Interval { begin: 0, end: basic.extent() };
        let layout = match basic.index_offset().zip(basic.index()) {
            Some((offset, index)) => Layout::sequence(vec![
                (0, Layout::Run(Run { offset: 0, len: basic.scalar().size() })),
                (offset, Layout::Run(Run { offset: 0, len: index.size() })),
            ]),
            None => Layout::Run(Run { offset: 0, len: basic.size() }),
        };
        Datatype(Arc::new(Inner {
            size: basic.size(),
            extent: basic.extent(),
            dense: is_dense(&layout, basic.extent()),
            layout,
            bounds,
            limits,
            elements: basic.elements(),
            signature: Signature::of(basic),
            depth: 0,
            structure: Structure::Basic(basic),
            contents: Contents::named(),
            committed: AtomicBool::new(true),
            tile: OnceLock::new(),
            handle: AtomicU32::new(basic as u32),
        }))
    }

    /// A type from its parts: everything else follows from them. `layout` is asked when sizes and bounds
    /// are known to fit into 64 bits, so that it may count without checking.
    pub(super) fn assemble(
        structure: Structure,
        bounds: Bounds,
        contents: Contents,
        layout: impl FnOnce(&Structure) -> Layout,
    ) -> Result<Datatype> {
        let size = structure.size()?;
        let elements = structure.elements()?;
        let limits = bounds.resolve()?;
        let extent = limits.end - limits.begin;
        let layout = layout(&structure);
        let depth = structure.depth() + 1;
        if depth > DEEPEST {
            let text = format!("the datatype is nested more than {DEEPEST} deep: build it from fewer steps");
            return Err(Class::TYPE.error(text));
        }
        Ok(Datatype(Arc::new(Inner {
            size,
            extent,
            dense: is_dense(&layout, extent),
            layout,
            bounds,
            limits,
            elements,
            signature: structure.signature(),
            depth,
            structure,
            contents,
            committed: AtomicBool::new(false),
            tile: OnceLock::new(),
            handle: AtomicU32::new(0),
        })))
    }

    /// Bytes of data in one element.
    #[inline]
    pub fn size(&self) -> i64 {
        self.0.size
    }

    /// Bytes from one element to the next; may be negative.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.0.extent
    }

    /// Lower bound.
    #[inline]
    pub fn lower_bound(&self) -> i64 {
        self.0.limits.begin
    }

    /// Displacement of the first byte of data.
    pub fn true_lower_bound(&self) -> i64 {
        self.0.bounds.data().begin
    }

    /// Displacement of the first byte of data of `count` elements, if they have any.
    #[inline]
    pub fn first(&self, count: i64) -> Option<i64> {
        (count > 0 && self.0.size > 0).then(|| self.true_lower_bound())
    }

    /// Bytes from the first to the last byte of data.
    pub fn true_extent(&self) -> i64 {
        let data = self.0.bounds.data();
        data.end.saturating_sub(data.begin)
    }

    /// Whether any number of elements is one run of memory.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.0.dense
    }

    /// The memory of `count` elements relative to the buffer's address, if it is one run (perhaps an
    /// empty one).
    #[inline]
    pub fn run(&self, count: i64) -> Option<Run> {
        match self.0.layout {
            Layout::Run(run) if self.0.dense || run.len == 0 => {
                Some(Run { len: run.len.saturating_mul(count), ..run })
            }
            Layout::Run(run) if count == 1 => Some(run),
            _ if count == 0 => Some(Run { offset: 0, len: 0 }),
            _ => None,
        }
    }

    /// Bytes of data in `count` elements.
    ///
    /// # Errors
    /// Class COUNT if they do not fit into 64 bits.
    #[inline]
    pub fn bytes(&self, count: i64) -> Result<i64> {
        multiply(self.0.size, count)
    }

    /// The predefined type, if it is one.
    #[inline]
    pub fn basic(&self) -> Option<Basic> {
        match self.0.structure {
            Structure::Basic(basic) => Some(basic),
            _ => None,
        }
    }

    /// Whether MPI made it: it is named, or of `MPI_Type_create_f90_*`.
    pub fn is_predefined(&self) -> bool {
        self.basic().is_some() || self.f90_basic().is_some()
    }

    /// The only predefined type that it is made of, if there is just one: what an accumulate needs.
    pub fn only_basic(&self) -> Option<Basic> {
        self.0.structure.only_basic()
    }

    /// Basic elements in one element, as `MPI_Get_elements` counts.
    pub fn elements(&self) -> i64 {
        self.0.elements
    }

    /// The call and the arguments that made it.
    pub fn contents(&self) -> &Contents {
        &self.0.contents
    }

    /// How it was made.
    pub fn combiner(&self) -> Combiner {
        self.0.contents.combiner
    }

    /// Allows its use in communication. Everything was prepared when the type was made.
    pub fn commit(&self) {
        self.0.committed.store(true, Ordering::Relaxed);
    }

    /// Whether it may be used in communication.
    #[inline]
    pub fn is_committed(&self) -> bool {
        self.0.committed.load(Ordering::Relaxed)
    }

    /// The number that [`Datatype::set_handle`] gave it; of a predefined type its [`Basic`]; otherwise zero.
    pub fn handle(&self) -> u32 {
        self.0.handle.load(Ordering::Relaxed)
    }

    /// Remembers under which number a table of handles knows it; callbacks of users are called with it.
    pub fn set_handle(&self, handle: u32) {
        self.0.handle.store(handle, Ordering::Relaxed);
    }

    /// Whether both are the same object.
    pub fn is_same(&self, other: &Datatype) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The signature of `count` elements.
    pub fn signature(&self, count: i64) -> Signature {
        self.signature_of_one().times(count)
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    pub(super) fn structure(&self) -> &Structure {
        &self.0.structure
    }

    pub(super) fn signature_of_one(&self) -> Signature {
        self.0.signature
    }

    pub(super) fn depth(&self) -> u32 {
        self.0.depth
    }
}

fn is_dense(layout: &Layout, extent: i64) -> bool {
    matches!(layout, Layout::Run(run) if run.len == extent)
}
