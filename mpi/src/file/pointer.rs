//! File pointers: the one of each process, and the one that all share. That lies in memory that all ranks
//! see, or else in the memory of rank 0, where the operations of windows move it.

use super::page::{self, Line};
use super::{File, lock};
use crate::api;
use crate::comm::{Named, gathered};
use crate::error::{Class, Result};
use crate::handle::{Info, Op, Type, Win};
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

/// Bytes of the memory of rank 0.
const MEMORY: i64 = 8;
/// The word of the pointer in the line of a file, and the other one ([`Word`]).
const PLACE: usize = 0;
const WAY: usize = 1;

/// The shared file pointer, in elementary types of the view.
pub(super) enum Shared {
    /// In a line of memory that all ranks see.
    Line(Line),
    /// In the memory of rank 0, moved by the operations of a window.
    Window(Win),
}

/// A word that all ranks of a node see, at first 0.
pub(super) struct Word(Line);

impl nmad_file::word::Word for Word {
    fn load(&self) -> u64 {
        self.0.load(WAY)
    }

    fn change(&self, to: impl FnMut(u64) -> u64) -> u64 {
        self.0.change(WAY, to)
    }
}

/// Sets the words of a file that is opened; the first rank does it, before any other one may look.
pub(super) fn begin(line: Line, position: i64) {
    line.store(PLACE, position as u64);
    line.store(WAY, 0);
}

impl Shared {
    /// Makes one at `position`, among all ranks of a communicator, and the word beside it, in a line that
    /// they have taken or make now; no word: some rank does not see the memory of rank 0.
    pub(super) fn new(on: &Named, position: i64, line: Option<Line>) -> Result<(Shared, Option<Word>)> {
        if let Some(line) = line {
            return Ok((Shared::Line(line), Some(Word(line))));
        }
        let is_first = on.comm.rank() == 0;
        if let Some(line) = page::make(on)? {
            if is_first {
                begin(line, position);
            }
            // Nobody asks before it is written.
            gathered(&on.comm, &[0])?;
            return Ok((Shared::Line(line), Some(Word(line))));
        }
        let size = if is_first { MEMORY } else { 0 };
        let (base, win) = api::win_allocate(size, 1, Info::NULL, on.handle)?;
        if is_first {
            Base::new(base).write(0, &position.to_ne_bytes());
        }
        api::win_lock_all(mode::NOCHECK, win)?;
        gathered(&on.comm, &[0])?;
        Ok((Shared::Window(win), None))
    }

    /// Ends it; all ranks call, and none uses it any more.
    pub(super) fn free(&self) -> Result<()> {
        match *self {
            Shared::Line(line) => line.free(),
            Shared::Window(mut win) => {
                api::win_unlock_all(win)?;
                api::win_free(&mut win)?;
            }
        }
        Ok(())
    }

    /// Changes it in one step: where it was before.
    fn change(win: Win, by: i64, op: Op) -> Result<i64> {
        let mut before = 0_i64;
        let (by, into) = (std::ptr::from_ref(&by).cast::<c_void>(), std::ptr::from_mut(&mut before).cast());
        api::fetch_and_op(by, into, POINTER, 0, 0, op, win)?;
        window::lookup(win)?.flush_rank("a file", 0, true)?;
        Ok(before)
    }

    pub(super) fn set(&self, position: i64) -> Result<()> {
        match *self {
            Shared::Line(line) => line.store(PLACE, position as u64),
            Shared::Window(win) => _ = Shared::change(win, position, REPLACE)?,
        }
        Ok(())
    }

    pub(super) fn get(&self) -> Result<i64> {
        match *self {
            Shared::Line(line) => Ok(line.load(PLACE) as i64),
            Shared::Window(win) => Shared::change(win, 0, NO_OP),
        }
    }

    /// Moves it on: where it was before.
    pub(super) fn advance(&self, by: i64) -> Result<i64> {
        match *self {
            Shared::Line(line) => Ok(line.change(PLACE, |before| before.wrapping_add_signed(by)) as i64),
            Shared::Window(win) => Shared::change(win, by, SUM),
        }
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
