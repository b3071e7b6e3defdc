//! Registration cache: registrations are kept for later messages from or into the same memory.
//!
//! | memory | its registration |
//! |---|---|
//! | private, and the kernel reports its unmapping | is cached, with the whole pages around it |
//! | of a file, shared, too long, or without such reports | is made for one chunk |
//!
//! Cached registrations lock memory, so their number and bytes are limited, and all unused ones are dropped
//! if the system refuses to register more. The oldest is dropped first. Memory that is both sent and
//! received into has one registration, that for receiving.

use super::adapter::Purpose;
use super::unmapped::{self, Notice, PAGE, Unmapped};
use nmad_engine::memory::Segment;
use rustix::thread::CapabilitySet;
use std::ops::Range;
use std::sync::Arc;

/// Cached registrations at most. A linear search takes less than a microsecond for this many, a
/// registration tens of microseconds; twice as many would help programs with more buffers in turn.
const MOST: usize = 256;

/// A registration that is in use.
pub(crate) struct Registered<R> {
    /// The registration.
    pub(crate) region: Arc<R>,
    /// Address of its first byte.
    pub(crate) start: usize,
}

struct Kept<R> {
    memory: Range<usize>,
    purpose: Purpose,
    region: Arc<R>,
    used: u64,
}

/// The registration cache of a rail.
pub(crate) struct Cache<R> {
    kept: Vec<Kept<R>>,
    notice: Option<&'static Notice>,
    /// Number of unmapping events that were handled.
    seen: u64,
    /// Mappings that are watched: those of the latest memory, whose other pieces usually come next.
    watched: Range<usize>,
    /// Counts uses, for the choice of the oldest.
    clock: u64,
    bytes: usize,
    most_bytes: usize,
}

impl<R> Cache<R> {
    /// Caches registrations if the adapter permits it, and if the kernel reports unmapping.
    pub(crate) fn new(may_keep: bool) -> Cache<R> {
        let notice = may_keep.then(unmapped::get).and_then(Result::ok);
        let (kept, watched, most_bytes) = (Vec::new(), 0..0, most_bytes());
        Cache { kept, notice, seen: 0, watched, clock: 0, bytes: 0, most_bytes }
    }

    /// Returns a cached registration of memory, or creates one with `make`.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn register(
        &mut self,
        memory: Segment,
        purpose: Purpose,
        mut make: impl FnMut(Segment) -> Result<R, String>,
    ) -> Result<Registered<R>, String> {
        let pages = pages(&memory);
        let knows = self.catch_up();
        if knows && let Some(found) = self.find(&pages, purpose) {
            return Ok(found);
        }
        let pages = self.widened(pages, purpose);
        if let Some(notice) = self.notice.filter(|_| knows && self.make_room(pages.len()))
            && self.watch(notice, &pages)
            && let Ok(region) = make(whole(memory, &pages))
        {
            let region = Arc::new(region);
            let start = pages.start;
            if notice.is_private(&pages) {
                self.retain(|kept| {
                    !purpose.serves(kept.purpose) || kept.memory.start < start || kept.memory.end > pages.end
                });
                self.bytes += pages.len();
                self.clock += 1;
                self.kept.push(Kept { memory: pages, purpose, region: region.clone(), used: self.clock });
            }
            return Ok(Registered { region, start });
        }
        let made = make(memory).or_else(|why| match self.forget_unused() {
            true => make(memory),
            false => Err(why),
        });
        made.map(|region| Registered { region: Arc::new(region), start: memory.start.addr() })
    }

    /// Drops registrations of memory that was unmapped; false: the cache may be outdated now and must not
    /// be used.
    pub(crate) fn catch_up(&mut self) -> bool {
        let Some(notice) = self.notice else { return false };
        match notice.since(&mut self.seen) {
            Unmapped::Busy => return false,
            Unmapped::Only(gone) if gone.is_empty() => {}
            Unmapped::Only(gone) => {
                let is_there = |memory: &Range<usize>| {
                    !gone.iter().any(|gone| gone.start < memory.end && memory.start < gone.end)
                };
                self.retain(|kept| is_there(&kept.memory));
                if !is_there(&self.watched) {
                    self.watched = 0..0;
                }
            }
            Unmapped::Perhaps => {
                self.retain(|_| false);
                self.watched = 0..0;
            }
        }
        true
    }

    /// Makes the kernel report the unmapping of this memory; false: it does not.
    fn watch(&mut self, notice: &Notice, pages: &Range<usize>) -> bool {
        if self.watched.start <= pages.start && pages.end <= self.watched.end {
            return true;
        }
        self.watched = notice.watch(pages).unwrap_or(0..0);
        !self.watched.is_empty()
    }

    fn find(&mut self, pages: &Range<usize>, purpose: Purpose) -> Option<Registered<R>> {
        let fits = |kept: &&mut Kept<R>| {
            let holds = kept.memory.start <= pages.start && pages.end <= kept.memory.end;
            holds && kept.purpose.serves(purpose)
        };
        let kept = self.kept.iter_mut().find(fits)?;
        self.clock += 1;
        kept.used = self.clock;
        Some(Registered { region: kept.region.clone(), start: kept.memory.start })
    }

    /// Widens a range by all cached neighbours of the same memory: chunks of the next message have other
    /// boundaries, and in the end all of it has one registration. Neighbours that only share a page stay
    /// separate.
    fn widened(&self, pages: Range<usize>, purpose: Purpose) -> Range<usize> {
        let overlaps = |kept: &&Kept<R>| {
            let (start, end) = (kept.memory.start.max(pages.start), kept.memory.end.min(pages.end));
            kept.purpose == purpose && end.saturating_sub(start) > PAGE
        };
        let all = self.kept.iter().filter(overlaps).map(|kept| &kept.memory);
        all.fold(pages.clone(), |all, kept| all.start.min(kept.start)..all.end.max(kept.end))
    }

    /// Drops the least recently used registrations until there is room; false: there is none.
    fn make_room(&mut self, len: usize) -> bool {
        while self.kept.len() >= MOST || self.bytes + len > self.most_bytes {
            let unused = self.kept.iter().filter(|kept| Arc::strong_count(&kept.region) == 1);
            let Some(oldest) = unused.map(|kept| kept.used).min() else { return false };
            self.retain(|kept| kept.used != oldest);
        }
        true
    }

    /// Drops all unused registrations, and halves the limit; returns whether there were any.
    fn forget_unused(&mut self) -> bool {
        let (count, bytes) = (self.kept.len(), self.bytes);
        self.retain(|kept| Arc::strong_count(&kept.region) > 1);
        let has_ended = self.kept.len() < count;
        if has_ended {
            self.most_bytes = self.most_bytes.min(bytes / 2);
        }
        has_ended
    }

    fn retain(&mut self, stays: impl Fn(&Kept<R>) -> bool) {
        self.kept.retain(stays);
        self.bytes = self.kept.iter().map(|kept| kept.memory.len()).sum();
    }
}

/// The whole pages around memory.
fn pages(memory: &Segment) -> Range<usize> {
    let start = memory.start.addr();
    start / PAGE * PAGE..(start + memory.len).next_multiple_of(PAGE)
}

fn whole(memory: Segment, pages: &Range<usize>) -> Segment {
    Segment { start: memory.start.wrapping_sub(memory.start.addr() - pages.start), len: pages.len() }
}

/// Bytes that a rail keeps registered: half of the limit of locked memory, so that messages under way have
/// the other half; without a limit, a quarter of the memory per core, and so per rank. The limit does not
/// apply to a process with the right to lock memory, as root has outside of containers.
fn most_bytes() -> usize {
    let rights = rustix::thread::capabilities(None).map(|sets| sets.effective);
    let may_lock = rights.is_ok_and(|rights| rights.contains(CapabilitySet::IPC_LOCK));
    let limit = match may_lock {
        true => None,
        false => rustix::process::getrlimit(rustix::process::Resource::Memlock).current,
    };
    let memory = rustix::system::sysinfo();
    let total = (memory.totalram as usize).saturating_mul(memory.mem_unit as usize);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    limit.map_or(usize::MAX, |limit| limit as usize / 2).min(total / cores / 4)
}

#[cfg(test)]
#[allow(unsafe_code)]
#[path = "cache_tests.rs"]
mod tests;
