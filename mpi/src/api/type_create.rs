//! Making datatypes. The first argument of constructors says whether the `_c` function was called:
//! envelope and contents tell the two apart.

use crate::datatype::{Datatype, Distribution, Form, Order, Share, TypeClass, f90_float, f90_integer};
use crate::datatype::{match_size, value_index};
use crate::error::{Class, Result};
use crate::handle::Type;
use crate::objects::{datatype, free_type, hand_out_type, insert_type, type_object};
use std::sync::{Mutex, PoisonError};

/// The handle of a type that was just made.
fn made(new: Result<Datatype>) -> Result<Type> {
    new.map(|new| hand_out_type(&new))
}

/// `MPI_Type_contiguous`
///
/// # Errors
/// There is no such type, or the new one is too large.
pub fn type_contiguous(form: Form, count: i64, old: Type) -> Result<Type> {
    made(Datatype::contiguous(form, count, datatype(old)?))
}

/// `MPI_Type_vector`
///
/// # Errors
/// There is no such type, or the new one is too large.
pub fn type_vector(form: Form, count: i64, blocklength: i64, stride: i64, old: Type) -> Result<Type> {
    made(Datatype::vector(form, count, blocklength, stride, datatype(old)?))
}

/// `MPI_Type_create_hvector`
///
/// # Errors
/// There is no such type, or the new one is too large.
pub fn type_create_hvector(form: Form, count: i64, blocklength: i64, stride: i64, old: Type) -> Result<Type> {
    made(Datatype::hvector(form, count, blocklength, stride, datatype(old)?))
}

/// `MPI_Type_indexed`
///
/// # Errors
/// There is no such type, or the new one is too large.
pub fn type_indexed(form: Form, blocklengths: &[i64], displacements: &[i64], old: Type) -> Result<Type> {
    made(Datatype::indexed(form, blocklengths, displacements, datatype(old)?))
}

/// `MPI_Type_create_hindexed`
///
/// # Errors
/// There is no such type, or the new one is too large.
pub fn type_create_hindexed(
    form: Form,
    blocklengths: &[i64],
    displacements: &[i64],
    old: Type,
) -> Result<Type> {
    made(Datatype::hindexed(form, blocklengths, displacements, datatype(old)?))
}

/// `MPI_Type_create_indexed_block`
///
/// # Errors
/// There is no such type, or the new one is too large.
pub fn type_create_indexed_block(
    form: Form,
    blocklength: i64,
    displacements: &[i64],
    old: Type,
) -> Result<Type> {
    made(Datatype::indexed_block(form, blocklength, displacements, datatype(old)?))
}

/// `MPI_Type_create_hindexed_block`
///
/// # Errors
/// There is no such type, or the new one is too large.
pub fn type_create_hindexed_block(
    form: Form,
    blocklength: i64,
    displacements: &[i64],
    old: Type,
) -> Result<Type> {
    made(Datatype::hindexed_block(form, blocklength, displacements, datatype(old)?))
}

/// `MPI_Type_create_struct`
///
/// # Errors
/// There is no such type, or the new one is too large.
pub fn type_create_struct(
    form: Form,
    blocklengths: &[i64],
    displacements: &[i64],
    types: &[Type],
) -> Result<Type> {
    let types: Result<Vec<Datatype>> = types.iter().map(|&old| datatype(old).cloned()).collect();
    made(Datatype::structure_of(form, blocklengths, displacements, &types?))
}

/// The order of arrays that a constant of the standard names.
fn order_of(number: i32) -> Result<Order> {
    let wrong = || Class::ARG.error(format!("order {number} is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN"));
    Order::from_number(number).ok_or_else(wrong)
}

/// `MPI_Type_create_subarray`; the number of dimensions is the length of the lists.
///
/// # Errors
/// There is no such type or order, or the part does not lie in the array.
pub fn type_create_subarray(
    form: Form,
    sizes: &[i64],
    subsizes: &[i64],
    starts: &[i64],
    order: i32,
    old: Type,
) -> Result<Type> {
    made(Datatype::subarray(form, sizes, subsizes, starts, order_of(order)?, datatype(old)?))
}

/// `MPI_Type_create_darray`
///
/// # Errors
/// There is no such type, order or distribution, or the processes do not fit to the dimensions.
#[expect(clippy::too_many_arguments, reason = "they are the standard's")]
pub fn type_create_darray(
    form: Form,
    size: i32,
    rank: i32,
    sizes: &[i64],
    distributions: &[i32],
    arguments: &[i32],
    processes: &[i32],
    order: i32,
    old: Type,
) -> Result<Type> {
    if [distributions.len(), arguments.len(), processes.len()] != [sizes.len(); 3] {
        return Err(Class::ARG.error("the lists of the dimensions have different lengths"));
    }
    let share = |i: usize| {
        let Some(distribution) = Distribution::from_number(distributions[i]) else {
            return Err(Class::ARG.error(format!("dimension {i} has the distribution {}", distributions[i])));
        };
        Ok(Share { size: sizes[i], distribution, argument: arguments[i], processes: processes[i] })
    };
    let shares: Result<Vec<Share>> = (0..sizes.len()).map(share).collect();
    made(Datatype::darray(form, size, rank, &shares?, order_of(order)?, datatype(old)?))
}

/// `MPI_Type_create_resized`
///
/// # Errors
/// There is no such type, or its upper bound does not fit into 64 bits.
pub fn type_create_resized(form: Form, old: Type, lower_bound: i64, extent: i64) -> Result<Type> {
    made(Datatype::resized(form, lower_bound, extent, datatype(old)?))
}

/// `MPI_Type_dup`
///
/// # Errors
/// There is no such type, or the copy function of an attribute fails.
pub fn type_dup(old: Type) -> Result<Type> {
    let (object, new) = (type_object(old)?, insert_type(datatype(old)?.dup()?));
    let copied = object.attributes().copy(old.0, (type_object(new)?.attributes(), new.0));
    copied.inspect_err(|_| drop(free_type(&mut { new })))?;
    Ok(new)
}

/// `MPI_Type_commit`
///
/// # Errors
/// There is no such type.
pub fn type_commit(handle: &mut Type) -> Result<()> {
    datatype(*handle)?.commit();
    Ok(())
}

/// `MPI_Type_free`
///
/// # Errors
/// There is no such type, or it is predefined, or the delete function of an attribute fails.
pub fn type_free(handle: &mut Type) -> Result<()> {
    free_type(handle)
}

/// Types of `MPI_Type_create_f90_*`: the same arguments give the same handle.
static F90_TYPES: Mutex<Vec<(TypeClass, i32, i32, Type)>> = Mutex::new(Vec::new());

fn f90_type(class: TypeClass, precision: i32, range: i32) -> Result<Type> {
    let mut known = F90_TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    let same =
        |entry: &&(TypeClass, i32, i32, Type)| (entry.0, entry.1, entry.2) == (class, precision, range);
    if let Some(entry) = known.iter().find(same) {
        return Ok(entry.3);
    }
    let given = |number: i32| (number != crate::constant::UNDEFINED).then_some(number);
    let new = match class {
        TypeClass::Integer => f90_integer(range)?,
        _ => f90_float(class, given(precision), given(range))?,
    };
    let handle = hand_out_type(&new);
    known.push((class, precision, range, handle));
    Ok(handle)
}

/// `MPI_Type_create_f90_real`
///
/// # Errors
/// There is no such type, or neither precision nor range is given.
pub fn type_create_f90_real(precision: i32, range: i32) -> Result<Type> {
    f90_type(TypeClass::Real, precision, range)
}

/// `MPI_Type_create_f90_complex`
///
/// # Errors
/// There is no such type, or neither precision nor range is given.
pub fn type_create_f90_complex(precision: i32, range: i32) -> Result<Type> {
    f90_type(TypeClass::Complex, precision, range)
}

/// `MPI_Type_create_f90_integer`
///
/// # Errors
/// There is no such type.
pub fn type_create_f90_integer(range: i32) -> Result<Type> {
    f90_type(TypeClass::Integer, 0, range)
}

/// `MPI_Type_match_size`
///
/// # Errors
/// There is no such class of types, or none of this size.
pub fn type_match_size(class: i32, size: i32) -> Result<Type> {
    let Some(class) = TypeClass::from_number(class) else {
        return Err(Class::ARG.error(format!("{class} is no class of types (MPI_TYPECLASS_REAL and others)")));
    };
    match_size(class, size.into()).map(|basic| Type(basic as u32))
}

/// `MPI_Type_get_value_index`; the null handle if there is no such pair.
///
/// # Errors
/// There is no such type.
pub fn type_get_value_index(value: Type, index: Type) -> Result<Type> {
    let (value, index) = (datatype(value)?.basic(), datatype(index)?.basic());
    let pair = value.zip(index).and_then(|(value, index)| value_index(value, index));
    Ok(pair.map_or(Type::NULL, |pair| Type(pair as u32)))
}

/// The handle of a type for a callback, which it stays valid for: operators of programs get one.
pub fn type_handle(of: &Datatype) -> Type {
    match datatype(Type(of.handle())) {
        Ok(known) if known.is_same(of) => Type(of.handle()),
        // The program has freed the type while an operation still uses it.
        _ => hand_out_type(of),
    }
}
