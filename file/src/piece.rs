//! Places in a file: pieces of contiguous bytes, in the order in which an access meets them.

/// Contiguous bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The first byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

impl Piece {
    /// The byte behind the last one.
    pub fn end(self) -> u64 {
        self.offset + self.len
    }

    /// Its parts by units of this many bytes: number of the unit, and begin and end in it. An empty piece has
    /// none.
    #[inline]
    pub(crate) fn parts(self, unit: u64) -> impl Iterator<Item = (u64, usize, usize)> {
        let behind = if self.len > 0 { self.end().div_ceil(unit) } else { 0 };
        (self.offset / unit..behind).map(move |number| {
            let begin = self.offset.saturating_sub(number * unit);
            (number, begin as usize, (self.end() - number * unit).min(unit) as usize)
        })
    }
}

/// The pieces of an access. Neighbours are one piece, and no piece is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// The only one, so that it needs no memory of its own.
    one: Option<Piece>,
    /// All, if there are several.
    many: Vec<Piece>,
    len: u64,
    /// The first byte, and the byte behind the last one; (`u64::MAX`, 0) if there are no bytes.
    hull: (u64, u64),
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces { one: None, many: Vec::new(), len: 0, hull: (u64::MAX, 0) }
    }
}

impl Pieces {
    /// Bytes of ascending pieces before the end of a file of this length.
    pub fn inside(&self, end: u64) -> u64 {
        self.list().iter().map(|piece| end.saturating_sub(piece.offset).min(piece.len)).sum()
    }

    /// Adds bytes at the end.
    #[inline]
    pub fn push(&mut self, piece: Piece) {
        if piece.len == 0 {
            return;
        }
        self.len += piece.len;
        self.hull = (self.hull.0.min(piece.offset), self.hull.1.max(piece.end()));
        match self.many.last_mut() {
            Some(last) if last.end() == piece.offset => last.len += piece.len,
            Some(_) => self.many.push(piece),
            None => self.push_early(piece),
        }
    }

    /// Adds bytes while there is at most one piece.
    fn push_early(&mut self, piece: Piece) {
        match self.one.take() {
            Some(last) if last.end() == piece.offset => {
                self.one = Some(Piece { len: last.len + piece.len, ..last });
            }
            Some(first) => self.many = vec![first, piece],
            None => self.one = Some(piece),
        }
    }

    /// All pieces.
    pub fn list(&self) -> &[Piece] {
        if self.many.is_empty() { self.one.as_slice() } else { &self.many }
    }

    /// Bytes of all pieces.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of pieces.
    pub fn count(&self) -> usize {
        self.list().len()
    }

    /// The first byte, and the byte behind the last one.
    pub fn hull(&self) -> Option<(u64, u64)> {
        (self.len > 0).then_some(self.hull)
    }

    /// Divides them into runs of which each ascends.
    pub fn ascending(&self) -> Vec<Pieces> {
        let mut runs: Vec<Pieces> = Vec::new();
        for piece in self.list() {
            let ascends = |last: &Pieces| last.list().last().is_some_and(|last| last.end() <= piece.offset);
            match runs.last_mut().filter(|last| ascends(last)) {
                Some(last) => last.push(*piece),
                None => runs.push(Pieces::from_iter([*piece])),
            }
        }
        runs
    }

    /// Divides them into parts of at most `most` bytes, in their order.
    pub fn chunks(&self, most: u64) -> Vec<Pieces> {
        let mut chunks: Vec<Pieces> = Vec::new();
        for piece in self.list() {
            let mut rest = *piece;
            while rest.len > 0 {
                let room = chunks.last().map_or(0, |last| most - last.len);
                if room == 0 {
                    chunks.push(Pieces::default());
                    continue;
                }
                let len = rest.len.min(room);
                if let Some(last) = chunks.last_mut() {
                    last.push(Piece { offset: rest.offset, len });
                }
                rest = Piece { offset: rest.offset + len, len: rest.len - len };
            }
        }
        chunks
    }

    /// Whether two pieces have bytes in common.
    pub fn overlap(&self) -> bool {
        if self.is_ascending() {
            return false;
        }
        let mut list = self.many.clone();
        list.sort_unstable_by_key(|piece| piece.offset);
        list.windows(2).any(|pair| pair[0].end() > pair[1].offset)
    }

    /// Whether each piece begins behind the one before it.
    pub fn is_ascending(&self) -> bool {
        self.list().windows(2).all(|pair| pair[0].end() <= pair[1].offset)
    }
}

impl FromIterator<Piece> for Pieces {
    fn from_iter<I: IntoIterator<Item = Piece>>(pieces: I) -> Pieces {
        let mut all = Pieces::default();
        pieces.into_iter().for_each(|piece| all.push(piece));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_piece_and_nothing_is_none() {
        let pieces: Pieces = [(0, 4), (4, 4), (9, 0), (16, 2)]
            .map(|(offset, len)| Piece { offset, len })
            .into_iter()
            .collect();
        assert_eq!((pieces.count(), pieces.len(), pieces.hull()), (2, 10, Some((0, 18))));
        assert!(pieces.is_ascending());
        let lens: Vec<u64> = pieces.chunks(3).iter().map(Pieces::len).collect();
        assert_eq!(lens, [3, 3, 3, 1]);
        assert_eq!(pieces.chunks(3)[2].list(), [Piece { offset: 6, len: 2 }, Piece { offset: 16, len: 1 }]);
        let back: Pieces = [(16, 2), (0, 4)].map(|(offset, len)| Piece { offset, len }).into_iter().collect();
        assert_eq!((back.ascending().len(), pieces.ascending()), (2, vec![pieces.clone()]));
        assert!(!back.is_ascending());
        assert_eq!((back.hull(), Pieces::default().hull()), (Some((0, 18)), None));
    }
}
