//! The Python module `newmadeleine`: sessions, messages and requests over any object with a buffer.
//!
//! It is compiled once for all versions of Python from 3.11 on (the stable binary interface, abi3). Calls
//! that may take long let other threads of Python run meanwhile, and those that wait can be interrupted by
//! signals. The package `python/newmadeleine` around it gives names and types; what a message is, is the
//! business of the session below.
#![deny(unsafe_code)]

mod buffer;
mod error;
mod message;
mod open;
mod request;
mod session;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<session::Session>()?;
    module.add_class::<request::Request>()?;
    module.add_class::<message::Message>()?;
    module.add_function(wrap_pyfunction!(request::wait_all, module)?)?;
    module.add_function(wrap_pyfunction!(request::wait_any, module)?)?;
    module.add_function(wrap_pyfunction!(open::close_all, module)?)?;
    error::add(module)
}
