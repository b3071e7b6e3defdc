//! Messages in the background.

use crate::buffer::Memory;
use crate::error::Failure;
use crate::message::Message;
use crate::open::{Open, lock};
use newmadeleine::RequestId;
use newmadeleine::engine::{Duration, Engine};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How long Python's signals wait for a look.
const SLICE: std::time::Duration = std::time::Duration::from_millis(100);

/// A send or a receive under way. The object that it uses stays in place until it has ended, also if the
/// request is dropped before.
#[pyclass(frozen, module = "newmadeleine")]
pub struct Request {
    open: Arc<Open>,
    id: RequestId,
    state: Mutex<State>,
}

struct State {
    /// None once it has ended.
    memory: Option<Memory>,
    ended: Option<Result<Message, Failure>>,
}

/// When a wait is over.
fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = timeout else { return Ok(None) };
    let wrong = |_| PyValueError::new_err("timeout: a number of seconds from 0 on, or None");
    let span = std::time::Duration::try_from_secs_f64(seconds).map_err(wrong)?;
    Ok(Instant::now().checked_add(span))
}

/// Looks again and again until there is an answer or the time is over; none then. Other threads of Python
/// run, and signals are looked at.
fn until<R: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    mut look: impl FnMut(Duration) -> Option<R> + Send,
) -> PyResult<Option<R>> {
    let deadline = deadline(timeout)?;
    loop {
        let rest = deadline.map_or(SLICE, |deadline| deadline.saturating_duration_since(Instant::now()));
        let slice = Duration::from_ns(rest.min(SLICE).as_nanos() as u64);
        if let Some(found) = py.detach(|| look(slice)) {
            return Ok(Some(found));
        }
        py.check_signals()?;
        if rest.is_zero() {
            return Ok(None);
        }
    }
}

impl Request {
    pub fn new(open: &Arc<Open>, id: RequestId, memory: Memory) -> Request {
        let state = State { memory: Some(memory), ended: None };
        Request { open: open.clone(), id, state: Mutex::new(state) }
    }

    /// Waits for at most this long; none: it has not ended. Not to be called while Python is held.
    fn look(&self, bound: Duration) -> Option<Result<Message, Failure>> {
        let mut state = lock(&self.state);
        if state.ended.is_none() {
            let session = match self.open.session() {
                Ok(session) => session,
                Err(closed) => return Some(Err(closed)),
            };
            // Only this object knows the request, and asks under its lock.
            let (_, outcome) = session.node().wait_any_within(&[self.id], Some(bound)).ok()??;
            state.ended = Some(session.outcome(outcome).map(Message::from).map_err(Failure::from));
            state.memory = None;
        }
        state.ended.clone()
    }

    /// Waits without a bound.
    pub fn finish(&self, py: Python<'_>) -> PyResult<Message> {
        let ended = until(py, None, |bound| self.look(bound))?;
        Ok(ended.unwrap_or_else(|| Err(Failure::closed()))?)
    }
}

#[pymethods]
impl Request {
    /// Waits until the request has ended, for at most `timeout` seconds; None: it has not.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Message>> {
        Ok(until(py, timeout, |bound| self.look(bound))?.transpose()?)
    }

    /// The message if the request has ended, else None.
    fn test(&self, py: Python<'_>) -> PyResult<Option<Message>> {
        Ok(py.detach(|| self.look(Duration::ZERO)).transpose()?)
    }

    /// Tries to take back a receive; it ends with CancelledError or with its message.
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let cancel = || Ok::<_, Failure>(self.open.session()?.node().submit(|engine| engine.cancel(self.id)));
        Ok(py.detach(cancel)?)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(memory) = lock(&self.state).memory.take() {
            self.open.leave(self.id, memory);
        }
    }
}

/// Waits until all requests have ended, for at most `timeout` seconds in all: their messages, or None. The
/// first error is raised when all have ended.
#[pyfunction]
#[pyo3(signature = (requests, timeout = None))]
pub fn wait_all(
    py: Python<'_>,
    requests: Vec<Py<Request>>,
    timeout: Option<f64>,
) -> PyResult<Option<Vec<Message>>> {
    let requests: Vec<&Request> = requests.iter().map(|request| request.get()).collect();
    let mut ended = Vec::new();
    let all = until(py, timeout, |bound| {
        while let Some(request) = requests.get(ended.len()) {
            ended.push(request.look(bound)?);
        }
        Some(())
    })?;
    if all.is_none() {
        return Ok(None);
    }
    Ok(Some(ended.into_iter().collect::<Result<_, _>>()?))
}

/// Waits until one of the requests has ended, for at most `timeout` seconds: its place in the list and its
/// message; None: none has, or the list is empty.
#[pyfunction]
#[pyo3(signature = (requests, timeout = None))]
pub fn wait_any(
    py: Python<'_>,
    requests: Vec<Py<Request>>,
    timeout: Option<f64>,
) -> PyResult<Option<(usize, Message)>> {
    let requests: Vec<&Request> = requests.iter().map(|request| request.get()).collect();
    let Some(Request { open, .. }) = requests.first() else { return Ok(None) };
    if requests.iter().any(|request| !Arc::ptr_eq(&request.open, open)) {
        return Err(PyValueError::new_err("the requests are of several sessions: wait for those of one"));
    }
    let ended = || {
        let mut all = requests.iter().enumerate();
        all.find_map(|(place, request)| Some((place, request.look(Duration::ZERO)?)))
    };
    let ids: Vec<RequestId> = requests.iter().map(|request| request.id).collect();
    let found = until(py, timeout, |bound| {
        ended().or_else(|| {
            let bound = std::time::Duration::from_nanos(bound.as_ns());
            // Another thread may have taken the end of one: it is unknown then.
            let ready = |engine: &mut Engine| ids.iter().any(|id| engine.has_ended(*id) != Some(false));
            open.session().ok()?.node().wait_for(bound, ready);
            ended()
        })
    })?;
    found.map(|(place, ended)| Ok((place, ended?))).transpose()
}
