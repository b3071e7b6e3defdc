//! Where in exposed memory an operation goes: runs of bytes, from its begin on. The datatype is known at the
//! origin only, so the runs travel.

use crate::base::Base;
use nmad_engine::Segments;

/// Bytes of a run on its way: offset and length.
const RUN: usize = 16;

/// Some bytes of exposed memory, in the order in which data are put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Offset and length.
    One(u64, u64),
    /// Several of that kind.
    Many(Vec<(u64, u64)>),
}

impl Place {
    /// Bytes in all.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Place::One(_, len) => *len,
            Place::Many(runs) => runs.iter().map(|run| run.1).sum(),
        }
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its runs that have bytes: offset and length.
    #[inline]
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (one, many) = match self {
            Place::One(offset, len) => (Some((*offset, *len)), &[][..]),
            Place::Many(runs) => (None, &runs[..]),
        };
        one.into_iter().chain(many.iter().copied()).filter(|run| run.1 > 0)
    }

    /// The first run that is not among the first `size` bytes.
    #[inline]
    pub fn beyond(&self, size: u64) -> Option<(u64, u64)> {
        let is_beyond = |&(offset, len): &(u64, u64)| offset.checked_add(len).is_none_or(|end| end > size);
        match self {
            Place::One(offset, len) => Some((*offset, *len)).filter(|run| run.1 > 0 && is_beyond(run)),
            Place::Many(_) => self.runs().find(is_beyond),
        }
    }

    /// The memory, if what is exposed begins there.
    #[inline]
    pub fn segments(&self, base: Base) -> Segments {
        match self {
            Place::One(offset, len) => base.segments(*offset, *len),
            Place::Many(runs) => base.pieces(runs),
        }
    }

    /// The bytes from `from` on, as many as asked for.
    pub fn part(&self, from: u64, len: u64) -> Place {
        if let Place::One(offset, _) = self {
            return Place::One(offset + from, len);
        }
        let (mut before, mut part) = (0, Vec::new());
        for (offset, run) in self.runs() {
            let (begin, end) = (from.max(before), (from + len).min(before + run));
            if begin < end {
                part.push((offset + begin - before, end - begin));
            }
            before += run;
        }
        Place::Many(part)
    }

    /// The fields of a frame's head: whether there is a list, offset or zero, length or number of runs.
    #[inline]
    pub(crate) fn head(&self) -> (bool, u64, u64) {
        match self {
            Place::One(offset, len) => (false, *offset, *len),
            Place::Many(runs) => (true, 0, runs.len() as u64),
        }
    }

    /// Appends the runs.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        if let Place::Many(runs) = self {
            for (offset, len) in runs {
                into.extend(offset.to_le_bytes());
                into.extend(len.to_le_bytes());
            }
        }
    }

    /// Of what follows a head, and the rest; none: it is too short.
    pub(crate) fn decode(head: (bool, u64, u64), bytes: &[u8]) -> Option<(Place, &[u8])> {
        let (is_list, offset, number) = head;
        if !is_list {
            return Some((Place::One(offset, number), bytes));
        }
        let len = usize::try_from(number).ok()?.checked_mul(RUN)?;
        let (list, rest) = bytes.split_at_checked(len)?;
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let runs = list.as_chunks::<8>().0.as_chunks::<2>().0.iter();
        Some((Place::Many(runs.map(|[offset, len]| (word(offset), word(len))).collect()), rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_lists_survive_the_way() {
        let many = Place::Many(vec![(8, 4), (16, 8), (40, 4)]);
        assert_eq!((many.len(), many.part(2, 4)), (16, Place::Many(vec![(10, 2), (16, 2)])));
        assert_eq!(Place::One(100, 50).part(10, 20), Place::One(110, 20));
        for place in [many, Place::One(3, 4)] {
            let mut bytes = Vec::new();
            place.encode(&mut bytes);
            bytes.extend(b"rest");
            assert_eq!(Place::decode(place.head(), &bytes), Some((place, &b"rest"[..])));
        }
        assert_eq!(Place::decode((true, 0, u64::MAX), &[]), None);
    }

    #[test]
    fn what_lies_beyond_the_window_is_found() {
        assert_eq!(Place::One(4, 4).beyond(8), None);
        assert_eq!(Place::One(5, 4).beyond(8), Some((5, 4)));
        assert_eq!(Place::One(u64::MAX, 4).beyond(8), Some((u64::MAX, 4)));
        assert_eq!(Place::One(80, 0).beyond(8), None);
        assert_eq!(Place::Many(vec![(0, 8), (8, 1)]).beyond(8), Some((8, 1)));
    }
}
