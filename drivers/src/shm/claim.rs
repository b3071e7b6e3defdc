//! A chunk that two cores copy at once: who copies what, piece by piece.
//!
//! The sender's core pushes (it writes into the receiver's memory) from one end, the receiver's core pulls
//! (it reads the sender's memory) from the other one, each as much as it claims. Each of two processes always
//! begins at the same end, so that what goes to and fro stays in its core's cache. One word has both ends
//! and, for each side, whether it copies just now, so that a claim, the end of the last copy, and giving up
//! are each one atomic step. Who has nothing else to do takes the next piece: the split between the two is
//! decided at the latest moment, and a side that computes costs the other nothing but its help.
//!
//! A sender that gives up ([`abandon`]), or a receiver that has no use for the bytes ([`discard`]), takes all
//! that is left. Once the other side does not copy any more either ([`is_copying`]), nobody touches the
//! memory of the chunk.

use super::word::Word;
use std::sync::atomic::Ordering;

/// Bytes of one unit, in which ends are counted: a page.
pub const UNIT: u64 = 4096;
/// Most units of one claim.
const MOST: u64 = 128;
/// Least units of the first claim of a side and of its later ones, and least that is left: shorter ones cost
/// more calls of the system than they gain.
const LEAST_FIRST: u64 = 8;
const LEAST_MORE: u64 = 16;
/// Bytes that are copied with one call where nobody helps: all of a chunk, as long as they usually are. Two
/// calls for 1 MiB take up to a tenth longer.
const ALONE: u64 = 1 << 20;

const END_BITS: u32 = 24;
const END_MASK: u64 = (1 << END_BITS) - 1;
const PUSHING: u64 = 1 << 48;
const PULLING: u64 = 1 << 49;
const ABANDONED: u64 = 1 << 50;
/// The sender begins at the back.
const TURNED: u64 = 1 << 51;
const ROUND_SHIFT: u32 = 52;
const ROUNDS: u64 = 0xfff;
/// Longest chunk in bytes.
pub const LONGEST: u64 = END_MASK * UNIT;

/// Which of the two copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The sender.
    Push,
    /// The receiver.
    Pull,
}

impl Side {
    fn bit(self) -> u64 {
        match self {
            Side::Push => PUSHING,
            Side::Pull => PULLING,
        }
    }

    /// Whether it begins at the front of the chunk that a word tells of.
    fn is_in_front(self, word: u64) -> bool {
        (self == Side::Push) == (word & TURNED == 0)
    }
}

/// The chunk that a word is used for; a word serves many, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round(u64);

impl Round {
    /// From the low bits of a number.
    pub fn of(number: u64) -> Round {
        Round(number & ROUNDS)
    }

    /// As a number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The units that a chunk of `len` bytes has.
pub fn units(len: u64) -> u64 {
    len.div_ceil(UNIT)
}

/// Begins a chunk; only its sender does, when the one before is complete. He begins at its front, or at its
/// back if it is `turned`.
pub fn begin(word: &impl Word, round: Round, len: u64, turned: bool) {
    let turned = if turned { TURNED } else { 0 };
    word.store(round.0 << ROUND_SHIFT | turned | units(len) << END_BITS, Ordering::Release);
}

/// What `side` shall copy next of a chunk of `len` bytes, in bytes: from and to (the last unit may be cut by
/// the chunk's end). None: nothing is left.
///
/// Two that are there at once take half each, with one call. Who is there again while nobody else has come
/// takes half of the rest. `alone`: nobody else is to help.
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

/// Takes at most `most` bytes for `side`; as [`claim`].
pub fn claim_at_most(word: &impl Word, round: Round, side: Side, most: u64) -> Option<(u64, u64)> {
    take(word, round, side, |rest| (most / UNIT).clamp(1, rest.back - rest.front))
}

/// The receiver takes all that is left and copies none of it.
pub fn discard(word: &impl Word, round: Round) {
    if take(word, round, Side::Pull, |rest| rest.back - rest.front).is_some() {
        finish(word, Side::Pull);
    }
}

/// The sender ends the chunk: nothing more of it is copied, and it never counts as complete.
pub fn abandon(word: &impl Word, round: Round) {
    loop {
        let old = word.load(Ordering::Acquire);
        let back = old >> END_BITS & END_MASK;
        let new = old & !END_MASK | back | ABANDONED;
        if old >> ROUND_SHIFT != round.0 || word.replace(old, new) {
            return;
        }
    }
}

/// What nobody has claimed yet, in units, and at which end the side begins that claims some of it.
struct Rest {
    front: u64,
    back: u64,
    from_front: bool,
}

fn take(word: &impl Word, round: Round, side: Side, share: impl Fn(Rest) -> u64) -> Option<(u64, u64)> {
    loop {
        let old = word.load(Ordering::Acquire);
        let (front, back) = (old & END_MASK, old >> END_BITS & END_MASK);
        if old >> ROUND_SHIFT != round.0 || front >= back {
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

/// `side` has copied what it claimed.
pub fn finish(word: &impl Word, side: Side) {
    word.fetch_and(!side.bit(), Ordering::AcqRel);
}

/// `side` has copied what it claimed last, from and to, or could not.
pub fn end(word: &impl Word, round: Round, side: Side, claimed: (u64, u64), is_copied: bool) {
    match is_copied {
        true => finish(word, side),
        false => give_back(word, round, side, claimed),
    }
}

/// `side` could not copy what it claimed last, from and to: that is anybody's again, and not complete.
pub fn give_back(word: &impl Word, round: Round, side: Side, (from, to): (u64, u64)) {
    let units = (to - from) / UNIT;
    loop {
        let old = word.load(Ordering::Acquire);
        let rest = old & !side.bit();
        let new = match side.is_in_front(old) {
            _ if old & ABANDONED != 0 => rest,
            true => rest - units,
            false => rest + (units << END_BITS),
        };
        if old >> ROUND_SHIFT != round.0 || word.replace(old, new) {
            return;
        }
    }
}

/// Whether `side` copies just now.
pub fn is_copying(word: &impl Word, round: Round, side: Side) -> bool {
    let now = word.load(Ordering::Acquire);
    now >> ROUND_SHIFT == round.0 && now & side.bit() != 0
}

/// Whether all of it was claimed.
pub fn is_claimed(word: &impl Word, round: Round) -> bool {
    let now = word.load(Ordering::Acquire);
    now >> ROUND_SHIFT != round.0 || now & END_MASK >= now >> END_BITS & END_MASK
}

/// Whether all of it was claimed and nobody copies any more, or the word serves another chunk already.
pub fn is_complete(word: &impl Word, round: Round) -> bool {
    is_over(word, round) || is_all_copied(word, round)
}

/// Whether the word serves another chunk already.
pub fn is_over(word: &impl Word, round: Round) -> bool {
    word.load(Ordering::Acquire) >> ROUND_SHIFT != round.0
}

fn is_all_copied(word: &impl Word, round: Round) -> bool {
    let now = word.load(Ordering::Acquire);
    let all = now & END_MASK >= now >> END_BITS & END_MASK;
    now >> ROUND_SHIFT == round.0 && all && now & (PUSHING | PULLING | ABANDONED) == 0
}

/// Longest wait for the end of a copy: a thousand times what the longest one takes, and what a peer that was
/// stopped in the middle of one costs.
const BOUND: std::time::Duration = std::time::Duration::from_secs(2);

/// Waits until the other side has ended the copy that it is in, or does not live any more.
pub fn wait(lives: &impl Fn() -> bool, ended: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
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

    /// The lengths, in units, that the sides claim one after the other of a chunk of so many units.
    fn lengths(units: u64, sides: impl IntoIterator<Item = Side>) -> Vec<u64> {
        claims(units, false, sides).into_iter().map(|(from, to)| to - from).collect()
    }

    /// From where to where.
    fn claims(units: u64, turned: bool, sides: impl IntoIterator<Item = Side>) -> Vec<(u64, u64)> {
        let (word, round, len) = (AtomicU64::new(0), Round::of(1), units * UNIT);
        begin(&word, round, len, turned);
        let mut one = |side| claim(&word, round, side, len, false).map(|(from, to)| (from / UNIT, to / UNIT));
        sides.into_iter().map_while(&mut one).collect()
    }

    #[test]
    fn what_could_not_be_copied_is_for_the_other_side() {
        let (word, len) = (AtomicU64::new(0), 100 * UNIT);
        for (number, turned) in [(1, false), (2, true)] {
            let round = Round::of(number);
            let claim = |side| claim(&word, round, side, len, false);
            for (cannot, can) in [(Side::Push, Side::Pull), (Side::Pull, Side::Push)] {
                begin(&word, round, len, turned);
                let (failed, copied) = (claim(cannot).expect("half"), claim(can));
                finish(&word, can);
                assert!(is_claimed(&word, round) && !is_complete(&word, round), "not while it is tried");
                give_back(&word, round, cannot, failed);
                assert!(!is_claimed(&word, round) && !is_complete(&word, round));
                let again: Vec<_> = std::iter::from_fn(|| claim(can)).collect();
                finish(&word, can);
                assert!(is_complete(&word, round) && copied.is_some());
                let (from, to) = again.iter().fold((len, 0), |all, one| (all.0.min(one.0), all.1.max(one.1)));
                assert_eq!((from, to), failed, "and nothing of what was copied: {again:?}");
            }
            begin(&word, round, len, turned);
            let failed = claim(Side::Pull).expect("half");
            abandon(&word, round);
            give_back(&word, round, Side::Pull, failed);
            assert!(
                !is_copying(&word, round, Side::Pull) && is_claimed(&word, round),
                "given up is given up"
            );
        }
    }

    #[test]
    fn two_take_half_each_and_one_alone_leaves_something_for_who_comes_late() {
        use Side::{Pull, Push};
        assert_eq!(lengths(256, [Push, Pull, Push]), [128, 128]);
        assert_eq!(lengths(256, [Pull, Push, Pull]), [128, 128]);
        assert_eq!(lengths(256, [Push, Push, Pull, Push]), [128, 64, 64], "who is late takes the rest");
        assert_eq!(lengths(256, [Push; 9]), [128, 64, 32, 16, 16]);
        assert_eq!(lengths(24, [Push, Pull, Push]), [12, 12]);
        assert_eq!(lengths(15, [Push, Pull]), [15], "too little for two");
        assert_eq!(claims(100, false, [Push, Pull]), [(0, 50), (50, 100)]);
        assert_eq!(claims(100, true, [Push, Pull]), [(50, 100), (0, 50)]);
        assert_eq!(lengths(1024, [Push, Pull, Push, Pull, Push, Pull]), [128; 6], "nor is a call too long");
    }
}
