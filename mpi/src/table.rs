//! Tables of objects by handle. Looking up takes two loads and no lock; inserting and removing lock.
//!
//! A handle that one thread frees while another uses it is an error of the program that MPI leaves
//! undefined; everything else (a handle that never was, or was freed before) is found out here.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Entries of the first piece of a table; each further one doubles the table.
const FIRST: u32 = 256;
/// Enough pieces for 2^31 entries.
const PIECES: usize = 24;
/// Freed indices rest until there are so many, so that handles that are used after being freed are seen.
const RESTING: usize = 64;

type Place<T> = AtomicPtr<T>;

/// Objects by index.
pub(crate) struct Table<T> {
    pieces: [AtomicPtr<Place<T>>; PIECES],
    free: Mutex<Free>,
}

struct Free {
    /// Indices that were in use, the oldest first.
    freed: VecDeque<u32>,
    /// Indices from here on were never used.
    next: u32,
}

impl<T> Table<T> {
    /// An empty table; what programs make gets indices from `first` on.
    pub(crate) const fn new(first: u32) -> Table<T> {
        let pieces = [const { AtomicPtr::new(std::ptr::null_mut()) }; PIECES];
        Table { pieces, free: Mutex::new(Free { freed: VecDeque::new(), next: first }) }
    }

    /// The object of this index, if there is one.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let pointer = self.place(index)?.load(Ordering::Acquire);
        // SAFETY: made by `Arc::into_raw` and alive while it is in the table, from which the program may not
        // take it during a call that uses it, see above.
        unsafe { pointer.as_ref() }
    }

    /// The object of this index, to keep.
    #[inline]
    pub(crate) fn share(&self, index: u32) -> Option<Arc<T>> {
        let pointer = self.place(index)?.load(Ordering::Acquire);
        if pointer.is_null() {
            return None;
        }
        // SAFETY: as in `get`; the count is that of the new `Arc`.
        unsafe {
            Arc::increment_strong_count(pointer);
            Some(Arc::from_raw(pointer))
        }
    }

    /// Takes an object into the table: its index.
    pub(crate) fn insert(&self, object: Arc<T>) -> u32 {
        let index = self.reserve();
        self.set(index, object);
        index
    }

    /// An index for an object that will be [`Table::set`].
    pub(crate) fn reserve(&self) -> u32 {
        let mut free = self.free();
        let index = if free.freed.len() >= RESTING { free.freed.pop_front() } else { None };
        index.unwrap_or_else(|| {
            free.next += 1;
            free.next - 1
        })
    }

    /// Puts a predefined or awaited object to its place; the object that was there is dropped.
    pub(crate) fn set(&self, index: u32, object: Arc<T>) {
        let _guard = self.free();
        self.put(index, object);
    }

    /// Takes an object out of the table.
    pub(crate) fn remove(&self, index: u32) -> Option<Arc<T>> {
        let object = self.hide(index)?;
        self.release(index);
        Some(object)
    }

    /// Takes an object out of the table, but no other gets its index before it is [`Table::release`]d.
    pub(crate) fn hide(&self, index: u32) -> Option<Arc<T>> {
        let _guard = self.free();
        let pointer = self.place(index)?.swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `Arc::into_raw`, and in the table no more.
        (!pointer.is_null()).then(|| unsafe { Arc::from_raw(pointer) })
    }

    /// Gives back the index of an object that was hidden, unless it is a predefined one.
    pub(crate) fn release(&self, index: u32) {
        if index >= crate::handle::DYNAMIC {
            self.free().freed.push_back(index);
        }
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// With the lock held.
    fn put(&self, index: u32, object: Arc<T>) {
        let (piece, offset) = split(index);
        if self.pieces[piece].load(Ordering::Acquire).is_null() {
            let new: Vec<Place<T>> = (0..len(piece)).map(|_| Place::default()).collect();
            // Pieces stay as long as the process.
            self.pieces[piece].store(Box::leak(new.into_boxed_slice()).as_mut_ptr(), Ordering::Release);
        }
        let base = self.pieces[piece].load(Ordering::Acquire);
        // SAFETY: the piece exists and has an entry of this offset.
        let place = unsafe { &*base.add(offset) };
        let old = place.swap(Arc::into_raw(object).cast_mut(), Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: made by `Arc::into_raw`, and in the table no more.
            drop(unsafe { Arc::from_raw(old) });
        }
    }

    #[inline]
    fn place(&self, index: u32) -> Option<&Place<T>> {
        let (piece, offset) = split(index);
        let base = self.pieces.get(piece)?.load(Ordering::Acquire);
        // SAFETY: a piece that is not null has an entry of this offset, and stays.
        (!base.is_null()).then(|| unsafe { &*base.add(offset) })
    }
}

/// Piece and offset of an index.
#[inline]
fn split(index: u32) -> (usize, usize) {
    // The first two pieces are of the same length, and hold nearly everything.
    if index < 2 * FIRST {
        return ((index / FIRST) as usize, (index % FIRST) as usize);
    }
    let top = index.ilog2();
    ((top - FIRST.ilog2() + 1) as usize, (index - (1 << top)) as usize)
}

/// Entries of a piece.
fn len(piece: usize) -> usize {
    if piece == 0 { FIRST as usize } else { (FIRST as usize) << (piece - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::DYNAMIC;

    #[test]
    fn what_was_inserted_is_found_until_it_is_removed() {
        let table = Table::new(DYNAMIC);
        table.set(1, Arc::new(0));
        let indices: Vec<u32> = (0..3000).map(|n| table.insert(Arc::new(n))).collect();
        assert_eq!(indices[0], DYNAMIC);
        for (n, &index) in indices.iter().enumerate() {
            assert_eq!(table.get(index), Some(&n));
            assert_eq!(table.remove(index).as_deref(), Some(&n));
            assert_eq!((table.get(index), table.share(index), table.remove(index)), (None, None, None));
        }
        assert_eq!(table.get(1), Some(&0));
        assert_eq!((table.get(2), table.get(1 << 20), table.get(u32::MAX)), (None, None, None));
    }

    #[test]
    fn indices_rest_before_they_are_used_again() {
        let table = Table::new(DYNAMIC);
        let first = table.insert(Arc::new(7));
        table.remove(first);
        for _ in 0..RESTING - 1 {
            let next = table.insert(Arc::new(7));
            assert_ne!(next, first);
            table.remove(next);
        }
        assert_eq!(table.insert(Arc::new(7)), first);
    }

    #[test]
    fn the_index_of_what_is_hidden_is_used_again_when_it_is_released() {
        let table = Table::new(DYNAMIC);
        let first = table.insert(Arc::new(7));
        assert_eq!(table.hide(first).as_deref(), Some(&7));
        assert_eq!((table.get(first), table.hide(first)), (None, None));
        let is_used = || {
            let others: Vec<u32> = (0..3 * RESTING).map(|_| table.insert(Arc::new(7))).collect();
            others.iter().for_each(|&index| drop(table.remove(index)));
            others.contains(&first)
        };
        assert!((0..3).all(|_| !is_used()));
        table.release(first);
        assert!((0..3).any(|_| is_used()));
    }
}
