//! Accesses to memory that this process sees: stores and loads. Elements are combined while nobody else
//! combines any at that rank, whatever its element and however many, since one lock is for all of them: it
//! costs as much as one atomic operation, and long accumulates need it once and not for each element.

use super::combine::Combination;
use super::locks::Held;
use super::word::{WORD, swap_word};
use super::{Buffer, Peer, Target, Window};
use crate::error::Result;
use crate::handle::Op;
use crate::memory::{copy, is_nowhere, is_same};
use crate::objects::dense_len;
use newmadeleine::Segments;
use nmad_rma::origin::STEP;
use nmad_rma::{Base, Place};
use std::ffi::c_void;

/// A word of the program's.
fn word_at(at: *const c_void) -> u64 {
    let mut word = 0_u64;
    copy(at, (&raw mut word).cast(), size_of::<u64>());
    word
}

/// Keeps all others from combining elements at a rank.
#[inline(always)]
fn hold<'a>(window: &'a Window, peer: &Peer) -> Held<'a> {
    window.locks(peer).expect("memory that is seen has its locks here").hold()
}

/// Elements in a row, which were checked to be in the window.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) window: &'a Window,
    pub(super) peer: &'a Peer,
    /// The first byte, in this process.
    pub(super) at: *mut c_void,
    /// Bytes.
    pub(super) len: usize,
}

/// A buffer of as many elements of the same type as at the target.
#[inline(always)]
fn like((.., count, datatype): Target, buffer: Buffer) -> Option<*const c_void> {
    (buffer.1 == count && buffer.2 == datatype && !is_nowhere(buffer.0)).then_some(buffer.0)
}

impl<'a> Row<'a> {
    /// A buffer in one piece that is as long as the row; none: its type has to be asked, or it is wrong.
    #[inline(always)]
    fn as_long(self, target: Target, origin: Buffer) -> Option<*const c_void> {
        let (buffer, count, datatype) = origin;
        like(target, origin)
            .or_else(|| (dense_len(datatype, count)? == self.len && !is_nowhere(buffer)).then_some(buffer))
    }

    /// Stores a buffer in one piece; none: it is not.
    #[inline(always)]
    pub(super) fn put(self, target: Target, origin: Buffer) -> Option<()> {
        copy(self.as_long(target, origin)?, self.at, self.len);
        Some(())
    }

    /// Loads into a buffer in one piece; none: it is not.
    #[inline(always)]
    pub(super) fn get(self, target: Target, origin: Buffer) -> Option<()> {
        copy(self.at, self.as_long(target, origin)?.cast_mut(), self.len);
        Some(())
    }

    /// Combines elements with those of buffers that have the same; none: they have not, the operator has to
    /// be asked, or there are so many that it is done in steps. Whatever the length of an element, a step
    /// has more than half of its bytes.
    #[inline(always)]
    pub(super) fn combine(
        self,
        (origin, result): (Buffer, Option<Buffer>),
        target: Target,
        op: Op,
    ) -> Option<()> {
        let combination = Combination::known(op, target.3)?;
        if self.window.adapters_change && combination.is_of_words() {
            return None;
        }
        let from = if combination.reads() { like(target, origin)? } else { origin.0 };
        let into = match result {
            Some(result) => Some(like(target, result)?.cast_mut()),
            None => None,
        };
        if self.len as u64 > STEP / 2 || self.len == 0 {
            return None;
        }
        // Elements are read and changed in one step.
        let _held = hold(self.window, self.peer);
        if let Some(into) = into {
            copy(self.at, into, self.len);
        }
        combination.apply_to_row((target.2, self.len), from, self.at);
        Some(())
    }

    /// Writes an element if what is there is the same as `compare`; `into` gets what was there before.
    #[inline(always)]
    pub(super) fn swap(self, (new, compare): (*const c_void, *const c_void), into: *mut c_void) {
        let Row { window, peer, at, len } = self;
        let _held = hold(window, peer);
        if window.adapters_change && len as u64 == WORD && at.addr().is_multiple_of(len) {
            let [compare, new] = [compare, new].map(word_at);
            let old = swap_word(at, compare, new);
            return copy((&raw const old).cast(), into, len);
        }
        let is_same = is_same(at, compare, len);
        copy(at, into, len);
        if is_same {
            copy(new, at, len);
        }
    }

    /// The same memory, for what looks at its elements one by one.
    pub(super) fn direct(self) -> Direct<'a> {
        let place = Place::One(0, self.len as u64);
        Direct { window: self.window, peer: self.peer, base: Base::new(self.at), place }
    }
}

/// A place in memory that this process sees, which was checked to be in the window.
pub(super) struct Direct<'a> {
    pub(super) window: &'a Window,
    pub(super) peer: &'a Peer,
    pub(super) base: Base,
    pub(super) place: Place,
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
            Direct { place, ..*self }.step(combination, data, into.as_ref())?;
            from += len;
        }
        Ok(())
    }

    fn step(&self, combination: Combination, data: &[u8], into: Option<&Segments>) -> Result<()> {
        let _held = hold(self.window, self.peer);
        if self.window.adapters_change
            && let Some(old) = combination.change_words(data, self.base, &self.place)
        {
            into.into_iter().for_each(|into| _ = into.write(0, &old));
            return Ok(());
        }
        if let Some(into) = into {
            self.get(into);
        }
        combination.apply(data, self.base, &self.place)
    }
}
