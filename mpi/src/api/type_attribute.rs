//! Attributes of datatypes.

use crate::attribute::Owner;
use crate::error::Result;
use crate::handle::{Keyval, Type};
use crate::objects::type_object;

/// `MPI_Type_get_attr`: the value, an address as a number.
///
/// # Errors
/// There is no such type or key.
pub fn type_get_attr(datatype: Type, keyval: Keyval) -> Result<Option<usize>> {
    type_object(datatype)?.attributes().get(Owner::Type, keyval)
}

/// `MPI_Type_set_attr`
///
/// # Errors
/// There is no such type or key, or the delete function of the old value fails.
pub fn type_set_attr(datatype: Type, keyval: Keyval, value: usize) -> Result<()> {
    type_object(datatype)?.attributes().set(Owner::Type, datatype.0, keyval, value)
}

/// `MPI_Type_delete_attr`
///
/// # Errors
/// There is no such type, key or attribute, or the delete function fails.
pub fn type_delete_attr(datatype: Type, keyval: Keyval) -> Result<()> {
    type_object(datatype)?.attributes().delete(Owner::Type, datatype.0, keyval)
}
