//! Walking over the memory of some elements, piece by piece, without allocation.

use nmad_engine::memory::Tile;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::Datatype;
use super::layout::{Layout, Run, Strided};

/// Whether a walk goes on.
pub type Step = ControlFlow<()>;

/// The receiver of the pieces of a walk.
pub trait Visitor {
    /// Contiguous bytes.
    fn run(&mut self, run: Run) -> Step;

    /// Equal runs at equal distances.
    #[inline]
    fn strided(&mut self, strided: Strided) -> Step {
        let Strided { first, count, stride } = strided;
        (0..count).try_for_each(|i| {
            self.run(Run { offset: first.offset.wrapping_add(i.wrapping_mul(stride)), len: first.len })
        })
    }
}

impl Layout {
    /// Shows all pieces of an element at `base` to `visitor`, in the order of the type map.
    pub fn walk(&self, base: i64, visitor: &mut impl Visitor) -> Step {
        let moved = |run: &Run| Run { offset: base.wrapping_add(run.offset), len: run.len };
        match self {
            Layout::Run(run) => visitor.run(moved(run)),
            Layout::Strided(strided) => visitor.strided(Strided { first: moved(&strided.first), ..*strided }),
            Layout::Runs(runs) => runs.iter().try_for_each(|run| visitor.run(moved(run))),
            Layout::Loop { count, stride, body } => {
                (0..*count).try_for_each(|i| body.walk(base.wrapping_add(i.wrapping_mul(*stride)), visitor))
            }
            Layout::Sequence(parts) => {
                parts.iter().try_for_each(|(offset, part)| part.walk(base.wrapping_add(*offset), visitor))
            }
        }
    }

    /// The same for `count` elements that are `extent` apart.
    #[inline]
    pub fn walk_all(&self, count: i64, extent: i64, visitor: &mut impl Visitor) -> Step {
        match self {
            _ if self.is_empty() => Step::Continue(()),
            Layout::Run(run) if extent == run.len => visitor.run(Run { len: run.len * count, ..*run }),
            Layout::Run(first) => visitor.strided(Strided { first: *first, count, stride: extent }),
            Layout::Strided(inner) if inner.stride.checked_mul(inner.count) == Some(extent) => {
                visitor.strided(Strided { count: inner.count * count, ..*inner })
            }
            _ => (0..count).try_for_each(|i| self.walk(i.wrapping_mul(extent), visitor)),
        }
    }
}

/// Joins runs that touch before it hands them on.
struct Joining<F> {
    pending: Run,
    take: F,
}

impl<F: FnMut(Run)> Visitor for Joining<F> {
    #[inline]
    fn run(&mut self, run: Run) -> Step {
        if self.pending.offset.wrapping_add(self.pending.len) == run.offset {
            self.pending.len += run.len;
        } else {
            if self.pending.len > 0 {
                (self.take)(self.pending);
            }
            self.pending = run;
        }
        Step::Continue(())
    }
}

/// A part of a walk: so many bytes behind those that are skipped.
struct Part<F> {
    skip: i64,
    left: i64,
    take: F,
}

impl<F: FnMut(Run)> Visitor for Part<F> {
    #[inline]
    fn run(&mut self, run: Run) -> Step {
        if self.skip >= run.len {
            self.skip -= run.len;
            return Step::Continue(());
        }
        let len = (run.len - self.skip).min(self.left);
        (self.take)(Run { offset: run.offset.wrapping_add(self.skip), len });
        (self.skip, self.left) = (0, self.left - len);
        if self.left > 0 { Step::Continue(()) } else { Step::Break(()) }
    }

    fn strided(&mut self, strided: Strided) -> Step {
        let Strided { first, count, stride } = strided;
        // Blocks that are skipped whole cost nothing.
        let skipped = if first.len > 0 { (self.skip / first.len).min(count) } else { 0 };
        self.skip -= skipped * first.len;
        (skipped..count).try_for_each(|i| {
            self.run(Run { offset: first.offset.wrapping_add(i.wrapping_mul(stride)), len: first.len })
        })
    }
}

impl Datatype {
    /// Calls `take` for each contiguous piece of `count` elements, in the order of the type map; pieces
    /// that touch are one. Displacements are relative to the buffer's address; no piece is empty.
    pub fn for_each_run(&self, count: i64, mut take: impl FnMut(Run)) {
        if let Some(run) = self.run(count) {
            if run.len > 0 {
                take(run);
            }
            return;
        }
        let mut joining = Joining { pending: Run { offset: 0, len: 0 }, take };
        let _ = self.layout().walk_all(count, self.extent(), &mut joining);
        if joining.pending.len > 0 {
            (joining.take)(joining.pending);
        }
    }

    /// The pieces of one element, listed at the first message of this type for all of them: in a list of its
    /// own for each message, 65,536 blocks of 64 B took a tenth of its time (EPYC).
    pub fn tile(&self) -> &Arc<Tile> {
        self.0.tile.get_or_init(|| {
            let mut pieces = Vec::new();
            self.for_each_run(1, |run| pieces.push((run.offset as isize, run.len as usize)));
            Arc::new(Tile::new(pieces.into_iter(), self.extent() as isize))
        })
    }

    /// Calls `take` for the pieces of the `len` bytes of data from byte `from` on of elements without end, an
    /// extent apart, as views of files tile them. Nothing, if elements have no data.
    pub fn for_each_run_of(&self, from: i64, len: i64, mut take: impl FnMut(Run)) {
        if self.size() == 0 || len == 0 {
            return;
        }
        if let (true, Layout::Run(run)) = (self.is_contiguous(), self.layout()) {
            return take(Run { offset: run.offset.wrapping_add(from), len });
        }
        let (skip, base) = (from % self.size(), (from / self.size()).wrapping_mul(self.extent()));
        let moved = |run: Run| take(Run { offset: base.wrapping_add(run.offset), len: run.len });
        let elements = (skip + len - 1) / self.size() + 1;
        let _ = self.layout().walk_all(elements, self.extent(), &mut Part { skip, left: len, take: moved });
    }

    /// The memory of `count` elements relative to the buffer's address, if it is equal runs at equal
    /// distances. The caller has checked that [`Datatype::bytes`] of `count` elements fit into 64 bits.
    pub fn strides(&self, count: i64) -> Option<Strided> {
        match *self.layout() {
            Layout::Run(first) => Some(Strided { first, count, stride: self.extent() }),
            Layout::Strided(strided) if count == 1 => Some(strided),
            Layout::Strided(inner) if inner.stride.checked_mul(inner.count) == Some(self.extent()) => {
                Some(Strided { count: inner.count * count, ..inner })
            }
            _ => None,
        }
    }

    /// An upper limit of how many pieces [`Datatype::for_each_run`] finds; saturates.
    pub fn max_runs(&self, count: i64) -> i64 {
        if self.run(count).is_some() { 1 } else { self.layout().runs().saturating_mul(count) }
    }
}
