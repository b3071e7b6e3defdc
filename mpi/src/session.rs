//! Sessions (MPI 5.0, section 11.3): a way to use MPI without `MPI_COMM_WORLD`, as often and by as many parts
//! of a program as like. Process sets have names, groups are made from them, communicators from groups.

use crate::comm::{Communicator, Members, Named};
use crate::errhandler::Handler;
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::handle::{Comm, DYNAMIC, Session};
use crate::info::Infos;
use crate::point::buffered::Attached;
use crate::table::Table;
use crate::world::World;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Sessions that are initialised.
static SESSIONS: Table<SessionObject> = Table::new(DYNAMIC);

/// A session.
pub(crate) struct SessionObject {
    /// Zero when it is finalised; groups and communicators may still know it.
    handle: AtomicU32,
    errhandler: Mutex<Arc<Handler>>,
    info: Infos,
    /// For buffered sends on its communicators.
    buffer: Attached,
    /// Of this process alone, for what goes on in the background.
    own: Arc<Communicator>,
}

/// The process sets that each process knows.
pub(crate) const SETS: [&str; 3] = ["mpi://WORLD", "mpi://SELF", "mpix://SHARED"];

impl SessionObject {
    pub(crate) fn errhandler(&self) -> Arc<Handler> {
        self.place().clone()
    }

    pub(crate) fn set_errhandler(&self, handler: Arc<Handler>) {
        self.own.set_errhandler(handler.clone());
        *self.place() = handler;
    }

    fn place(&self) -> MutexGuard<'_, Arc<Handler>> {
        self.errhandler.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn handle(&self) -> Session {
        Session(self.handle.load(Ordering::Relaxed))
    }

    pub(crate) fn info(&self) -> &Infos {
        &self.info
    }

    pub(crate) fn buffer(&self) -> &Attached {
        &self.buffer
    }

    /// For requests that belong to no communicator of the program's.
    pub(crate) fn named(&self) -> Named {
        Named { comm: self.own.clone(), handle: Comm::NULL }
    }
}

impl fmt::Debug for SessionObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle().fmt(f)
    }
}

/// A new session: its handle.
pub(crate) fn insert(world: &World, handler: Arc<Handler>, info: Infos) -> Session {
    let me = world.session().rank();
    let own = Arc::new(Communicator::new(0, Arc::new(Members::new([me])), None, me));
    own.set_errhandler(handler.clone());
    let errhandler = Mutex::new(handler);
    let buffer = Attached::none();
    let object = Arc::new(SessionObject { handle: AtomicU32::new(0), errhandler, info, buffer, own });
    let index = SESSIONS.insert(object.clone());
    object.handle.store(index, Ordering::Relaxed);
    Session(index)
}

/// The session of a handle.
///
/// # Errors
/// Class SESSION if there is none.
pub(crate) fn lookup(session: Session) -> Result<Arc<SessionObject>> {
    SESSIONS.share(session.0).ok_or_else(|| no_session(session))
}

/// Takes a session out of the table.
pub(crate) fn remove(session: Session) {
    if let Some(object) = SESSIONS.remove(session.0) {
        object.handle.store(0, Ordering::Relaxed);
    }
}

#[cold]
fn no_session(session: Session) -> Error {
    Class::SESSION.error(match session {
        Session::NULL => "the session is MPI_SESSION_NULL".to_string(),
        Session(index) => format!("there is no session {index}: it never was, or is finalised"),
    })
}

/// The group of a process set; none if there is no such set.
pub(crate) fn group_of(world: &World, name: &str) -> Option<Group> {
    let session = world.session();
    let (me, size) = (session.rank(), session.size());
    let set = SETS.iter().position(|set| set.eq_ignore_ascii_case(name))?;
    Some(match set {
        0 => Group::new((0..size).collect::<Vec<u32>>()),
        1 => Group::new([me]),
        _ => {
            let nodes = session.nodes();
            let is_near = |rank: &u32| nodes[*rank as usize] == nodes[me as usize];
            Group::new((0..size).filter(is_near).collect::<Vec<u32>>())
        }
    })
}
