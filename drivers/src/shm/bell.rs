//! Who sleeps says so; who has left something wakes whoever said so.
//!
//! The sleeper raises a flag and then looks once more; the other side leaves something and then looks at the
//! flag. Each has a full fence between its store and its load, so at least one of them sees the other
//! (Dekker's argument): either the sleeper finds what was left, or it is woken. While nobody sleeps, nobody
//! pays a system call.

use super::word::Word;
use std::sync::atomic::Ordering;

/// About to sleep. Look once more after this.
#[inline]
pub fn raise<W: Word>(flag: &W) {
    flag.store(1, Ordering::Relaxed);
    W::full_fence();
}

/// Awake again.
#[inline]
pub fn lower<W: Word>(flag: &W) {
    flag.store(0, Ordering::Relaxed);
}

/// Whether the other side has to be woken for what was left before. It is then nobody else's business.
#[inline]
pub fn is_asleep<W: Word>(flag: &W) -> bool {
    W::full_fence();
    flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0
}
