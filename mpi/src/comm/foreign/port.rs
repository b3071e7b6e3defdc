//! Ports of this process, processes that it has started, and the one that has started it.

use super::super::create::insert;
use super::super::{COMMS, lookup};
use super::meet::{meet, no_port};
use crate::constant::MAX_PORT_NAME;
use crate::error::{Class, Result};
use crate::handle::Comm;
use crate::info::Infos;
use crate::world::{World, world};
use newmadeleine::launch::LaunchError;
use newmadeleine::launch::pmi::spawn::{PARENT_PORT, Request};
use newmadeleine::launch::port::{self, Meeting, Port};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Ports that are open, by name.
static PORTS: Mutex<BTreeMap<String, Arc<Port>>> = Mutex::new(BTreeMap::new());
/// The intercommunicator to the processes that have started this job.
static PARENT: AtomicU32 = AtomicU32::new(Comm::NULL.0);

/// How long a port waits for its owner to accept, unless the info key `timeout` says it.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);
/// How long processes that were started may take to `MPI_Init`.
const START_LIMIT: Duration = Duration::from_secs(120);

fn ports() -> MutexGuard<'static, BTreeMap<String, Arc<Port>>> {
    PORTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Opens a port: its name.
///
/// # Errors
/// The system has no socket left.
pub(crate) fn open() -> Result<String> {
    let port = Port::open(MAX_PORT_NAME - 1, &addresses(world()?)).map_err(no_port)?;
    let name = port.name().to_string();
    ports().insert(name.clone(), Arc::new(port));
    Ok(name)
}

/// Addresses at which this process has rails.
fn addresses(world: &World) -> Vec<IpAddr> {
    let rails = world.session().rails();
    rails.iter().filter_map(|rail| rail.address.split('/').next()?.parse().ok()).collect()
}

/// Closes a port.
///
/// # Errors
/// This process has not opened it.
pub(crate) fn close(name: &str) -> Result<()> {
    let none = || Class::PORT.error(format!("this process has no open port '{name}'"));
    ports().remove(name).map(drop).ok_or_else(none)
}

/// Seconds of the info key `timeout`.
fn timeout(infos: Option<&Infos>) -> Result<Option<Duration>> {
    let Some(text) = infos.and_then(|infos| infos.get("timeout")) else { return Ok(None) };
    let wrong = || Class::INFO_VALUE.error(format!("timeout '{text}' is no number of seconds"));
    text.trim().parse().map(|seconds| Some(Duration::from_secs(seconds))).map_err(|_| wrong())
}

/// Waits for a group of another job to connect. The name and the keys count at the root.
///
/// # Errors
/// This process has no such port, or nobody came in time.
pub(crate) fn accept(name: &str, infos: Option<&Infos>, root: i32, comm: Comm) -> Result<Comm> {
    let arrive = || -> Result<Meeting> {
        let none = || Class::PORT.error(format!("the root has no open port '{name}'"));
        let port = ports().get(name).cloned().ok_or_else(none)?;
        let limit = timeout(infos)?;
        let met = port.accept(limit).map_err(no_port)?;
        met.ok_or_else(|| Class::PORT.error("nobody has connected within the timeout"))
    };
    meet(lookup(comm)?, root, arrive).and_then(insert)
}

/// Connects to the group of another job that accepts at a port.
///
/// # Errors
/// Nobody accepts there.
pub(crate) fn connect(name: &str, infos: Option<&Infos>, root: i32, comm: Comm) -> Result<Comm> {
    let arrive = || port::connect(name, timeout(infos)?.unwrap_or(CONNECT_LIMIT)).map_err(no_port);
    meet(lookup(comm)?, root, arrive).and_then(insert)
}

/// Becomes one group each of two processes that have a socket to each other.
///
/// # Errors
/// The other process does not do the same.
#[allow(unsafe_code)]
pub(crate) fn join(fd: i32) -> Result<Comm> {
    if fd < 0 {
        return Err(Class::ARG.error(format!("descriptor {fd} is negative")));
    }
    // SAFETY: the descriptor is the program's, which may not close it during the call; it is not kept.
    let socket = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let arrive = || port::join(socket, CONNECT_LIMIT).map_err(no_port);
    let new = super::super::Communicator::new(0, own_group()?, None, world()?.session().rank());
    meet(&new, 0, arrive).and_then(insert)
}

/// This process alone, apart from `MPI_COMM_SELF`.
fn own_group() -> Result<Arc<super::Members>> {
    Ok(Arc::new(super::Members::new([world()?.session().rank()])))
}

/// Has the launcher start processes, whose `MPI_Init` connects them to this group. The request
/// counts at the root.
///
/// # Errors
/// The launcher does not start them, or they do not call `MPI_Init` in time.
pub(crate) fn spawn(wanted: impl FnOnce() -> Result<Request>, root: i32, comm: Comm) -> Result<Comm> {
    let world = world()?;
    let arrive = || -> Result<Meeting> {
        let port = Port::open(MAX_PORT_NAME - 1, &addresses(world)).map_err(no_port)?;
        let mut request = wanted()?;
        request.preput.push((PARENT_PORT.into(), port.name().into()));
        let started = world.session().with_job(|job| job.spawn(&request));
        started.unwrap_or_else(gone).map_err(|why| Class::SPAWN.error(why.to_string()))?;
        let met = port.accept(Some(START_LIMIT)).map_err(no_port)?;
        met.ok_or_else(|| {
            let limit = START_LIMIT.as_secs();
            Class::SPAWN
                .error(format!("the processes that were started did not call MPI_Init within {limit} s"))
        })
    };
    meet(lookup(comm)?, root, arrive).and_then(insert)
}

fn gone() -> std::result::Result<(), LaunchError> {
    Err(LaunchError::NoSpawn("the job is over".into()))
}

/// Connects the processes of this job to those that have started it, if some have.
///
/// # Errors
/// Those do not wait for them.
pub(crate) fn join_parent(world: &World) -> Result<()> {
    let preset = world.session().with_job(|job| job.preset(PARENT_PORT));
    let name = preset.transpose().map_err(no_port)?.flatten();
    let Some(name) = name else { return Ok(()) };
    let parent = connect(&name, None, 0, Comm::WORLD)?;
    if let Some(comm) = COMMS.get(parent.0) {
        *comm.name() = "MPI_COMM_PARENT".into();
    }
    PARENT.store(parent.0, Ordering::Release);
    Ok(())
}

/// The intercommunicator to the processes that have started this job; null if there is none, or it was freed.
pub(crate) fn parent() -> Comm {
    Comm(PARENT.load(Ordering::Acquire))
}

/// A communicator is freed.
pub(crate) fn forget_parent(comm: Comm) {
    let _ = PARENT.compare_exchange(comm.0, Comm::NULL.0, Ordering::AcqRel, Ordering::Acquire);
}
