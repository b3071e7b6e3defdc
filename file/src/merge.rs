//! How an owner joins the accesses of several processes to one of its regions: as few pieces of the file
//! as there can be, and the order in which the data of the processes fill them.

use crate::piece::{Piece, Pieces};

/// Bytes of the data of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Which of the accesses.
    pub access: usize,
    /// Where the bytes begin in its data.
    pub begin: u64,
    /// The bytes in the file.
    pub piece: Piece,
}

/// The accesses of several processes as one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// The bytes of the file, which ascend.
    pub pieces: Pieces,
    /// The data of which they consist, in the same order.
    pub sources: Vec<Source>,
}

/// Merges accesses that each ascend. None: two of them have bytes in common, so that their order counts.
pub fn merge(accesses: &[Pieces]) -> Option<Merged> {
    let mut sources = sources(accesses);
    sources.sort_unstable_by_key(|source| source.piece.offset);
    if sources.windows(2).any(|pair| pair[0].piece.end() > pair[1].piece.offset) {
        return None;
    }
    let pieces = sources.iter().map(|source| source.piece).collect();
    Some(Merged { pieces, sources })
}

/// The bytes that at least one access touches, which ascend.
pub fn union(accesses: &[Pieces]) -> Pieces {
    let mut all: Vec<Piece> = accesses.iter().flat_map(|access| access.list().iter().copied()).collect();
    all.sort_unstable_by_key(|piece| piece.offset);
    let mut union = Pieces::default();
    let mut end = 0;
    for piece in all.into_iter().filter(|piece| piece.len > 0) {
        let offset = piece.offset.max(end);
        if piece.end() > offset {
            union.push(Piece { offset, len: piece.end() - offset });
            end = piece.end();
        }
    }
    union
}

/// Where the bytes of an access lie in the data of a union that has all of them; bytes of the union beyond
/// `len` were not read. Each entry is a begin and a length.
pub fn within(access: &Pieces, union: &Pieces, len: u64) -> Vec<(u64, u64)> {
    let mut places = Vec::new();
    let (mut index, mut before) = (0, 0);
    for piece in access.list() {
        while let Some(run) = union.list().get(index).filter(|run| run.end() <= piece.offset) {
            before += run.len;
            index += 1;
        }
        let Some(run) = union.list().get(index) else { break };
        let begin = before + piece.offset - run.offset;
        let len = piece.len.min(len.saturating_sub(begin));
        if len > 0 {
            places.push((begin, len));
        }
    }
    places
}

fn sources(accesses: &[Pieces]) -> Vec<Source> {
    let mut sources = Vec::with_capacity(accesses.iter().map(Pieces::count).sum());
    for (access, pieces) in accesses.iter().enumerate() {
        let mut begin = 0;
        for &piece in pieces.list() {
            sources.push(Source { access, begin, piece });
            begin += piece.len;
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(list: &[(u64, u64)]) -> Pieces {
        list.iter().map(|&(offset, len)| Piece { offset, len }).collect()
    }

    #[test]
    fn interleaved_accesses_become_one_piece() {
        let merged =
            merge(&[pieces(&[(0, 4), (8, 4)]), pieces(&[(4, 4), (12, 4)])]).expect("nothing in common");
        assert_eq!(merged.pieces, pieces(&[(0, 16)]));
        let order: Vec<(usize, u64)> =
            merged.sources.iter().map(|source| (source.access, source.begin)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (0, 4), (1, 4)]);
    }

    #[test]
    fn bytes_in_common_are_noticed() {
        let accesses = [pieces(&[(0, 4)]), pieces(&[(3, 4)])];
        assert_eq!(merge(&accesses), None);
        assert_eq!(union(&accesses), pieces(&[(0, 7)]));
        assert_eq!(within(&accesses[1], &pieces(&[(0, 7)]), 7), [(3, 4)]);
        assert_eq!(within(&accesses[1], &pieces(&[(0, 7)]), 5), [(3, 2)]);
        assert_eq!(within(&accesses[1], &pieces(&[(0, 7)]), 2), []);
    }

    fn accesses() -> impl Strategy<Value = Vec<Pieces>> {
        let runs = prop::collection::vec((0_u64..9, 1_u64..9), 0..9);
        let ascending = |runs: Vec<(u64, u64)>| {
            let mut at = 0;
            let piece = |(gap, len): (u64, u64)| {
                let piece = Piece { offset: at + gap, len };
                at = piece.end();
                piece
            };
            runs.into_iter().map(piece).collect::<Pieces>()
        };
        prop::collection::vec(runs.prop_map(ascending), 0..5)
    }

    proptest! {
        #[test]
        fn a_union_has_every_byte_once(accesses in accesses()) {
            let mut marks = [false; 200];
            for piece in accesses.iter().flat_map(|access| access.list()) {
                marks[piece.offset as usize..piece.end() as usize].fill(true);
            }
            let union = union(&accesses);
            prop_assert!(union.is_ascending());
            prop_assert_eq!(union.len(), marks.iter().filter(|mark| **mark).count() as u64);
            let bytes: Vec<u64> = union.list().iter().flat_map(|piece| piece.offset..piece.end()).collect();
            for access in &accesses {
                let found: Vec<u64> = within(access, &union, union.len())
                    .iter()
                    .flat_map(|&(begin, len)| bytes[begin as usize..(begin + len) as usize].to_vec())
                    .collect();
                let pieces = access.list().iter();
                let expected: Vec<u64> = pieces.flat_map(|piece| piece.offset..piece.end()).collect();
                prop_assert_eq!(found, expected);
            }
            if let Some(merged) = merge(&accesses) {
                prop_assert_eq!(merged.pieces, union);
            } else {
                prop_assert!(accesses.iter().map(Pieces::len).sum::<u64>() > union.len());
            }
        }
    }
}
