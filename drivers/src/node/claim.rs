//! Shared work: bytes that either side of a link may copy, claimed piece by piece and revocable by both.
//!
//! One word describes the work. It holds the two bounds, in pages, of the part that is not claimed yet, and
//! for each side a bit that says whether that side is copying. The sender *pushes* from one end (it writes
//! into the receiver's memory), the receiver *pulls* from the other one (it reads the sender's memory).
//! Each process always begins at the same end, so a buffer that is sent back and forth stays in the cache
//! of one core. A claim, the end of a copy and a revocation are one atomic step each:
//!
//! | step | side | effect |
//! |---|---|---|
//! | [`begin`] | sender | the word describes new work |
//! | [`claim`], [`claim_at_most`] | either | takes a piece from its own end, sets its bit |
//! | [`end`] | either | clears its bit; a piece that it could not copy is unclaimed again |
//! | [`revoke`] | either | takes the whole unclaimed part, for good |
//!
//! If a side revokes and then waits until the other one is not copying ([`wait`]), the memory is not
//! accessed after that. Chunks (`chunk/`), the closing of a receive region (`cma/regions.rs`) and joint
//! copies ([`super::joint`]) all follow this protocol, and `shm/tests/loom.rs` has its model.

use crate::node::word::Word;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes of a unit, in which the bounds are counted: a page, since the kernel maps memory by pages.
pub const UNIT: u64 = 4096;
/// Largest claim in units, 512 KiB, so that a side that starts late still finds unclaimed pieces. Zen 4:
/// half and twice are within the spread.
const MOST: u64 = 128;
/// Smallest first claim of a side in units, 16 KiB: a system call costs as much as copying some KiB. Zen 4:
/// half is within the spread; with twice, 32 KiB are copied by one core alone, and 64 KiB take 5.6 us
/// instead of 5.3.
const LEAST_FIRST: u64 = 4;
/// Smallest later claim in units, 64 KiB. Zen 4: half and twice are within the spread. Later claims are
/// rare.
const LEAST_MORE: u64 = 16;
/// Bytes of one claim of a side that copies alone: the usual chunk of the engine. Zen 5: half makes 1 MiB
/// up to a tenth slower. Zen 4: half and twice are within the spread.
const ALONE: u64 = 1 << 20;
/// Longest wait for the end of the other side's copy: a thousand times the duration of the longest copy. It
/// expires only for a peer that was stopped within a system call, so half and twice matter in no other
/// case.
const BOUND: Duration = Duration::from_secs(2);

const END_BITS: u32 = 24;
const END_MASK: u64 = (1 << END_BITS) - 1;
const PUSHING: u64 = 1 << 48;
const PULLING: u64 = 1 << 49;
/// The sender has revoked the work, or the receiver could not copy it: it never counts as complete.
const ABANDONED: u64 = 1 << 50;
/// The receiver has revoked the work: it is complete as soon as neither side copies.
const DISCARDED: u64 = 1 << 51;
/// The sender begins at the back.
const TURNED: u64 = 1 << 52;
const ROUND_SHIFT: u32 = 53;
/// Mask of round numbers. There are more rounds than a ring has cells, so the round in an old cell never
/// equals that of new work.
const ROUNDS: u64 = 0x7ff;
/// Longest work in bytes.
pub const LONGEST: u64 = END_MASK * UNIT;

/// The two sides of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Push,
    Pull,
}

impl Side {
    fn bit(self) -> u64 {
        match self {
            Side::Push => PUSHING,
            Side::Pull => PULLING,
        }
    }

    /// Returns whether this side begins at the front.
    fn is_in_front(self, word: u64) -> bool {
        (self == Side::Push) == (word & TURNED == 0)
    }
}

/// Number of the work that a word describes; a word describes many works, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round(u64);

impl Round {
    /// Takes the low bits of a number.
    pub fn of(number: u64) -> Round {
        Round(number & ROUNDS)
    }

    /// The round that a word describes now.
    pub fn now(word: &impl Word) -> Round {
        Round(word.load(Ordering::Acquire) >> ROUND_SHIFT)
    }

    pub fn number(self) -> u64 {
        self.0
    }

    fn is_in(self, word: u64) -> bool {
        word >> ROUND_SHIFT == self.0
    }
}

fn units(len: u64) -> u64 {
    len.div_ceil(UNIT)
}

/// Begins work of `len` bytes. Only its sender calls this, when the previous work is complete. The sender
/// takes pieces from the front, or from the back if `turned`.
pub fn begin(word: &impl Word, round: Round, len: u64, turned: bool) {
    let turned = if turned { TURNED } else { 0 };
    word.store(round.0 << ROUND_SHIFT | turned | units(len) << END_BITS, Ordering::Release);
}

/// Claims the next piece for `side` of work of `len` bytes; returns its start and end in bytes (the end of
/// the work may cut the last unit). None: nothing is left.
///
/// Two sides that start at the same time take half each, with one system call. A side that claims again
/// before the other has started takes half of the rest. `alone`: the other side is not to help.
pub fn claim(word: &impl Word, round: Round, side: Side, len: u64, alone: bool) -> Option<(u64, u64)> {
    if alone {
        return claim_at_most(word, round, side, ALONE);
    }
    let whole = units(len);
    take(word, round, side, |Rest { front, back, from_front }| {
        let is_first = if from_front { front == 0 } else { back == whole };
        share(back - front, whole, is_first)
    })
}

fn share(left: u64, whole: u64, is_first: bool) -> u64 {
    let units = match is_first {
        true => whole.div_ceil(2).clamp(LEAST_FIRST, MOST),
        false => (left / 2).clamp(LEAST_MORE, MOST),
    };
    if left < units + LEAST_FIRST { left } else { units }
}

/// Claims at most `most` bytes for `side`; returns start and end like [`claim`].
pub fn claim_at_most(word: &impl Word, round: Round, side: Side, most: u64) -> Option<(u64, u64)> {
    take(word, round, side, |rest| (most / UNIT).clamp(1, rest.back - rest.front))
}

/// The unclaimed part, in units, and the end at which the claiming side begins.
struct Rest {
    front: u64,
    back: u64,
    from_front: bool,
}

fn take(word: &impl Word, round: Round, side: Side, share: impl Fn(Rest) -> u64) -> Option<(u64, u64)> {
    loop {
        let old = word.load(Ordering::Acquire);
        let (front, back) = (old & END_MASK, old >> END_BITS & END_MASK);
        if !round.is_in(old) || front >= back {
            return None;
        }
        let from_front = side.is_in_front(old);
        let units = share(Rest { front, back, from_front });
        let (new, from) = match from_front {
            true => (old + units, front),
            false => (old - (units << END_BITS), back - units),
        };
        if word.replace(old, new | side.bit()) {
            return Some((from * UNIT, (from + units) * UNIT));
        }
    }
}

/// Ends the copy of the piece that `side` claimed last. If the copy failed, either side may claim the piece
/// again, unless the work was revoked meanwhile.
pub fn end(word: &impl Word, round: Round, side: Side, (from, to): (u64, u64), is_copied: bool) {
    if is_copied {
        word.fetch_and(!side.bit(), Ordering::AcqRel);
        return;
    }
    let units = (to - from) / UNIT;
    change(word, round, |old| {
        let rest = old & !side.bit();
        match side.is_in_front(old) {
            _ if old & (ABANDONED | DISCARDED) != 0 => rest,
            true => rest - units,
            false => rest + (units << END_BITS),
        }
    });
}

/// `side` takes the whole unclaimed part, for good. Work that the sender revokes never counts as complete.
pub fn revoke(word: &impl Word, round: Round, side: Side) {
    let bit = if side == Side::Push { ABANDONED } else { DISCARDED };
    change(word, round, |old| closed(old) | bit);
}

/// The receiver cannot copy: it gives back its claim and takes the unclaimed part, so that the work never
/// counts as complete.
pub fn decline(word: &impl Word, round: Round) {
    change(word, round, |old| closed(old) & !PULLING | ABANDONED);
}

/// Returns the word with an empty unclaimed part.
fn closed(word: u64) -> u64 {
    word & !END_MASK | word >> END_BITS & END_MASK
}

fn change(word: &impl Word, round: Round, new: impl Fn(u64) -> u64) {
    loop {
        let old = word.load(Ordering::Acquire);
        if !round.is_in(old) || word.replace(old, new(old)) {
            return;
        }
    }
}

/// Returns whether `side` is copying.
pub fn is_copying(word: &impl Word, round: Round, side: Side) -> bool {
    let now = word.load(Ordering::Acquire);
    round.is_in(now) && now & side.bit() != 0
}

/// Returns whether no part is unclaimed.
pub fn is_claimed(word: &impl Word, round: Round) -> bool {
    let now = word.load(Ordering::Acquire);
    !round.is_in(now) || is_all_claimed(now)
}

fn is_all_claimed(word: u64) -> bool {
    word & END_MASK >= word >> END_BITS & END_MASK
}

/// Returns whether all of it was claimed and neither side is copying, or the word already describes other
/// work.
pub fn is_complete(word: &impl Word, round: Round) -> bool {
    let now = word.load(Ordering::Acquire);
    !round.is_in(now) || (is_all_claimed(now) && now & (PUSHING | PULLING | ABANDONED) == 0)
}

/// Returns whether the sender revoked the work or the receiver declined it.
pub fn is_abandoned(word: &impl Word, round: Round) -> bool {
    let now = word.load(Ordering::Acquire);
    round.is_in(now) && now & ABANDONED != 0
}

/// Returns whether the word already describes other work.
pub fn is_over(word: &impl Word, round: Round) -> bool {
    Round::now(word) != round
}

/// Waits until the other side has ended its current copy or the process has ended; at most `BOUND`.
pub fn wait(lives: &impl Fn() -> bool, ended: impl Fn() -> bool) {
    let begun = Instant::now();
    while !ended() {
        std::thread::yield_now();
        if !ended() && (!lives() || begun.elapsed() > BOUND) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// The lengths of consecutive claims of these sides, in units.
    fn lengths(units: u64, sides: impl IntoIterator<Item = Side>) -> Vec<u64> {
        claims(units, false, sides).into_iter().map(|(from, to)| to - from).collect()
    }

    /// Start and end of consecutive claims of these sides, in units.
    fn claims(units: u64, turned: bool, sides: impl IntoIterator<Item = Side>) -> Vec<(u64, u64)> {
        let (word, round, len) = (AtomicU64::new(0), Round::of(1), units * UNIT);
        begin(&word, round, len, turned);
        let mut one = |side| claim(&word, round, side, len, false).map(|(from, to)| (from / UNIT, to / UNIT));
        sides.into_iter().map_while(&mut one).collect()
    }

    #[test]
    fn a_piece_that_could_not_be_copied_is_for_the_other_side() {
        let (word, len) = (AtomicU64::new(0), 100 * UNIT);
        for (number, turned) in [(1, false), (2, true)] {
            let round = Round::of(number);
            let claim = |side| claim(&word, round, side, len, false);
            for (cannot, can) in [(Side::Push, Side::Pull), (Side::Pull, Side::Push)] {
                begin(&word, round, len, turned);
                let (failed, copied) = (claim(cannot).expect("half"), claim(can).expect("half"));
                end(&word, round, can, copied, true);
                assert!(is_claimed(&word, round) && !is_complete(&word, round), "not while it is tried");
                end(&word, round, cannot, failed, false);
                assert!(!is_claimed(&word, round) && !is_complete(&word, round));
                let again: Vec<_> = std::iter::from_fn(|| claim(can)).collect();
                end(&word, round, can, (0, 0), true);
                assert!(is_complete(&word, round));
                let (from, to) = again.iter().fold((len, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
                assert_eq!((from, to), failed, "and nothing of what was copied: {again:?}");
            }
            for (revoker, complete) in [(Side::Push, false), (Side::Pull, true)] {
                begin(&word, round, len, turned);
                let failed = claim(Side::Pull).expect("half");
                revoke(&word, round, revoker);
                end(&word, round, Side::Pull, failed, false);
                assert!(!is_copying(&word, round, Side::Pull) && is_claimed(&word, round), "for good");
                assert_eq!(is_complete(&word, round), complete);
            }
        }
    }

    #[test]
    fn work_is_claimed_and_what_was_declined_is_not_complete() {
        let word = AtomicU64::new(0);
        let len = 10 * UNIT + 1;
        for (number, turned) in [(1, false), (1 << 50, true), (2, false)] {
            let (round, old) = (Round::of(number), Round::of(number.wrapping_sub(1)));
            assert!(is_over(&word, round) || number == 1 << 50, "it has not begun");
            begin(&word, round, len, turned);
            assert!(claim_at_most(&word, old, Side::Pull, len).is_none());
            assert!(!is_abandoned(&word, round));
            let whole = claim_at_most(&word, round, Side::Pull, LONGEST).expect("all of it");
            assert_eq!(whole, (0, 11 * UNIT));
            assert!(!is_complete(&word, round));
            end(&word, round, Side::Pull, whole, true);
            assert!(is_complete(&word, round));
            begin(&word, round, len, turned);
            claim(&word, round, Side::Pull, len, false).expect("half");
            decline(&word, round);
            assert!(is_abandoned(&word, round) && claim(&word, round, Side::Push, len, false).is_none());
        }
    }

    #[test]
    fn two_take_half_each_and_one_alone_leaves_something_for_a_late_one() {
        use Side::{Pull, Push};
        assert_eq!(lengths(256, [Push, Pull, Push]), [128, 128]);
        assert_eq!(lengths(256, [Pull, Push, Pull]), [128, 128]);
        assert_eq!(lengths(256, [Push, Push, Pull, Push]), [128, 64, 64], "the late one takes the rest");
        assert_eq!(lengths(256, [Push; 9]), [128, 64, 32, 16, 16]);
        assert_eq!(lengths(24, [Push, Pull, Push]), [12, 12]);
        assert_eq!(lengths(7, [Push, Pull]), [7], "too little for two");
        assert_eq!(claims(100, false, [Push, Pull]), [(0, 50), (50, 100)]);
        assert_eq!(claims(100, true, [Push, Pull]), [(50, 100), (0, 50)]);
        assert_eq!(lengths(1024, [Push, Pull, Push, Pull, Push, Pull]), [128; 6], "nor is a call too long");
    }
}
