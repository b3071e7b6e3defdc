//! The description of a job, and its limits.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Output, Placement};
use crate::LaunchError;
use crate::binding::Binding;
use crate::pmi::spawn::{Request, SPAWNED, Wanted};

/// The most ranks of one job.
pub const COUNT_MAX: u32 = 1 << 16;

/// A job to run. [`Job::new`] has the usual choices; change the fields that differ.
#[derive(Debug, Clone)]
pub struct Job {
    /// Programs of the ranks, which are numbered in the order of their programs. 1 to 65536 ranks in all.
    pub programs: Vec<Program>,
    /// Placement of the ranks.
    pub placement: Placement,
    /// Destination of the ranks' output.
    pub output: Output,
    /// Environment variables to add or to change for all ranks.
    pub env: Vec<(OsString, OsString)>,
    /// Time limit of the job, which then ends with code 124.
    pub timeout: Option<Duration>,
    /// Whether the other ranks continue when one fails.
    pub keep_going: bool,
    /// Whether ranks survive the death of others, of which the launcher tells them (`--ft`).
    pub ft: bool,
    /// Readers of our standard input.
    pub stdin: Stdin,
    /// Binding of the ranks.
    pub binding: Binding,
    /// Whether to report the binding of each rank on standard error.
    pub report_bindings: bool,
    /// Variables of our environment that ranks get.
    pub inherit: Inherit,
    /// Time from SIGTERM to SIGKILL when ranks are ended.
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
    /// Additional environment variables of its ranks, which override those of the job.
    pub env: Vec<(OsString, OsString)>,
    /// Working folder; `None` for ours.
    pub folder: Option<PathBuf>,
}

/// Variables of the launcher's environment that ranks get, besides those that the job sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Inherit {
    /// All; on other hosts without those of a host or a login (`HOSTNAME`, `SSH_...`).
    #[default]
    All,
    /// These variables, and those that locate files and the user: `PATH`, `HOME` and a few more.
    Only(Vec<OsString>),
}

/// Readers of our standard input; other ranks read an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// One rank.
    Rank(u32),
    /// Each rank gets all of it; the slowest reader determines the rate.
    All,
    /// No rank.
    None,
}

impl Default for Stdin {
    /// Rank 0, as MPI programs expect.
    fn default() -> Stdin {
        Stdin::Rank(0)
    }
}

impl Job {
    /// Makes a job of `count` ranks of `program` on this host, untagged, without a time limit.
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
            output: Output::default(),
            env: Vec::new(),
            timeout: None,
            keep_going: false,
            ft: false,
            stdin: Stdin::default(),
            binding: Binding::NONE,
            report_bindings: false,
            inherit: Inherit::All,
            grace: Duration::from_secs(2),
        }
    }

    /// Makes the job of a spawn request; everything else is as in `base`.
    ///
    /// # Errors
    /// The job cannot be run as described.
    pub(crate) fn asked(request: &Request, base: &Job) -> Result<Job, LaunchError> {
        let program = |wanted: &Wanted| Program {
            program: wanted.program.clone().into(),
            args: wanted.args.iter().map(Into::into).collect(),
            count: wanted.count,
            env: Vec::new(),
            folder: wanted.folder(),
        };
        let mut job = Job {
            programs: request.programs.iter().map(program).collect(),
            stdin: Stdin::None,
            binding: Binding::NONE,
            report_bindings: false,
            ..base.clone()
        };
        let names = request.programs.iter().map(Wanted::hosts).find(|names| !names.is_empty());
        if let Some(names) = names {
            job.placement = base.placement.only(&names).ok_or_else(|| {
                LaunchError::NoSpawn(format!("the job has no host of this name: {}", names.join(", ")))
            })?;
        }
        job.env.push((SPAWNED.into(), "1".into()));
        job.check()?;
        Ok(job)
    }

    /// Returns the number of ranks of all programs.
    pub(crate) fn count(&self) -> u32 {
        self.programs.iter().fold(0, |count, program| count.saturating_add(program.count))
    }

    /// Returns the program number of each rank, in the order of ranks.
    pub(crate) fn programs_of_ranks(&self) -> impl Iterator<Item = u32> {
        let programs = (0..).zip(&self.programs);
        programs.flat_map(|(number, program)| std::iter::repeat_n(number, program.count as usize))
    }

    /// Returns whether a rank reads our standard input.
    pub(crate) fn reads_stdin(&self, rank: u32) -> bool {
        match self.stdin {
            Stdin::Rank(reader) => rank == reader,
            Stdin::All => true,
            Stdin::None => false,
        }
    }

    /// Checks the description before anything is started.
    pub(crate) fn check(&self) -> Result<(), LaunchError> {
        let fail = |why: &str| Err(LaunchError::Job(why.into()));
        let count = self.count();
        if count == 0 || count > COUNT_MAX {
            return Err(LaunchError::Job(format!(
                "a job of {count} ranks cannot be run; choose 1 to {COUNT_MAX}"
            )));
        }
        if let Stdin::Rank(rank) = self.stdin
            && rank >= count
        {
            let last = count - 1;
            return Err(LaunchError::Job(format!(
                "standard input is for rank {rank} (--stdin), but the last rank is {last}"
            )));
        }
        match &self.placement {
            Placement::Hosts { hosts, .. } if hosts.is_empty() => fail("the list of hosts is empty"),
            Placement::Machines(machines) => machines.check(count),
            _ => self.programs.iter().try_for_each(|program| check_folder(program.folder.as_deref())),
        }
    }
}

/// Checks that ranks can run in a folder of this host.
pub(crate) fn check_folder(folder: Option<&Path>) -> Result<(), LaunchError> {
    let Some(folder) = folder else { return Ok(()) };
    match std::fs::read_dir(folder) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(LaunchError::Job(format!("cannot run in the folder {}: {error}", folder.display())))
        }
    }
}
