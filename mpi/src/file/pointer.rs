//! File pointers: the one of each process, and the one that all share, which lies in the memory of rank 0 and
//! is moved by the operations of windows.

use super::{File, lock};
use crate::api;
use crate::comm::{Named, gathered};
use crate::error::{Class, Result};
use crate::handle::{Info, Op, Type, Win};
use crate::memory;
use crate::window::{self, mode};
use nmad_rma::Base;
use std::ffi::c_void;
use std::sync::Arc;

/// `MPI_SEEK_CUR`
const CUR: i32 = 401;
/// `MPI_SEEK_END`
const END: i32 = 402;
/// `MPI_SEEK_SET`
const SET: i32 = 403;
/// The type of the shared pointer.
const POINTER: Type = Type(0x58);
/// `MPI_SUM`
const SUM: Op = Op(0x01);
/// `MPI_NO_OP`
const NO_OP: Op = Op(0x1d);
/// `MPI_REPLACE`
const REPLACE: Op = Op(0x1c);

/// Bytes of the memory of rank 0: the pointer, and a word ([`Word`]).
const MEMORY: i64 = 16;

/// The shared file pointer, in elementary types of the view.
pub(super) struct Shared(Win);

/// A word that all ranks of a node see, at first 0.
pub(super) struct Word(usize);

impl nmad_file::word::Word for Word {
    fn load(&self) -> u64 {
        memory::load_word(std::ptr::with_exposed_provenance_mut(self.0))
    }

    fn change(&self, to: impl FnMut(u64) -> u64) -> u64 {
        memory::change_word(std::ptr::with_exposed_provenance_mut(self.0), to)
    }
}

impl Shared {
    /// Makes one at `position`, among all ranks of a communicator, and the word beside it; no word: some rank
    /// does not see the memory of rank 0.
    pub(super) fn new(on: &Named, position: i64) -> Result<(Shared, Option<Word>)> {
        let is_first = on.comm.rank() == 0;
        let size = if is_first { MEMORY } else { 0 };
        let (base, win) = api::win_allocate(size, 1, Info::NULL, on.handle)?;
        if is_first {
            Base::new(base).write(0, &position.to_ne_bytes());
            Base::new(base).write(8, &[0; 8]);
        }
        api::win_lock_all(mode::NOCHECK, win)?;
        let seen = window::lookup(win)?.shared_query(0).ok();
        let seen = seen.filter(|(size, ..)| *size >= MEMORY).map(|(_, _, base)| base.wrapping_byte_add(8));
        // Nobody asks before it is written.
        let all = gathered(&on.comm, &[i64::from(seen.is_some())])?;
        let word = seen.filter(|_| all.iter().all(|sees| *sees != 0));
        Ok((Shared(win), word.map(|word| Word(word.expose_provenance()))))
    }

    /// Ends it; all ranks call.
    pub(super) fn free(&self) -> Result<()> {
        api::win_unlock_all(self.0)?;
        api::win_free(&mut { self.0 })
    }

    /// Changes it in one step: where it was before.
    fn change(&self, by: i64, op: Op) -> Result<i64> {
        let mut before = 0_i64;
        let (by, into) = (std::ptr::from_ref(&by).cast::<c_void>(), std::ptr::from_mut(&mut before).cast());
        api::fetch_and_op(by, into, POINTER, 0, 0, op, self.0)?;
        window::lookup(self.0)?.flush_rank("a file", 0, true)?;
        Ok(before)
    }

    pub(super) fn set(&self, position: i64) -> Result<()> {
        self.change(position, REPLACE).map(drop)
    }

    pub(super) fn get(&self) -> Result<i64> {
        self.change(0, NO_OP)
    }

    /// Moves it on: where it was before.
    pub(super) fn advance(&self, by: i64) -> Result<i64> {
        self.change(by, SUM)
    }
}

impl File {
    /// Where a seek leads to.
    fn sought(
        self: &Arc<File>,
        offset: i64,
        whence: i32,
        current: impl FnOnce() -> Result<i64>,
    ) -> Result<i64> {
        let from = match whence {
            SET => 0,
            CUR => current()?,
            END => self.view().end(self.size()?),
            _ => return Err(Class::ARG.error(format!("whence is {whence}: it is none of MPI_SEEK_*"))),
        };
        from.checked_add(offset).filter(|position| *position >= 0).ok_or_else(|| {
            let text = format_args!("a seek by {offset} from {from} leads before the begin of the view");
            self.error(Class::ARG, text)
        })
    }

    /// `MPI_File_seek`
    ///
    /// # Errors
    /// It leads before the view, or the file is in sequential mode.
    pub(crate) fn seek(self: &Arc<File>, offset: i64, whence: i32) -> Result<()> {
        self.amode.check_random()?;
        let mut position = lock(&self.position);
        let current = *position;
        *position = self.sought(offset, whence, || Ok(current))?;
        Ok(())
    }

    /// `MPI_File_get_position`
    ///
    /// # Errors
    /// The file is in sequential mode.
    pub(crate) fn position(&self) -> Result<i64> {
        self.amode.check_random()?;
        Ok(*lock(&self.position))
    }

    /// The individual pointer, moved on by this number of elementary types: where it was before.
    pub(super) fn advance(&self, by: i64) -> i64 {
        let mut position = lock(&self.position);
        let before = *position;
        *position = before.saturating_add(by);
        before
    }

    /// `MPI_File_seek_shared`: all ranks give the same.
    ///
    /// # Errors
    /// As [`File::seek`], or ranks give something else.
    pub(crate) fn seek_shared(self: &Arc<File>, offset: i64, whence: i32) -> Result<()> {
        let to = self.sought(offset, whence, || self.shared.get());
        let row = [i64::from(to.is_err()), offset, i64::from(whence)];
        let all = gathered(&self.on.comm, &row)?;
        let to = to?;
        if let Some(rank) = all.as_chunks::<3>().0.iter().position(|other| *other != row) {
            let text =
                format_args!("rank {rank} seeks to another place: the shared file pointer has only one");
            return Err(self.error(Class::NOT_SAME, text));
        }
        if self.rank() == 0 {
            self.shared.set(to)?;
        }
        gathered(&self.on.comm, &[0]).map(drop)
    }

    /// `MPI_File_get_position_shared`
    ///
    /// # Errors
    /// Rank 0 is gone.
    pub(crate) fn shared_position(&self) -> Result<i64> {
        self.shared.get()
    }

    /// The byte of the file at the shared pointer.
    pub(super) fn shared_byte(&self) -> Result<i64> {
        self.view().byte(self.shared.get()?)
    }

    /// `MPI_File_get_byte_offset`
    ///
    /// # Errors
    /// The offset is negative, or too far.
    pub(crate) fn byte(&self, offset: i64) -> Result<i64> {
        self.view().byte(offset)
    }

    /// `MPI_File_get_type_extent`
    ///
    /// # Errors
    /// There is no such type, or it cannot be in the file.
    pub(crate) fn type_extent(&self, datatype: Type) -> Result<i64> {
        let datatype = crate::objects::datatype(datatype)?;
        Ok(self.view().representation().in_file(datatype)?.extent())
    }
}
