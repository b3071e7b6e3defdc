//! Who accesses a file ([`nmad_file::layout`]): the layout of a file that is open, and how it changes.

use super::Kind;
use super::near::Here;
use super::{File, error_of, lock};
use crate::collective::explains;
use crate::error::{Class, Error, Result};
use crate::task::now;
use newmadeleine::setting::MPI_FILE;
use newmadeleine::tell_user;
use nmad_file::handover::{self, Together};
use nmad_file::layout::Reason;
use nmad_file::word::Word;
use nmad_file::{Disk, Fault, Hints, Layout, near};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The hints that `NMAD_MPI_FILE` sets; those of the program replace them.
///
/// # Errors
/// `NMAD_MPI_FILE` has an invalid value.
pub(super) fn initial() -> Result<Hints> {
    let value = MPI_FILE.text().map_err(|why| Class::ARG.error(why))?;
    let mut hints = Hints::default();
    hints.take(|key| value.clone().filter(|_| key == "nmad_indep_rw"));
    Ok(hints)
}

/// Bytes that may wait to be written.
pub(super) fn waiting(disk: &Disk, hints: &Hints) -> u64 {
    if disk.is_regular() { hints.waiting() } else { 0 }
}

impl File {
    pub(super) fn layout(&self) -> Arc<Layout> {
        lock(&self.layout).clone()
    }

    /// Makes the layout anew, after hints or the mode have changed. Owners have written everything before
    /// ([`File::hand_over`]), and no rank may access the file until all have done this.
    pub(super) fn lay_out(&self, is_atomic: bool) {
        let reason = Reason { is_atomic, is_coherent: self.is_coherent(), writes: self.amode.writes() };
        let hints = lock(&self.hints).clone();
        let layout = Layout::new(&hints, self.disk.system().block, &self.nodes, &reason);
        let waiting = waiting(&self.disk, &hints);
        self.desk.owner().cache.set(layout.regions.unit(), waiting);
        lock(&self.near).set(waiting);
        self.set_ways();
        self.mode.set(&layout);
        *lock(&self.layout) = Arc::new(layout);
        self.explain();
    }

    /// Returns whether reads, and whether writes, are direct I/O now.
    pub(super) fn uncached(&self) -> [bool; 2] {
        [Kind::Read, Kind::Write].map(|kind| self.disk.is_uncached(kind))
    }

    /// Tells the disk which ways the hints and the nodes allow.
    pub(super) fn set_ways(&self) {
        let hints = lock(&self.hints);
        let [reads, writes] = hints.uncached();
        self.disk.set_uncached(reads, writes);
        self.disk.set_mapped(hints.maps(self.uncached()) && !self.is_on_several_nodes());
    }

    /// Has rank 0 say how accesses of one rank go, if the user wants to know.
    pub(super) fn explain(&self) {
        let layout = self.layout();
        if self.rank() == 0 && explains() {
            tell_user(format_args!(
                "nmad: {} ({}): accesses of one rank go {} ({})",
                self.disk.path().display(),
                self.disk.system().name,
                if layout.by_owners { "by owners" } else { "directly" },
                layout.why,
            ));
        }
    }

    /// Puts other hints and the mode in force; all ranks call, with the same.
    ///
    /// # Errors
    /// The file system refuses data that were written before.
    pub(super) fn change_layout(self: &Arc<File>, hints: Hints, is_atomic: bool) -> Result<()> {
        now(handover::change(&Here(self), || {
            *lock(&self.hints) = hints;
            self.lay_out(is_atomic);
        }))
    }

    /// Has owners write everything and forget what they have read, so that other ranks may access their
    /// regions; all ranks call.
    ///
    /// # Errors
    /// The file system refuses data that were written before.
    pub(super) fn hand_over(self: &Arc<File>) -> Result<()> {
        now(handover::hand_over(&Here(self)))
    }
}

/// What each access of one rank looks at of the layout, without a lock.
#[derive(Debug, Default)]
pub(super) struct Mode {
    by_owners: AtomicBool,
    is_atomic: AtomicBool,
}

impl Mode {
    /// Follows the layout.
    pub(super) fn set(&self, layout: &Layout) {
        self.by_owners.store(layout.by_owners, Ordering::Release);
        self.is_atomic.store(layout.is_atomic, Ordering::Release);
    }

    /// Accesses of one rank are messages to owners.
    pub(super) fn by_owners(&self) -> bool {
        self.by_owners.load(Ordering::Acquire)
    }

    /// The file is in atomic mode.
    pub(super) fn is_atomic(&self) -> bool {
        self.is_atomic.load(Ordering::Acquire)
    }
}

impl Together for Here<'_> {
    type Error = Error;

    fn is_coherent(&self) -> bool {
        self.0.is_coherent()
    }

    fn has_owners(&self) -> bool {
        self.0.layout().by_owners
    }

    fn word(&self) -> Option<&impl Word> {
        self.0.word.as_ref()
    }

    fn is_first(&self) -> bool {
        self.0.rank() == 0
    }

    async fn push_near(&self) -> std::result::Result<(), Fault> {
        near::push(self).await
    }

    async fn meet(&self, given: bool) -> Result<bool> {
        Ok(self.0.together(&[given.into()])?.iter().any(|given| *given != 0))
    }

    async fn told(&self, failed: Option<Fault>) -> Result<()> {
        self.0.told(failed.map(error_of))
    }

    async fn hand_over_owner(&self) -> std::result::Result<(), Fault> {
        self.0.desk.owner().cache.hand_over(&self.0.disk)
    }

    async fn flush(&self) -> std::result::Result<(), Fault> {
        self.0.disk.sync()
    }

    async fn forget(&self) {
        self.0.disk.forget();
    }
}
