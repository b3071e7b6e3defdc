//! One function for each function of the standard, under its name without `MPI_`, in lower case.
//!
//! Arguments come in the standard's order: counts and displacements as `i64`, ranks and tags as `i32` with
//! the values of [`crate::constant`], buffers as addresses, arrays as slices, handles as the types of
//! [`crate::handle`]. What the standard gives back through a pointer is the answer, as a tuple if there are
//! several; handles that change are `&mut`. Fronts check what needs only the kind of an argument (null
//! handles, negative counts); everything else is checked here or below.
//!
//! Buffers are promised by the caller to be what the standard asks of them.

mod attribute;
mod buffer;
mod collective;
mod comm;
mod dynamic;
mod environment;
mod error;
mod fault;
mod file;
mod file_access;
mod file_together;
mod fortran;
mod group;
mod info;
mod init;
mod op;
mod pack;
mod partitioned;
mod point;
mod request;
mod session;
mod tool;
mod topology;
mod topology_create;
mod trace;
mod type_attribute;
mod type_create;
mod type_query;
mod win;
mod win_access;

pub(crate) use attribute::define;
pub use attribute::*;
pub use buffer::*;
pub use collective::*;
pub use comm::*;
pub use dynamic::*;
pub use environment::*;
pub use error::*;
pub use fault::*;
pub use file::*;
pub use file_access::*;
pub use file_together::*;
pub use fortran::*;
pub use group::*;
pub use info::*;
pub use init::*;
pub use op::*;
pub use pack::*;
pub use partitioned::*;
pub use point::*;
pub use request::*;
pub use session::*;
pub use tool::*;
pub use topology::*;
pub use topology_create::*;
pub use trace::{access_begins, access_ended, call_begins, call_ended, is_observed, settle_files};
pub(crate) use trace::{observe_for_files, trace};
pub use type_attribute::*;
pub use type_create::*;
pub use type_query::*;
pub use win::*;
pub use win_access::*;
