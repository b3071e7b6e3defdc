//! Parts of different lengths on the board: gatherv, scatterv, alltoallv.
//!
//! Nobody knows whether the parts of another rank fit into its slot. So each rank posts either a table of
//! where its parts begin, with the parts, or that they are too long; when all have posted, all know whether
//! somebody's were. Then they take the way of long parts, and the next calls do so without asking here: one
//! the first time, then three, seven and so on, on all ranks alike.

use super::{Board, POST_MAX, Pause};
use crate::error::{Class, Result};
use newmadeleine::Segments;

/// In the place of the first entry of a table: the parts are too long.
const TOO_LONG: u16 = u16::MAX;
/// Bytes of an entry.
const ENTRY: usize = size_of::<u16>();
/// Most calls in a row that are not asked, as a power of two.
const UNASKED_MAX: u32 = 6;

/// Calls with parts that are not asked on the board.
#[derive(Debug, Default)]
pub(super) struct Unasked {
    /// Number of calls in a row whose parts were too long.
    times: u32,
    /// Calls that are not asked yet.
    left: u32,
}

impl Unasked {
    fn too_long(&mut self) {
        self.times = (self.times + 1).min(UNASKED_MAX);
        self.left = (1 << self.times) - 1;
    }
}

impl Board {
    /// Each rank posts a part for each rank, as `out` names them, and gets the part of each rank for it into
    /// the memory that `into` names. False: some rank's parts are too long for its slot, and nobody got any.
    ///
    /// # Errors
    /// A part is longer than its receiver expects (`MPI_ERR_TRUNCATE`), or what `out`, `into` or `pause` say.
    pub fn parts(
        &mut self,
        out: impl Fn(usize) -> Result<Segments>,
        into: impl Fn(usize) -> Result<Segments>,
        pause: Pause<'_>,
    ) -> Result<bool> {
        if self.unasked.left > 0 {
            self.unasked.left -= 1;
            return Ok(false);
        }
        // Errors of arguments are found before the others wait for a post.
        let out: Vec<Segments> = (0..self.ring.size).map(out).collect::<Result<_>>()?;
        let room = (POST_MAX - self.table_len()) as u64;
        let fits = out.iter().try_fold(room, |room, part| room.checked_sub(part.len())).is_some();
        let number = self.enter(pause)?;
        self.post_parts(number, fits.then_some(&out));
        self.look(number, 0..self.ring.size, pause)?;
        let fits = (0..self.ring.size).all(|rank| self.entry(rank, number, 0) != TOO_LONG);
        let fetched = match fits {
            true => (0..self.ring.size).try_for_each(|rank| self.fetch_part(rank, number, &into(rank)?)),
            false => Ok(()),
        };
        match fits {
            true => self.unasked.times = 0,
            false => self.unasked.too_long(),
        }
        fetched.map(|()| fits)
    }

    /// Bytes of a table, which has where each part begins and where the last one ends.
    fn table_len(&self) -> usize {
        (ENTRY * (self.ring.size + 1)).next_multiple_of(size_of::<u64>())
    }

    /// Shows parts to all, or that they are too long.
    fn post_parts(&self, number: u64, parts: Option<&Vec<Segments>>) {
        match parts {
            None => self.ring.put(&self.memory, number, 0, &TOO_LONG.to_ne_bytes()),
            Some(parts) => {
                let mut end = self.table_len();
                for (rank, part) in parts.iter().enumerate() {
                    self.ring.put(&self.memory, number, ENTRY * rank, &(end as u16).to_ne_bytes());
                    for piece in part.slices() {
                        self.ring.put(&self.memory, number, end, piece);
                        end += piece.len();
                    }
                }
                self.ring.put(&self.memory, number, ENTRY * parts.len(), &(end as u16).to_ne_bytes());
            }
        }
        self.ring.show(&self.memory, number, number - 1);
    }

    /// An entry of the table of a rank.
    fn entry(&self, rank: usize, number: u64, index: usize) -> u16 {
        let bytes = self.ring.posted(&self.memory, rank, number, ENTRY * index..ENTRY * (index + 1));
        u16::from_ne_bytes([bytes[0], bytes[1]])
    }

    fn fetch_part(&self, rank: usize, number: u64, into: &Segments) -> Result<()> {
        let [begin, end] =
            [self.ring.me, self.ring.me + 1].map(|index| usize::from(self.entry(rank, number, index)));
        let (len, room) = (end.saturating_sub(begin), into.len());
        if len as u64 > room {
            return Err(Class::TRUNCATE
                .error(format!("rank {rank} sends {len} bytes to this rank, which expects {room} of it")));
        }
        into.write(0, self.ring.posted(&self.memory, rank, number, begin..begin + len));
        Ok(())
    }
}
