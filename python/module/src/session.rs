//! Sessions.

use crate::buffer::Memory;
use crate::error::Failure;
use crate::message::Message;
use crate::open::Open;
use crate::request::Request;
use newmadeleine::{Hints, Options, SessionError, Source, TagMatch};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// One process of a job. Opening it joins the job that this process was started in (a job of its own without
/// a launcher). Settings are those of the configuration file and the environment; keyword arguments win over
/// both: Session(strategy="fifo", rails="eth0,eth1").
#[pyclass(frozen, module = "newmadeleine")]
pub struct Session {
    open: Arc<Open>,
}

/// From whom and with which tag; None: any.
fn wanted(source: Option<u32>, tag: Option<u64>) -> (Source, TagMatch) {
    (source.map_or(Source::Any, Source::Rank), tag.map_or(TagMatch::Any, TagMatch::Exact))
}

fn options(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::load().inspect_err(SessionError::end_job).map_err(Failure::from)?;
    for (key, value) in settings.into_iter().flatten() {
        let (key, value) = (key.str()?.to_string(), value.str()?.to_string());
        options.set(&key, &value).map_err(Failure::from)?;
    }
    Ok(options)
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (**settings))]
    fn new(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Session> {
        let options = options(settings)?;
        let session = py.detach(|| newmadeleine::Session::open_with(&options)).map_err(Failure::from)?;
        Ok(Session { open: Open::new(session) })
    }

    /// The rank of this process, from 0.
    #[getter]
    fn rank(&self) -> PyResult<u32> {
        Ok(self.open.session()?.rank())
    }

    /// How many ranks the job has.
    #[getter]
    fn size(&self) -> PyResult<u32> {
        Ok(self.open.session()?.size())
    }

    /// Sends the bytes of an object and waits until it may be changed again.
    #[pyo3(signature = (data, to, tag = 0, context = 0))]
    fn send(&self, data: &Bound<'_, PyAny>, to: u32, tag: u64, context: u32) -> PyResult<()> {
        self.isend(data, to, tag, context)?.finish(data.py()).map(drop)
    }

    /// Sends the bytes of an object in the background; it must not be changed before the request has ended.
    #[pyo3(signature = (data, to, tag = 0, context = 0))]
    fn isend(&self, data: &Bound<'_, PyAny>, to: u32, tag: u64, context: u32) -> PyResult<Request> {
        let memory = Memory::of_data(data)?;
        let segments = memory.segments();
        let submit = || {
            let channel = self.open.session()?.channel(context)?;
            Ok::<_, Failure>(channel.submit_send(to, tag, segments, Hints::default())?)
        };
        let id = submit()?;
        Ok(Request::new(&self.open, id, memory))
    }

    /// Waits for a message and puts it into a writable object.
    #[pyo3(signature = (buffer, source = None, tag = None, context = 0))]
    fn recv(
        &self,
        buffer: &Bound<'_, PyAny>,
        source: Option<u32>,
        tag: Option<u64>,
        context: u32,
    ) -> PyResult<Message> {
        self.irecv(buffer, source, tag, context)?.finish(buffer.py())
    }

    /// Receives a message in the background.
    #[pyo3(signature = (buffer, source = None, tag = None, context = 0))]
    fn irecv(
        &self,
        buffer: &Bound<'_, PyAny>,
        source: Option<u32>,
        tag: Option<u64>,
        context: u32,
    ) -> PyResult<Request> {
        let memory = Memory::of_buffer(buffer)?;
        let segments = memory.segments();
        let (source, tag) = wanted(source, tag);
        let submit = || {
            let channel = self.open.session()?.channel(context)?;
            Ok::<_, Failure>(channel.submit_recv(source, tag, segments)?)
        };
        let id = submit()?;
        Ok(Request::new(&self.open, id, memory))
    }

    /// The message that such a receive would take, if it is there.
    #[pyo3(signature = (source = None, tag = None, context = 0))]
    fn probe(
        &self,
        py: Python<'_>,
        source: Option<u32>,
        tag: Option<u64>,
        context: u32,
    ) -> PyResult<Option<Message>> {
        let (source, tag) = wanted(source, tag);
        let look = || Ok::<_, Failure>(self.open.session()?.channel(context)?.probe(source, tag));
        Ok(py.detach(look)?.map(Message::from))
    }

    /// The rails: a dictionary for each with name, address, and the number of peers.
    fn rails<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for rail in self.open.session()?.rails() {
            let entry = PyDict::new(py);
            entry.set_item("name", rail.name)?;
            entry.set_item("address", rail.address)?;
            entry.set_item("peers", rail.peers)?;
            list.append(entry)?;
        }
        Ok(list)
    }

    /// Leaves the job in good order. Closing twice is no error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.open.close())?)
    }

    /// Ends the whole job with this exit code.
    #[pyo3(signature = (code = 1, why = ""))]
    fn abort(&self, code: i32, why: &str) {
        self.open.abort(code, why)
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        match self.open.session() {
            Ok(session) => format!("Session(rank={}, size={})", session.rank(), session.size()),
            Err(_) => "Session(closed)".into(),
        }
    }
}
