//! A copy between two processes of a node that both do, if the other one looks meanwhile.
//!
//! The process that wants it, the *origin*, says in words of the *target* where its memory is, and begins to
//! copy. A target that looks just then takes pieces from the other end ([`super::claim`]); one that computes
//! loses nothing, and the origin does all of it. There is one such copy at a time for each target: another
//! origin copies alone.

use super::across::{self, Process};
use super::claim::{self, Round, Side};
use nmad_engine::memory::Segments;
use nmad_engine::memory::together::LEAST;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a target, in memory that both processes see.
pub const WORDS: usize = 8;

/// The process that has the words; zero: nobody.
const HOLDER: usize = 0;
/// The claims on the work ([`super::claim`]).
const WORK: usize = 1;
/// Who the origin is, as the layer above numbers processes.
const ORIGIN: usize = 2;
/// The address of its memory, in its process.
const ADDRESS: usize = 3;
/// The place of the target's memory, as the layer above names it.
const PLACE: usize = 4;
const LEN: usize = 5;
/// Where the data go: see [`Direction`].
const DIRECTION: usize = 6;

/// Bytes of one claim of a target: it copies with the lock of its node, for which its other threads wait
/// some ten microseconds then.
const PIECE: u64 = 128 << 10;

/// Where the data go, as the origin sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the target.
    Put,
    /// From the target.
    Get,
}

/// Memory of the target in its process, and its name for the target.
#[derive(Debug, Clone, Copy)]
pub struct There<'a> {
    /// The process.
    pub process: &'a Process,
    /// The first byte, in that process.
    pub address: u64,
    /// What the target knows it by.
    pub place: u64,
}

/// The words of a target.
#[derive(Debug, Clone, Copy)]
pub struct JointCopy<'a>(pub &'a [AtomicU64; WORDS]);

/// The target's part of a copy that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The number of the origin, which it gave to [`JointCopy::copy`].
    pub origin: u64,
    /// What the origin named as its place, and the length, both unchecked.
    pub place: u64,
    /// Bytes of the whole.
    pub len: u64,
    direction: Direction,
    address: u64,
    round: Round,
}

impl Direction {
    fn of(number: u64) -> Direction {
        if number == Direction::Put as u64 { Direction::Put } else { Direction::Get }
    }

    /// What a target does for it.
    fn turned(self) -> Direction {
        match self {
            Direction::Put => Direction::Get,
            Direction::Get => Direction::Put,
        }
    }
}

/// Copies between `ours` and pieces (address and length, in order) of another process that are as long.
///
/// # Errors
/// As [`across::read`].
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

/// The same with one piece.
fn move_bytes(direction: Direction, process: &Process, ours: &Segments, address: u64) -> io::Result<()> {
    copy_alone(direction, process, ours, [(address, ours.len())])
}

impl JointCopy<'_> {
    /// Copies between memory of ours and the target's. The target gets the number `origin` of this process.
    ///
    /// # Errors
    /// The system does not permit it, some of the memory is not there, or the target is gone: then nobody
    /// copies any more, and some of the bytes may be copied.
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

    /// Tells the target. None: it is not worth it, the target could not find our memory by one address, or
    /// another copy is under way.
    fn begin(self, direction: Direction, origin: u64, ours: &Segments, place: u64) -> Option<Round> {
        let mut pieces = ours.iter();
        let (first, rest) = (pieces.next()?, pieces.next());
        let me = u64::from(std::process::id());
        let is_for_two = rest.is_none() && ours.len() >= LEAST;
        if !is_for_two
            || self.0[HOLDER].compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            return None;
        }
        let round = Round::of(Round::now(&self.0[WORK]).number() + 1);
        let address = first.start.expose_provenance() as u64;
        let told = [(ORIGIN, origin), (ADDRESS, address), (PLACE, place), (LEN, ours.len())];
        for (word, value) in told.into_iter().chain([(DIRECTION, direction as u64)]) {
            self.0[word].store(value, Ordering::Relaxed);
        }
        claim::begin(&self.0[WORK], round, ours.len(), false);
        Some(round)
    }

    /// Copies what the target does not.
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
        // A process that has claimed a piece is copying it, or gone.
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
            // The target cannot copy, and may have claimed pieces that are missing now.
            true => piece(0, len),
            false => Ok(()),
        }
    }

    /// A copy that is under way to or from our memory, of which something is not claimed; for its target.
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

    /// Copies a piece of it, `from` the origin's process and between the whole memory of ours that it named.
    /// None: there is none, and the origin does it alone. True: something was copied.
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

    /// Where memory of this process is.
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
            let round = joint.begin(direction, 3, &ours.segments(), 40).expect("nobody has it");
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
    fn what_a_target_cannot_copy_the_origin_does_alone() {
        for (direction, ours, theirs) in cases() {
            let words = words();
            let joint = JointCopy(&words);
            // Not its memory, or a process that there is none of.
            let nobody = Process::of(i32::MAX);
            for process in [None, Some(&nobody)] {
                let helps = process.map(|process| (process, theirs.segments()));
                let round = joint.begin(direction, 0, &ours.segments(), 0).expect("nobody has it");
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
        joint.begin(Direction::Put, 0, &ours.segments(), 0).expect("nobody has it");
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
