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

    /// Predicted nanoseconds if the process does it by itself.
    pub fn direct_ns(self, reads: bool) -> u64 {
        // Reads drop short gaps, but the pieces of one rank may be far from each other.
        self.pieces * if reads { READ_NS } else { WRITE_NS } + self.bytes / BYTES_PER_NS
    }
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

    #[test]
    fn long_pieces_go_directly_and_many_short_ones_by_owners() {
        let direct = |pieces: u64, len: u64| Load { pieces, bytes: pieces * len }.direct_ns(false);
        let owners =
            |pieces: u64, len: u64| exchanged_ns(Load { pieces: 4 * pieces, bytes: 4 * pieces * len }, 4, 2);
        assert!(direct(1, 1 << 20) < owners(1, 1 << 20));
        assert!(direct(10_000, 100) > owners(10_000, 100));
    }
}
