//! A page: bytes of a file in memory, with a mark for each byte that is known and for each that is not
//! written to the file yet.

/// Bytes of a page.
pub const PAGE: u64 = 4096;
const BITS: usize = u64::BITS as usize;
const WORDS: usize = PAGE as usize / BITS;

/// A bit for each byte of a page.
#[derive(Clone, PartialEq, Eq)]
struct Marks([u64; WORDS]);

/// The words that have bits of a range that is not empty, with a mask of these bits.
fn words(begin: usize, end: usize) -> impl Iterator<Item = (usize, u64)> {
    (begin / BITS..end.div_ceil(BITS)).map(move |word| {
        let low = begin.saturating_sub(word * BITS);
        let high = (end - word * BITS).min(BITS);
        (word, (u64::MAX >> (BITS - (high - low))) << low)
    })
}

impl Marks {
    fn set(&mut self, begin: usize, end: usize) {
        words(begin, end).for_each(|(word, mask)| self.0[word] |= mask);
    }

    fn clear(&mut self, begin: usize, end: usize) {
        words(begin, end).for_each(|(word, mask)| self.0[word] &= !mask);
    }

    fn has_all(&self, begin: usize, end: usize) -> bool {
        words(begin, end).all(|(word, mask)| self.0[word] & mask == mask)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The first place at or behind `from` whose bit is `wanted`; otherwise the end of the page.
    fn next(&self, from: usize, wanted: bool) -> usize {
        let mut at = from;
        while at < PAGE as usize {
            let word = if wanted { self.0[at / BITS] } else { !self.0[at / BITS] };
            let rest = word >> (at % BITS);
            if rest != 0 {
                return at + rest.trailing_zeros() as usize;
            }
            at = (at / BITS + 1) * BITS;
        }
        PAGE as usize
    }

    /// Runs of marked bytes: begin and end.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let begin = self.next(at, true);
            at = self.next(begin, false);
            (begin < PAGE as usize).then_some((begin, at))
        })
    }
}

/// A page. Every byte that is not written is known.
#[derive(Clone)]
pub(crate) struct Page {
    bytes: [u8; PAGE as usize],
    known: Marks,
    unwritten: Marks,
}

impl Page {
    pub(crate) fn new() -> Box<Page> {
        let none = Marks([0; WORDS]);
        Box::new(Page { bytes: [0; PAGE as usize], known: none.clone(), unwritten: none })
    }

    /// Takes data that have to be written.
    pub(crate) fn write(&mut self, begin: usize, data: &[u8]) {
        let end = begin + data.len();
        self.bytes[begin..end].copy_from_slice(data);
        self.known.set(begin, end);
        self.unwritten.set(begin, end);
    }

    /// Takes bytes of the file where none are known.
    pub(crate) fn fill(&mut self, begin: usize, data: &[u8]) {
        let end = begin + data.len();
        let mut at = begin;
        while at < end {
            let from = self.known.next(at, false).min(end);
            at = self.known.next(from, true).min(end);
            self.bytes[from..at].copy_from_slice(&data[from - begin..at - begin]);
        }
        self.known.set(begin, end);
    }

    /// The bytes of a range, if all are known.
    pub(crate) fn read(&self, begin: usize, end: usize) -> Option<&[u8]> {
        self.known.has_all(begin, end).then(|| &self.bytes[begin..end])
    }

    pub(crate) fn is_known(&self, begin: usize, end: usize) -> bool {
        self.known.has_all(begin, end)
    }

    /// Whether bytes have to be written.
    pub(crate) fn is_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Whether bytes of a range have to be written.
    pub(crate) fn waits_in(&self, begin: usize, end: usize) -> bool {
        self.unwritten.next(begin, true) < end
    }

    /// The bytes that have to be written: begin, and data.
    pub(crate) fn unwritten(&self) -> impl Iterator<Item = (usize, &[u8])> + '_ {
        self.unwritten.runs().map(|(begin, end)| (begin, &self.bytes[begin..end]))
    }

    /// All of it was written.
    pub(crate) fn written(&mut self) {
        self.unwritten = Marks([0; WORDS]);
    }

    /// Forgets bytes of the file, but not those that have to be written.
    pub(crate) fn forget_range(&mut self, begin: usize, end: usize) {
        words(begin, end).for_each(|(word, mask)| self.known.0[word] &= !mask | self.unwritten.0[word]);
    }

    /// Forgets bytes, also those that have to be written.
    pub(crate) fn drop_range(&mut self, begin: usize, end: usize) {
        self.known.clear(begin, end);
        self.unwritten.clear(begin, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marks_are_those_of_bytes(
            changes in prop::collection::vec((any::<bool>(), 0_usize..4096, 1_usize..300), 0..40),
        ) {
            let (mut marks, mut bytes) = (Marks([0; WORDS]), [false; PAGE as usize]);
            for (sets, begin, len) in changes {
                let end = (begin + len).min(PAGE as usize);
                if sets { marks.set(begin, end) } else { marks.clear(begin, end) }
                bytes[begin..end].fill(sets);
                prop_assert_eq!(marks.has_all(begin, end), sets);
            }
            let mut found = [false; PAGE as usize];
            marks.runs().for_each(|(begin, end)| found[begin..end].fill(true));
            prop_assert!(found == bytes);
            prop_assert_eq!(marks.is_empty(), !bytes.contains(&true));
        }
    }

    #[test]
    fn what_is_known_is_not_filled_again() {
        let mut page = Page::new();
        page.write(10, b"new");
        page.fill(8, b"oldoldold");
        assert_eq!(page.read(8, 17), Some(&b"olnewdold"[..]));
        assert_eq!(page.read(8, 18), None);
        assert_eq!(page.unwritten().collect::<Vec<_>>(), [(10, &b"new"[..])]);
        page.drop_range(11, 12);
        assert_eq!(page.unwritten().count(), 2);
        page.written();
        assert!(!page.is_unwritten() && page.read(10, 11) == Some(b"n") && page.read(11, 12).is_none());
    }
}
