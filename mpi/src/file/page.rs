//! Words that the ranks of a file share in the memory of a node: its shared pointer, and who calls the file
//! system for accesses of one rank. Making shared memory takes ten times as long as the rest of opening a
//! file, so ranks that open files together on one node keep a page of it until the process ends. A page is
//! used by all ranks or by none: when they open a file, each tells the others which page it has.

use super::lock;
use crate::api;
use crate::comm::{Members, Named, gathered};
use crate::error::Result;
use crate::handle::Info;
use crate::memory;
use crate::window;
use std::sync::{Arc, Mutex};

/// Bytes of the words of a file: a line of the cache, so that files do not disturb each other.
const LINE: usize = 64;
/// Files that are open at a time and have their words in a page; others make memory of their own.
const LINES: usize = u64::BITS as usize;
/// Groups of ranks whose pages are kept.
const GROUPS: usize = 16;
/// What the ranks of a group tell of a page that they do not have.
const NONE: i64 = 0;

/// The pages of this process.
static PAGES: Mutex<Vec<Page>> = Mutex::new(Vec::new());

struct Page {
    /// The processes that share it.
    members: Arc<Members>,
    /// The number of the communicator that it was made with: the same on all ranks, and not [`NONE`].
    number: i64,
    /// Its address in this process.
    base: usize,
    /// A bit for each line that is in use. That of the first rank counts.
    taken: u64,
}

/// A line of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    number: i64,
    index: u32,
    base: usize,
}

/// What a rank tells about the page that it has with others.
pub(super) struct Offer {
    /// The number of the page, and a free line of it.
    pub(super) told: [i64; 2],
    /// The first rank takes the line before it tells it: another thread may open another file.
    line: Option<Line>,
}

impl Offer {
    /// The offer of one of these processes.
    pub(super) fn new(members: &Members, is_first: bool) -> Offer {
        let mut pages = lock(&PAGES);
        let is_free = |page: &&mut Page| page.members.order() == members.order() && page.taken != u64::MAX;
        let Some(page) = pages.iter_mut().find(is_free) else { return Offer { told: [NONE; 2], line: None } };
        let index = page.taken.trailing_ones();
        Offer { told: [page.number, index.into()], line: is_first.then(|| page.take(index)) }
    }

    /// Takes the line that the first rank has offered, if all have that page. `offers` has a row for each
    /// rank.
    pub(super) fn take(mut self, offers: &[[i64; 2]]) -> Option<Line> {
        let [number, index] = *offers.first()?;
        if number == NONE || offers.iter().any(|told| told[0] != number) {
            return None;
        }
        self.line.take().or_else(|| taken(number, index as u32))
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            line.free();
        }
    }
}

impl Page {
    fn take(&mut self, index: u32) -> Line {
        self.taken |= 1 << index;
        Line { number: self.number, index, base: self.base }
    }
}

fn taken(number: i64, index: u32) -> Option<Line> {
    let mut pages = lock(&PAGES);
    pages.iter_mut().find(|page| page.number == number).map(|page| page.take(index))
}

/// Makes a page for the ranks of a communicator, and takes its first line; none: some of them do not see the
/// memory of the first, they have a page, or there are enough pages. All ranks call.
pub(super) fn make(on: &Named) -> Result<Option<Line>> {
    let members = on.comm.local();
    let is_known = |page: &Page| page.members.order() == members.order();
    let has_room = {
        let pages = lock(&PAGES);
        pages.len() < GROUPS && !pages.iter().any(is_known)
    };
    let all = gathered(&on.comm, &[has_room.into()])?;
    if all.contains(&0) {
        return Ok(None);
    }
    let is_first = on.comm.rank() == 0;
    let size = if is_first { LINES * LINE } else { 0 };
    let (_, mut win) = api::win_allocate(size as i64, 1, Info::NULL, on.handle)?;
    let seen = window::lookup(win)?.shared_query(0).ok().filter(|(size, ..)| *size > 0);
    let number = i64::from(window::lookup(win)?.number());
    let all = gathered(&on.comm, &[i64::from(seen.is_some())])?;
    let Some((_, _, base)) = seen.filter(|_| !all.contains(&0)) else {
        api::win_free(&mut win)?;
        return Ok(None);
    };
    window::retire(win)?;
    let base = base.expose_provenance();
    lock(&PAGES).push(Page { members: members.clone(), number, base, taken: 0 });
    Ok(taken(number, 0))
}

impl Line {
    /// Gives it back: no rank uses it any more.
    pub(super) fn free(self) {
        if let Some(page) = lock(&PAGES).iter_mut().find(|page| page.number == self.number) {
            page.taken &= !(1 << self.index);
        }
    }

    /// The address of one of its words.
    fn at(self, word: usize) -> *mut std::ffi::c_void {
        std::ptr::with_exposed_provenance_mut(self.base + self.index as usize * LINE + word * 8)
    }

    pub(super) fn load(self, word: usize) -> u64 {
        memory::load_word(self.at(word))
    }

    /// Sets a word. New memory has any content.
    pub(super) fn store(self, word: usize, value: u64) {
        memory::store_word(self.at(word), value);
    }

    /// Changes a word in one step: what was there before.
    pub(super) fn change(self, word: usize, to: impl FnMut(u64) -> u64) -> u64 {
        memory::change_word(self.at(word), to)
    }
}
