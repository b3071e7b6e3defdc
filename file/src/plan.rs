//! The ways that an access may go, and what each is predicted to cost.
//!
//! The figures are times of the processor on an EPYC (two cores, shared with others), least of nine, in the
//! page cache of ext4 and of tmpfs: pwrite of 8 B 4.0 and 1.0 us, pread of 8 B 0.6 and 0.7 us, pwrite of
//! 16 MiB 7.5 and 2.7 GB/s, a slice of 8 B of a long pwritev 84 and 48 ns. With half or twice a figure the
//! ways change places at half or twice the length of pieces.

use crate::piece::Pieces;

/// Nanoseconds of a write with one slice.
const WRITE_NS: u64 = 2000;
/// Nanoseconds of a read with one slice.
const READ_NS: u64 = 700;
/// Nanoseconds of a piece that is copied from what was read with its neighbours.
const COPY_NS: u64 = 20;
/// Nanoseconds of a slice in a call.
const SLICE_NS: u64 = 80;
/// Nanoseconds of a message between processes, sent and received.
const MESSAGE_NS: u64 = 1500;
/// Bytes that are copied in a nanosecond, into the page cache or from process to process.
const BYTES_PER_NS: u64 = 4;

/// The size of an access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Pieces of the file.
    pub pieces: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Load {
    /// That of some pieces.
    pub fn of(pieces: &Pieces) -> Load {
        Load { pieces: pieces.count() as u64, bytes: pieces.len() }
    }

    /// Predicted nanoseconds if the process writes it by itself.
    pub fn written_ns(self) -> u64 {
        self.pieces * WRITE_NS + self.bytes / BYTES_PER_NS
    }
}

/// Predicted nanoseconds of pieces that are copied from or to mapped memory.
pub(crate) fn copied_ns(load: Load) -> u64 {
    load.pieces * COPY_NS + load.bytes / BYTES_PER_NS
}

/// Predicted nanoseconds if a process reads pieces by itself, and those that are at most `gap` bytes apart
/// together.
pub fn read_ns(pieces: &Pieces, gap: u64) -> u64 {
    let (mut calls, mut bytes, mut end) = (0, pieces.len(), None);
    for piece in pieces.list() {
        let between =
            end.and_then(|end: u64| piece.offset.checked_sub(end)).filter(|between| *between <= gap);
        calls += u64::from(between.is_none());
        bytes += between.unwrap_or(0);
        end = Some(piece.end());
    }
    calls * READ_NS + pieces.count() as u64 * COPY_NS + bytes / BYTES_PER_NS
}

/// Gaps between pieces of a read of up to this many bytes are read with them: shorter than a system call.
pub const GAP: u64 = READ_NS * BYTES_PER_NS;

/// Predicted nanoseconds of a collective access by `owners` owners: each rank sends them its data, and
/// the joined pieces touch.
pub fn exchanged_ns(all: Load, ranks: u64, owners: u64) -> u64 {
    let owners = owners.max(1);
    let share = Load { pieces: all.pieces / owners, bytes: all.bytes / owners };
    // The places and the data, and the end of the access.
    let messages = 2 * ranks + 2 * u64::from(ranks.ilog2() + 1);
    messages * MESSAGE_NS + share.pieces * SLICE_NS + 2 * share.bytes / BYTES_PER_NS + WRITE_NS
}

/// Nanoseconds of a byte on its way to an owner and from there to the file. Interleaved records of two ranks
/// took 1.4 to 1.9 us at 100 B and 8.8 to 11 us at 1000 B, on the machine above with twice as many busy
/// threads as cores, on which MPICH's took 3.6 to 4.8 us at 100 B; half of that is taken. With half or twice
/// of it records of up to 480 or 120 B go by owners instead of 240.
const ASKED_NS_PER_BYTE: u64 = 4;

/// Predicted nanoseconds if a process has owners do an access of its own: a request and an answer for each
/// `part` bytes, and the copies of the data on their way to the file.
pub fn asked_ns(load: Load, part: u64) -> u64 {
    let messages = 2 * (1 + load.bytes / part.max(1));
    messages * MESSAGE_NS + load.pieces * SLICE_NS + load.bytes * ASKED_NS_PER_BYTE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piece::Piece;

    #[test]
    fn long_pieces_go_directly_and_many_short_ones_by_owners() {
        let direct = |pieces: u64, len: u64| Load { pieces, bytes: pieces * len }.written_ns();
        let owners =
            |pieces: u64, len: u64| exchanged_ns(Load { pieces: 4 * pieces, bytes: 4 * pieces * len }, 4, 2);
        assert!(direct(1, 1 << 20) < owners(1, 1 << 20));
        assert!(direct(10_000, 100) > owners(10_000, 100));
    }

    #[test]
    fn short_gaps_of_a_read_cost_less_than_calls() {
        let strided = |by: u64| (0..1000).map(|n| Piece { offset: n * by, len: 100 }).collect::<Pieces>();
        let near = read_ns(&strided(200), GAP);
        assert_eq!(near, READ_NS + 1000 * COPY_NS + (999 * 200 + 100) / BYTES_PER_NS);
        assert_eq!(read_ns(&strided(200), 0), read_ns(&strided(1 << 20), GAP));
        assert!(near < read_ns(&strided(200), 0) / 5);
        // Pieces that go back are read one by one.
        let back: Pieces = strided(200).list().iter().rev().copied().collect();
        assert_eq!(read_ns(&back, GAP), read_ns(&strided(200), 0));
    }
}
