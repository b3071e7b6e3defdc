//! Where the sender finds the memory of a landing: a board of the receiver's side of the link.
//!
//! An entry says by which key a landing is open, and where it is in the receiver's memory: its address,
//! or, if it consists of pieces, a list of them, which lies beside it if it is short. A sender looks at the
//! key again when it has claimed something to push, and the receiver, when it closes the landing, takes the
//! key away and then waits for the end of a push that has begun. Each has a full fence in between, so after
//! closing nobody writes there any more. A landing for which there is no place on the board is pulled.

use super::layout::{CHUNKS, End, LANDINGS, LISTED};
use super::segment::Segment;
use super::sys::{self, Remote};
use super::word::Word;
use nmad_engine::memory::Segments;
use nmad_engine::packet::Key;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pieces of memory that a peer may name; more are a mistake.
pub const PIECES_MAX: u64 = 1 << 24;

/// Addresses and lengths, to be read by the peer.
pub type List = Box<[u64]>;

/// The pieces of memory as a peer reads them: address of the bytes or of the list, and how many there are.
/// The list has to stay where it is for as long as the peer may read it.
pub fn describe(memory: &Segments) -> (u64, u64, List) {
    let list: List = memory.iter().flat_map(|piece| [piece.start as u64, piece.len as u64]).collect();
    match *list {
        [] => (0, 0, list),
        [address, _] => (address, 1, list),
        _ => (list.as_ptr() as u64, list.len() as u64 / 2, list),
    }
}

/// Puts a short list where the peer sees it without a system call.
pub fn put_list(segment: &Segment, at: usize, list: &List) {
    if list.len() <= 2 * LISTED {
        let words = list.iter().enumerate();
        words.for_each(|(word, value)| segment.word(at + word * 8).store(*value, Ordering::Relaxed));
    }
}

/// Reads what a peer described; a short list is at `listed` of the segment.
///
/// # Errors
/// The description makes no sense, or the memory of the peer cannot be read.
pub fn fetch(
    (segment, listed): (&Segment, usize),
    pid: i32,
    (address, pieces): (u64, u64),
    len: u64,
) -> std::io::Result<Remote> {
    let wrong = || std::io::Error::other("its description makes no sense");
    let remote = match pieces {
        1 => Remote::new([(address, len)]),
        0 | PIECES_MAX.. => None,
        _ => {
            let mut list = vec![0; pieces as usize * 2];
            if pieces <= LISTED as u64 {
                let words = list.iter_mut().enumerate();
                words.for_each(|(word, to)| *to = segment.word(listed + word * 8).load(Ordering::Relaxed));
            } else {
                sys::peek(pid, address, &mut list)?;
            }
            Remote::new(list.chunks_exact(2).map(|pair| (pair[0], pair[1])))
        }
    };
    remote.filter(|remote| remote.len() == len).ok_or_else(wrong)
}

fn place_of(key: Key) -> usize {
    (key.0 % LANDINGS as u64) as usize
}

/// Shows a landing of `end` to the peer; false: there is no place for it.
pub fn show(segment: &Segment, end: End, key: Key, described: (u64, u64, &List), len: u64) -> bool {
    let at = end.landing(place_of(key));
    if segment.word(at).load(Ordering::Relaxed) != 0 {
        return false;
    }
    for (word, value) in [described.0, described.1, len].into_iter().enumerate() {
        segment.word(at + 8 + word * 8).store(value, Ordering::Relaxed);
    }
    put_list(segment, at + 32, described.2);
    segment.word(at).store(key.0, Ordering::Release);
    true
}

/// Takes a landing of `end` off the board. Nobody begins to push there after this.
pub fn hide(segment: &Segment, end: End, key: Key) {
    take_down(key_word(segment, end, key), key.0);
}

/// Takes a key away, if it is there; nobody who looks for it with [`stands`] later finds it.
pub fn take_down<W: Word>(word: &W, key: u64) {
    if word.load(Ordering::Relaxed) == key {
        word.store(0, Ordering::Relaxed);
    }
    W::full_fence();
}

/// Whether the key is still there, looked at after something that the other side will look at, in turn, after
/// [`take_down`].
fn stands<W: Word>(word: &W, key: u64) -> bool {
    W::full_fence();
    word.load(Ordering::Acquire) == key
}

/// Says in the word `aim` that memory is pushed into from now on; false: its key does not stand there any
/// more, and nothing may be pushed. Either way [`lower`] comes next.
pub fn raise<W: Word>(aim: &W, word: &W, key: u64) -> bool {
    aim.store(key, Ordering::Relaxed);
    stands(word, key)
}

/// Nothing is pushed any more.
pub fn lower<W: Word>(aim: &W) {
    aim.store(0, Ordering::Release);
}

/// Whether memory with this key, or any memory, is pushed into. To be asked after [`take_down`]. One word
/// tells, which hardly ever changes where nothing is pushed, so that asking costs nothing there.
pub fn is_aimed_at<W: Word>(aim: &W, key: Option<Key>) -> bool {
    let at = aim.load(Ordering::Acquire);
    key.map_or(at != 0, |key| at == key.0)
}

/// The word of a landing of `end` with this key.
pub fn key_word(segment: &Segment, end: End, key: Key) -> &AtomicU64 {
    segment.word(end.landing(place_of(key)))
}

/// Takes all landings of `end` off the board.
pub fn hide_all(segment: &Segment, end: End) {
    (0..LANDINGS).for_each(|place| segment.word(end.landing(place)).store(0, Ordering::Relaxed));
    AtomicU64::full_fence();
}

/// Whether `end`, the peer, shows a landing.
fn is_shown(segment: &Segment, end: End, key: Key) -> bool {
    stands(key_word(segment, end, key), key.0)
}

/// Where the landing of `end` is, and how long; none: it is not shown, or could not be read meanwhile.
pub fn find(segment: &Segment, end: End, pid: i32, key: Key) -> Option<Remote> {
    if !is_shown(segment, end, key) {
        return None;
    }
    let at = end.landing(place_of(key));
    let [address, pieces, len] = [8, 16, 24].map(|word| segment.word(at + word).load(Ordering::Relaxed));
    let remote = fetch((segment, at + 32), pid, (address, pieces), len).ok()?;
    // What was read may be of the next landing in this place, or of freed memory.
    is_shown(segment, end, key).then_some(remote)
}

/// What went through the area of the chunk of `end` with the claim number `place`: bytes, and [`CUT`].
pub fn streamed(segment: &Segment, end: End, place: usize) -> &AtomicU64 {
    segment.word(end.claim(place % CHUNKS) + 16)
}

/// Nothing more of the chunk goes through the area.
pub const CUT: u64 = 1 << 63;
