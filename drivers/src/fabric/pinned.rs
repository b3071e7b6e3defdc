//! Registered memory of the application, piece by piece.

use super::adapter::{Adapter, Purpose};
use super::cache::{Cache, Registered};
use nmad_engine::memory::{Segment, Segments};
use std::ops::Range;
use std::sync::Arc;

/// The address range of each piece, with its registration.
pub(crate) struct Pinned<R>(Vec<(Range<usize>, Arc<R>)>);

impl<R> Default for Pinned<R> {
    fn default() -> Self {
        Pinned(Vec::new())
    }
}

impl<R> Pinned<R> {
    /// Registers memory.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn new<A: Adapter<Region = R>>(
        memory: &Segments,
        purpose: Purpose,
        (adapter, cache): (&mut A, &mut Cache<R>),
    ) -> Result<Pinned<R>, String> {
        let mut pieces = Vec::new();
        for piece in memory.iter() {
            let Registered { region, .. } =
                cache.register(piece, purpose, |memory| adapter.register(memory, purpose))?;
            let start = piece.start.addr();
            pieces.push((start..start + piece.len, region));
        }
        Ok(Pinned(pieces))
    }

    /// The longest contiguous range of this memory from byte `from` on, up to `longest` bytes, with its
    /// registration.
    pub(crate) fn run(&self, memory: &Segments, from: u64, longest: u64) -> Option<(Segment, &R)> {
        let run = memory.slice(from, longest).iter().next()?;
        let (_, region) = self.0.iter().find(|(piece, _)| piece.contains(&run.start.addr()))?;
        Some((run, region))
    }
}
