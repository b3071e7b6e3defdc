//! Lists of entries by key, in order of arrival. Insertion, lookup and removal take constant time for any
//! number of entries.
//!
//! An entry is in one list per class (a posted receive has one key; an unexpected message can match
//! receives of four kinds). Until a key of another class is looked up ([`Lists::widen`]), only the lists of
//! the first class and of the last one, which gives the order, are maintained: each list costs about 10 ns
//! per entry. The hash table stores only the place of each list's first entry and reads the key from the
//! entry itself: a few bytes per list.

use alloc::vec::Vec;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Key of a list, wildcards included; plain numbers, since it is hashed and compared for every message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListKey {
    tag: u64,
    context: u32,
    peer: u32,
    wild: u32,
}

impl ListKey {
    const ANY_PEER: u32 = 1;
    const ANY_TAG: u32 = 2;

    #[inline]
    pub(crate) fn new(context: u32, peer: Option<u32>, tag: Option<u64>) -> Self {
        let wild = u32::from(peer.is_none()) * Self::ANY_PEER + u32::from(tag.is_none()) * Self::ANY_TAG;
        ListKey { tag: tag.unwrap_or(0), context, peer: peer.unwrap_or(0), wild }
    }

    /// A key with peer and tag, without wildcards.
    #[inline]
    pub(crate) fn exact(context: u32, peer: u32, tag: u64) -> Self {
        ListKey { tag, context, peer, wild: 0 }
    }

    /// Returns the key with wildcards instead of the peer or the tag.
    #[inline]
    pub(crate) fn widened(self, any_peer: bool, any_tag: bool) -> Self {
        ListKey {
            tag: if any_tag { 0 } else { self.tag },
            peer: if any_peer { 0 } else { self.peer },
            wild: u32::from(any_peer) * Self::ANY_PEER + u32::from(any_tag) * Self::ANY_TAG,
            ..self
        }
    }

    #[inline]
    pub(crate) fn is_wild(&self) -> bool {
        self.wild != 0
    }

    /// Whether exactly one of peer and tag is a wildcard.
    #[inline]
    pub(crate) fn is_half_wild(&self) -> bool {
        self.wild == Self::ANY_PEER || self.wild == Self::ANY_TAG
    }

    /// A fixed hash function (multiply and fold, as in wyhash), so that runs repeat bit for bit.
    #[inline]
    fn hash(&self) -> u64 {
        let names = u64::from(self.context) << 32 | u64::from(self.peer);
        let a = names ^ 0x9e37_79b9_7f4a_7c15 ^ u64::from(self.wild) << 30;
        let product = u128::from(a) * u128::from(self.tag ^ 0xd1b5_4a32_d192_ed03);
        ((product as u64) ^ (product >> 64) as u64 ^ a).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
    /// The lists of all classes are maintained.
    is_wide: bool,
}

impl<T, const N: usize> Default for Lists<T, N> {
    fn default() -> Self {
        Lists { places: Vec::new(), free: Vec::new(), heads: HashTable::new(), is_wide: false }
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

    /// Iterates over all entries and their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.places.iter().enumerate().filter_map(|(i, e)| e.as_ref().map(|e| (i as u32, e)))
    }

    /// All entries, to change parts on which no key depends.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten()
    }

    /// Returns the place of the first entry with this key.
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
        let place = self.store(entry);
        for class in self.classes() {
            self.append(place, class);
        }
        place
    }

    /// Returns the classes whose lists are maintained.
    #[inline]
    fn classes(&self) -> impl Iterator<Item = usize> + use<T, N> {
        let is_wide = self.is_wide;
        (0..N).filter(move |&class| is_wide || class == 0 || class == N - 1)
    }

    /// Maintains the lists of all classes from now on. All entries of a list of another class are in one
    /// list of the last class, which has their order.
    pub(crate) fn widen(&mut self) {
        if self.is_wide {
            return;
        }
        self.is_wide = true;
        let last = N - 1;
        let firsts = self.heads.iter().filter(|&&head| head as usize % N == last);
        let firsts: Vec<u32> = firsts.map(|&head| head / N as u32).collect();
        for first in firsts {
            let mut place = first;
            loop {
                (1..last).for_each(|class| self.append(place, class));
                place = self.at(place).neighbours()[last].next;
                if place == first {
                    break;
                }
            }
        }
    }

    /// Removes an entry from all its lists.
    #[inline]
    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        self.get(place)?;
        for class in self.classes() {
            self.unlink(place, class);
        }
        let entry = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(entry)
    }

    /// Stores an entry without adding it to a list; returns its place.
    #[inline]
    fn store(&mut self, entry: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(entry);
            return place;
        }
        if self.places.len() == self.places.capacity() {
            // Grow by a quarter instead of doubling: the memory of unexpected messages is limited.
            self.places.reserve_exact((self.places.len() / 4).max(16));
        }
        self.places.push(Some(entry));
        (self.places.len() - 1) as u32
    }

    #[inline]
    fn append(&mut self, place: u32, class: usize) {
        let key = self.at(place).key(class);
        let places = &self.places;
        let same = |&head: &u32| head_key::<T, N>(places, head) == key;
        let rehash = |&head: &u32| head_key::<T, N>(places, head).hash();
        match self.heads.entry(key.hash(), same, rehash) {
            Entry::Occupied(found) => {
                let head = *found.get() / N as u32;
                self.link_before(head, place, class);
            }
            Entry::Vacant(vacant) => {
                vacant.insert(place * N as u32 + class as u32);
                self.at(place).neighbours()[class] = Neighbours { prev: place, next: place };
            }
        }
    }

    #[inline]
    fn link_before(&mut self, head: u32, place: u32, class: usize) {
        let tail = self.at(head).neighbours()[class].prev;
        self.at(place).neighbours()[class] = Neighbours { prev: tail, next: head };
        self.at(tail).neighbours()[class].next = place;
        self.at(head).neighbours()[class].prev = place;
    }

    #[inline]
    fn unlink(&mut self, place: u32, class: usize) {
        let key = self.at(place).key(class);
        let Neighbours { prev, next } = self.at(place).neighbours()[class];
        let own = place * N as u32 + class as u32;
        // Compare places instead of keys: the table has only the heads of lists.
        if let Ok(mut found) = self.heads.find_entry(key.hash(), |&head| head == own) {
            if next == place {
                found.remove();
                return;
            }
            *found.get_mut() = next * N as u32 + class as u32;
        }
        self.at(prev).neighbours()[class].next = next;
        self.at(next).neighbours()[class].prev = prev;
    }
}

impl<T: Listed<1>> Lists<T, 1> {
    /// Removes and returns the first entry with this key.
    #[inline]
    pub(crate) fn pop(&mut self, key: &ListKey) -> Option<T> {
        let Lists { places, free, heads, .. } = self;
        let mut found = heads.find_entry(key.hash(), |&head| head_key::<T, 1>(places, head) == *key).ok()?;
        let place = *found.get();
        let mut entry = places.get_mut(place as usize)?.take()?;
        free.push(place);
        let [Neighbours { prev, next }] = *entry.neighbours();
        if next == place {
            found.remove();
            return Some(entry);
        }
        *found.get_mut() = next;
        self.at(prev).neighbours()[0].next = next;
        self.at(next).neighbours()[0].prev = prev;
        Some(entry)
    }
}

#[inline]
fn head_key<T: Listed<N>, const N: usize>(places: &[Option<T>], head: u32) -> ListKey {
    let entry = places[(head / N as u32) as usize].as_ref().expect("a head is an entry");
    entry.key(head as usize % N)
}
