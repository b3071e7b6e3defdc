//! What to run: a description, and its limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::Placement;
use crate::LaunchError;

/// The most ranks of one job on one machine; descriptors run out well before.
pub const COUNT_MAX: u32 = 1 << 16;

/// A job to run on this machine. [`Job::new`] has the usual choices; change the fields that differ.
#[derive(Debug, Clone)]
pub struct Job {
    /// What the ranks run: they are numbered in the order of their programs. 1 to 65536 ranks in all.
    pub programs: Vec<Program>,
    /// Where the ranks run.
    pub placement: Placement,
    /// Whether output comes line by line with `[rank] ` before each line. Otherwise ranks write to our
    /// standard output and error themselves, so a terminal stays a terminal for them.
    pub tag_output: bool,
    /// Variables to add to the environment of all ranks, or to change in it.
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

/// A program, and the ranks that run it.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program, looked up in `PATH` if it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The number of its ranks.
    pub count: u32,
    /// Variables for its ranks beside those of the job, and before them.
    pub env: Vec<(OsString, OsString)>,
    /// The folder in which they run; `None`: ours.
    pub folder: Option<PathBuf>,
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
        let args = args.into_iter().map(Into::into).collect();
        let program = Program { program: program.into(), args, count, env: Vec::new(), folder: None };
        Job {
            programs: vec![program],
            placement: Placement::Here,
            tag_output: false,
            env: Vec::new(),
            timeout: None,
            stdin: Stdin::default(),
            bind: None,
            grace: Duration::from_secs(2),
        }
    }

    /// Ranks of all programs.
    pub(super) fn count(&self) -> u32 {
        self.programs.iter().fold(0, |count, program| count.saturating_add(program.count))
    }

    /// What a rank runs.
    pub(super) fn program(&self, rank: u32) -> &Program {
        let mut end = 0;
        let mut programs = self.programs.iter();
        let has = |program: &&Program| {
            end += program.count;
            rank < end
        };
        programs.find(has).expect("every rank of a job has a program")
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
        let count = self.count();
        if count == 0 || count > COUNT_MAX {
            return Err(LaunchError::Job(format!(
                "a job of {count} ranks cannot be run; choose 1 to {COUNT_MAX}"
            )));
        }
        for folder in self.programs.iter().filter_map(|program| program.folder.as_ref()) {
            std::fs::read_dir(folder).map_err(|error| {
                LaunchError::Job(format!("cannot run in the folder {}: {error}", folder.display()))
            })?;
        }
        match (&self.placement, &self.bind) {
            (Placement::Hosts(hosts), _) if hosts.is_empty() => fail("the list of hosts is empty"),
            (_, Some(cores)) if cores.is_empty() => fail("the list of cores to bind to is empty"),
            _ => Ok(()),
        }
    }
}
