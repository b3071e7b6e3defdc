//! Pages of a file in memory: data that wait to be written, and bytes that were read from the file.

use crate::page::{PAGE, Page};
use crate::piece::{Piece, Pieces};
use std::collections::BTreeMap;

/// Pages of one file.
#[derive(Default)]
pub struct Store {
    pages: BTreeMap<u64, Box<Page>>,
    /// Pages with bytes that are not written.
    unwritten: usize,
}

impl Store {
    /// Takes data that have to be written.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        let range = Piece { offset, len: data.len() as u64 };
        for (number, begin, end) in range.parts(PAGE) {
            let (now, behind) = rest.split_at(end - begin);
            let page = self.pages.entry(number).or_insert_with(Page::new);
            self.unwritten += usize::from(!page.is_unwritten());
            page.write(begin, now);
            rest = behind;
        }
    }

    /// Takes bytes of the file where none are known.
    pub fn fill(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        let range = Piece { offset, len: data.len() as u64 };
        for (number, begin, end) in range.parts(PAGE) {
            let (now, behind) = rest.split_at(end - begin);
            self.pages.entry(number).or_insert_with(Page::new).fill(begin, now);
            rest = behind;
        }
    }

    /// Appends the bytes of a piece; false, and only some of them, if not all are known.
    pub fn read(&self, piece: Piece, out: &mut Vec<u8>) -> bool {
        piece.parts(PAGE).all(|(number, begin, end)| {
            let bytes = self.pages.get(&number).and_then(|page| page.read(begin, end));
            bytes.is_some_and(|bytes| {
                out.extend_from_slice(bytes);
                true
            })
        })
    }

    /// Bytes from the first one of a piece on that is in a page of which something is not known, to the end
    /// of the last such page; `None`: all are known.
    pub fn missing(&self, piece: Piece) -> Option<Piece> {
        let is_missing = |(number, begin, end): &(u64, usize, usize)| {
            !self.pages.get(number).is_some_and(|page| page.is_known(*begin, *end))
        };
        let mut missing = piece.parts(PAGE).filter(is_missing);
        let first = missing.next()?.0;
        let last = missing.last().map_or(first, |(number, ..)| number);
        Some(Piece { offset: first * PAGE, len: (last + 1 - first) * PAGE })
    }

    /// Bytes of pages with data that have to be written.
    pub fn unwritten(&self) -> u64 {
        self.unwritten as u64 * PAGE
    }

    /// Whether bytes of a piece have to be written.
    pub(crate) fn waits_in(&self, piece: Piece) -> bool {
        let waits =
            |(number, begin, end)| self.pages.get(&number).is_some_and(|page| page.waits_in(begin, end));
        piece.parts(PAGE).any(waits)
    }

    /// Bytes of all pages.
    pub fn len(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Whether there is no page.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The byte behind the last one that has to be written.
    pub fn end(&self) -> u64 {
        if self.unwritten == 0 {
            return 0;
        }
        let last = self.pages.iter().rev().find(|(_, page)| page.is_unwritten());
        last.map_or(0, |(number, page)| {
            let end = page.unwritten().last().map_or(0, |(begin, data)| begin + data.len());
            number * PAGE + end as u64
        })
    }

    /// Takes out data that have to be written, in ascending order, at most about `most` bytes. From now on
    /// they count as written. `None`: there are no more.
    pub fn take_unwritten(&mut self, most: u64) -> Option<(Pieces, Vec<u8>)> {
        if self.unwritten == 0 {
            return None;
        }
        let (mut pieces, mut data) = (Pieces::default(), Vec::new());
        for (number, page) in self.pages.iter_mut().filter(|(_, page)| page.is_unwritten()) {
            if pieces.len() >= most {
                break;
            }
            for (begin, bytes) in page.unwritten() {
                pieces.push(Piece { offset: number * PAGE + begin as u64, len: bytes.len() as u64 });
                data.extend_from_slice(bytes);
            }
            page.written();
            self.unwritten -= 1;
        }
        Some((pieces, data))
    }

    /// Forgets the bytes of a piece, also those that have to be written.
    pub fn drop_piece(&mut self, piece: Piece) {
        let touched = piece.offset / PAGE..piece.end().div_ceil(PAGE);
        for (&number, page) in self.pages.range_mut(touched) {
            let begin = piece.offset.saturating_sub(number * PAGE);
            let end = (piece.end() - number * PAGE).min(PAGE);
            let was = page.is_unwritten();
            page.drop_range(begin as usize, end as usize);
            self.unwritten -= usize::from(was && !page.is_unwritten());
        }
    }

    /// Forgets the bytes of a piece but for those that have to be written.
    pub fn forget_piece(&mut self, piece: Piece) {
        for (number, begin, end) in piece.parts(PAGE) {
            if let Some(page) = self.pages.get_mut(&number) {
                page.forget_range(begin, end);
            }
        }
    }

    /// Forgets the pages of which all was written.
    pub fn forget(&mut self) {
        if self.unwritten == 0 {
            self.pages.clear();
        } else {
            self.pages.retain(|_, page| page.is_unwritten());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Change {
        Write(u64, u64, u8),
        Fill(u64, u64),
        Take(u64),
        Drop(u64, u64),
        ForgetPiece(u64, u64),
        Forget,
    }

    fn change() -> impl Strategy<Value = Change> {
        let (at, len) = (0_u64..20_000, 1_u64..9000);
        prop_oneof![
            4 => (at.clone(), 1_u64..300, 1_u8..255).prop_map(|(at, len, fill)| Change::Write(at, len, fill)),
            2 => (at.clone(), len.clone()).prop_map(|(at, len)| Change::Fill(at, len)),
            1 => (1_u64..5000).prop_map(Change::Take),
            1 => (at.clone(), len.clone()).prop_map(|(at, len)| Change::Drop(at, len)),
            1 => (at, len).prop_map(|(at, len)| Change::ForgetPiece(at, len)),
            1 => Just(Change::Forget),
        ]
    }

    /// A byte of the file; behind its end there are zeros.
    fn byte(file: &[u8], at: u64) -> u8 {
        file.get(at as usize).copied().unwrap_or(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn bytes_are_those_of_a_file_with_what_was_written(
            changes in prop::collection::vec(change(), 1..40),
        ) {
            // The bytes that programs see, and the bytes of the file.
            let (mut seen, mut file) = (vec![0_u8; 40_000], vec![0_u8; 40_000]);
            let mut store = Store::default();
            for change in changes {
                match change {
                    Change::Write(at, len, fill) => {
                        store.write(at, &vec![fill; len as usize]);
                        seen[at as usize..(at + len) as usize].fill(fill);
                    }
                    Change::Fill(at, len) => store.fill(at, &file[at as usize..(at + len) as usize]),
                    Change::Take(most) => {
                        if let Some((pieces, data)) = store.take_unwritten(most) {
                            let mut rest = &data[..];
                            for piece in pieces.list() {
                                let (now, behind) = rest.split_at(piece.len as usize);
                                file[piece.offset as usize..piece.end() as usize].copy_from_slice(now);
                                rest = behind;
                            }
                            prop_assert!(rest.is_empty() && pieces.is_ascending());
                        }
                    }
                    Change::Drop(at, len) => {
                        store.drop_piece(Piece { offset: at, len });
                        let range = at as usize..(at + len) as usize;
                        seen[range.clone()].copy_from_slice(&file[range]);
                    }
                    Change::ForgetPiece(at, len) => {
                        // What waits stays.
                        store.forget_piece(Piece { offset: at, len });
                        for at in (at..at + len).filter(|at| seen[*at as usize] != file[*at as usize]) {
                            let mut out = Vec::new();
                            let is_known = store.read(Piece { offset: at, len: 1 }, &mut out);
                            prop_assert!(is_known && out[0] == seen[at as usize]);
                        }
                    }
                    Change::Forget => store.forget(),
                }
                let differs = |at: &u64| byte(&seen, *at) != byte(&file, *at);
                let end = (0..40_000).rev().find(differs).map_or(0, |at| at + 1);
                prop_assert!(store.end() >= end);
                prop_assert_eq!(store.unwritten() == 0, store.end() == 0);
            }
            for begin in (0..40_000).step_by(700) {
                let piece = Piece { offset: begin, len: 700 };
                let mut out = Vec::new();
                if let Some(missing) = store.missing(piece) {
                    prop_assert!(!store.read(piece, &mut out));
                    let data: Vec<u8> = (missing.offset..missing.end()).map(|at| byte(&file, at)).collect();
                    store.fill(missing.offset, &data);
                    out.clear();
                }
                prop_assert!(store.missing(piece).is_none() && store.read(piece, &mut out));
                prop_assert!(out == (begin..begin + 700).map(|at| byte(&seen, at)).collect::<Vec<_>>());
            }
        }
    }
}
