//! Packing, unpacking and reducing in memory. Buffers are addresses and lengths in bytes; positions move on.

use crate::datatype::EXTERNAL32;
use crate::error::{Class, Result};
use crate::handle::{Comm, Type};
use crate::memory::{self, Representation};
use crate::objects::committed;
use std::ffi::c_void;

/// Refuses a negative length and an unknown communicator.
fn length(len: i64) -> Result<usize> {
    usize::try_from(len).map_err(|_| Class::ARG.error(format!("the length of the packed buffer is {len}")))
}

fn known(name: &str) -> Result<()> {
    if name == EXTERNAL32 {
        return Ok(());
    }
    Err(Class::ARG.error(format!("the data representation is \"{name}\": only \"{EXTERNAL32}\" is known")))
}

/// `MPI_Pack_size`: bytes that [`pack`] adds at most. All communicators pack alike.
///
/// # Errors
/// There is no such type or communicator, or the bytes do not fit into 64 bits.
pub fn pack_size(count: i64, datatype: Type, comm: Comm) -> Result<i64> {
    crate::comm::lookup(comm)?;
    committed(datatype)?.bytes(count)
}

/// `MPI_Pack`
///
/// # Errors
/// There is no such type or communicator, or too little room.
pub fn pack(
    buffer: *const c_void,
    count: i64,
    datatype: Type,
    packed: *mut c_void,
    len: i64,
    position: &mut i64,
    comm: Comm,
) -> Result<()> {
    crate::comm::lookup(comm)?;
    let (datatype, room) = (committed(datatype)?, (packed, length(len)?));
    memory::pack(Representation::Native, buffer, (count, datatype), room, position)
}

/// `MPI_Unpack`
///
/// # Errors
/// There is no such type or communicator, or too little packed data.
pub fn unpack(
    packed: *const c_void,
    len: i64,
    position: &mut i64,
    buffer: *mut c_void,
    count: i64,
    datatype: Type,
    comm: Comm,
) -> Result<()> {
    crate::comm::lookup(comm)?;
    let (datatype, packed) = (committed(datatype)?, (packed, length(len)?));
    memory::unpack(Representation::Native, packed, position, buffer, (count, datatype))
}

/// `MPI_Pack_external_size`: bytes that [`pack_external`] adds.
///
/// # Errors
/// There is no such type or representation, or the bytes do not fit into 64 bits.
pub fn pack_external_size(representation: &str, count: i64, datatype: Type) -> Result<i64> {
    known(representation)?;
    committed(datatype)?.external_size(count)
}

/// `MPI_Pack_external`
///
/// # Errors
/// There is no such type or representation, or too little room.
pub fn pack_external(
    representation: &str,
    buffer: *const c_void,
    count: i64,
    datatype: Type,
    packed: *mut c_void,
    len: i64,
    position: &mut i64,
) -> Result<()> {
    known(representation)?;
    let (datatype, room) = (committed(datatype)?, (packed, length(len)?));
    memory::pack(Representation::External32, buffer, (count, datatype), room, position)
}

/// `MPI_Unpack_external`
///
/// # Errors
/// There is no such type or representation, or too little packed data.
pub fn unpack_external(
    representation: &str,
    packed: *const c_void,
    len: i64,
    position: &mut i64,
    buffer: *mut c_void,
    count: i64,
    datatype: Type,
) -> Result<()> {
    known(representation)?;
    let (datatype, packed) = (committed(datatype)?, (packed, length(len)?));
    memory::unpack(Representation::External32, packed, position, buffer, (count, datatype))
}
