//! Lists of entries by key, in order of arrival, with constant-time insertion, lookup and removal
//! whatever their number.
//!
//! An entry is in one list for each of its classes (a posted receive has one key; an unexpected message
//! can be asked for in four ways). The hash table holds only the place of each list's first entry and
//! reads the key from the entry itself: a few bytes a list.

use alloc::vec::Vec;
use hashbrown::HashTable;

/// What entries are found by; `None` is a wildcard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListKey {
    pub(crate) context: u32,
    pub(crate) peer: Option<u32>,
    pub(crate) tag: Option<u64>,
}

impl ListKey {
    /// A fixed mixing function, so that runs repeat bit for bit (multiply and fold, as in wyhash).
    #[inline]
    fn hash(&self) -> u64 {
        let peer = self.peer.map_or(1 << 40, u64::from) | u64::from(self.tag.is_none()) << 41;
        let a = (u64::from(self.context) << 42 ^ peer) ^ 0x9e37_79b9_7f4a_7c15;
        let b = self.tag.unwrap_or(0) ^ 0xd1b5_4a32_d192_ed03;
        let product = u128::from(a).wrapping_mul(u128::from(b | 1));
        let folded = (product as u64) ^ (product >> 64) as u64;
        (folded ^ a.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Neighbours in one circular list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Neighbours {
    prev: u32,
    next: u32,
}

/// An entry of [`Lists`] with `N` classes.
pub(crate) trait Listed<const N: usize> {
    fn key(&self, class: usize) -> ListKey;
    fn neighbours(&mut self) -> &mut [Neighbours; N];
}

#[derive(Debug)]
pub(crate) struct Lists<T, const N: usize> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
    heads: HashTable<u32>,
}

impl<T, const N: usize> Default for Lists<T, N> {
    fn default() -> Self {
        Lists { places: Vec::new(), free: Vec::new(), heads: HashTable::new() }
    }
}

impl<T: Listed<N>, const N: usize> Lists<T, N> {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)?.as_ref()
    }

    fn at(&mut self, place: u32) -> &mut T {
        self.places[place as usize].as_mut().expect("a linked place holds an entry")
    }

    /// All entries and their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.places.iter().enumerate().filter_map(|(i, e)| e.as_ref().map(|e| (i as u32, e)))
    }

    /// The first entry with this key.
    #[inline]
    pub(crate) fn first(&self, key: &ListKey) -> Option<u32> {
        let places = &self.places;
        self.heads
            .find(key.hash(), |&head| head_key::<T, N>(places, head) == *key)
            .map(|&head| head / N as u32)
    }

    /// Appends an entry to the lists of all its classes.
    #[inline]
    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        let place = self.place(entry);
        for class in 0..N {
            let key = self.at(place).key(class);
            match self.head(&key) {
                Some(head) => self.link_before(head, place, class),
                None => self.begin(place, class, &key),
            }
        }
        place
    }

    /// Takes an entry out of all its lists.
    #[inline]
    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        self.get(place)?;
        for class in 0..N {
            self.unlink(place, class);
        }
        self.free.push(place);
        self.places[place as usize].take()
    }

    fn place(&mut self, entry: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(entry);
            return place;
        }
        if self.places.len() == self.places.capacity() {
            // Grow by a quarter, not by the usual half and more: unexpected messages are budgeted.
            self.places.reserve_exact((self.places.len() / 4).max(16));
        }
        self.places.push(Some(entry));
        (self.places.len() - 1) as u32
    }

    fn head(&self, key: &ListKey) -> Option<u32> {
        self.first(key)
    }

    fn begin(&mut self, place: u32, class: usize, key: &ListKey) {
        self.at(place).neighbours()[class] = Neighbours { prev: place, next: place };
        let places = &self.places;
        let rehash = |&head: &u32| head_key::<T, N>(places, head).hash();
        self.heads.insert_unique(key.hash(), place * N as u32 + class as u32, rehash);
    }

    fn link_before(&mut self, head: u32, place: u32, class: usize) {
        let tail = self.at(head).neighbours()[class].prev;
        self.at(place).neighbours()[class] = Neighbours { prev: tail, next: head };
        self.at(tail).neighbours()[class].next = place;
        self.at(head).neighbours()[class].prev = place;
    }

    fn unlink(&mut self, place: u32, class: usize) {
        let key = self.at(place).key(class);
        let Neighbours { prev, next } = self.at(place).neighbours()[class];
        let places = &self.places;
        let same = |&head: &u32| head_key::<T, N>(places, head) == key;
        if next == place {
            if let Ok(entry) = self.heads.find_entry(key.hash(), same) {
                entry.remove();
            }
            return;
        }
        if let Some(head) = self.heads.find_mut(key.hash(), same).filter(|head| **head / N as u32 == place) {
            *head = next * N as u32 + class as u32;
        }
        self.at(prev).neighbours()[class].next = next;
        self.at(next).neighbours()[class].prev = prev;
    }
}

#[inline]
fn head_key<T: Listed<N>, const N: usize>(places: &[Option<T>], head: u32) -> ListKey {
    let entry = places[(head / N as u32) as usize].as_ref().expect("a head is an entry");
    entry.key(head as usize % N)
}
