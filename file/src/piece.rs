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
}

/// The pieces of an access. Neighbours are one piece, and no piece is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    list: Vec<Piece>,
    len: u64,
}

impl Pieces {
    /// Adds bytes at the end.
    pub fn push(&mut self, piece: Piece) {
        if piece.len == 0 {
            return;
        }
        self.len += piece.len;
        match self.list.last_mut() {
            Some(last) if last.end() == piece.offset => last.len += piece.len,
            _ => self.list.push(piece),
        }
    }

    /// All pieces.
    pub fn list(&self) -> &[Piece] {
        &self.list
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
        self.list.len()
    }

    /// The first byte, and the byte behind the last one.
    pub fn hull(&self) -> Option<(u64, u64)> {
        let first = self.list.iter().map(|piece| piece.offset).min()?;
        let end = self.list.iter().map(|piece| piece.end()).max()?;
        Some((first, end))
    }

    /// Whether each piece begins behind the one before it.
    pub fn is_ascending(&self) -> bool {
        self.list.windows(2).all(|pair| pair[0].end() <= pair[1].offset)
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
        let back: Pieces = [(16, 2), (0, 4)].map(|(offset, len)| Piece { offset, len }).into_iter().collect();
        assert!(!back.is_ascending());
        assert_eq!((back.hull(), Pieces::default().hull()), (Some((0, 18)), None));
    }
}
