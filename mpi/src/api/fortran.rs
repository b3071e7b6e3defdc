//! What a Fortran layer tells the library about its compiler (MPI 5.0, section 20.4).

use crate::datatype::{Fortran, Scalar};
use crate::error::{Class, Error, Result};
use crate::handle::Info;
use crate::info::{self, Infos};
use crate::memory;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The data that a Fortran layer has set; each of the two is set once.
struct Told {
    info: Option<Arc<Infos>>,
    booleans: bool,
}

static TOLD: Mutex<Told> = Mutex::new(Told { info: None, booleans: false });

fn told() -> MutexGuard<'static, Told> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn twice() -> Error {
    Class::ABI.error("a Fortran layer has set this already: it can be set once")
}

/// `MPI_Abi_get_fortran_info`: the info that a Fortran layer has set, or the null handle.
pub fn abi_get_fortran_info() -> Info {
    told().info.as_ref().map_or(Info::NULL, |infos| info::insert(infos.copy()))
}

/// `MPI_Abi_set_fortran_info`
///
/// # Errors
/// There is no such info object, a size in it is none, or the call comes twice or too late.
pub fn abi_set_fortran_info(info: Info) -> Result<()> {
    let (infos, mut told) = (info::lookup(info)?, told());
    if told.info.is_some() {
        return Err(twice());
    }
    let size = |key: &str| -> Result<Option<i64>> {
        let Some(text) = infos.get(key) else { return Ok(None) };
        let wrong = |_| Class::INFO_VALUE.error(format!("{key} is '{text}': it must be a number of bytes"));
        text.parse().map(Some).map_err(wrong)
    };
    let (logical, integer) = (size("mpi_logical_size")?, size("mpi_integer_size")?);
    let (real, double) = (size("mpi_real_size")?, size("mpi_double_precision_size")?);
    Fortran::change(|fortran| {
        fortran.logical = logical.unwrap_or(fortran.logical);
        fortran.integer = integer.unwrap_or(fortran.integer);
        fortran.real = real.unwrap_or(fortran.real);
        fortran.double_precision = double.unwrap_or(fortran.double_precision);
    })?;
    told.info = Some(Arc::new(infos.copy()));
    Ok(())
}

/// The representation of a LOGICAL of `size` bytes in memory.
fn logical(size: i32) -> Result<Scalar> {
    let none = || Class::ARG.error(format!("a LOGICAL of {size} bytes is not supported"));
    Scalar::signed(i64::from(size)).ok_or_else(none)
}

/// `MPI_Abi_get_fortran_booleans`: writes `.TRUE.` and `.FALSE.` if they were set; returns whether they were.
///
/// # Errors
/// There is no LOGICAL of this size.
pub fn abi_get_fortran_booleans(size: i32, yes: *mut c_void, no: *mut c_void) -> Result<bool> {
    let scalar = logical(size)?;
    if !told().booleans {
        return Ok(false);
    }
    let fortran = Fortran::current();
    memory::write_integer(yes, scalar, fortran.truth);
    memory::write_integer(no, scalar, fortran.falsehood);
    Ok(true)
}

/// `MPI_Abi_set_fortran_booleans`
///
/// # Errors
/// There is no LOGICAL of this size, both look the same, or the call comes twice or too late.
pub fn abi_set_fortran_booleans(size: i32, yes: *const c_void, no: *const c_void) -> Result<()> {
    let (scalar, mut told) = (logical(size)?, told());
    if told.booleans {
        return Err(twice());
    }
    let (truth, falsehood) = (memory::read_integer(yes, scalar), memory::read_integer(no, scalar));
    Fortran::change(|fortran| (fortran.truth, fortran.falsehood) = (truth, falsehood))?;
    told.booleans = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{info_create, info_set, type_size};
    use crate::datatype::Basic;
    use crate::handle::Type;

    /// All in one: it can be told once in a process. The values are those that other tests expect, too.
    #[test]
    fn sizes_and_booleans_are_told_once() {
        assert!(abi_get_fortran_info().is_null());
        let info = info_create();
        info_set(info, "mpi_real_size", "five").unwrap();
        assert_eq!(abi_set_fortran_info(info).unwrap_err().class(), Class::INFO_VALUE);
        info_set(info, "mpi_real_size", "5").unwrap();
        assert_eq!(abi_set_fortran_info(info).unwrap_err().class(), Class::ARG);
        info_set(info, "mpi_real_size", "4").unwrap();
        abi_set_fortran_info(info).unwrap();
        assert!(!abi_get_fortran_info().is_null());
        assert_eq!(abi_set_fortran_info(info).unwrap_err().class(), Class::ABI);
        assert_eq!(type_size(Type(Basic::Real as u32)), Ok(4));
        let late = Fortran::change(|fortran| fortran.real = 8);
        assert_eq!(late.unwrap_err().class(), Class::ABI);

        let (mut yes, mut no) = (7_i64, 7_i64);
        let (to_yes, to_no): (*mut c_void, *mut c_void) = ((&raw mut yes).cast(), (&raw mut no).cast());
        assert_eq!(abi_get_fortran_booleans(8, to_yes, to_no), Ok(false));
        let (one, zero) = (1_i32, 0_i32);
        let (one, zero) = ((&raw const one).cast(), (&raw const zero).cast());
        assert_eq!(abi_set_fortran_booleans(3, one, zero).unwrap_err().class(), Class::ARG);
        assert_eq!(abi_set_fortran_booleans(4, one, one).unwrap_err().class(), Class::ARG);
        abi_set_fortran_booleans(4, one, zero).unwrap();
        assert_eq!(abi_get_fortran_booleans(8, to_yes, to_no), Ok(true));
        assert_eq!((yes, no), (1, 0));
        assert_eq!(abi_set_fortran_booleans(4, one, zero).unwrap_err().class(), Class::ABI);
    }
}
