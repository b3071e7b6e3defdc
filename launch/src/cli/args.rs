//! The options, and the help that explains them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::Stdin;
use crate::local::COUNT_MAX;

/// What `--help` ends with.
const TEACHING: &str = "\
Examples:
  nmad run -n 4 ./hello                   four ranks on this machine; rank 0 reads the keyboard
  nmad run -n 4 -l ./hello                the same, each line tagged with the rank that wrote it
  nmad run -n 2 --timeout 30 ./test       ended after 30 s if need be, with exit code 124
  nmad run -n 2 --env NMAD_STRATEGY=iso_split ./prog -v
                                          options of the launcher go before the program
  nmad run -n 1 ./serve : -n 3 ./work     two programs in one job: rank 0 serves, ranks 1 to 3 work
  mpiexec -np 4 -genv NAME VALUE ./hello  the usual spellings of mpiexec work as well
  mpiexec -configfile FILE                a program with its options in each line of the file

Exit code: 0 if all ranks exit with 0, otherwise the code of the first that failed (128 and the
signal's number if it was killed). A rank that fails ends the others; so does ^C, and a second ^C
kills them at once.

In a testbed (NMAD_TESTBED is set) ranks are placed round robin, one host after the other.
Several machines: start the same program with mpich's `mpiexec -hosts ...` or `srun --mpi=pmi2`.";

/// Start several ranks of a program on this machine
#[derive(Args, Debug, Clone)]
#[command(after_help = TEACHING)]
pub struct RunArgs {
    /// How many ranks to start [spelled -np and -c as well]
    #[arg(short = 'n', long = "ranks", visible_alias = "np", short_alias = 'c', value_name = "N")]
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    pub count: u32,

    /// Tag each line of output with the rank that wrote it, as in `[2] hello`
    #[arg(short = 'l', long)]
    pub tag_output: bool,

    /// End the job after this many seconds, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,

    /// Set a variable in the environment of the program's ranks, who have all of ours anyway [may be
    /// repeated]
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub env: Vec<(String, String)>,

    /// The same for the ranks of all programs
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub genv: Vec<(String, String)>,

    /// How ranks that use NewMadeleine use interfaces: tcp, udp, packet, or several; sets NMAD_DRIVER
    #[arg(long, value_name = "NAME,...")]
    pub driver: Option<String>,

    /// Bind ranks to cores: each to one of those that we may use, in turns, or not at all [spelled -bind-to
    /// as well]
    #[arg(long, value_enum, default_value_t = Bind::None, value_name = "WHAT")]
    pub bind: Bind,

    /// Run the ranks in this folder; where they are started from otherwise
    #[arg(long, value_name = "FOLDER")]
    pub wdir: Option<PathBuf>,

    /// Which ranks read our standard input
    #[arg(long, value_enum, default_value_t = StdinChoice::Rank0, value_name = "WHO")]
    pub stdin: StdinChoice,

    /// Read the hosts from a file with a line `NAME=COMMAND...` for each, where COMMAND runs what follows
    /// it on that host; `none` stays on this host even in a testbed
    #[arg(long, value_name = "FILE|none")]
    pub hosts_from: Option<String>,

    /// What happens with an error of MPI until the program says otherwise: the error handler that
    /// MPI_COMM_WORLD and MPI_COMM_SELF begin with [spelled -initial-errhandler as well]
    #[arg(long, value_name = "NAME", value_parser = crate::initial_errhandler::NAMES)]
    pub initial_errhandler: Option<String>,

    /// Ignored, for those who are used to it: ranks may always outnumber the cores here
    #[arg(long, hide_short_help = true)]
    pub oversubscribe: bool,

    /// The program and its arguments; after a `:` options and words of another one for further ranks
    #[arg(trailing_var_arg = true, required = true, value_name = "PROG ARGS")]
    pub command: Vec<OsString>,
}

/// What `--bind` takes.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bind {
    /// Ranks run where the system puts them
    None,
    /// One core for each rank, in turns
    Core,
}

/// What `--stdin` takes.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinChoice {
    /// Rank 0 only
    #[value(name = "0", alias = "rank0")]
    Rank0,
    /// Each rank gets a copy
    All,
    /// No rank
    None,
}

impl From<StdinChoice> for Stdin {
    fn from(choice: StdinChoice) -> Stdin {
        match choice {
            StdinChoice::Rank0 => Stdin::Rank0,
            StdinChoice::All => Stdin::All,
            StdinChoice::None => Stdin::None,
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it should be a number of seconds, such as 30 or 0.5")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("it should be more than zero seconds".into()),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("it should be of the form NAME=VALUE".into()),
    }
}
