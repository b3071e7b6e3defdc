//! Atomic mode: one rank owns the whole file, and does what all others want one after the other.

use super::{File, lock};
use crate::comm::gathered;
use crate::error::{Class, Result};
use std::sync::Arc;

impl File {
    /// Whether it is in atomic mode.
    pub(crate) fn is_atomic(&self) -> bool {
        self.mode.is_atomic()
    }

    /// `MPI_File_set_atomicity`
    ///
    /// # Errors
    /// Ranks give something else, or data that were written before are lost.
    pub(crate) fn set_atomicity(self: &Arc<File>, is_atomic: bool) -> Result<()> {
        let all = gathered(&self.on.comm, &[i64::from(is_atomic)])?;
        if let Some(rank) = all.iter().position(|other| (*other != 0) != is_atomic) {
            let text = format_args!("rank {rank} sets the opposite mode: all ranks must set the same");
            return Err(self.error(Class::NOT_SAME, text));
        }
        if self.is_atomic() == is_atomic {
            return Ok(());
        }
        let hints = lock(&self.hints).clone();
        self.change_layout(hints, is_atomic)
    }
}
