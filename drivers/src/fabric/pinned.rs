//! Memory of the application that operations work on, registered piece by piece.

use super::adapter::{Adapter, Purpose};
use super::cache::{Cache, Registered};
use nmad_engine::memory::{Segment, Segments};
use std::ops::Range;
use std::sync::Arc;

/// The addresses of each piece, and its registration.
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

    /// What lies in one piece of this memory from byte `from` on, and no more than `longest` bytes of it.
    pub(crate) fn run(&self, memory: &Segments, from: u64, longest: u64) -> Option<(Segment, &R)> {
        let run = memory.slice(from, longest).iter().next()?;
        let (_, region) = self.0.iter().find(|(piece, _)| piece.contains(&run.start.addr()))?;
        Some((run, region))
    }
}
