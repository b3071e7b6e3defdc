//! Short pieces of a file that this machine has in its page cache are copied from and to mapped memory: a
//! system call for each piece takes ten times as long as the copy, and processes that write wait for each
//! other in it. A window is mapped when that is expected to pay, and stays mapped until another one takes its
//! place, an access fails, or the file is closed.
//!
//! The system shows all processes of the machine the same pages, by map and by system call. So nothing else
//! changes: a piece is in the file when the access ends, and no byte between pieces is written.

use crate::layout::Kind;
use crate::map::{LEN, Map};
use crate::memory::{room, whole};
use crate::piece::{Piece, Pieces};
use crate::plan::{self, Load};
use nmad_engine::Segments;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Bytes of a window.
const WINDOW: u64 = LEN as u64;
/// Windows of a file that are mapped, and as many more that are watched.
const COUNT: usize = 32;
/// Longer pieces, on average, are system calls: the copy in the kernel is most of their time.
const LONG: u64 = 16 << 10;
/// Several of such pieces are on one page. The first access to a page of a map takes 1 to 1.5 us (ext4 and
/// tmpfs, two cores of an EPYC in a virtual machine), a system call with a piece 0.8 to 2.2 us, a copy of
/// 1000 B from or to a page that was accessed before 0.15 us.
const SHORT: u64 = 2 << 10;
/// A window is mapped after so many short pieces in it.
const MANY: u64 = 16;
/// A window is mapped after so many pieces in it that lie before another one of the accesses before: a
/// program that comes back to longer pieces will do so again. The first time alone costs more than it saves
/// with pieces of 4 KiB on ext4: 3.6 us instead of 2.2.
const AGAIN: u64 = 16;
/// Accesses of fewer than [`MANY`] pieces that do not look again how long the file is, after one that lay
/// behind its end.
const PATIENCE: u32 = 16;
/// A write of at least so many short pieces that lengthens the file first writes a byte at its end, so that
/// all pieces are copied.
const LENGTHENS: u64 = 64;
/// The size is not known.
const UNKNOWN: u64 = u64::MAX;

/// A file of which windows are mapped.
pub(crate) trait Mapped {
    /// Its length; none: the system does not say it.
    fn size_now(&self) -> Option<u64>;
    /// Makes it at least so long. False: the system refuses it.
    fn lengthen(&self, end: u64) -> bool;
    /// Maps a window; none: the system refuses it.
    fn map(&self, offset: u64) -> Option<Map>;
}

/// The windows of a file.
#[derive(Default)]
pub(crate) struct Windows {
    list: Mutex<List>,
    /// The length of the file at the last look.
    size: Size,
}

/// A length that may be unknown.
struct Size(AtomicU64);

impl Default for Size {
    fn default() -> Size {
        Size(AtomicU64::new(UNKNOWN))
    }
}

#[derive(Default)]
struct List {
    mapped: Vec<(u64, Map)>,
    /// The place in the list of the window that was accessed last.
    last: usize,
    /// The place at which the next window replaces another one.
    next: usize,
    watched: Vec<Watched>,
    next_watched: usize,
    /// Accesses that do not look how long the file is.
    patience: u32,
    /// An access or a map has failed: all accesses go by system calls from now on.
    is_broken: bool,
}

/// A window that is not mapped.
#[derive(Clone, Copy)]
struct Watched {
    number: u64,
    /// Short pieces in it.
    short: u64,
    /// The byte behind the last one that was accessed.
    behind: u64,
    /// Pieces before that byte.
    again: u64,
}

impl Watched {
    /// Of `count` pieces of an access between these bytes, those that count as lying before other ones.
    fn before(&self, hull: Piece, count: u64) -> u64 {
        if hull.offset < self.behind { count } else { 0 }
    }
}

/// From the first to the last byte of pieces in a window, as far as the hull of all says.
fn part_in(number: u64, pieces: &Pieces) -> Option<Piece> {
    let (begin, end) = pieces.hull()?;
    let (begin, end) = (begin.max(number * WINDOW), end.min((number + 1) * WINDOW));
    (begin < end).then(|| Piece { offset: begin, len: end - begin })
}

/// Pieces in each of these windows, if they are spread evenly.
fn count_in_each(pieces: &Pieces, windows: &RangeInclusive<u64>) -> u64 {
    (pieces.count() as u64).div_ceil(windows.end() - windows.start() + 1)
}

/// Whether pieces are short enough to be copied.
fn is_short(pieces: &Pieces, most: u64) -> bool {
    pieces.len() <= most * pieces.count() as u64
}

impl List {
    /// The place of a window in the list of those that are mapped.
    fn place(&self, number: u64) -> Option<usize> {
        let is_last = self.mapped.get(self.last).is_some_and(|entry| entry.0 == number);
        is_last.then_some(self.last).or_else(|| self.mapped.iter().position(|entry| entry.0 == number))
    }

    /// The map of a window.
    fn get(&self, number: u64) -> Option<&Map> {
        self.place(number).map(|place| &self.mapped[place].1)
    }

    /// Whether a window is mapped; it is found at once by the next access.
    fn is_mapped(&mut self, number: u64) -> bool {
        let place = self.place(number);
        self.last = place.unwrap_or(self.last);
        place.is_some()
    }

    /// The windows of an access, and the byte behind it; none: it is not for maps.
    fn windows(&self, pieces: &Pieces) -> Option<(RangeInclusive<u64>, u64)> {
        let (begin, end) = pieces.hull()?;
        let windows = begin / WINDOW..=(end - 1) / WINDOW;
        let is_fit =
            !self.is_broken && is_short(pieces, LONG) && windows.end() - windows.start() < COUNT as u64;
        is_fit.then_some((windows, end))
    }

    /// Notes an access to windows of which one is not mapped. Whether all are to be.
    fn watch(&mut self, pieces: &Pieces, windows: RangeInclusive<u64>) -> bool {
        let (count, is_short) = (count_in_each(pieces, &windows), is_short(pieces, SHORT));
        let mut are_to_be = true;
        for number in windows {
            let Some(hull) = part_in(number, pieces).filter(|_| self.get(number).is_none()) else { continue };
            let watched = self.watched(number);
            watched.short += if is_short { count } else { 0 };
            watched.again += watched.before(hull, count);
            watched.behind = watched.behind.max(hull.end());
            are_to_be &= watched.short >= MANY || watched.again >= AGAIN;
        }
        are_to_be
    }

    /// A window that is not mapped.
    fn watched(&mut self, number: u64) -> &mut Watched {
        let at = self.watched.iter().position(|watched| watched.number == number).unwrap_or_else(|| {
            let new = Watched { number, short: 0, behind: 0, again: 0 };
            if self.watched.len() < COUNT {
                self.watched.push(new);
                return self.watched.len() - 1;
            }
            let at = self.next_watched;
            (self.watched[at], self.next_watched) = (new, (at + 1) % COUNT);
            at
        });
        &mut self.watched[at]
    }

    /// Whether the program comes back to a window with this access, which has `count` pieces there.
    fn is_again(&self, number: u64, pieces: &Pieces, count: u64) -> bool {
        let watched = self.watched.iter().find(|watched| watched.number == number);
        watched
            .zip(part_in(number, pieces))
            .is_some_and(|(watched, hull)| watched.again + watched.before(hull, count) >= AGAIN)
    }

    /// Keeps a window that was mapped, and those that its access has before.
    fn keep(&mut self, number: u64, map: Map, windows: &RangeInclusive<u64>) {
        self.watched.retain(|watched| watched.number != number);
        if self.mapped.len() < COUNT {
            self.last = self.mapped.len();
            self.mapped.push((number, map));
            return;
        }
        // At least one window is not of this access, which does not reach as many as there are maps.
        while windows.contains(&self.mapped[self.next].0) {
            self.next = (self.next + 1) % COUNT;
        }
        (self.mapped[self.next], self.last) = ((number, map), self.next);
        self.next = (self.next + 1) % COUNT;
    }
}

impl fmt::Debug for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} windows", self.list().mapped.len())
    }
}

impl Windows {
    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether it is known how long the file is.
    pub(crate) fn knows_size(&self) -> bool {
        self.size.0.load(Ordering::Relaxed) != UNKNOWN
    }

    /// Forgets how long the file is: another process may have changed that.
    pub(crate) fn unsure(&self) {
        self.size.0.store(UNKNOWN, Ordering::Relaxed);
    }

    /// Moves the data of an access by copies; none: system calls have to move it, also what was copied before
    /// the file was found shorter.
    pub(crate) fn access(&self, file: &impl Mapped, kind: Kind, data: (&Pieces, &Segments)) -> Option<u64> {
        let (pieces, memory) = data;
        let list = &mut *self.list();
        if !self.prepare(list, file, (kind, pieces)) {
            return None;
        }
        let is_done = match (kind, memory.contiguous()) {
            (Kind::Write, Some(bytes)) => write(list, pieces, bytes),
            (Kind::Read, _) => read(list, pieces, memory),
            (Kind::Write, None) => {
                let mut bytes = Vec::with_capacity(memory.len() as usize);
                memory.append_to(&mut bytes);
                write(list, pieces, &bytes)
            }
        };
        let is_done = is_done
            && list.windows(pieces).is_some_and(|(mut windows, _)| {
                windows.all(|number| list.get(number).is_some_and(|map| !map.is_broken()))
            });
        if !is_done {
            // The file was shortened, or has no space: system calls say what it is.
            *list = List { is_broken: true, ..List::default() };
            return None;
        }
        Some(pieces.len())
    }

    /// Predicted nanoseconds of an access of short pieces whose windows are mapped, or whose program comes
    /// back to them; none: it goes by system calls, or it may be the first to touch most of its pages, which
    /// takes longer than system calls if other processes do the same.
    pub(crate) fn predicted_ns(&self, file: &impl Mapped, pieces: &Pieces) -> Option<u64> {
        let list = &mut *self.list();
        let (windows, end) = list.windows(pieces).filter(|_| is_short(pieces, SHORT))?;
        let count = count_in_each(pieces, &windows);
        let is_expected =
            windows.clone().all(|number| list.is_mapped(number) || list.is_again(number, pieces, count));
        let is_copied = is_expected && self.is_inside(list, file, (pieces.count() as u64, end));
        is_copied.then(|| plan::copied_ns(Load::of(pieces)))
    }

    /// Notes an access that goes another way.
    pub(crate) fn note(&self, pieces: &Pieces) {
        let list = &mut *self.list();
        if let Some((windows, _)) = list.windows(pieces) {
            list.watch(pieces, windows);
        }
    }

    /// Maps the windows of an access, if they are to be, and the file is long enough.
    fn prepare(&self, list: &mut List, file: &impl Mapped, (kind, pieces): (Kind, &Pieces)) -> bool {
        let Some((windows, end)) = list.windows(pieces) else { return false };
        let is_mapped = windows.clone().all(|number| list.is_mapped(number));
        (is_mapped || list.watch(pieces, windows.clone()))
            && self.has_been_reached(list, file, (kind, pieces, end))
            && (is_mapped || windows.clone().all(|number| map(list, file, number, &windows)))
    }

    /// Whether the file is long enough for an access, after its last byte was written if it is a write of
    /// many pieces.
    fn has_been_reached(
        &self,
        list: &mut List,
        file: &impl Mapped,
        (kind, pieces, end): (Kind, &Pieces, u64),
    ) -> bool {
        let count = pieces.count() as u64;
        if self.is_inside(list, file, (count, end)) {
            return true;
        }
        let lengthens = kind == Kind::Write && count >= LENGTHENS && is_short(pieces, SHORT);
        lengthens && file.lengthen(end) && {
            self.size.0.store(end, Ordering::Relaxed);
            true
        }
    }

    /// Whether the file is at least so long, which accesses of a few pieces do not always ask.
    fn is_inside(&self, list: &mut List, file: &impl Mapped, (count, end): (u64, u64)) -> bool {
        let known = self.size.0.load(Ordering::Relaxed);
        if known != UNKNOWN && known >= end {
            return true;
        }
        if known != UNKNOWN && count < MANY && list.patience > 0 {
            list.patience -= 1;
            return false;
        }
        list.patience = PATIENCE;
        let Some(size) = file.size_now() else { return false };
        self.size.0.store(size, Ordering::Relaxed);
        size >= end
    }
}

/// Maps a window, unless it is. False: the system refuses it.
fn map(list: &mut List, file: &impl Mapped, number: u64, windows: &RangeInclusive<u64>) -> bool {
    if list.is_mapped(number) {
        return true;
    }
    let Some(map) = file.map(number * WINDOW) else {
        *list = List { is_broken: true, ..List::default() };
        return false;
    };
    list.keep(number, map, windows);
    true
}

/// The map that the last piece was in, and the place of its first byte in the file.
struct Current<'a> {
    list: &'a List,
    begin: u64,
    map: Option<&'a Map>,
}

impl<'a> Current<'a> {
    fn new(list: &'a List) -> Current<'a> {
        Current { list, begin: 0, map: None }
    }

    /// Calls `work` with each part of a piece: its map, its place there, and its length. False: one has
    /// no map.
    #[inline]
    fn each(&mut self, piece: Piece, mut work: impl FnMut(&Map, usize, usize)) -> bool {
        // Most pieces are in the same map as the one before.
        let at = piece.offset.wrapping_sub(self.begin);
        if let Some(map) = self.map.filter(|_| at < WINDOW && piece.len <= WINDOW - at) {
            work(map, at as usize, piece.len as usize);
            return true;
        }
        piece.parts(WINDOW).all(|(number, begin, end)| {
            (self.begin, self.map) = (number * WINDOW, self.list.get(number));
            self.map.is_some_and(|map| {
                work(map, begin, end - begin);
                true
            })
        })
    }
}

/// Copies bytes to pieces whose windows are mapped. False: one is not.
fn write(list: &List, pieces: &Pieces, mut bytes: &[u8]) -> bool {
    let mut current = Current::new(list);
    pieces.list().iter().all(|piece| {
        current.each(*piece, |map, at, len| {
            let (now, rest) = bytes.split_at(len);
            map.write(at, now);
            bytes = rest;
        })
    })
}

/// The same of a read.
fn read(list: &List, pieces: &Pieces, memory: &Segments) -> bool {
    let mut current = Current::new(list);
    if let Some(mut bytes) = whole(memory) {
        let mut rest = &mut bytes[..];
        return pieces.list().iter().all(|piece| {
            current.each(*piece, |map, at, len| {
                let (now, behind) = std::mem::take(&mut rest).split_at_mut(len);
                map.read(at, now);
                rest = behind;
            })
        });
    }
    let mut done = 0;
    pieces.list().iter().all(|piece| {
        current.each(*piece, |map, mut at, len| {
            for mut slice in room(memory, done, len as u64, usize::MAX) {
                map.read(at, &mut slice);
                at += slice.len();
            }
            done += len as u64;
        })
    })
}

#[cfg(test)]
mod tests;
