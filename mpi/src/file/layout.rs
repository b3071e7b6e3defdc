//! Who accesses a file: its regions, their owners, and whether accesses of one rank go by owners, too. All
//! ranks have the same layout; it changes in collective calls only, after owners have written everything.

use super::{File, error_of, lock};
use crate::collective::explains;
use crate::error::{Class, Result};
use newmadeleine::setting::MPI_FILE;
use newmadeleine::tell_user;
use nmad_file::hints::Switch;
use nmad_file::{Disk, Hints, Regions};
use std::sync::Arc;

/// A layout.
pub(super) struct Layout {
    pub(super) regions: Regions,
    /// Accesses of one rank are messages to owners.
    pub(super) by_owners: bool,
    /// The reason.
    why: &'static str,
    /// In atomic mode one rank owns all regions.
    pub(super) is_atomic: bool,
}

/// The hints that `NMAD_MPI_FILE` sets; those of the program replace them.
///
/// # Errors
/// The environment says something that means nothing.
pub(super) fn initial() -> Result<Hints> {
    let value = MPI_FILE.text().map_err(|why| Class::ARG.error(why))?;
    let mut hints = Hints::default();
    hints.take(|key| value.clone().filter(|_| key == "nmad_indep_rw"));
    Ok(hints)
}

impl Layout {
    /// That of a file that no rank accesses yet.
    pub(super) fn new(hints: &Hints, block: u64, nodes: &[u32], reason: &Reason) -> Layout {
        let all = hints.regions(block, nodes);
        let regions = if reason.is_atomic { all.of_one() } else { all };
        let (by_owners, why) = match hints.alone() {
            // One process can read what no rank writes as well as another.
            _ if reason.is_atomic => (true, "atomic mode"),
            Switch::Enable => (true, "hint or NMAD_MPI_FILE"),
            Switch::Disable => (false, "hint or NMAD_MPI_FILE"),
            _ if nodes.len() == 1 => (false, "one rank"),
            _ if reason.is_coherent => (false, "ranks see each other's writes"),
            _ if !reason.writes => (false, "the file is read only"),
            Switch::Automatic => (true, "nodes do not see each other's writes"),
        };
        Layout { regions, by_owners, why, is_atomic: reason.is_atomic }
    }
}

/// Bytes that may wait to be written.
pub(super) fn waiting(disk: &Disk, hints: &Hints) -> u64 {
    if disk.is_regular() { hints.waiting() } else { 0 }
}

/// The conditions of a layout besides hints.
pub(super) struct Reason {
    pub(super) is_atomic: bool,
    /// Ranks see each other's writes at once.
    pub(super) is_coherent: bool,
    /// Ranks may write.
    pub(super) writes: bool,
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
        lock(&self.owner).cache.set(layout.regions.unit(), waiting);
        lock(&self.near).set(waiting);
        *lock(&self.layout) = Arc::new(layout);
        self.explain();
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
        let handed = self.hand_over();
        *lock(&self.hints) = hints;
        self.lay_out(is_atomic);
        // No rank accesses the file before all know the owners.
        self.together(&[0])?;
        handed
    }

    /// Has owners write everything and forget what they have read, so that other ranks may access their
    /// regions; all ranks call.
    ///
    /// # Errors
    /// The file system refuses data that were written before.
    pub(super) fn hand_over(self: &Arc<File>) -> Result<()> {
        let near = self.push_near();
        let is_coherent = self.is_coherent();
        if is_coherent && !self.layout().by_owners && self.word.is_none() {
            return self.told(near.err());
        }
        // What ranks have asked before was answered. An owner writes also if a rank is gone.
        let together = self.together(&[0]);
        let mut handed = lock(&self.owner).cache.hand_over(&self.disk);
        if !is_coherent {
            // The server has to have it before another node accesses it.
            handed = handed.and(self.disk.sync());
        }
        let handed = handed.map_err(error_of);
        if let Some(word) = self.word.as_ref().filter(|_| self.rank() == 0) {
            word.set(false);
        }
        together?;
        self.told(near.and(handed).err())?;
        self.forget()
    }

    /// Where nodes do not see each other's writes, has all nodes forget what they know of the file. No rank
    /// asks an owner before all have done this.
    ///
    /// # Errors
    /// A rank is gone.
    pub(super) fn forget(self: &Arc<File>) -> Result<()> {
        if self.is_coherent() {
            return Ok(());
        }
        self.disk.forget();
        self.together(&[0]).map(drop)
    }
}
