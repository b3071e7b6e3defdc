//! What a receive has brought.

use pyo3::prelude::*;

/// A message that was received: who sent it, its tag, its length in bytes.
#[pyclass(frozen, module = "newmadeleine", eq, hash)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Message {
    /// The rank that sent it.
    #[pyo3(get)]
    source: u32,
    /// Its tag.
    #[pyo3(get)]
    tag: u64,
    /// Its length in bytes.
    len: usize,
}

impl From<newmadeleine::Message> for Message {
    fn from(message: newmadeleine::Message) -> Message {
        Message { source: message.from, tag: message.tag, len: message.len }
    }
}

#[pymethods]
impl Message {
    fn __len__(&self) -> usize {
        self.len
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("Message(source={}, tag={}, len={})", self.source, self.tag, self.len)
    }
}
