//! Joining a job: a rank gets its number and the addresses of the other ranks.
//!
//! [`Bootstrap`] is the interface for the session above; [`bootstrap()`] chooses the method by the
//! environment. This layer knows launchers' environments and the PMI client; it must never know what the
//! values that it carries mean.

mod choose;
mod pmi1;
mod pmix;
mod port;
mod singleton;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::LaunchError;
use crate::pmi::client::Client;
use crate::pmi::spawn::Request;
use crate::pmix::find;
use choose::Way;
use nmad_words::setting::LAUNCH_TIMEOUT;

pub use choose::Lookup;

/// The membership of a process in its job, and the exchange of short texts between the job's ranks.
pub trait Bootstrap: Send {
    /// Returns the number of this process, `0..size()`.
    fn rank(&self) -> u32;

    /// Returns the number of processes.
    fn size(&self) -> u32;

    /// Publishes a value to all ranks, which can get it after the next [`Bootstrap::fence`].
    ///
    /// The value is any text up to 16 MiB; a value longer than the launcher's limit is split. A key is put
    /// once in a job: up to 55 letters, digits and `._-/`.
    ///
    /// # Errors
    /// A bad or used key, or a lost launcher.
    fn put(&mut self, key: &str, value: &str) -> Result<(), LaunchError>;

    /// Waits until all ranks have entered the fence; then all values that they put before are visible.
    ///
    /// # Errors
    /// [`LaunchError::Closed`] if the launcher goes. The wait is bounded only if `NMAD_LAUNCH_TIMEOUT`
    /// (seconds) is set.
    fn fence(&mut self) -> Result<(), LaunchError>;

    /// Returns the value that a rank put before the last fence, if any.
    ///
    /// # Errors
    /// A bad key, a damaged value, or a lost launcher.
    fn get(&mut self, key: &str) -> Result<Option<String>, LaunchError>;

    /// Calls `take` with the value of the key `{name}{rank}` for each rank in order, as [`Bootstrap::get`]
    /// returns it. It returns no list, which would take much memory in a large job.
    ///
    /// # Errors
    /// As for [`Bootstrap::get`].
    fn get_each(&mut self, name: &str, take: &mut dyn FnMut(Option<String>)) -> Result<(), LaunchError> {
        one_by_one(self, name, take)
    }

    /// Returns the node number of each rank, from the launcher's map. Without a map each rank gets a node
    /// of its own, which is always correct but may be slower: a common node is never guessed.
    fn nodes(&self) -> &[u32];

    /// Returns the number of this process's program on the job's command line, from 0; `None` if the
    /// launcher does not tell.
    fn program(&self) -> Option<u32>;

    /// Returns 256 bits that only the ranks of this job know. They are from `NMAD_SECRET` under our
    /// launcher; elsewhere rank 0 makes them and sends them through the launcher, in one fence before
    /// [`bootstrap()`] returns.
    fn secret(&self) -> [u8; 32];

    /// Returns the job's name, the same on all ranks and unique under one launcher.
    fn job(&self) -> &str;

    /// Asks the launcher to start processes as a job of their own.
    ///
    /// # Errors
    /// [`LaunchError::NoSpawn`] if the launcher cannot or refuses.
    fn spawn(&mut self, request: &Request) -> Result<(), LaunchError> {
        let _ = request;
        Err(LaunchError::NoSpawn(
            "nobody here starts further processes: start the program with `mpiexec` or `nmad run` on one \
             machine"
                .into(),
        ))
    }

    /// Returns a value that was in the key-value space before any rank joined, if any.
    ///
    /// # Errors
    /// A lost launcher.
    fn preset(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        let _ = key;
        Ok(None)
    }

    /// Tells a launcher that reports deaths ([`crate::deaths`]) that a rank cannot be reached. It ends that
    /// rank, so that all others agree that it is gone, unless the caller has been ended for the same reason.
    fn tell_unreachable(&mut self, rank: u32) {
        let _ = rank;
    }

    /// Asks the launcher to end all ranks with this exit code, and gives the reason. The caller then ends
    /// itself; if the launcher is gone, only that is possible.
    fn abort(&mut self, code: i32, why: &str);

    /// Finalizes. A process that ends without this counts as crashed, and its job is ended.
    ///
    /// # Errors
    /// A lost launcher.
    fn finish(self: Box<Self>) -> Result<(), LaunchError>;
}

/// [`Bootstrap::get_each`] with a request for each value.
fn one_by_one<B: Bootstrap + ?Sized>(
    job: &mut B,
    name: &str,
    take: &mut dyn FnMut(Option<String>),
) -> Result<(), LaunchError> {
    for rank in 0..job.size() {
        take(job.get(&format!("{name}{rank}"))?);
    }
    Ok(())
}

/// Whether this process has tried to join its job.
static HAS_JOINED: AtomicBool = AtomicBool::new(false);

/// Whether this process has taken the descriptor of `PMI_FD`.
static ADOPTED: AtomicBool = AtomicBool::new(false);

/// Ends the job of a process that cannot join it because its environment is invalid; otherwise the other
/// ranks would wait for it. Our launcher prints the rank, the exit code and the reason; under other
/// launchers this process prints them. Returns if the process has joined, if there is no other rank or no
/// connection to the launcher, or if the launcher does not end the process within seconds; the caller then
/// exits.
pub fn refuse(code: i32, why: &str) {
    if !HAS_JOINED.load(Ordering::Relaxed) {
        // The caller has an error of its own, whatever keeps the launcher from ending the job.
        let _ = try_refuse(code, why);
    }
}

fn try_refuse(code: i32, why: &str) -> Result<(), LaunchError> {
    let tell = |rank: u32| {
        nmad_words::tell_user(format_args!("nmad: rank {rank} ends the job with code {code}: {why}"));
    };
    let (fd, rank) = match choose::choose(&variable)? {
        Way::Singleton | Way::Pmi1 { size: ..2, .. } => return Ok(()),
        Way::Pmix { rank, .. } => {
            tell(rank);
            return pmix::refuse(rank, variable(find::VARIABLE).as_deref(), code, why);
        }
        Way::PmiPort { address, id } => {
            let joined = port::join(&address, id)?;
            (joined.fd, joined.rank)
        }
        Way::Pmi1 { fd, rank, .. } => (crate::os::adopt(fd, "PMI_FD", &ADOPTED)?, rank),
    };
    let given = variable(crate::secret::VARIABLE);
    let mut client = Client::connect(fd, None, given.is_some())?;
    if !pmi1::is_ours(&client) {
        tell(rank);
    }
    client.abort(code, why)
}

/// Returns a variable of the environment that is not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns how long the user lets processes and agents wait for each other.
///
/// # Errors
/// The setting is no number of seconds.
pub(crate) fn limit() -> Result<Option<Duration>, LaunchError> {
    LAUNCH_TIMEOUT.duration().map_err(LaunchError::Job)
}

/// Joins the job that this process was started in.
///
/// `PMI_FD` set: PMI-1 (Hydra, `srun --mpi=pmi2`, our launcher). `PMI_PORT` set: PMI-1 over TCP
/// (`-pmi-port` of Hydra). `PMIX_RANK` set: PMIx (Open MPI's `mpirun`, `srun --mpi=pmix`), whose library is
/// loaded then. Nothing set: a job of one process. It works once in a process, since the launcher has one
/// connection for it.
///
/// # Errors
/// A launcher that is gone or sends invalid lines; a missing PMIx library; a Slurm task without PMI.
pub fn bootstrap() -> Result<Box<dyn Bootstrap>, LaunchError> {
    HAS_JOINED.store(true, Ordering::Relaxed);
    let limit = limit()?;
    // PMIx counts whole seconds.
    let limit_s = limit.map(|limit| u32::try_from(limit.as_secs_f64().ceil() as u64).unwrap_or(u32::MAX));
    Ok(match choose::choose(&variable)? {
        Way::Singleton => Box::new(singleton::Singleton::new()?),
        Way::Pmix { rank, job } => {
            let expected = pmix::Expected { rank, job: &job };
            Box::new(pmix::Pmix::join(&expected, variable(find::VARIABLE).as_deref(), limit_s)?)
        }
        Way::PmiPort { address, id } => {
            let joined = port::join(&address, id)?;
            let given = variable(crate::secret::VARIABLE);
            Box::new(pmi1::Pmi1::join(joined.fd, joined.rank, joined.size, limit, given.as_deref())?)
        }
        Way::Pmi1 { fd, rank, size } => {
            let fd = crate::os::adopt(fd, "PMI_FD", &ADOPTED)?;
            Box::new(pmi1::Pmi1::join(fd, rank, size, limit, variable(crate::secret::VARIABLE).as_deref())?)
        }
    })
}
