//! Fortran's default types: their sizes and the two values of a LOGICAL are properties of the
//! application's compiler, not of this library.
//!
//! A Fortran layer says them (`MPI_Abi_set_fortran_info` and `MPI_Abi_set_fortran_booleans`; MPI 5.0,
//! section 20.4) before the types are used for the first time; without it they are those of gfortran and
//! of most other compilers of 64-bit machines.
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

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

impl Fortran {
    /// gfortran on 64-bit machines.
    const USUAL: Fortran =
        Fortran { logical: 4, integer: 4, real: 4, double_precision: 8, truth: 1, falsehood: 0 };

    /// What holds in this process; from the first call on it cannot be changed.
    #[inline]
    pub fn current() -> &'static Fortran {
        IN_USE.get_or_init(|| *wanted())
    }

    /// Changes what will hold.
    ///
    /// # Errors
    /// Class ARG if a size does not exist, or true and false look the same; ABI if other values are in
    /// use already.
    pub fn change(change: impl FnOnce(&mut Fortran)) -> Result<()> {
        let mut wanted = wanted();
        let mut changed = *wanted;
        change(&mut changed);
        changed.check()?;
        if IN_USE.get().is_some_and(|used| *used != changed) {
            let text = "Fortran's types are in use already: tell MPI their sizes before their first use";
            return Err(Class::ABI.error(text));
        }
        *wanted = changed;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let sizes = [
            ("LOGICAL", Scalar::unsigned(self.logical), self.logical),
            ("INTEGER", Scalar::signed(self.integer), self.integer),
            ("REAL", Scalar::float(self.real), self.real),
            ("DOUBLE PRECISION", Scalar::float(self.double_precision), self.double_precision),
        ];
        if let Some((name, _, size)) = sizes.into_iter().find(|(_, scalar, _)| scalar.is_none()) {
            return Err(Class::ARG.error(format!("a {name} of {size} bytes is not supported")));
        }
        if self.truth == self.falsehood {
            let text = format!("a LOGICAL cannot be {} both for true and for false", self.truth);
            return Err(Class::ARG.error(text));
        }
        Ok(())
    }
}

static WANTED: Mutex<Fortran> = Mutex::new(Fortran::USUAL);
static IN_USE: OnceLock<Fortran> = OnceLock::new();

fn wanted() -> MutexGuard<'static, Fortran> {
    WANTED.lock().unwrap_or_else(PoisonError::into_inner)
}
