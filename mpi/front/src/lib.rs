//! The fronts of MAD-MPI, as far as they do not differ: arguments as C gives them are checked and
//! translated for the core, and its answers translated back. [`wrapper`] is generated from the table of
//! functions (`nmad-mpi-table`); what no table can say is in [`by_hand`]. Everything is generic over
//! [`Abi`]: which numbers constants have, how handles and statuses look. The shared libraries in
//! `standard/` and `mpich/` only give it an [`Abi`] and names.

// Wrappers name the interface for every function that they call, whether it needs it or not.
#![allow(clippy::extra_unused_type_parameters)]

mod abi;
mod answer;
mod by_hand;
mod codes;
mod errors;
mod give;
mod take;

pub use abi::{Abi, Kind, Numbers, Weights, translated};
pub use nmad_mpi::Status;
pub use nmad_mpi::error::Class;

/// One function for each function of MPI and each of its forms.
#[allow(clippy::all, unused_variables, clippy::undocumented_unsafe_blocks)]
#[allow(unsafe_op_in_unsafe_fn)]
pub mod wrapper {
    use crate::answer::Answer;
    use crate::errors::{Owner, enter, fail, tool_failed};
    use crate::{Abi, Kind, by_hand, give, take};
    use nmad_mpi::api;
    use nmad_mpi::datatype::Form;
    use nmad_mpi::error::Result;
    use std::ffi::{c_char, c_void};

    include!(concat!(env!("OUT_DIR"), "/wrapper.rs"));
}
