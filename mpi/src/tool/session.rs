//! Sessions of performance variables, and handles in them.

use super::entry;
use super::performance::{ALL, Values};
use crate::comm::lookup;
use crate::error::{Class, Error, Result};
use crate::handle::Comm;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// All handles of a session (`MPI_T_PVAR_ALL_HANDLES`).
pub const ALL_HANDLES: usize = usize::MAX;

/// What programs have opened.
struct Opened {
    /// Numbers are never used twice.
    next: usize,
    sessions: BTreeMap<usize, BTreeMap<usize, Handle>>,
}

/// A variable, bound to processes if it is of that kind.
#[derive(Clone)]
struct Handle {
    variable: i32,
    peers: Vec<u32>,
    /// How many values there are.
    count: usize,
}

static OPENED: Mutex<Opened> =
    Mutex::new(Opened { next: crate::handle::DYNAMIC as usize, sessions: BTreeMap::new() });

fn opened() -> MutexGuard<'static, Opened> {
    OPENED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Opened {
    fn number(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn session(&mut self, session: usize) -> Result<&mut BTreeMap<usize, Handle>> {
        let none = || Class::T_INVALID_SESSION.error("there is no such session, or it is freed");
        self.sessions.get_mut(&session).ok_or_else(none)
    }
}

/// Nobody uses the interface any more.
pub(crate) fn forget_all() {
    opened().sessions.clear();
}

/// Makes a session.
pub(crate) fn create() -> usize {
    let mut opened = opened();
    let session = opened.number();
    opened.sessions.insert(session, BTreeMap::new());
    session
}

/// Frees a session and its handles.
///
/// # Errors
/// There is none.
pub(crate) fn free(session: usize) -> Result<()> {
    let mut opened = opened();
    opened.session(session)?;
    opened.sessions.remove(&session);
    Ok(())
}

/// Opens a variable; `comm` is what it is bound to, if it is of that kind. The handle, and how many values
/// there are.
///
/// # Errors
/// There is no such session, variable or communicator, or MPI is not in use.
pub(crate) fn open(session: usize, variable: i32, comm: Option<Comm>) -> Result<(usize, i32)> {
    opened().session(session)?;
    let peers = match comm {
        None => Vec::new(),
        Some(comm) => {
            let comm = lookup(comm).map_err(|why| Class::T_INVALID_HANDLE.error(why.text()))?;
            comm.peers().processes().collect()
        }
    };
    let count = match entry("performance variable", &ALL, variable)?.read(&peers)? {
        Values::States(values) => values.len(),
        Values::Whole(values) => values.len(),
        Values::Real(values) => values.len(),
    };
    let mut opened = opened();
    let number = opened.number();
    opened.session(session)?.insert(number, Handle { variable, peers, count });
    Ok((number, count as i32))
}

/// Frees a handle.
///
/// # Errors
/// There is none in this session.
pub(crate) fn close(session: usize, handle: usize) -> Result<()> {
    opened().session(session)?.remove(&handle).map(drop).ok_or_else(no_handle)
}

fn of(session: usize, handle: usize) -> Result<Handle> {
    opened().session(session)?.get(&handle).cloned().ok_or_else(no_handle)
}

fn no_handle() -> Error {
    Class::T_INVALID_HANDLE.error("there is no such handle in this session, or it is freed")
}

/// The values of a variable, as many as there were when it was opened.
///
/// # Errors
/// There is no such session or handle, or MPI is not in use.
pub(crate) fn read(session: usize, handle: usize) -> Result<Values> {
    let Handle { variable, peers, count } = of(session, handle)?;
    let mut values = entry("performance variable", &ALL, variable)?.read(&peers)?;
    match &mut values {
        Values::States(values) => values.resize(count, 0),
        Values::Whole(values) => values.resize(count, 0),
        Values::Real(values) => values.resize(count, 0.0),
    }
    Ok(values)
}

/// Why a variable cannot be started and stopped, reset or written: none can. All handles at once mean those
/// that can, and that is no error.
///
/// # Errors
/// There is no such session or handle, or it is one handle.
pub(crate) fn unchangeable(session: usize, handle: usize, class: Class, what: &str) -> Result<()> {
    if handle == ALL_HANDLES {
        return opened().session(session).map(drop);
    }
    let name = entry("performance variable", &ALL, of(session, handle)?.variable)?.name;
    Err(class.error(format!("{name} cannot be {what}: the library counts all the time")))
}
