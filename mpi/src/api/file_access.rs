//! Accesses of one process to files, at an offset or at a file pointer.

use crate::error::Result;
use crate::file::Kind::{Read, Write};
use crate::file::call::{Start, alone, alone_later};
use crate::handle::{File, Request, Type};
use crate::status::Status;
use std::ffi::c_void;

macro_rules! accesses {
    ($($(#[$doc:meta])* $name:ident, $later_doc:literal $later:ident($buf:ty $(, $offset:ident)?)
        = $kind:ident $start:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// An argument is wrong, or the system refuses the access.
        pub fn $name(
            fh: File,
            $($offset: i64,)?
            buf: $buf,
            count: i64,
            datatype: Type,
            status: Option<&mut Status>,
        ) -> Result<()> {
            alone(fh, ($kind, $start), (buf as *const c_void, count, datatype), status)
        }

        #[doc = $later_doc]
        ///
        /// # Errors
        /// An argument is wrong.
        pub fn $later(fh: File, $($offset: i64,)? buf: $buf, count: i64, datatype: Type) -> Result<Request> {
            alone_later(fh, ($kind, $start), (buf as *const c_void, count, datatype))
        }
    )*};
}

accesses! {
    /// `MPI_File_read_at`
    file_read_at, "`MPI_File_iread_at`" file_iread_at(*mut c_void, offset) = Read Start::At(offset);
    /// `MPI_File_write_at`
    file_write_at, "`MPI_File_iwrite_at`" file_iwrite_at(*const c_void, offset) = Write Start::At(offset);
    /// `MPI_File_read`
    file_read, "`MPI_File_iread`" file_iread(*mut c_void) = Read Start::Own;
    /// `MPI_File_write`
    file_write, "`MPI_File_iwrite`" file_iwrite(*const c_void) = Write Start::Own;
    /// `MPI_File_read_shared`
    file_read_shared, "`MPI_File_iread_shared`" file_iread_shared(*mut c_void) = Read Start::Shared;
    /// `MPI_File_write_shared`
    file_write_shared, "`MPI_File_iwrite_shared`" file_iwrite_shared(*const c_void) = Write Start::Shared;
}
