//! Sessions (MPI 5.0, section 11.3): a way to use MPI without `MPI_COMM_WORLD`, as often and by as many parts
//! of a program as like. Process sets have names, groups are made from them, communicators from groups.

mod object;

pub(crate) use object::SessionObject;

use crate::comm::{Communicator, Members, Named};
use crate::errhandler::Handler;
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::handle::{Comm, DYNAMIC, Session};
use crate::info::Infos;
use crate::table::Table;
use crate::world::World;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Sessions that are initialised.
static SESSIONS: Table<Opened> = Table::new(DYNAMIC);

/// An initialised session.
struct Opened {
    object: Arc<SessionObject>,
    /// Of this process alone, for what goes on in the background.
    own: Arc<Communicator>,
}

/// The process sets of every job: all, this process, those of its node.
const SETS: [&str; 3] = ["mpi://WORLD", "mpi://SELF", "mpix://SHARED"];
/// Where the launcher has started several programs, those that run one of them: with its number.
const PROGRAM: &str = "mpix://PROGRAM/";

/// The process sets that each process knows.
pub(crate) fn sets(world: &World) -> Vec<String> {
    let programs: BTreeSet<u32> = world.session().programs().iter().copied().collect();
    let programs = programs.iter().filter(|_| programs.len() > 1);
    let programs = programs.map(|program| format!("{PROGRAM}{program}"));
    SETS.iter().map(|set| set.to_string()).chain(programs).collect()
}

/// A new session: its handle.
pub(crate) fn insert(world: &World, handler: Arc<Handler>, info: Infos) -> Session {
    let me = world.session().rank();
    let own = Arc::new(Communicator::new(0, Arc::new(Members::new([me])), None, me));
    own.set_errhandler(handler.clone());
    let object = Arc::new(SessionObject::new(handler, info));
    let index = SESSIONS.insert(Arc::new(Opened { object: object.clone(), own }));
    object.set_handle(index);
    Session(index)
}

/// The session of a handle.
///
/// # Errors
/// Class SESSION if there is none.
pub(crate) fn lookup(session: Session) -> Result<Arc<SessionObject>> {
    opened(session).map(|opened| opened.object.clone())
}

fn opened(session: Session) -> Result<Arc<Opened>> {
    SESSIONS.share(session.0).ok_or_else(|| no_session(session))
}

/// Gives a session an error handler.
///
/// # Errors
/// Class SESSION if there is none.
pub(crate) fn set_errhandler(session: Session, handler: Arc<Handler>) -> Result<()> {
    let opened = opened(session)?;
    opened.own.set_errhandler(handler.clone());
    opened.object.set_errhandler(handler);
    Ok(())
}

/// For requests of a session that belong to no communicator of the program's.
///
/// # Errors
/// Class SESSION if there is none.
pub(crate) fn named(session: Session) -> Result<Named> {
    Ok(Named { comm: opened(session)?.own.clone(), handle: Comm::NULL })
}

/// Takes a session out of the table.
pub(crate) fn remove(session: Session) {
    if let Some(opened) = SESSIONS.remove(session.0) {
        opened.object.set_handle(0);
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
    let (me, nodes, programs) = (session.rank(), session.nodes(), session.programs());
    let of =
        |is_in: &dyn Fn(usize) -> bool| Group::new((0..session.size()).filter(|&rank| is_in(rank as usize)));
    let set = sets(world).iter().position(|set| set.eq_ignore_ascii_case(name))?;
    Some(match set {
        0 => of(&|_| true),
        1 => Group::new([me]),
        2 => of(&|rank| nodes[rank] == nodes[me as usize]),
        _ => {
            let program = name[PROGRAM.len()..].parse().ok()?;
            of(&|rank| programs[rank] == program)
        }
    })
}
