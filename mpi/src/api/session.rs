//! Sessions.

use crate::api::Code;
use crate::constant::ThreadLevel;
use crate::errhandler;
use crate::error::{Class, Result};
use crate::handle::{Errhandler, Group, Info, Request, Session};
use crate::info::{self, Infos};
use crate::join::{close_session, open_session};
use crate::objects::hand_out_group;
use crate::point::send;
use crate::request::State;
use crate::session::{group_of, insert, lookup, named, remove, set_errhandler, sets};
use crate::status::Status;
use crate::task::{self, Async};
use crate::world::world;
use std::ffi::c_void;

/// `MPI_Session_init`. All threads may use it, whatever is asked for. The first call of a process joins the
/// job, for which all processes of the job have to initialise a session or MPI.
///
/// # Errors
/// There is no such info object or error handler, or the job cannot be joined.
pub fn session_init(info: Info, errhandler: Errhandler) -> Result<Session> {
    let (infos, handler) = (info::optional(info)?, errhandler::lookup(errhandler)?);
    let own = Infos::default();
    infos.iter().for_each(|infos| own.merge(infos));
    own.set("thread_level", ThreadLevel::Multiple.name());
    Ok(insert(open_session()?, handler, own))
}

/// `MPI_Session_finalize`: waits for the messages in its buffer.
///
/// # Errors
/// There is no such session.
pub fn session_finalize(session: &mut Session) -> Result<()> {
    let found = lookup(*session)?;
    // Without a buffer there is nothing to wait for.
    let _ = found.buffer().flush();
    send::wait_for_early(world()?);
    remove(*session);
    *session = Session::NULL;
    close_session();
    Ok(())
}

/// `MPI_Session_get_info`
///
/// # Errors
/// There is no such session.
pub fn session_get_info(session: Session) -> Result<Info> {
    Ok(info::insert(lookup(session)?.info().told()))
}

/// `MPI_Session_get_num_psets`
///
/// # Errors
/// There is no such session or info object.
pub fn session_get_num_psets(session: Session, info: Info) -> Result<i32> {
    lookup(session)?;
    info::optional(info)?;
    Ok(sets(world()?).len() as i32)
}

/// `MPI_Session_get_nth_pset`
///
/// # Errors
/// There is no such session, info object or set.
pub fn session_get_nth_pset(session: Session, info: Info, n: i32) -> Result<String> {
    lookup(session)?;
    info::optional(info)?;
    let mut names = sets(world()?);
    match usize::try_from(n).ok().filter(|&n| n < names.len()) {
        Some(n) => Ok(names.swap_remove(n)),
        None => {
            let count = names.len();
            Err(Class::ARG.error(format!("there is no process set {n}: there are {count}, from 0")))
        }
    }
}

/// `MPI_Session_get_pset_info`
///
/// # Errors
/// There is no such session or set.
pub fn session_get_pset_info(session: Session, name: &str) -> Result<Info> {
    lookup(session)?;
    let none = || Class::ARG.error(format!("there is no process set '{name}'"));
    let group = group_of(world()?, name).ok_or_else(none)?;
    let infos = Infos::default();
    infos.set("mpi_size", &group.size().to_string());
    Ok(info::insert(infos))
}

/// `MPI_Group_from_session_pset`: the null group if there is no such set.
///
/// # Errors
/// There is no such session.
pub fn group_from_session_pset(session: Session, name: &str) -> Result<Group> {
    let found = lookup(session)?;
    let group = group_of(world()?, name);
    Ok(group.map_or(Group::NULL, |group| hand_out_group(group.made_from(Some(found)))))
}

/// `MPI_Session_set_errhandler`
///
/// # Errors
/// There is no such session or error handler.
pub fn session_set_errhandler(session: Session, errhandler: Errhandler) -> Result<()> {
    let handler = errhandler::lookup(errhandler)?;
    set_errhandler(session, handler)
}

/// `MPI_Session_get_errhandler`
///
/// # Errors
/// There is no such session.
pub fn session_get_errhandler(session: Session) -> Result<Errhandler> {
    Ok(errhandler::give_out(&lookup(session)?.errhandler()))
}

/// `MPI_Session_call_errhandler`
///
/// # Errors
/// There is no such session.
pub fn session_call_errhandler(session: Session, code: Code) -> Result<()> {
    errhandler::call(&lookup(session)?.errhandler(), session.0, code);
    Ok(())
}

/// `MPI_Session_attach_buffer`
///
/// # Errors
/// As [`crate::api::buffer_attach`], or there is no such session.
pub fn session_attach_buffer(session: Session, buffer: *mut c_void, size: i64) -> Result<()> {
    lookup(session)?.buffer().attach(buffer, size)
}

/// `MPI_Session_detach_buffer`: waits for its messages; its address and size.
///
/// # Errors
/// There is none, or there is no such session.
pub fn session_detach_buffer(session: Session) -> Result<(*mut c_void, i64)> {
    let (start, size) = lookup(session)?.buffer().detach()?;
    Ok((std::ptr::with_exposed_provenance_mut(start), size))
}

/// `MPI_Session_flush_buffer`: waits for its messages.
///
/// # Errors
/// There is none, or there is no such session.
pub fn session_flush_buffer(session: Session) -> Result<()> {
    lookup(session)?.buffer().flush()
}

/// `MPI_Session_iflush_buffer`
///
/// # Errors
/// There is none, or there is no such session.
pub fn session_iflush_buffer(session: Session) -> Result<Request> {
    let flush = lookup(session)?.buffer().iflush()?;
    let work = Async::new(async { flush.await.map(|()| Status::EMPTY) });
    Ok(State::Task(task::start(world()?, Box::new(work)), named(session)?).into_request())
}
