//! How datatypes were made; addresses.

use crate::{Abi, Numbers, give, take};
use nmad_mpi::api;
use nmad_mpi::datatype::{Form, IntegerKind};
use nmad_mpi::error::Result;
use nmad_mpi::handle::Type;
use std::ffi::c_void;

pub(crate) fn get_address<A: Abi>(location: *const c_void, address: *mut i64) -> Result<()> {
    give::value(address, location.addr() as i64);
    Ok(())
}

pub(crate) fn aint_add<A: Abi>(base: i64, disp: i64) -> i64 {
    base.wrapping_add(disp)
}

pub(crate) fn aint_diff<A: Abi>(addr1: i64, addr2: i64) -> i64 {
    addr1.wrapping_sub(addr2)
}

pub(crate) fn type_get_envelope<A: Abi>(
    datatype: Type,
    integers: *mut i32,
    addresses: *mut i32,
    types: *mut i32,
    combiner: *mut i32,
) -> Result<()> {
    let envelope = api::type_get_envelope(Form::Int, datatype)?;
    give::count(integers, envelope.integers);
    give::count(addresses, envelope.addresses);
    give::count(types, envelope.types);
    give::value(combiner, give::number::<A>(Numbers::Combiner, envelope.combiner as i32));
    Ok(())
}

pub(crate) fn type_get_envelope_c<A: Abi>(
    datatype: Type,
    integers: *mut i64,
    addresses: *mut i64,
    counts: *mut i64,
    types: *mut i64,
    combiner: *mut i32,
) -> Result<()> {
    let envelope = api::type_get_envelope(Form::Large, datatype)?;
    give::value(integers, envelope.integers);
    give::value(addresses, envelope.addresses);
    give::value(counts, envelope.counts);
    give::value(types, envelope.types);
    give::value(combiner, give::number::<A>(Numbers::Combiner, envelope.combiner as i32));
    Ok(())
}

/// An integer of a type's contents: some are constants.
fn integer<A: Abi>((value, kind): (i64, IntegerKind)) -> i32 {
    let value = value as i32;
    match kind {
        IntegerKind::Plain => value,
        IntegerKind::Order => give::number::<A>(Numbers::Order, value),
        IntegerKind::Distribution => give::number::<A>(Numbers::Distribution, value),
        IntegerKind::Argument => give::number::<A>(Numbers::Darg, value),
    }
}

/// The length of a list; zero for a negative number, which the core refuses.
fn len(room: i64) -> usize {
    usize::try_from(room).unwrap_or(0)
}

pub(crate) fn type_get_contents<A: Abi>(
    datatype: Type,
    max_integers: i32,
    max_addresses: i32,
    max_types: i32,
    integers: *mut i32,
    addresses: *mut i64,
    types: *mut A::Handle,
) -> Result<()> {
    let room = [max_integers, max_addresses, 0, max_types].map(i64::from);
    take::places("array_of_integers", integers, len(room[0]))?;
    take::places("array_of_addresses", addresses, len(room[1]))?;
    take::places("array_of_datatypes", types, len(room[3]))?;
    let contents = api::type_get_contents(Form::Int, datatype, room)?;
    give::list(integers, usize::MAX, contents.integers, integer::<A>);
    give::list(addresses, usize::MAX, contents.addresses, |address| address);
    give::list(types, usize::MAX, contents.types, give::datatype::<A>);
    Ok(())
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn type_get_contents_c<A: Abi>(
    datatype: Type,
    max_integers: i64,
    max_addresses: i64,
    max_counts: i64,
    max_types: i64,
    integers: *mut i32,
    addresses: *mut i64,
    counts: *mut i64,
    types: *mut A::Handle,
) -> Result<()> {
    let room = [max_integers, max_addresses, max_counts, max_types];
    take::places("array_of_integers", integers, len(room[0]))?;
    take::places("array_of_addresses", addresses, len(room[1]))?;
    take::places("array_of_large_counts", counts, len(room[2]))?;
    take::places("array_of_datatypes", types, len(room[3]))?;
    let contents = api::type_get_contents(Form::Large, datatype, room)?;
    give::list(integers, usize::MAX, contents.integers, integer::<A>);
    give::list(addresses, usize::MAX, contents.addresses, |address| address);
    give::list(counts, usize::MAX, contents.counts, |count| count);
    give::list(types, usize::MAX, contents.types, give::datatype::<A>);
    Ok(())
}
