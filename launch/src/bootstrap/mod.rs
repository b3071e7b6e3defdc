//! A rank's way into its job: its number, and the addresses of the others.
//!
//! [`Bootstrap`] is what the session above sees; [`bootstrap()`] picks the way by the environment. This
//! layer knows launchers' environments and the PMI client; it must never know what the values that it
//! carries mean.

mod choose;
mod pmi1;
mod pmix;
mod port;
mod singleton;

use std::time::Duration;

use crate::LaunchError;
use crate::pmi::spawn::Request;
use crate::pmix::find;
use choose::Way;

pub use choose::Lookup;

/// A process's place in its job, and the exchange of short texts between the job's ranks.
pub trait Bootstrap: Send {
    /// The number of this process, `0..size()`.
    fn rank(&self) -> u32;

    /// The number of processes.
    fn size(&self) -> u32;

    /// Gives a value to all ranks, which can get it after the next [`Bootstrap::fence`].
    ///
    /// Any text up to 16 MiB; longer than the launcher takes is split. A key is put once in a job: up to 55
    /// letters, digits and `._-/`.
    ///
    /// # Errors
    /// A bad or used key, or a lost launcher.
    fn put(&mut self, key: &str, value: &str) -> Result<(), LaunchError>;

    /// Waits until all ranks are here; all values that they put before are visible then.
    ///
    /// # Errors
    /// [`LaunchError::Closed`] if the launcher goes. It waits as long as the last rank takes, or
    /// `NMAD_LAUNCH_TIMEOUT` seconds if that is set.
    fn fence(&mut self) -> Result<(), LaunchError>;

    /// The value that some rank put before the last fence; `None` if nobody did.
    ///
    /// # Errors
    /// A bad key, a damaged value, or a lost launcher.
    fn get(&mut self, key: &str) -> Result<Option<String>, LaunchError>;

    /// The node number of each rank, from the launcher's map. A launcher without a map gives each rank a
    /// node of its own, which is always right and sometimes slower: "same node" is never guessed.
    fn nodes(&self) -> &[u32];

    /// Which program of the job's command line this process runs, from 0; none if the launcher does not tell.
    fn program(&self) -> Option<u32>;

    /// 256 bits that only the ranks of this job know. From `NMAD_SECRET` under our own launcher; elsewhere
    /// rank 0 makes them and they travel through the launcher, in one fence before [`bootstrap()`] returns.
    fn secret(&self) -> [u8; 32];

    /// The job's name, the same on all ranks and unique under one launcher.
    fn job(&self) -> &str;

    /// Has the launcher start processes, as a job of their own.
    ///
    /// # Errors
    /// [`LaunchError::NoSpawn`] if the launcher cannot or does not want to.
    fn spawn(&mut self, request: &Request) -> Result<(), LaunchError> {
        let _ = request;
        Err(LaunchError::NoSpawn(
            "nobody here starts further processes: start the program with `mpiexec` or `nmad run` on one \
             machine"
                .into(),
        ))
    }

    /// A value that was in the key-value space before any rank joined; `None`: there is none.
    ///
    /// # Errors
    /// A lost launcher.
    fn preset(&mut self, key: &str) -> Result<Option<String>, LaunchError> {
        let _ = key;
        Ok(None)
    }

    /// Asks the launcher to end all ranks with this exit code, and says why. The caller ends itself
    /// afterwards; if the launcher is gone, that is all that can be done.
    fn abort(&mut self, code: i32, why: &str);

    /// Says goodbye. A process that ends without it is taken for crashed, and its job is ended.
    ///
    /// # Errors
    /// A lost launcher.
    fn finish(self: Box<Self>) -> Result<(), LaunchError>;
}

/// Joins the job that this process was started in.
///
/// `PMI_FD` set: PMI-1 (Hydra, `srun --mpi=pmi2`, our launcher); `PMI_PORT`: the same over TCP (`-pmi-port`
/// of Hydra). `PMIX_RANK` set: PMIx (Open MPI's `mpirun`, `srun --mpi=pmix`), whose library is loaded for
/// that. Nothing set: a job of one process. It works once in a process, since the launcher has one connection
/// for it.
///
/// # Errors
/// A launcher that is gone or talks nonsense; a PMIx library that is not there; a Slurm task without PMI.
pub fn bootstrap() -> Result<Box<dyn Bootstrap>, LaunchError> {
    let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let limit_s = choose::number(&get, "NMAD_LAUNCH_TIMEOUT")?;
    let limit = limit_s.map(|s| Duration::from_secs(u64::from(s)));
    Ok(match choose::choose(&get)? {
        Way::Singleton => Box::new(singleton::Singleton::new()?),
        Way::Pmix { rank, job } => {
            let expected = pmix::Expected { rank, job: &job };
            Box::new(pmix::Pmix::join(&expected, get(find::VARIABLE).as_deref(), limit_s)?)
        }
        Way::PmiPort { address, id } => {
            let joined = port::join(&address, id)?;
            let given = get(crate::secret::VARIABLE);
            Box::new(pmi1::Pmi1::join(joined.fd, joined.rank, joined.size, limit, given.as_deref())?)
        }
        Way::Pmi1 { fd, rank, size } => {
            let fd = crate::os::adopt(fd)?;
            Box::new(pmi1::Pmi1::join(fd, rank, size, limit, get(crate::secret::VARIABLE).as_deref())?)
        }
    })
}
