//! Divides a read of many pieces into system calls.

use crate::fault::Fault;
use crate::memory::room;
use crate::piece::Piece;
use nmad_engine::Segments;
use std::io::IoSliceMut;

/// Slices of one call: Linux takes no more (`UIO_MAXIOV`).
pub(crate) const SLICES: usize = 1024;
/// Bytes of gaps that one call reads.
const GAPS: u64 = 1 << 20;

/// Where a read goes on: in which piece, how far in it, and how many bytes have come.
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) inside: u64,
    pub(crate) done: u64,
}

/// Calls `read_some`, which returns false where the file ends, until all pieces are read or the file ends;
/// returns the bytes that were read.
pub(crate) fn read_on(
    pieces: usize,
    mut read_some: impl FnMut(&mut Place) -> Result<bool, Fault>,
) -> Result<u64, Fault> {
    let mut place = Place { index: 0, inside: 0, done: 0 };
    while place.index < pieces {
        let before = place.done;
        if !read_some(&mut place)? && place.done == before {
            break;
        }
    }
    Ok(place.done)
}

impl Place {
    /// The file was read up to `end` for these pieces, those before the place included. Pieces behind them
    /// may lie before it in the file.
    pub(crate) fn go_on(&mut self, pieces: &[Piece], end: u64) {
        for &piece in &pieces[self.index..] {
            let until = end.clamp(piece.offset + self.inside, piece.end());
            self.done += until - piece.offset - self.inside;
            self.inside = until - piece.offset;
            if until < piece.end() {
                break;
            }
            (self.index, self.inside) = (self.index + 1, 0);
        }
    }
}

/// The pieces and gaps that one call reads.
pub(crate) struct Batch {
    /// Bytes of a piece, and of the gap before it.
    pub(crate) runs: Vec<(u64, u64)>,
    pub(crate) gaps: u64,
}

impl Batch {
    /// Begins `inside` bytes behind the start of the first piece. Reads gaps of up to `gap` bytes, and takes
    /// at most `count` pieces and `bytes` bytes.
    pub(crate) fn new(pieces: &[Piece], inside: u64, (gap, bytes, count): (u64, u64, usize)) -> Batch {
        let mut batch = Batch { runs: Vec::new(), gaps: 0 };
        let (mut left, mut end) = (bytes, pieces[0].offset + inside);
        for (index, piece) in pieces.iter().enumerate().take(count) {
            let start = piece.offset + if index == 0 { inside } else { 0 };
            let Some(before) = start.checked_sub(end) else { break };
            if before > gap || before > GAPS - batch.gaps || before >= left {
                break;
            }
            let len = (piece.end() - start).min(left - before);
            batch.runs.push((before, len));
            batch.gaps += before;
            left -= before + len;
            end = start + len;
            if end < piece.end() {
                break;
            }
        }
        batch
    }

    /// The memory of the pieces from byte `done` on, and what gaps are dropped into.
    pub(crate) fn slices<'a>(
        &self,
        memory: &'a Segments,
        mut done: u64,
        dropped: &'a mut [u8],
    ) -> Vec<IoSliceMut<'a>> {
        let mut slices = Vec::new();
        let mut rest = dropped;
        for &(gap, len) in &self.runs {
            if slices.len() + 1 >= SLICES {
                break;
            }
            if gap > 0 {
                let (now, behind) = std::mem::take(&mut rest).split_at_mut(gap as usize);
                slices.push(IoSliceMut::new(now));
                rest = behind;
            }
            let room = room(memory, done, len, SLICES - slices.len());
            let fits: u64 = room.iter().map(|slice| slice.len() as u64).sum();
            slices.extend(room);
            if fits < len {
                break;
            }
            done += len;
        }
        slices
    }
}
