//! What the ranks have posted in one sequence of operations.
//!
//! Each rank has a *slot* for each of the last [`WINDOW`] operations: two lines of the cache with the number
//! of the operation, and with the data if that is short. Longer data is in the *room* of the rank, where
//! posts lie one behind the other, and the slot says where. So a post takes hardly more lines than its data
//! needs, and what follows each other in time does so in memory: a rank that is behind reads it in a row.
//!
//! Ranks that wait for nobody run ahead, by a window at most. A slot is used again when all ranks are done
//! with its operation, which each of them says after each [`STRIDE`] operations in a line of its own. That is
//! read only by ranks that have come to the end of the window that they know of. Where ranks share cores,
//! there is a switch to another process for each window then, instead of one for each operation.

use nmad_drivers::node::Segment as SharedMemory;
use nmad_engine::Segments;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes of data that a rank can post in one operation.
pub const POST_MAX: usize = 2048;
/// The same with the table of parts of different lengths: those of a program are often powers of two, which
/// the table would make too long by itself.
pub(super) const POSTED_MAX: usize = POST_MAX + 2 * LINE;

/// Operations that a rank may be ahead of the others. With half as many, loops of bcast, gather and scan of
/// 8 B take a fifth longer where four ranks share two cores (Xeon, 2.6 GHz), with twice as many a tenth less
/// in twice the memory.
const WINDOW: u64 = 64;
/// Operations after which a rank says that it is done with them.
const STRIDE: u64 = WINDOW / 4;
const LINE: usize = 64;
/// Bytes of a slot. With one line, whose data of 64 B is in the room, an allreduce of 64 B takes an eighth
/// longer between two cores, and a loop of gather a third (Xeon, 2.6 GHz); processors fetch lines in pairs.
const SLOT: usize = 2 * LINE;
/// The number of the operation, and where the data is. Data behind it is aligned for any operand.
const HEAD: usize = 16;
const WHERE: usize = 8;
/// Bytes of data that a slot takes.
const SHORT: usize = SLOT - HEAD;
/// Bytes of the room of a rank: a window of posts of half the greatest length.
const ROOM: usize = 64 << 10;
/// With each post the core asks for the slot of a later one, since others have looked at it. Without that a
/// loop of gather or scan takes a quarter longer between two cores (same machine); twice as far makes no
/// difference.
const AHEAD: u64 = 4;
/// A post always finds room when all ranks are done with what was before: they may not have said so of less
/// than a stride of operations, and less than a post may be left out at the end of the room.
const _: () = assert!((STRIDE as usize + 1) * POSTED_MAX <= ROOM);

/// One rank's view of them.
#[derive(Debug)]
pub(super) struct Ring {
    /// Where they begin in the memory, which is given to each call.
    base: usize,
    pub(super) size: usize,
    pub(super) me: usize,
    /// Everybody is done with the operations up to this one.
    safe: u64,
    /// We have said that we are done with the operations up to this one.
    said: u64,
    /// Bytes of our room that were used so far, round after round.
    used: u64,
    /// Operations for which we use it, the oldest first, and where their data begins.
    held: VecDeque<(u64, u64)>,
}

/// A post of ours that nobody sees yet. One that is longer than [`POSTED_MAX`] has no data, and tells how
/// long that is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Post {
    number: u64,
    /// Where its data goes in the memory.
    start: usize,
    place: Place,
}

/// What a slot says of the data: how much there is, and where in the room unless it is here. One word, as it
/// is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(u64);

impl Place {
    #[inline]
    fn new(start: usize, len: usize) -> Place {
        Place((start as u64) << u32::BITS | (len as u64).min(u64::from(u32::MAX)))
    }

    const fn start(self) -> usize {
        (self.0 >> u32::BITS) as usize
    }

    const fn len(self) -> usize {
        self.0 as u32 as usize
    }
}

impl Ring {
    /// Bytes of shared memory for `size` ranks.
    pub(super) const fn len(size: usize) -> usize {
        size * (WINDOW as usize * SLOT + ROOM + LINE)
    }

    /// The view of rank `me` of `size`, on memory that from `base` on was zero at first.
    pub(super) fn new(base: usize, size: usize, me: usize) -> Ring {
        Ring { base, size, me, safe: 0, said: 0, used: 0, held: VecDeque::new() }
    }

    /// A post of `len` bytes, if all ranks are done with what was in its place. In the order of operations.
    #[inline]
    pub(super) fn open(&mut self, memory: &SharedMemory, number: u64, len: usize) -> Option<Post> {
        if number > self.safe + WINDOW {
            self.learn(memory);
        }
        let is_in_room = len > SHORT && len <= POSTED_MAX;
        let start = if is_in_room { self.take(memory, number, len)? } else { 0 };
        let place = Place::new(start, len);
        let start = self.data(self.me, number, place, len);
        (number <= self.safe + WINDOW).then_some(Post { number, start, place })
    }

    /// Where in our room `len` bytes go, if there is room for them.
    fn take(&mut self, memory: &SharedMemory, number: u64, len: usize) -> Option<usize> {
        let taken = len.next_multiple_of(LINE) as u64;
        let left = ROOM as u64 - self.used % ROOM as u64;
        let begin = if taken > left { self.used + left } else { self.used };
        if begin + taken > self.oldest() + ROOM as u64 {
            self.learn(memory);
        }
        (begin + taken <= self.oldest() + ROOM as u64 && number <= self.safe + WINDOW).then(|| {
            self.used = begin + taken;
            self.held.push_back((number, begin));
            (begin % ROOM as u64) as usize
        })
    }

    /// Where the oldest data in our room begins that somebody may still read.
    fn oldest(&mut self) -> u64 {
        while self.held.front().is_some_and(|(number, _)| *number <= self.safe) {
            self.held.pop_front();
        }
        self.held.front().map_or(self.used, |(_, start)| *start)
    }

    /// Asks all ranks what they are done with.
    #[cold]
    fn learn(&mut self, memory: &SharedMemory) {
        let done = |rank: usize| memory.word(self.end(rank)).load(Ordering::Acquire);
        self.safe = (0..self.size).map(done).min().unwrap_or(0);
    }

    /// We are done with all operations up to this one.
    #[inline]
    pub(super) fn say_done(&mut self, memory: &SharedMemory, number: u64) {
        if number >= self.said + STRIDE {
            self.said = number - number % STRIDE;
            memory.word(self.end(self.me)).store(self.said, Ordering::Release);
        }
    }

    /// Shows data of ours to all, or how long it is.
    #[inline]
    pub(super) fn post(&self, memory: &SharedMemory, post: Post, data: &Segments) {
        if post.place.len() > POSTED_MAX {
            return self.show(memory, post);
        }
        match data.contiguous() {
            Some(bytes) => self.put(memory, post, 0, bytes),
            None => self.put_pieces(memory, post, 0, data),
        }
        self.show(memory, post);
    }

    /// Writes a part of a post that lies in pieces.
    #[inline(never)]
    pub(super) fn put_pieces(&self, memory: &SharedMemory, post: Post, mut offset: usize, data: &Segments) {
        for piece in data.slices() {
            self.put(memory, post, offset, piece);
            offset += piece.len();
        }
    }

    /// Writes a part of a post.
    #[inline]
    pub(super) fn put(&self, memory: &SharedMemory, post: Post, offset: usize, bytes: &[u8]) {
        memory.put(post.start + offset, bytes);
    }

    /// Shows a post to all.
    #[inline]
    pub(super) fn show(&self, memory: &SharedMemory, post: Post) {
        let slot = self.slot(self.me, post.number);
        memory.word(slot + WHERE).store(post.place.0, Ordering::Relaxed);
        memory.word(slot).store(post.number, Ordering::Release);
        memory.expect(self.slot(self.me, post.number + AHEAD));
    }

    /// Whether the post of a rank is there.
    #[inline]
    pub(super) fn is_there(&self, memory: &SharedMemory, rank: usize, number: u64) -> bool {
        memory.word(self.slot(rank, number)).load(Ordering::Acquire) == number
    }

    /// Bytes of the post of a rank.
    #[inline]
    pub(super) fn posted<'m>(
        &self,
        memory: &'m SharedMemory,
        rank: usize,
        number: u64,
        range: Range<usize>,
    ) -> &'m [u8] {
        let place = self.told(memory, rank, number);
        memory.bytes(self.data(rank, number, place, range.end) + range.start, range.len())
    }

    /// How long it is; none if it is too long to be here.
    #[inline]
    pub(super) fn posted_len(&self, memory: &SharedMemory, rank: usize, number: u64) -> Option<usize> {
        Some(self.told(memory, rank, number).len()).filter(|len| *len <= POSTED_MAX)
    }

    #[inline]
    fn told(&self, memory: &SharedMemory, rank: usize, number: u64) -> Place {
        Place(memory.word(self.slot(rank, number) + WHERE).load(Ordering::Relaxed))
    }

    /// Where the data of a rank is, of which `len` bytes are looked at: if a wrong program expects more than
    /// there is, it gets what lies behind.
    #[inline]
    fn data(&self, rank: usize, number: u64, place: Place, len: usize) -> usize {
        if place.len() <= SHORT || len > POSTED_MAX {
            return self.slot(rank, number) + HEAD;
        }
        let rooms = self.base + self.size * WINDOW as usize * SLOT;
        rooms + rank * ROOM + place.start().min(ROOM - len)
    }

    #[inline]
    fn slot(&self, rank: usize, number: u64) -> usize {
        self.base + (rank * WINDOW as usize + (number % WINDOW) as usize) * SLOT
    }

    /// Where a rank says which operation it is done with.
    fn end(&self, rank: usize) -> usize {
        self.base + self.size * (WINDOW as usize * SLOT + ROOM) + rank * LINE
    }
}
