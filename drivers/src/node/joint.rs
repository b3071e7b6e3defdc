//! Joint copies: a copy between two processes of a node that both carry out, if the other one polls in
//! time.
//!
//! The *origin*, the process that starts the copy, writes its memory address into words of the *target* and
//! begins to copy. A target that polls meanwhile takes pieces from the other end ([`super::claim`]); if the
//! target computes, it loses nothing, and the origin copies everything. Each target takes part in one such
//! copy at a time: another origin copies alone.

use super::across::{self, Process};
use super::claim::{self, Round, Side};
use nmad_engine::memory::Segments;
use nmad_engine::memory::together::LEAST;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a target, in memory that both processes share.
pub const WORDS: usize = 8;

/// The process that holds the words; zero: none.
const HOLDER: usize = 0;
/// The claim word of the work ([`super::claim`]).
const WORK: usize = 1;
/// The origin's number in the layer above.
const ORIGIN: usize = 2;
/// The address of the origin's memory, in its process.
const ADDRESS: usize = 3;
/// The target's memory, as the layer above identifies it.
const PLACE: usize = 4;
const LEN: usize = 5;
/// Direction of the copy: see [`Direction`].
const DIRECTION: usize = 6;

/// Bytes of one claim of a target: it copies while it holds the lock of its node, for which its other
/// threads then wait some ten microseconds.
const PIECE: u64 = 128 << 10;

/// Direction of the data, seen from the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the target.
    Put,
    /// From the target.
    Get,
}

/// Memory of the target.
#[derive(Debug, Clone, Copy)]
pub struct There<'a> {
    /// The target's process.
    pub process: &'a Process,
    /// Address of the first byte in that process.
    pub address: u64,
    /// Identifier of the memory for the target.
    pub place: u64,
}

/// The shared words of a target.
#[derive(Debug, Clone, Copy)]
pub struct JointCopy<'a>(pub &'a [AtomicU64; WORDS]);

/// The description of a copy under way, as the target reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The number of the origin, as given to [`JointCopy::copy`].
    pub origin: u64,
    /// The identifier of the target's memory from the origin; unchecked, like the length.
    pub place: u64,
    /// Length of the whole copy in bytes.
    pub len: u64,
    direction: Direction,
    address: u64,
    round: Round,
}

impl Direction {
    fn of(number: u64) -> Direction {
        if number == Direction::Put as u64 { Direction::Put } else { Direction::Get }
    }

    /// The direction of the target's own accesses.
    fn turned(self) -> Direction {
        match self {
            Direction::Put => Direction::Get,
            Direction::Get => Direction::Put,
        }
    }
}

/// Copies between `ours` and pieces (address and length, in order) of another process of the same total
/// length.
///
/// # Errors
/// Those of [`across::read`].
pub fn copy_alone(
    direction: Direction,
    process: &Process,
    ours: &Segments,
    pieces: impl IntoIterator<Item = (u64, u64)>,
) -> io::Result<()> {
    match direction {
        Direction::Put => across::write(process, ours, pieces),
        Direction::Get => across::read(process, ours, pieces),
    }
}

/// Copies between `ours` and one piece of another process.
fn move_bytes(direction: Direction, process: &Process, ours: &Segments, address: u64) -> io::Result<()> {
    copy_alone(direction, process, ours, [(address, ours.len())])
}

impl JointCopy<'_> {
    /// Copies between memory of ours and the target's. The target learns the number `origin` of this
    /// process.
    ///
    /// # Errors
    /// The system does not permit it, some of the memory does not exist, or the target has ended. Neither
    /// side copies any more then, and part of the bytes may be copied.
    pub fn copy(
        self,
        direction: Direction,
        origin: u64,
        ours: &Segments,
        there: There<'_>,
    ) -> io::Result<()> {
        let Some(round) = self.begin(direction, origin, ours, there.place) else {
            return move_bytes(direction, there.process, ours, there.address);
        };
        let copied = self.copy_with_target(direction, round, ours, there);
        self.0[HOLDER].store(0, Ordering::Release);
        copied
    }

    /// Publishes the copy to the target. None: the copy is too short, our memory is not contiguous, or
    /// another copy is under way.
    fn begin(self, direction: Direction, origin: u64, ours: &Segments, place: u64) -> Option<Round> {
        let mut pieces = ours.iter();
        let (first, rest) = (pieces.next()?, pieces.next());
        if rest.is_some() || ours.len() < LEAST {
            return None;
        }
        let me = u64::from(std::process::id());
        self.0[HOLDER].compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let round = Round::of(Round::now(&self.0[WORK]).number() + 1);
        let address = first.start.expose_provenance() as u64;
        let told = [(ORIGIN, origin), (ADDRESS, address), (PLACE, place), (LEN, ours.len())];
        for (word, value) in told.into_iter().chain([(DIRECTION, direction as u64)]) {
            self.0[word].store(value, Ordering::Relaxed);
        }
        claim::begin(&self.0[WORK], round, ours.len(), false);
        Some(round)
    }

    /// Copies the pieces that the target does not.
    fn copy_with_target(
        self,
        direction: Direction,
        round: Round,
        ours: &Segments,
        there: There<'_>,
    ) -> io::Result<()> {
        let (work, len) = (&self.0[WORK], ours.len());
        let piece = |from: u64, to: u64| {
            move_bytes(direction, there.process, &ours.slice(from, to - from), there.address + from)
        };
        let mut failed = Ok(());
        while let Some((from, to)) = claim::claim(work, round, Side::Push, len, false) {
            failed = piece(from, to.min(len));
            claim::end(work, round, Side::Push, (from, to), failed.is_ok());
            if failed.is_err() {
                claim::revoke(work, round, Side::Push);
            }
        }
        // A process that has claimed a piece is either copying it or has ended.
        let lives = || there.process.is_there();
        let is_still = || !claim::is_copying(work, round, Side::Pull);
        while !is_still() {
            claim::wait(&lives, is_still);
            if !is_still() && !lives() {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        failed?;
        match claim::is_abandoned(work, round) {
            // The target cannot copy, and the pieces that it claimed may be missing: copy everything.
            true => piece(0, len),
            false => Ok(()),
        }
    }

    /// Called by the target: returns a copy to or from its memory, of which some part is unclaimed.
    #[inline]
    pub fn part(self) -> Option<Part> {
        let work = &self.0[WORK];
        let round = Round::now(work);
        if claim::is_claimed(work, round) {
            return None;
        }
        let [origin, place, len, direction, address] =
            [ORIGIN, PLACE, LEN, DIRECTION, ADDRESS].map(|word| self.0[word].load(Ordering::Relaxed));
        Some(Part { origin, place, len, direction: Direction::of(direction), address, round })
    }

    /// Called by the target: copies one piece between the origin's process `from` and the whole memory of
    /// ours that the origin named. `from` is none if the target cannot copy; the origin then copies alone.
    /// Returns whether something was copied.
    pub fn help(self, part: Part, from: Option<(&Process, Segments)>) -> bool {
        let work = &self.0[WORK];
        let Some((process, ours)) = from else {
            claim::decline(work, part.round);
            return false;
        };
        let Some((begin, end)) = claim::claim_at_most(work, part.round, Side::Pull, PIECE) else {
            return false;
        };
        let last = end.min(ours.len());
        let is_copied = begin < last && {
            let (piece, address) = (ours.slice(begin, last - begin), part.address.wrapping_add(begin));
            move_bytes(part.direction.turned(), process, &piece, address).is_ok()
        };
        match is_copied {
            true => claim::end(work, part.round, Side::Pull, (begin, end), true),
            false => claim::decline(work, part.round),
        }
        is_copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::memory::Memory;
    use std::sync::LazyLock;
    use std::sync::atomic::AtomicBool;

    const BYTES: usize = (1 << 20) + 100;

    fn words() -> [AtomicU64; WORDS] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    fn bytes(memory: &Memory) -> Vec<u8> {
        let mut all = Vec::new();
        memory.segments().append_to(&mut all);
        all
    }

    fn me() -> &'static Process {
        static ME: LazyLock<Process> = LazyLock::new(|| Process::of(std::process::id() as i32));
        &ME
    }

    /// Describes memory of this process.
    fn there(memory: &Memory) -> There<'static> {
        let start = memory.segments().iter().next().expect("memory").start;
        There { process: me(), address: start.addr() as u64, place: 40 }
    }

    /// Both directions, with the memory of the origin and that of the target before the copy.
    fn cases() -> [(Direction, Memory, Memory); 2] {
        let (full, empty) = (|| Memory::pattern(BYTES, 7), || Memory::zeroed(BYTES));
        [(Direction::Put, full(), empty()), (Direction::Get, empty(), full())]
    }

    #[test]
    fn a_target_that_looks_copies_its_pieces_and_the_origin_the_rest() {
        for (direction, ours, theirs) in cases() {
            let words = words();
            let joint = JointCopy(&words);
            assert_eq!(joint.part(), None);
            let round = joint.begin(direction, 3, &ours.segments(), 40).expect("it is free");
            let part = joint.part().expect("work");
            assert_eq!((part.origin, part.place, part.len), (3, 40, BYTES as u64));
            assert!(joint.help(part, Some((me(), theirs.segments()))));
            let (source, into) = match direction {
                Direction::Put => (&ours, &theirs),
                Direction::Get => (&theirs, &ours),
            };
            let first = BYTES.next_multiple_of(claim::UNIT as usize) - PIECE as usize;
            let (before, behind) = (&bytes(into)[..first], &bytes(into)[first..]);
            assert!(before.iter().all(|&byte| byte == 0) && *behind == bytes(source)[first..]);
            joint.copy_with_target(direction, round, &ours.segments(), there(&theirs)).expect("it may");
            assert!(bytes(&ours) == bytes(&theirs));
            assert!(joint.part().is_none() && !joint.help(part, Some((me(), theirs.segments()))));
        }
    }

    #[test]
    fn pieces_that_a_target_cannot_copy_are_copied_by_the_origin() {
        for (direction, ours, theirs) in cases() {
            let words = words();
            let joint = JointCopy(&words);
            // A wrong place, or a process that does not exist.
            let nobody = Process::of(i32::MAX);
            for process in [None, Some(&nobody)] {
                let helps = process.map(|process| (process, theirs.segments()));
                let round = joint.begin(direction, 0, &ours.segments(), 0).expect("it is free");
                assert!(!joint.help(joint.part().expect("work"), helps));
                assert_eq!(joint.part(), None);
                joint.copy_with_target(direction, round, &ours.segments(), there(&theirs)).expect("it may");
                joint.0[HOLDER].store(0, Ordering::Relaxed);
            }
            assert!(bytes(&ours) == bytes(&theirs));
        }
    }

    #[test]
    fn short_data_and_those_of_a_second_origin_are_copied_by_one() {
        let words = words();
        let joint = JointCopy(&words);
        let (ours, theirs) = (Memory::pattern(BYTES, 1), Memory::zeroed(BYTES));
        assert!(joint.begin(Direction::Put, 0, &ours.segments().slice(0, LEAST - 1), 0).is_none());
        let cut = ours.pieces(&[0..BYTES / 2, BYTES / 2..BYTES]);
        assert!(cut.iter().count() == 1 || joint.begin(Direction::Put, 0, &cut, 0).is_none());
        joint.begin(Direction::Put, 0, &ours.segments(), 0).expect("it is free");
        joint.copy(Direction::Put, 1, &ours.segments(), there(&theirs)).expect("it may");
        assert!(bytes(&ours) == bytes(&theirs) && joint.part().is_some_and(|part| part.origin == 0));
    }

    #[test]
    fn two_threads_copy_each_byte_of_many_copies() {
        let (words, is_done) = (words(), AtomicBool::new(false));
        let joint = JointCopy(&words);
        let mut ours = Memory::pattern(BYTES, 0);
        let theirs = Memory::zeroed(BYTES);
        let memory = theirs.segments();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    match joint.part() {
                        Some(part) => _ = joint.help(part, Some((me(), memory.clone()))),
                        None => std::thread::yield_now(),
                    }
                }
            });
            for seed in 1..20 {
                ours.fill(seed);
                joint.copy(Direction::Put, 0, &ours.segments(), there(&theirs)).expect("it may");
                assert!(bytes(&ours) == bytes(&theirs), "copy {seed}");
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
