//! Accesses of all processes that have opened a file: blocking, nonblocking, and in two calls.

use crate::error::Result;
use crate::file::Kind::{Read, Write};
use crate::file::call::{Start, all, all_later};
use crate::file::split;
use crate::handle::{File, Request, Type};
use crate::status::Status;
use std::ffi::c_void;

/// Any offset: the call that ends an access does not name it.
const SOMEWHERE: Start = Start::At(0);

macro_rules! blocking {
    ($($(#[$doc:meta])* $name:ident($buf:ty $(, $offset:ident)?) = $kind:ident $start:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// An argument is wrong, the system refuses the access of any rank, or a rank is gone.
        pub fn $name(
            fh: File,
            $($offset: i64,)?
            buf: $buf,
            count: i64,
            datatype: Type,
            status: Option<&mut Status>,
        ) -> Result<()> {
            all(fh, ($kind, $start), (buf as *const c_void, count, datatype), status)
        }
    )*};
}

blocking! {
    /// `MPI_File_read_at_all`
    file_read_at_all(*mut c_void, offset) = Read Start::At(offset);
    /// `MPI_File_write_at_all`
    file_write_at_all(*const c_void, offset) = Write Start::At(offset);
    /// `MPI_File_read_all`
    file_read_all(*mut c_void) = Read Start::Own;
    /// `MPI_File_write_all`
    file_write_all(*const c_void) = Write Start::Own;
    /// `MPI_File_read_ordered`
    file_read_ordered(*mut c_void) = Read Start::Ordered;
    /// `MPI_File_write_ordered`
    file_write_ordered(*const c_void) = Write Start::Ordered;
}

macro_rules! nonblocking {
    ($($(#[$doc:meta])* $name:ident($buf:ty $(, $offset:ident)?) = $kind:ident $start:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// An argument is wrong that is the same on all ranks; anything else is told at the end.
        pub fn $name(fh: File, $($offset: i64,)? buf: $buf, count: i64, datatype: Type) -> Result<Request> {
            all_later(fh, ($kind, $start), (buf as *const c_void, count, datatype))
        }
    )*};
}

nonblocking! {
    /// `MPI_File_iread_at_all`
    file_iread_at_all(*mut c_void, offset) = Read Start::At(offset);
    /// `MPI_File_iwrite_at_all`
    file_iwrite_at_all(*const c_void, offset) = Write Start::At(offset);
    /// `MPI_File_iread_all`
    file_iread_all(*mut c_void) = Read Start::Own;
    /// `MPI_File_iwrite_all`
    file_iwrite_all(*const c_void) = Write Start::Own;
}

macro_rules! split {
    ($($(#[$doc:meta])* $begin:ident, $end_doc:literal $end:ident($buf:ty $(, $offset:ident)?)
        = $kind:ident $start:expr, $like:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// An argument is wrong that is the same on all ranks; anything else is told at the end.
        pub fn $begin(fh: File, $($offset: i64,)? buf: $buf, count: i64, datatype: Type) -> Result<()> {
            split::begin(fh, ($kind, $start), (buf as *const c_void, count, datatype))
        }

        #[doc = $end_doc]
        ///
        /// # Errors
        /// No such access is under way, or it has failed.
        pub fn $end(fh: File, buf: $buf, status: Option<&mut Status>) -> Result<()> {
            let _ = buf;
            split::end(fh, ($kind, $like), status)
        }
    )*};
}

split! {
    /// `MPI_File_read_at_all_begin`
    file_read_at_all_begin, "`MPI_File_read_at_all_end`" file_read_at_all_end(*mut c_void, offset)
        = Read Start::At(offset), SOMEWHERE;
    /// `MPI_File_write_at_all_begin`
    file_write_at_all_begin, "`MPI_File_write_at_all_end`" file_write_at_all_end(*const c_void, offset)
        = Write Start::At(offset), SOMEWHERE;
    /// `MPI_File_read_all_begin`
    file_read_all_begin, "`MPI_File_read_all_end`" file_read_all_end(*mut c_void)
        = Read Start::Own, Start::Own;
    /// `MPI_File_write_all_begin`
    file_write_all_begin, "`MPI_File_write_all_end`" file_write_all_end(*const c_void)
        = Write Start::Own, Start::Own;
    /// `MPI_File_read_ordered_begin`
    file_read_ordered_begin, "`MPI_File_read_ordered_end`" file_read_ordered_end(*mut c_void)
        = Read Start::Ordered, Start::Ordered;
    /// `MPI_File_write_ordered_begin`
    file_write_ordered_begin, "`MPI_File_write_ordered_end`" file_write_ordered_end(*const c_void)
        = Write Start::Ordered, Start::Ordered;
}
