//! Elements that are words: integers of 8 B at addresses that are multiples of eight. Where a network adapter
//! changes them in memory that this process sees, the processor changes each in one step, which the adapter
//! cannot come between. Everywhere else the lock of accumulates is enough.

use super::combine::Combination;
use crate::datatype::Basic;
use crate::memory::change_word;
use crate::op::Predefined;
use newmadeleine::engine::Act;
use nmad_rma::{Base, Place};

/// Bytes of a word.
pub(super) const WORD: u64 = 8;

impl Combination {
    /// Whether the elements are integers of the length of a word.
    #[inline(always)]
    pub(super) fn is_of_words(self) -> bool {
        self.basic.size() == WORD as i64 && Predefined::Band.allows(self.basic)
    }

    /// What the network does to a word for this; none: it has no such operation. `data`: the element, if one
    /// is read.
    pub(super) fn act(self, data: Option<u64>) -> Option<Act> {
        match (self.op, data) {
            (Predefined::Sum, Some(data)) if self.is_of_words() => Some(Act::Add(data)),
            (Predefined::NoOp, None) if self.is_of_words() => Some(Act::Add(0)),
            _ => None,
        }
    }

    /// Combines packed words with those of a place, each in one step; what was there before, as it travels.
    /// None: they are no words.
    pub(super) fn change_words(self, data: &[u8], base: Base, place: &Place) -> Option<Vec<u8>> {
        if !is_of_words(self, base, place) {
            return None;
        }
        let (mut given, mut old) = (data.as_chunks::<{ WORD as usize }>().0.iter(), Vec::new());
        for (offset, len) in place.runs() {
            for at in (offset..offset + len).step_by(WORD as usize) {
                let given = given.next().copied().unwrap_or_default();
                let before = change_word(base.operand(at), |word| self.changed(word, given));
                old.extend(before.to_ne_bytes());
            }
        }
        Some(old)
    }

    /// What a word becomes.
    fn changed(self, mut word: u64, given: [u8; WORD as usize]) -> u64 {
        self.apply_to_row((1, WORD as usize), given.as_ptr().cast(), (&raw mut word).cast());
        word
    }
}

fn is_of_words(combination: Combination, base: Base, place: &Place) -> bool {
    let start = base.operand(0).addr() as u64;
    let is_word = |(offset, len): (u64, u64)| (start.wrapping_add(offset) | len).is_multiple_of(WORD);
    combination.is_of_words() && place.runs().all(is_word)
}

/// Writes a word if what is there is the same as `compare`, in one step; what was there before.
pub(super) fn swap_word(at: *mut std::ffi::c_void, compare: u64, new: u64) -> u64 {
    change_word(at, |word| if word == compare { new } else { word })
}

/// Whether a type that can be swapped is a word.
pub(super) fn is_word(basic: Basic) -> bool {
    Combination { op: Predefined::Replace, basic }.is_of_words()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_changed_one_by_one_and_other_elements_are_not_words() {
        let mut words = [1_u64, 2, 3];
        let base = Base::new(words.as_mut_ptr().cast());
        let of = |op| Combination { op, basic: Basic::Uint64 };
        let place = Place::Many(vec![(0, 8), (16, 8)]);
        let data: Vec<u8> = [10_u64, 20].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let old = of(Predefined::Sum).change_words(&data, base, &place).expect("they are words");
        assert_eq!((words, old.len()), ([11, 2, 23], 16));
        assert_eq!(old[8..], 3_u64.to_ne_bytes());
        of(Predefined::Max).change_words(&data, base, &Place::One(0, 16)).expect("they are words");
        assert_eq!(words, [11, 20, 23]);
        assert_eq!(
            of(Predefined::NoOp).change_words(&[], base, &Place::One(8, 8)),
            Some(vec![20, 0, 0, 0, 0, 0, 0, 0])
        );
        assert_eq!(of(Predefined::Sum).change_words(&data, base, &Place::One(4, 8)), None);
        let shorter = Combination { op: Predefined::Sum, basic: Basic::Int };
        assert_eq!(shorter.change_words(&data, base, &Place::One(0, 8)), None);
        assert_eq!(
            (swap_word(base.operand(0), 12, 5), swap_word(base.operand(0), 11, 6), words[0]),
            (11, 11, 6)
        );
    }

    #[test]
    fn the_network_adds_and_reads() {
        let of = |op, basic| Combination { op, basic };
        assert_eq!(of(Predefined::Sum, Basic::Long).act(Some(3)), Some(Act::Add(3)));
        assert_eq!(of(Predefined::NoOp, Basic::Long).act(None), Some(Act::Add(0)));
        assert_eq!(of(Predefined::Max, Basic::Long).act(Some(3)), None);
        assert_eq!(of(Predefined::Sum, Basic::Double).act(Some(3)), None);
        assert_eq!(of(Predefined::Sum, Basic::Int).act(Some(3)), None);
    }
}
