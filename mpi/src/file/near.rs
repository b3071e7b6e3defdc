//! Short records of one rank stay in its own memory ([`nmad_file::near`]). Every call that communicates
//! writes delayed data and forgets data that were read ([`release`]), when it begins and when it ends. That
//! costs a call one look at a flag, which traces use as well.

use super::{File, Kind, error_of, fault_of, lock};
use crate::api::observe_for_files as observe;
use crate::error::{Error, Result};
use crate::memory::contiguous;
use crate::task::now;
use newmadeleine::Segments;
use nmad_file::Asking;
use nmad_file::near::{self, Keeping};
use nmad_file::{Fault, Near, Pieces};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

/// Files of which something is in memory.
static LISTED: Mutex<Vec<Arc<File>>> = Mutex::new(Vec::new());

thread_local! {
    /// This thread is in an access, whose messages may call functions of the program.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A file as the thread of an access has it: what it waits for, it waits for in its calls.
pub(super) struct Here<'a>(pub(super) &'a Arc<File>);

/// The short records of a file, while a thread has them.
pub(super) struct Guard<'a> {
    near: MutexGuard<'a, Near>,
    was_inside: bool,
}

impl Deref for Guard<'_> {
    type Target = Near;

    fn deref(&self) -> &Near {
        &self.near
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Near {
        &mut self.near
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        IS_INSIDE.set(self.was_inside);
    }
}

impl Keeping for Here<'_> {
    type Guard<'a>
        = Guard<'a>
    where
        Self: 'a;
    type Error = Error;

    async fn near(&self) -> Guard<'_> {
        let near = lock(&self.0.near);
        Guard { near, was_inside: IS_INSIDE.replace(true) }
    }

    fn goes_by_owners(&self) -> bool {
        self.0.goes_by_owners()
    }

    fn is_strict(&self) -> bool {
        self.0.is_atomic() || self.0.is_twice.load(Ordering::Relaxed)
    }

    fn is_kept_no_more(&self) {
        self.0.keeps.store(false, Ordering::SeqCst);
    }

    fn may_keep(&self) -> bool {
        self.0.keeps.load(Ordering::SeqCst)
    }

    fn is_kept(&self) {
        self.0.keeps.store(true, Ordering::SeqCst);
        lock(&LISTED).push(self.0.clone());
        observe(true);
    }

    fn error(&self, fault: Fault) -> Error {
        error_of(fault)
    }

    fn copy(&self, kind: Kind, data: (&Pieces, &Segments)) -> Option<u64> {
        self.0.copy(kind, data)
    }

    fn knows_size(&self) -> bool {
        self.0.disk.knows_size()
    }

    fn unsure(&self) {
        self.0.disk.unsure();
    }

    async fn perform(&self, kind: Kind, data: (&Pieces, &Segments)) -> Result<u64> {
        self.0.move_data(kind, data)
    }

    async fn write(&self, pieces: &Pieces, data: &[u8]) -> std::result::Result<(), Fault> {
        let memory = contiguous(data.as_ptr().cast(), data.len());
        self.0.move_data(Kind::Write, (pieces, &memory)).map(drop).map_err(fault_of)
    }

    async fn read(&self, pieces: &Pieces, data: &mut [u8]) -> std::result::Result<u64, Fault> {
        let memory = contiguous(data.as_mut_ptr().cast(), data.len());
        self.0.move_data(Kind::Read, (pieces, &memory)).map_err(fault_of)
    }

    async fn end(&self) -> std::result::Result<u64, Fault> {
        self.0.end().map_err(fault_of)
    }
}

impl File {
    /// Moves the data of an access of one rank: bytes that were moved.
    ///
    /// # Errors
    /// The system refuses it, or no owner is left.
    pub(super) fn access(self: &Arc<File>, kind: Kind, data: (&Pieces, &Segments)) -> Result<u64> {
        now(near::access(&Here(self), kind, data))
    }

    /// Writes delayed data of this rank, and forgets data that it has read. [`near::push`] reports failures.
    pub(super) fn settle(self: &Arc<File>) {
        if !IS_INSIDE.get() {
            now(near::settle(&Here(self)));
        }
    }
}

/// Writes delayed data of all files of this process, and forgets data that it has read: the process is
/// about to communicate, or has communicated.
#[cold]
pub(crate) fn release() {
    if IS_INSIDE.get() {
        return;
    }
    // From here on a file that gets something to keep is put on the list again.
    observe(false);
    let files = std::mem::take(&mut *lock(&LISTED));
    for file in files {
        now(near::release(&Here(&file)));
    }
}
