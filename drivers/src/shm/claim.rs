//! A chunk that two cores copy at once: who copies what, piece by piece.
//!
//! The sender's core pushes (it writes into the receiver's memory) from the front, the receiver's core pulls
//! (it reads the sender's memory) from the back, each as much as it claims. One word has both ends and, for
//! each side, whether it copies just now, so that a claim, the end of the last copy, and giving up are each
//! one atomic step. Who has nothing else to do takes the next piece: the split between the two is decided
//! at the latest moment, and a side that computes costs the other nothing but its help.
//!
//! A sender that gives up ([`abandon`]), or a receiver that has no use for the bytes ([`discard`]), takes all
//! that is left. Once the other side does not copy any more either ([`is_copying`]), nobody touches the
//! memory of the chunk.

use super::word::Word;
use std::sync::atomic::Ordering;

/// Bytes of one unit, in which ends are counted: a page.
pub const UNIT: u64 = 4096;
/// Least and most units of one claim, unless less is left: shorter ones cost more calls of the system than
/// they gain.
const LEAST: u64 = 16;
const MOST: u64 = 128;
/// When no more than two such claims are left, each side takes half, but at least so many units.
const LEAST_HALF: u64 = 8;

const END_BITS: u32 = 24;
const END_MASK: u64 = (1 << END_BITS) - 1;
const PUSHING: u64 = 1 << 48;
const PULLING: u64 = 1 << 49;
const ABANDONED: u64 = 1 << 50;
const ROUND_SHIFT: u32 = 51;
const ROUNDS: u64 = 0x1fff;
/// Longest chunk in bytes.
pub const LONGEST: u64 = END_MASK * UNIT;

/// Which of the two copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The sender, from the front.
    Push,
    /// The receiver, from the back.
    Pull,
}

impl Side {
    fn bit(self) -> u64 {
        match self {
            Side::Push => PUSHING,
            Side::Pull => PULLING,
        }
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

/// Begins a chunk; only its sender does, when the one before is complete.
pub fn begin(word: &impl Word, round: Round, len: u64) {
    word.store(round.0 << ROUND_SHIFT | units(len) << END_BITS, Ordering::Release);
}

/// What `side` shall copy next, in bytes: from and to (the last unit may be cut by the chunk's end). None:
/// nothing is left.
pub fn claim(word: &impl Word, round: Round, side: Side) -> Option<(u64, u64)> {
    take(word, round, side, share)
}

fn share(left: u64) -> u64 {
    if left <= 2 * LEAST { (left / 2).max(LEAST_HALF).min(left) } else { (left / 3).clamp(LEAST, MOST) }
}

/// Takes at most `most` bytes for `side`; as [`claim`].
pub fn claim_at_most(word: &impl Word, round: Round, side: Side, most: u64) -> Option<(u64, u64)> {
    take(word, round, side, |left| (most / UNIT).clamp(1, left))
}

/// The receiver takes all that is left and copies none of it.
pub fn discard(word: &impl Word, round: Round) {
    if take(word, round, Side::Pull, |left| left).is_some() {
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

fn take(word: &impl Word, round: Round, side: Side, share: impl Fn(u64) -> u64) -> Option<(u64, u64)> {
    loop {
        let old = word.load(Ordering::Acquire);
        let (front, back) = (old & END_MASK, old >> END_BITS & END_MASK);
        if old >> ROUND_SHIFT != round.0 || front >= back {
            return None;
        }
        let units = share(back - front);
        let (new, from) = match side {
            Side::Push => (old + units, front),
            Side::Pull => (old - (units << END_BITS), back - units),
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
