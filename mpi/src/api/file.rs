//! Files: opened, asked for what they are, closed.

use crate::api::Code;
use crate::errhandler;
use crate::error::Result;
pub use crate::file::representation::{Convert, Converted, Extent};
use crate::file::{self, open, representation, share, view};
use crate::handle::{Comm, Errhandler, File, Group, Info, Type};
use crate::info;

/// `MPI_File_open`
///
/// # Errors
/// An argument is wrong, or the system refuses the file, on any rank.
pub fn file_open(comm: Comm, filename: &str, amode: i32, info: Info) -> Result<File> {
    open::open(comm, filename, amode, info)
}

/// `MPI_File_close`
///
/// # Errors
/// There is no such file, a split access is under way, or the file cannot be removed that was to be.
pub fn file_close(fh: &mut File) -> Result<()> {
    open::close(fh)
}

/// `MPI_File_delete`
///
/// # Errors
/// The system refuses it.
pub fn file_delete(filename: &str, info: Info) -> Result<()> {
    open::delete(filename, info)
}

/// `MPI_File_set_size`
///
/// # Errors
/// The size is negative, ranks give different ones, or the system refuses it.
pub fn file_set_size(fh: File, size: i64) -> Result<()> {
    share(fh)?.set_size(size)
}

/// `MPI_File_preallocate`
///
/// # Errors
/// As [`file_set_size`].
pub fn file_preallocate(fh: File, size: i64) -> Result<()> {
    share(fh)?.preallocate(size)
}

/// `MPI_File_get_size`
///
/// # Errors
/// There is no such file, or the system refuses it.
pub fn file_get_size(fh: File) -> Result<i64> {
    share(fh)?.size()
}

/// `MPI_File_get_group`
///
/// # Errors
/// There is no such file.
pub fn file_get_group(fh: File) -> Result<Group> {
    open::group(fh)
}

/// `MPI_File_get_amode`
///
/// # Errors
/// There is no such file.
pub fn file_get_amode(fh: File) -> Result<i32> {
    Ok(share(fh)?.amode().bits())
}

/// `MPI_File_set_info`
///
/// # Errors
/// There is no such file or info object.
pub fn file_set_info(fh: File, info: Info) -> Result<()> {
    share(fh)?.set_info(info)
}

/// `MPI_File_get_info`: the hints that are in force.
///
/// # Errors
/// There is no such file.
pub fn file_get_info(fh: File) -> Result<Info> {
    Ok(info::insert(share(fh)?.info()))
}

/// `MPI_File_set_view`
///
/// # Errors
/// An argument is wrong, or ranks give elementary types or representations that differ.
pub fn file_set_view(
    fh: File,
    disp: i64,
    etype: Type,
    filetype: Type,
    datarep: &str,
    info: Info,
) -> Result<()> {
    let wish = view::Wish { start: disp, etype, filetype, representation: datarep };
    share(fh)?.set_view(&wish, info)
}

/// `MPI_File_get_view`: displacement, types, representation.
///
/// # Errors
/// There is no such file.
pub fn file_get_view(fh: File) -> Result<(i64, Type, Type, String)> {
    Ok(share(fh)?.told_view())
}

/// `MPI_File_seek`
///
/// # Errors
/// It leads before the view, or the file is in sequential mode.
pub fn file_seek(fh: File, offset: i64, whence: i32) -> Result<()> {
    share(fh)?.seek(offset, whence)
}

/// `MPI_File_get_position`
///
/// # Errors
/// There is no such file, or it is in sequential mode.
pub fn file_get_position(fh: File) -> Result<i64> {
    share(fh)?.position()
}

/// `MPI_File_get_byte_offset`
///
/// # Errors
/// The offset is negative, or too far.
pub fn file_get_byte_offset(fh: File, offset: i64) -> Result<i64> {
    share(fh)?.byte(offset)
}

/// `MPI_File_seek_shared`
///
/// # Errors
/// It leads before the view, or ranks give something else.
pub fn file_seek_shared(fh: File, offset: i64, whence: i32) -> Result<()> {
    share(fh)?.seek_shared(offset, whence)
}

/// `MPI_File_get_position_shared`
///
/// # Errors
/// There is no such file, or rank 0 is gone.
pub fn file_get_position_shared(fh: File) -> Result<i64> {
    share(fh)?.shared_position()
}

/// `MPI_File_get_type_extent`
///
/// # Errors
/// There is no such file or type.
pub fn file_get_type_extent(fh: File, datatype: Type) -> Result<i64> {
    share(fh)?.type_extent(datatype)
}

/// `MPI_File_set_atomicity`
///
/// # Errors
/// There is no such file, or ranks give something else.
pub fn file_set_atomicity(fh: File, flag: bool) -> Result<()> {
    share(fh)?.set_atomicity(flag)
}

/// `MPI_File_get_atomicity`
///
/// # Errors
/// There is no such file.
pub fn file_get_atomicity(fh: File) -> Result<bool> {
    Ok(share(fh)?.is_atomic())
}

/// `MPI_File_sync`
///
/// # Errors
/// There is no such file, or the system refuses it.
pub fn file_sync(fh: File) -> Result<()> {
    share(fh)?.sync()
}

/// `MPI_Register_datarep`; without a function data are as in memory.
///
/// # Errors
/// There is one of this name, or the name is too long.
pub fn register_datarep(
    name: &str,
    read: Option<Convert>,
    write: Option<Convert>,
    extent: Extent,
) -> Result<()> {
    representation::define(name, read, write, extent)
}

/// `MPI_File_set_errhandler`; of the null handle: for files that are opened from now on.
///
/// # Errors
/// There is no such file or error handler.
pub fn file_set_errhandler(fh: File, errhandler: Errhandler) -> Result<()> {
    file::set_errhandler(fh, errhandler::lookup(errhandler)?)
}

/// `MPI_File_get_errhandler`
///
/// # Errors
/// There is no such file.
pub fn file_get_errhandler(fh: File) -> Result<Errhandler> {
    if !fh.is_null() {
        share(fh)?;
    }
    Ok(errhandler::give_out(&file::errhandler_of(fh)))
}

/// `MPI_File_call_errhandler`
///
/// # Errors
/// There is no such file.
pub fn file_call_errhandler(fh: File, code: Code) -> Result<()> {
    if !fh.is_null() {
        share(fh)?;
    }
    errhandler::call(&file::errhandler_of(fh), fh.0, code);
    Ok(())
}
