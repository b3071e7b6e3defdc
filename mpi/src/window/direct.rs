//! Accesses to memory that this process sees: stores and loads. Elements are combined while nobody else
//! combines any at that rank, whatever its element and however many, since one lock is for all of them: it
//! costs as much as one atomic operation, and long accumulates need it once and not for each element.

use super::combine::Combination;
use super::locks::Held;
use super::{Peer, Window};
use crate::error::Result;
use newmadeleine::Segments;
use nmad_rma::origin::STEP;
use nmad_rma::{Base, Place};

/// Keeps all others from combining elements at a rank.
#[inline(always)]
pub(super) fn hold<'a>(window: &'a Window, peer: &Peer) -> Held<'a> {
    window.locks(peer).expect("memory that is seen has its locks here").hold()
}

/// A place in memory that this process sees, which was checked to be in the window.
pub(super) struct Direct<'a> {
    pub(super) window: &'a Window,
    pub(super) peer: &'a Peer,
    pub(super) base: Base,
    pub(super) place: &'a Place,
}

impl Direct<'_> {
    /// Stores data that are as long as the place.
    pub(super) fn put(&self, data: &Segments) {
        self.place.segments(self.base).copy_from(data);
    }

    /// Loads into memory that is as long as the place.
    pub(super) fn get(&self, into: &Segments) {
        into.copy_from(&self.place.segments(self.base));
    }

    /// Combines data that are as long as the place, if any are needed; `into` gets what was there before. Of
    /// many elements in steps, so that others have their turns in between.
    ///
    /// # Errors
    /// The data are no elements.
    pub(super) fn combine(
        &self,
        combination: Combination,
        data: &Segments,
        into: Option<&Segments>,
    ) -> Result<()> {
        let element = combination.element().size.max(1);
        let (step, mut from, mut gathered) = (STEP / element * element, 0, Vec::new());
        while from < self.place.len() {
            let len = step.min(self.place.len() - from);
            let place = self.place.part(from, len);
            let (data, into) = (data.slice(from, len), into.map(|into| into.slice(from, len)));
            gathered.clear();
            let data = data.contiguous().unwrap_or_else(|| {
                data.append_to(&mut gathered);
                &gathered
            });
            Direct { place: &place, ..*self }.step(combination, data, into.as_ref())?;
            from += len;
        }
        Ok(())
    }

    fn step(&self, combination: Combination, data: &[u8], into: Option<&Segments>) -> Result<()> {
        let _held = hold(self.window, self.peer);
        if let Some(into) = into {
            self.get(into);
        }
        combination.apply(data, self.base, self.place)
    }

    /// Stores data if what is there is the same as `compare`; `into` gets what was there before. All are one
    /// element in one piece.
    pub(super) fn swap(&self, (data, compare): (&Segments, &Segments), into: &Segments) {
        let _held = hold(self.window, self.peer);
        let is_same = self.place.segments(self.base).contiguous() == compare.contiguous();
        self.get(into);
        if is_same {
            self.put(data);
        }
    }
}
