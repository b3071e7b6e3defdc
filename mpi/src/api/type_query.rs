//! Asking datatypes.

use crate::constant::UNDEFINED;
use crate::datatype::{Combiner, Form, IntegerKind};
use crate::error::{Class, Result};
use crate::handle::Type;
use crate::objects::{datatype, hand_out_type, type_object};
use crate::status::Status;

/// `MPI_Type_size`, in bytes.
///
/// # Errors
/// There is no such type.
pub fn type_size(handle: Type) -> Result<i64> {
    Ok(datatype(handle)?.size())
}

/// `MPI_Type_get_extent`: lower bound and extent.
///
/// # Errors
/// There is no such type.
pub fn type_get_extent(handle: Type) -> Result<(i64, i64)> {
    let datatype = datatype(handle)?;
    Ok((datatype.lower_bound(), datatype.extent()))
}

/// `MPI_Type_get_true_extent`: true lower bound and true extent.
///
/// # Errors
/// There is no such type.
pub fn type_get_true_extent(handle: Type) -> Result<(i64, i64)> {
    let datatype = datatype(handle)?;
    Ok((datatype.true_lower_bound(), datatype.true_extent()))
}

/// How many numbers of each kind the contents of a type have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// Arguments of type `int`.
    pub integers: i64,
    /// Arguments of type `MPI_Aint`.
    pub addresses: i64,
    /// Arguments of type `MPI_Count`; only asked for by the `_c` function.
    pub counts: i64,
    /// Types.
    pub types: i64,
    /// How it was made.
    pub combiner: Combiner,
}

/// `MPI_Type_get_envelope`
///
/// # Errors
/// There is no such type, or it was made with large counts and is asked without `_c`.
pub fn type_get_envelope(form: Form, handle: Type) -> Result<Envelope> {
    let contents = datatype(handle)?.contents();
    contents.check_form(form)?;
    Ok(Envelope {
        integers: contents.integers.len() as i64,
        addresses: contents.addresses.len() as i64,
        counts: contents.counts.len() as i64,
        types: contents.types.len() as i64,
        combiner: contents.combiner,
    })
}

/// The arguments that made a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// Arguments of type `int`, and their meanings, for callers that translate constants.
    pub integers: Vec<(i64, IntegerKind)>,
    /// Arguments of type `MPI_Aint`.
    pub addresses: Vec<i64>,
    /// Arguments of type `MPI_Count`.
    pub counts: Vec<i64>,
    /// Types; the caller frees those that are not predefined.
    pub types: Vec<Type>,
}

/// `MPI_Type_get_contents`; `room` is for how many integers, addresses, counts and types there is room.
///
/// # Errors
/// There is no such type, it is predefined, was made with large counts and is asked without `_c`, or
/// there is too little room.
pub fn type_get_contents(form: Form, handle: Type, room: [i64; 4]) -> Result<Arguments> {
    let contents = datatype(handle)?.contents();
    contents.check(form)?;
    let needed =
        [contents.integers.len(), contents.addresses.len(), contents.counts.len(), contents.types.len()];
    for ((room, needed), what) in room.iter().zip(needed).zip(["integers", "addresses", "counts", "types"]) {
        if *room < needed as i64 {
            return Err(Class::ARG.error(format!("room for {room} {what}, but the contents have {needed}")));
        }
    }
    let integers = contents.integers.iter().enumerate();
    Ok(Arguments {
        integers: integers.map(|(i, &integer)| (integer, contents.integer_kind(i))).collect(),
        addresses: contents.addresses.to_vec(),
        counts: contents.counts.to_vec(),
        types: contents.types.iter().map(hand_out_type).collect(),
    })
}

/// `MPI_Type_get_name`
///
/// # Errors
/// There is no such type.
pub fn type_get_name(handle: Type) -> Result<String> {
    if handle.is_null() {
        return Ok("MPI_DATATYPE_NULL".into());
    }
    let given = type_object(handle)?.name().clone();
    let predefined = || datatype(handle).ok().and_then(|datatype| datatype.basic()).map(|basic| basic.name());
    Ok(given.unwrap_or_else(|| predefined().unwrap_or_default().to_owned()))
}

/// `MPI_Type_set_name`
///
/// # Errors
/// There is no such type.
pub fn type_set_name(handle: Type, name: &str) -> Result<()> {
    *type_object(handle)?.name() = Some(name.to_owned());
    Ok(())
}

/// `MPI_Get_count`: whole elements that arrived, or UNDEFINED.
///
/// # Errors
/// There is no such type.
pub fn get_count(status: &Status, handle: Type) -> Result<i64> {
    Ok(datatype(handle)?.count_in(status.count_bytes).unwrap_or(i64::from(UNDEFINED)))
}

/// `MPI_Get_elements`: basic elements that arrived, or UNDEFINED.
///
/// # Errors
/// There is no such type.
pub fn get_elements(status: &Status, handle: Type) -> Result<i64> {
    Ok(datatype(handle)?.elements_in(status.count_bytes).unwrap_or(i64::from(UNDEFINED)))
}

/// `MPI_Status_set_elements`
///
/// # Errors
/// There is no such type, or `count` of its elements are no number of bytes.
pub fn status_set_elements(status: &mut Status, handle: Type, count: i64) -> Result<()> {
    let len = datatype(handle)?.bytes_of_elements(count);
    let wrong =
        || Class::COUNT.error(format!("{count} basic elements of this datatype are no number of bytes"));
    status.count_bytes = len.ok_or_else(wrong)?;
    Ok(())
}
