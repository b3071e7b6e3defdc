//! What to run: a description, and its limits.

use std::ffi::OsString;
use std::time::Duration;

use super::Placement;
use crate::LaunchError;

/// The most ranks of one job on one machine; descriptors run out well before.
pub const COUNT_MAX: u32 = 1 << 16;

/// A job to run on this machine. [`Job::new`] has the usual choices; change the fields that differ.
#[derive(Debug, Clone)]
pub struct Job {
    /// The program, looked up in `PATH` if it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The number of ranks, 1 to 65536.
    pub count: u32,
    /// Where the ranks run.
    pub placement: Placement,
    /// Whether output comes line by line with `[rank] ` before each line. Otherwise ranks write to our
    /// standard output and error themselves, so a terminal stays a terminal for them.
    pub tag_output: bool,
    /// Variables to add to the ranks' environment, or to change in it.
    pub env: Vec<(OsString, OsString)>,
    /// After this time the job is ended, with code 124.
    pub timeout: Option<Duration>,
    /// Who gets our standard input.
    pub stdin: Stdin,
    /// Cores to bind ranks to, one each, in turns. `None`: ranks may run anywhere.
    pub bind: Option<Vec<usize>>,
    /// How long ranks may take from SIGTERM to their end before they get SIGKILL.
    pub grace: Duration,
}

/// Who gets our standard input; the others read an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    /// Rank 0, as MPI programs expect.
    #[default]
    Rank0,
    /// Each rank gets all of it; the slowest reader sets the pace.
    All,
    /// Nobody.
    None,
}

impl Job {
    /// `count` ranks of `program` on this host, untagged, without a time limit.
    pub fn new(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
        count: u32,
    ) -> Job {
        Job {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            count,
            placement: Placement::Here,
            tag_output: false,
            env: Vec::new(),
            timeout: None,
            stdin: Stdin::default(),
            bind: None,
            grace: Duration::from_secs(2),
        }
    }

    /// Whether a rank reads our standard input.
    pub(super) fn reads_stdin(&self, rank: u32) -> bool {
        match self.stdin {
            Stdin::Rank0 => rank == 0,
            Stdin::All => true,
            Stdin::None => false,
        }
    }

    /// Finds what is wrong with the description before anything is started.
    pub(super) fn check(&self) -> Result<(), LaunchError> {
        let fail = |why: &str| Err(LaunchError::Job(why.into()));
        if self.count == 0 || self.count > COUNT_MAX {
            return Err(LaunchError::Job(format!(
                "a job of {} ranks cannot be run; choose 1 to {COUNT_MAX}",
                self.count
            )));
        }
        match (&self.placement, &self.bind) {
            (Placement::Hosts(hosts), _) if hosts.is_empty() => fail("the list of hosts is empty"),
            (_, Some(cores)) if cores.is_empty() => fail("the list of cores to bind to is empty"),
            _ => Ok(()),
        }
    }
}
