//! Errors of starting and joining jobs; each names the cause and the remedy.

use std::io;

/// An error of starting or joining a job.
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
    /// The launcher uses PMIx, but no PMIx library can be loaded.
    #[error(
        "this process was started by a PMIx launcher (PMIX_RANK={rank}), but no PMIx library can be loaded \
         ({tried}); install it (libpmix2), name its file in NMAD_PMIX, or start with `nmad run -n N PROGRAM`"
    )]
    PmixLibrary {
        /// Our rank.
        rank: u32,
        /// The files that were tried, each with its error.
        tried: String,
    },
    /// A Slurm step of several tasks without PMI.
    #[error(
        "this is task {task} of {count} in a Slurm job, but Slurm offers no PMI, so the tasks cannot find \
         each other; start it with `srun --mpi=pmi2` or `srun --mpi=pmix` \
         (or set NMAD_SINGLETON=1 to run each task alone)"
    )]
    SlurmWithoutPmi {
        /// The value of `SLURM_PROCID`.
        task: String,
        /// The number of tasks of the step.
        count: u32,
    },
    /// A second bootstrap in one process: the launcher has one connection for each rank.
    #[error("this process has joined its job already; bootstrap once and share the result")]
    AlreadyJoined,
    /// The launcher closed the connection.
    #[error("the launcher closed its connection while this rank {doing}; it died or it is ending the job")]
    Closed {
        /// Activity of the rank.
        doing: String,
    },
    /// The launcher did not answer in time.
    #[error(
        "the launcher did not answer within {limit_s} s while this rank {doing}; \
         is it stopped or overloaded? (NMAD_LAUNCH_TIMEOUT=SECONDS changes the limit)"
    )]
    Timeout {
        /// Activity of the rank.
        doing: String,
        /// The limit, in seconds.
        limit_s: u64,
    },
    /// The launcher sent a line that is not PMI-1.
    #[error("the launcher's answer makes no sense while this rank {doing}: {why}; the answer was {line:?}")]
    Protocol {
        /// Activity of the rank.
        doing: String,
        /// Why the answer is wrong.
        why: String,
        /// The answer, shortened.
        line: String,
    },
    /// The launcher refused a request.
    #[error("the launcher refused when this rank {doing}: {why}")]
    Refused {
        /// Activity of the rank.
        doing: String,
        /// The launcher's reason.
        why: String,
    },
    /// A key that launchers do not accept.
    #[error("key {key:?} cannot be used: {why}; use letters, digits and `._-/`")]
    Key {
        /// The key.
        key: String,
        /// The error in it.
        why: String,
    },
    /// A value that another program put, or that was damaged.
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
        /// The map as received.
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
        /// The system's error.
        source: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// No ranks can be started on another host.
    #[error("cannot start ranks on {host}: {why}")]
    Agent {
        /// Its name.
        host: String,
        /// The reason and the remedy.
        why: String,
    },
    /// Two jobs cannot connect at a port.
    #[error("{0}")]
    Port(String),
    /// No processes can be spawned for a running job.
    #[error("{0}")]
    NoSpawn(String),
    /// A job description that cannot be run.
    #[error("{0}")]
    Job(String),
    /// The system refused something.
    #[error("{doing}: {source}")]
    System {
        /// The attempt.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

impl LaunchError {
    /// Returns the exit code of a launcher that fails with this error: 127 and 126 as in shells for a
    /// program that is not found or may not be executed, 2 for an invalid job, 1 otherwise.
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
