//! Processes of other jobs: started, met at a port, left again.

use super::comm_free;
use crate::comm::create::meet;
use crate::comm::foreign::{self, port};
use crate::comm::{Named, let_go, lookup};
use crate::error::{Class, Error, Result};
use crate::handle::{Comm, Info};
use crate::info;
use crate::world::world;
use newmadeleine::launch::names;
pub use newmadeleine::launch::pmi::spawn::{Request as Spawn, Wanted};

/// `MPI_Open_port`: the name of the port.
///
/// # Errors
/// There is no such info object, or the system has no socket left.
pub fn open_port(wishes: Info) -> Result<String> {
    info::optional(wishes)?;
    port::open()
}

/// `MPI_Close_port`
///
/// # Errors
/// This process has not opened it.
pub fn close_port(name: &str) -> Result<()> {
    port::close(name)
}

/// `MPI_Comm_accept`; the name and the info object count at the root, which alone gives them.
///
/// # Errors
/// There is no such port, communicator or info object, or nobody connects in time.
pub fn comm_accept(at_root: Option<(&str, Info)>, root: i32, comm: Comm) -> Result<Comm> {
    let (name, wishes) = at_root.unwrap_or(("", Info::NULL));
    port::accept(name, info::optional(wishes)?.as_deref(), root, comm)
}

/// `MPI_Comm_connect`; the name and the info object count at the root, which alone gives them.
///
/// # Errors
/// Nobody accepts at the port, or there is no such communicator or info object.
pub fn comm_connect(at_root: Option<(&str, Info)>, root: i32, comm: Comm) -> Result<Comm> {
    let (name, wishes) = at_root.unwrap_or(("", Info::NULL));
    port::connect(name, info::optional(wishes)?.as_deref(), root, comm)
}

/// `MPI_Comm_join`
///
/// # Errors
/// It is no socket to a process that does the same.
pub fn comm_join(fd: i32) -> Result<Comm> {
    port::join(fd)
}

/// `MPI_Comm_spawn` and `MPI_Comm_spawn_multiple`: the request counts at the root.
///
/// # Errors
/// The launcher does not start the processes, or they do not call `MPI_Init` in time.
pub fn comm_spawn(wanted: impl FnOnce() -> Result<Spawn>, root: i32, comm: Comm) -> Result<Comm> {
    port::spawn(wanted, root, comm)
}

/// Hints of an info object for processes that are to be started.
///
/// # Errors
/// There is no such info object.
pub fn spawn_hints(wishes: Info) -> Result<Vec<(String, String)>> {
    let infos = info::optional(wishes)?;
    let keys =
        |infos: &info::Infos| (0..infos.len()).filter_map(|index| infos.key(index)).collect::<Vec<_>>();
    let mut hints: Vec<(String, String)> = infos
        .iter()
        .flat_map(|infos| keys(infos).into_iter().filter_map(|key| Some((key.clone(), infos.get(&key)?))))
        .collect();
    if let (false, Ok(folder)) = (hints.iter().any(|(key, _)| key == "wdir"), std::env::current_dir()) {
        hints.push(("wdir".into(), folder.to_string_lossy().into_owned()));
    }
    Ok(hints)
}

/// `MPI_Comm_get_parent`: null if no job has started this one, or it was left.
///
/// # Errors
/// MPI is not initialised.
pub fn comm_get_parent() -> Result<Comm> {
    world().map(|_| port::parent())
}

/// `MPI_Comm_disconnect`: waits for everything on it. If nothing else connects its processes, their rails
/// are closed.
///
/// # Errors
/// As [`comm_free`].
pub fn comm_disconnect(comm: &mut Comm) -> Result<()> {
    let world = world()?;
    if *comm == Comm::WORLD || *comm == Comm::SELF {
        return comm_free(comm);
    }
    let named = Named::of(*comm)?;
    let bridges = named.comm.bridges().to_vec();
    if bridges.is_empty() {
        drop(named);
        meet(*comm)?;
        return comm_free(comm);
    }
    let_go(world);
    let context = named.comm.context();
    let endless = std::time::Duration::from_secs(1 << 30);
    world.node().wait_for(endless, |engine| !engine.inspect().owed().has(context));
    // The list of all bridges, the communicator, and the copy here.
    let is_last = bridges.iter().all(|bridge| std::sync::Arc::strong_count(bridge) <= 3);
    let all_last = crate::comm::create::agree_all(&named.comm, is_last)?;
    drop(named);
    comm_free(comm)?;
    let_go(world);
    if all_last {
        foreign::close(world, bridges);
    }
    Ok(())
}

/// `MPI_Publish_name`
///
/// # Errors
/// The name is published, or there is no such info object.
pub fn publish_name(service: &str, wishes: Info, port: &str) -> Result<()> {
    info::optional(wishes)?;
    let published = names::publish(service, port).map_err(|why| no_names(&why))?;
    let text = || format!("another process has published '{service}'");
    if published { Ok(()) } else { Err(Class::SERVICE.error(text())) }
}

/// `MPI_Unpublish_name`
///
/// # Errors
/// The name is not published, or there is no such info object.
pub fn unpublish_name(service: &str, wishes: Info, _port: &str) -> Result<()> {
    info::optional(wishes)?;
    let withdrawn = names::unpublish(service).map_err(|why| no_names(&why))?;
    if withdrawn { Ok(()) } else { Err(Class::SERVICE.error(format!("'{service}' is not published"))) }
}

/// `MPI_Lookup_name`: the name of the port.
///
/// # Errors
/// The name is not published, or there is no such info object.
pub fn lookup_name(service: &str, wishes: Info) -> Result<String> {
    info::optional(wishes)?;
    let found = names::lookup(service).map_err(|why| no_names(&why))?;
    found.ok_or_else(|| Class::NAME.error(format!("nobody on this machine has published '{service}'")))
}

fn no_names(why: &std::io::Error) -> Error {
    Class::SERVICE.error(format!("names cannot be published or looked up: {why}"))
}

/// Whether a process is the root of a call: then it gives what counts there.
///
/// # Errors
/// There is no such communicator.
pub fn is_root(comm: Comm, root: i32) -> Result<bool> {
    Ok(lookup(comm)?.rank() == root)
}
