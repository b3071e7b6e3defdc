//! Memory of Python's objects, as the engine takes it.
#![allow(unsafe_code)]

use newmadeleine::Segments;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;

/// The memory of an object, which stays where it is for as long as this lives.
pub struct Memory(PyUntypedBuffer);

impl Memory {
    /// Data to be sent.
    pub fn of_data(object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the data is not in one piece: send a copy of it"));
        }
        Ok(Memory(buffer))
    }

    /// A buffer to receive into.
    pub fn of_buffer(object: &Bound<'_, PyAny>) -> PyResult<Memory> {
        let memory = Memory::of_data(object)?;
        if memory.0.readonly() {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{kind} is read-only: receive into a bytearray, say")));
        }
        Ok(memory)
    }

    /// The same for the engine. Whoever uses it keeps this until the request has ended.
    pub fn segments(&self) -> Segments {
        // SAFETY: Python keeps the memory in place while the buffer is held; a send only reads it, and a
        // receive has been checked to be writable.
        unsafe { Segments::from_raw(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}
