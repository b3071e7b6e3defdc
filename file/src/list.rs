//! Lists of pieces as bytes: what a process tells an owner about the places of its access. Equal pieces at
//! equal distances, as views of strided types have them, are one entry.

use crate::piece::{Piece, Pieces};

/// Numbers of an entry: offset and length of the first piece, how many there are, and their distance.
const NUMBERS: usize = 4;
/// Bytes of an entry.
const ENTRY: usize = NUMBERS * size_of::<u64>();

/// The bytes of a list.
pub fn encode(pieces: &Pieces) -> Vec<u8> {
    let mut entries: Vec<[u64; NUMBERS]> = Vec::new();
    for piece in pieces.list() {
        if let Some([offset, len, count, stride]) = entries.last_mut()
            && *len == piece.len
            && piece.offset > *offset
            && (*count == 1 || piece.offset == *offset + *count * *stride)
        {
            *stride = (piece.offset - *offset) / *count;
            *count += 1;
        } else {
            entries.push([piece.offset, piece.len, 1, 0]);
        }
    }
    entries.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
}

/// The list of some bytes, if they are one of `len` bytes of a file that ascends.
pub fn decode(bytes: &[u8], len: u64) -> Option<Pieces> {
    if !bytes.len().is_multiple_of(ENTRY) {
        return None;
    }
    let mut pieces = Pieces::default();
    let mut end = 0;
    for entry in bytes.chunks_exact(ENTRY) {
        let mut numbers = entry.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk));
        let [offset, piece, count, stride] = std::array::from_fn(|_| numbers.next().unwrap_or_default());
        if piece == 0 || count.checked_mul(piece)? > len - pieces.len() {
            return None;
        }
        for index in 0..count {
            let offset = index.checked_mul(stride).and_then(|more| offset.checked_add(more))?;
            if offset < end {
                return None;
            }
            end = offset.checked_add(piece)?;
            pieces.push(Piece { offset, len: piece });
        }
    }
    (pieces.len() == len).then_some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(list: &[(u64, u64)]) -> Pieces {
        list.iter().map(|&(offset, len)| Piece { offset, len }).collect()
    }

    #[test]
    fn equal_distances_are_one_entry() {
        let strided = pieces(&[(5, 4), (15, 4), (25, 4), (35, 4)]);
        assert_eq!(encode(&strided).len(), ENTRY);
        assert_eq!(encode(&pieces(&[(5, 4), (15, 4), (26, 4)])).len(), 2 * ENTRY);
        assert_eq!(decode(&encode(&strided), 16), Some(strided));
    }

    #[test]
    fn bytes_that_are_no_list_are_refused() {
        let bytes = encode(&pieces(&[(5, 4), (15, 4)]));
        for (wrong, len) in [(&bytes[1..], 8), (&bytes[..], 7), (&bytes[..], 9), (&[0; ENTRY][..], 0)] {
            assert_eq!(decode(wrong, len), None);
        }
        let numbers =
            |numbers: [u64; NUMBERS]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        for wrong in [[u64::MAX, 4, 2, 8], [0, 4, 2, 2], [0, 4, u64::MAX, 4], [u64::MAX, 8, 1, 0]] {
            assert_eq!(decode(&numbers(wrong), 8), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn lists_survive(runs in prop::collection::vec((1_u64..4, 1_u64..4), 0..30)) {
            let mut at = 0;
            let mut list = Pieces::default();
            for (gap, len) in runs {
                list.push(Piece { offset: at + gap, len });
                at += gap + len;
            }
            prop_assert_eq!(decode(&encode(&list), list.len()), Some(list));
        }

        #[test]
        fn any_bytes_are_a_list_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            len in 0_u64..500,
        ) {
            if let Some(list) = decode(&bytes, len) {
                prop_assert!(list.len() == len && list.is_ascending());
            }
        }
    }
}
