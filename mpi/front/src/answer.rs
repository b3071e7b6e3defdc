//! What functions of the core answer: a value, or a result.

use nmad_mpi::constant::{Comparison, ThreadLevel, TopologyKind};
use nmad_mpi::error::{Class, Result};
use nmad_mpi::handle::{Errhandler, Info, Op};

/// An answer.
pub trait Answer {
    /// The result of a call that succeeds.
    type Value;

    /// The answer as a result.
    fn answer(self) -> Result<Self::Value>;
}

impl<T> Answer for Result<T> {
    type Value = T;

    #[inline]
    fn answer(self) -> Result<T> {
        self
    }
}

macro_rules! values {
    ($($value:ty),*) => {$(
        impl Answer for $value {
            type Value = $value;

            #[inline]
            fn answer(self) -> Result<$value> {
                Ok(self)
            }
        }
    )*};
}

values!((), bool, String, (i32, i32), Class, Comparison, ThreadLevel, TopologyKind, Errhandler, Info, Op);
