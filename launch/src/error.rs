//! What can go wrong between a rank and its launcher; each error names the cause and the remedy.

use std::io;

/// An error of starting a job or of finding one's place in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A variable that the launcher should have set is missing or makes no sense.
    #[error("environment variable {name} is {found}: {why}; start this program with `nmad run` or `mpiexec`")]
    Environment {
        /// The name of the variable.
        name: &'static str,
        /// Its value, quoted, or `not set`.
        found: String,
        /// The error in it.
        why: String,
    },
    /// A launcher that speaks PMIx, whose library cannot be loaded.
    #[error(
        "this process was started by a PMIx launcher (PMIX_RANK={rank}), but no PMIx library can be loaded \
         ({tried}); install it (libpmix2), name its file in NMAD_PMIX, or start with `nmad run -n N PROGRAM`"
    )]
    PmixLibrary {
        /// Our rank.
        rank: u32,
        /// Which files were tried, and what was wrong with each.
        tried: String,
    },
    /// A Slurm step of several tasks whose tasks cannot find each other.
    #[error(
        "this is task {task} of {count} in a Slurm job, but Slurm offers no PMI, so the tasks cannot find \
         each other; start it with `srun --mpi=pmi2` or `srun --mpi=pmix` \
         (or set NMAD_SINGLETON=1 to run each task alone)"
    )]
    SlurmWithoutPmi {
        /// The value of `SLURM_PROCID`.
        task: String,
        /// How many tasks the step has.
        count: u32,
    },
    /// A second bootstrap in one process: the launcher has one connection for each rank.
    #[error("this process has joined its job already; bootstrap once and share the result")]
    AlreadyJoined,
    /// The launcher closed the connection.
    #[error("the launcher closed its connection while this rank {doing}; it died or it is ending the job")]
    Closed {
        /// What the rank was doing.
        doing: String,
    },
    /// The launcher did not answer in time.
    #[error(
        "the launcher did not answer within {limit_s} s while this rank {doing}; \
         is it stopped or overloaded? (NMAD_LAUNCH_TIMEOUT=SECONDS changes the limit)"
    )]
    Timeout {
        /// What the rank was doing.
        doing: String,
        /// The limit, in seconds.
        limit_s: u64,
    },
    /// The launcher said something that is not PMI-1.
    #[error("the launcher's answer makes no sense while this rank {doing}: {why}; the answer was {line:?}")]
    Protocol {
        /// What the rank was doing.
        doing: String,
        /// Why the answer is wrong.
        why: String,
        /// The answer, shortened.
        line: String,
    },
    /// The launcher refused a request.
    #[error("the launcher refused when this rank {doing}: {why}")]
    Refused {
        /// What the rank was doing.
        doing: String,
        /// The launcher's words.
        why: String,
    },
    /// A key that no launcher takes.
    #[error("key {key:?} cannot be used: {why}; use letters, digits and `._-/`")]
    Key {
        /// The key.
        key: String,
        /// The error in it.
        why: String,
    },
    /// A value that somebody else put, or that was damaged on its way.
    #[error("the value of key {key:?} cannot be read: {why}; was it put by a program of another version?")]
    Value {
        /// The key.
        key: String,
        /// The error in it.
        why: String,
    },
    /// A node map that cannot be read.
    #[error("the launcher's node map {text:?} cannot be read: {why}")]
    Mapping {
        /// The map as it came.
        text: String,
        /// The error in it.
        why: String,
    },
    /// A program that could not be started.
    #[error("cannot start rank {rank}: {program}: {source}; {remedy}")]
    Spawn {
        /// The rank that was to be started.
        rank: u32,
        /// The program, or the prefix command of its host.
        program: String,
        /// What the system said.
        source: io::Error,
        /// What may help.
        remedy: &'static str,
    },
    /// Another host on which no ranks can be started.
    #[error("cannot start ranks on {host}: {why}")]
    Agent {
        /// Its name.
        host: String,
        /// Why, and what helps.
        why: String,
    },
    /// Two jobs that do not meet at a port.
    #[error("{0}")]
    Port(String),
    /// Processes that cannot be started for a running job.
    #[error("{0}")]
    NoSpawn(String),
    /// A job that cannot be run as it was described.
    #[error("{0}")]
    Job(String),
    /// The system refused something.
    #[error("{doing}: {source}")]
    System {
        /// The attempt.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

impl LaunchError {
    /// The code that a launcher ends with because of it: as shells have it for a program that is not there or
    /// may not be executed, 2 for a job that makes no sense, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            LaunchError::Spawn { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => 127,
                io::ErrorKind::PermissionDenied => 126,
                _ => 1,
            },
            LaunchError::Job(_) => 2,
            _ => 1,
        }
    }

    /// For `map_err`: an error of the system while `doing` something.
    pub(crate) fn system<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> LaunchError {
        let doing = doing.into();
        move |source| LaunchError::System { doing, source: source.into() }
    }
}
