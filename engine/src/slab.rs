//! A table with reused places. Entries are identified by place and generation, so that a stale or forged
//! identifier from the wire finds nothing.

use alloc::vec::Vec;

/// Identifiers have 64 bits: generation above, place below. Zero is never an identifier.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    entry: Option<T>,
}

/// A place that was taken and has to be filled.
#[must_use]
pub(crate) struct Vacant<'a, T> {
    place: &'a mut Option<T>,
    name: u64,
}

impl<T> Vacant<'_, T> {
    /// Returns the identifier of the future entry.
    #[inline(always)]
    pub(crate) fn name(&self) -> u64 {
        self.name
    }

    #[inline(always)]
    pub(crate) fn fill(self, entry: T) {
        // A free place is empty: skip the check of `replace` for an old value to drop.
        debug_assert!(self.place.is_none());
        core::mem::forget(self.place.replace(entry));
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline(always)]
    pub(crate) fn insert(&mut self, entry: T) -> u64 {
        let vacant = self.vacant();
        let name = vacant.name;
        vacant.fill(entry);
        name
    }

    /// Takes a place for an entry that needs its own identifier.
    // Inlined everywhere: entries are long, and are written once, directly to their place.
    #[inline(always)]
    pub(crate) fn vacant(&mut self) -> Vacant<'_, T> {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1).max(1);
        let name = u64::from(place.generation) << 32 | u64::from(index);
        Vacant { place: &mut place.entry, name }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        self.places.push(Place { generation: 0, entry: None });
        (self.places.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, name: u64) -> Option<&T> {
        let place = self.places.get(name as u32 as usize)?;
        if u64::from(place.generation) == name >> 32 { place.entry.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, name: u64) -> Option<&mut T> {
        let place = self.places.get_mut(name as u32 as usize)?;
        if u64::from(place.generation) == name >> 32 { place.entry.as_mut() } else { None }
    }

    #[inline]
    pub(crate) fn remove(&mut self, name: u64) -> Option<T> {
        let place = self.places.get_mut(name as u32 as usize)?;
        if u64::from(place.generation) != name >> 32 {
            return None;
        }
        let entry = place.entry.take()?;
        self.free.push(name as u32);
        Some(entry)
    }

    /// Removes an entry if `wanted` returns `Ok`, and returns the result of `wanted`. `None`: there is no
    /// such entry.
    #[inline(always)]
    pub(crate) fn take_if<R, E>(
        &mut self,
        name: u64,
        wanted: impl FnOnce(&T) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let place = self.places.get_mut(name as u32 as usize)?;
        if u64::from(place.generation) != name >> 32 {
            return None;
        }
        let answer = wanted(place.entry.as_ref()?);
        if answer.is_ok() {
            place.entry = None;
            self.free.push(name as u32);
        }
        Some(answer)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Places that a walk over all entries looks at.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Entries, in the order of their places.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().filter_map(|place| place.entry.as_mut())
    }

    /// Iterates over entries and their identifiers, in the order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let name = u64::from(place.generation) << 32 | index as u64;
            place.entry.as_ref().map(|entry| (name, entry))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_taken_if_it_is_wanted() {
        let mut slab = Slab::default();
        let (odd, even) = (slab.insert(3), slab.insert(4));
        let half = |entry: &i32| if entry % 2 == 0 { Ok(entry / 2) } else { Err("odd") };
        assert_eq!(slab.take_if(odd, half), Some(Err("odd")));
        assert_eq!(slab.take_if(even, half), Some(Ok(2)));
        assert_eq!(slab.take_if(even, half), None, "it is gone");
        assert_eq!((slab.get(odd), slab.len()), (Some(&3), 1));
        let other = slab.insert(6);
        assert_eq!((slab.take_if(even, half), slab.get(other)), (None, Some(&6)), "an old name of its place");
    }
}
