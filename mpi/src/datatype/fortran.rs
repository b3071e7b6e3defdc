//! The sizes of Fortran's default types: a property of the application's compiler, not of this library.
//!
//! `MPI_Abi_set_fortran_info` and `MPI_Abi_set_fortran_booleans` (MPI 5.0, section 20.4) say them before
//! the first use; who says nothing gets those of gfortran and most other compilers of 64-bit machines.
use std::sync::OnceLock;

use super::Scalar;
use crate::error::{Class, Result};

/// Sizes in bytes of Fortran's default types, and the two values of a `LOGICAL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fortran {
    /// Bytes of a `LOGICAL`: 1, 2, 4, 8 or 16.
    pub logical: i64,
    /// Bytes of an `INTEGER`: 1, 2, 4, 8 or 16.
    pub integer: i64,
    /// Bytes of a `REAL`: 2, 4, 8 or 16.
    pub real: i64,
    /// Bytes of a `DOUBLE PRECISION`: 2, 4, 8 or 16.
    pub double_precision: i64,
    /// What `.TRUE.` looks like as an integer.
    pub truth: i64,
    /// What `.FALSE.` looks like as an integer.
    pub falsehood: i64,
}

impl Default for Fortran {
    fn default() -> Self {
        Fortran { logical: 4, integer: 4, real: 4, double_precision: 8, truth: 1, falsehood: 0 }
    }
}

static CHOSEN: OnceLock<Fortran> = OnceLock::new();

impl Fortran {
    /// What holds in this process; from the first call on it cannot be changed.
    #[inline]
    pub fn current() -> &'static Fortran {
        CHOSEN.get_or_init(Fortran::default)
    }

    /// Says what the application's compiler does.
    ///
    /// # Errors
    /// Class ARG if a size does not exist, if true and false look the same, or if other values are in use
    /// already.
    pub fn choose(wanted: Fortran) -> Result<()> {
        let sizes = [
            ("LOGICAL", Scalar::unsigned(wanted.logical), wanted.logical),
            ("INTEGER", Scalar::signed(wanted.integer), wanted.integer),
            ("REAL", Scalar::float(wanted.real), wanted.real),
            ("DOUBLE PRECISION", Scalar::float(wanted.double_precision), wanted.double_precision),
        ];
        if let Some((name, _, size)) = sizes.into_iter().find(|(_, scalar, _)| scalar.is_none()) {
            return Err(Class::ARG.error(format!("a {name} of {size} bytes is not supported")));
        }
        if wanted.truth == wanted.falsehood {
            let text = format!("a LOGICAL cannot be {} both for true and for false", wanted.truth);
            return Err(Class::ARG.error(text));
        }
        if *CHOSEN.get_or_init(|| wanted) != wanted {
            let text = "the sizes of Fortran's types are in use already: set them before MPI is initialised";
            return Err(Class::ARG.error(text));
        }
        Ok(())
    }
}
