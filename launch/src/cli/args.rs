//! The options, and the help that explains them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use nmad_words::setting::{DRIVER, ENCRYPT, MPI_INITIAL_ERRHANDLER, RAILS};

use super::placing::{BindTo, MapBy};
use crate::Stdin;
use crate::local::COUNT_MAX;

/// Text at the end of `--help`.
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
  mpiexec -hosts a:4,b:4 -n 8 ./hello     four ranks on each of two machines, by ssh
  mpiexec -f hosts -ppn 2 ./hello         two on each machine of a file

`nmad info --settings` explains the variables that set strategies, rails, algorithms and all else.

Exit code: 0 if all ranks exit with 0, otherwise the code of the first that failed (128 and the
signal's number if it was killed). A rank that fails ends the others; so does ^C, and a second ^C
kills them at once.

In an allocation of Slurm, Flux or PBS the machines are those of the allocation; elsewhere -hosts or
-f name them, and `ssh HOST true` has to work without a password. In a testbed (NMAD_TESTBED is set)
ranks are placed round robin, one host after the other. docs/machines.md says more.";

/// Start several ranks of a program, on this machine or on several
#[derive(Args, Debug, Clone)]
#[command(after_help = TEACHING, args_override_self = true)]
pub struct RunArgs {
    /// How many ranks to start; without it one, or as many as the machines have slots [spelled -np and -c
    /// as well]
    #[arg(short = 'n', long = "ranks", visible_alias = "np", short_alias = 'c', value_name = "N")]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub count: Option<u32>,

    /// Tag each line of output with the rank that wrote it, as in `[2] hello`
    #[arg(short = 'l', long)]
    pub tag_output: bool,

    /// Begin each line of output with the time (UTC) at which it was complete
    #[arg(long)]
    pub timestamp_output: bool,

    /// Write the output of ranks to files FOLDER/1/rank.N/stdout and stderr instead
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["outfile", "errfile"])]
    pub output_filename: Option<PathBuf>,

    /// Write the standard output of ranks to files instead: in the name %r is the rank, %h its host
    /// [spelled
    /// -outfile-pattern as well]
    #[arg(long, value_name = "FILE")]
    pub outfile: Option<PathBuf>,

    /// Write the standard error of ranks to files instead, with names as for --outfile [spelled
    /// -errfile-pattern as well]
    #[arg(long, value_name = "FILE")]
    pub errfile: Option<PathBuf>,

    /// End the job after this many seconds, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,

    /// Set a variable in the environment of the program's ranks, which inherit our environment anyway [may
    /// be repeated]
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub env: Vec<(String, String)>,

    /// Set a variable in the environment of the ranks of all programs
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub genv: Vec<(String, String)>,

    /// Drivers for the interfaces of ranks that use NewMadeleine: tcp, udp, packet, verbs, ofi:PROVIDER, or
    /// several
    #[arg(long, value_name = "NAME,...")]
    pub driver: Option<String>,

    /// Which links between ranks are encrypted: sets NMAD_ENCRYPT
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "on",
        value_parser = policies())]
    pub encrypt: Option<String>,

    /// The interfaces that ranks use: sets NMAD_RAILS [spelled -iface and --mca btl_tcp_if_include as well]
    #[arg(long, value_name = "NAME,...")]
    pub rails: Option<String>,

    /// The machines, each with its slots: the number of ranks that it gets before the next one [spelled
    /// -hosts, -host and -H as well]
    #[arg(long, value_name = "NAME[:SLOTS],...", conflicts_with = "hostfile")]
    pub hosts: Option<OsString>,

    /// Read the machines from a file, with a line `NAME`, `NAME:SLOTS` or `NAME slots=SLOTS` for each
    /// [spelled -f and -machinefile as well]
    #[arg(long, value_name = "FILE")]
    pub hostfile: Option<PathBuf>,

    /// Number of ranks on each machine, whatever its slots [spelled -perhost, -npernode and -N as well]
    #[arg(long, value_name = "N", value_parser = count)]
    pub ppn: Option<u32>,

    /// Order of the ranks: `slot` fills one machine after the other, `node` takes them in turns,
    /// `ppr:N:node` is --ppn N; `socket`, `numa` or `l3` spreads the ranks of one machine. With `:PE=N`
    /// each rank gets N cores
    #[arg(long, value_name = "HOW", default_value = "slot", value_parser = super::placing::map_by)]
    pub map_by: MapBy,

    /// Method of starting ranks on other machines; `auto` is that of the allocation in which we run,
    /// otherwise ssh
    #[arg(long, value_enum, default_value_t = Launcher::Auto, value_name = "WHICH")]
    pub launcher: Launcher,

    /// A command to use like ssh: followed by a host and a command line for it
    #[arg(long, value_name = "COMMAND")]
    pub launcher_exec: Option<String>,

    /// Where NewMadeleine is installed on the other machines; otherwise at the same path as here
    #[arg(long, value_name = "FOLDER")]
    pub prefix: Option<String>,

    /// Bind each rank to a part of its machine, in turns, or bind none. The default is an equal share of
    /// the cores, if there is at least one for each rank [`core:2`: two for each]
    #[arg(long, alias = "bind", value_name = "core|hwthread|l3|socket|numa|none")]
    #[arg(value_parser = super::placing::bind_to)]
    pub bind_to: Option<BindTo>,

    /// Report the binding of each rank
    #[arg(long)]
    pub report_bindings: bool,

    /// Ranks inherit no variables except PATH, LD_LIBRARY_PATH, HOME and the like
    #[arg(long, conflicts_with = "genvlist")]
    pub genvnone: bool,

    /// Ranks inherit only these variables, PATH, LD_LIBRARY_PATH, HOME and the like
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub genvlist: Option<Vec<OsString>>,

    /// Run the ranks in this folder instead of the present one
    #[arg(long, value_name = "FOLDER")]
    pub wdir: Option<PathBuf>,

    /// Which ranks read our standard input: the number of one, `all`, or `none` [spelled -s as well]
    #[arg(long, value_parser = stdin, default_value = "0", value_name = "WHO")]
    pub stdin: Stdin,

    /// A failing rank does not end the others; the exit code still reports it
    #[arg(long)]
    pub keep_going: bool,

    /// The job survives the death of ranks: the launcher reports it to the others, and their calls that
    /// need the dead end with MPIX_ERR_PROC_FAILED. The exit code is that of the survivors
    /// (docs/ranks-die.md) [spelled -disable-auto-cleanup as well]
    #[arg(long, visible_alias = "with-ft")]
    pub ft: bool,

    /// Read the hosts from a file with a line `NAME=COMMAND...` for each, where COMMAND runs the words
    /// behind it on that host; `none` stays on this host even in a testbed
    #[arg(long, value_name = "FILE|none")]
    pub hosts_from: Option<String>,

    /// The error handler with which MPI_COMM_WORLD and MPI_COMM_SELF begin, until the program changes it
    /// [spelled -initial-errhandler as well]
    #[arg(long, value_name = "NAME", value_parser = error_handlers())]
    pub initial_errhandler: Option<String>,

    /// Ignored; accepted from habit: ranks may always outnumber the cores here
    #[arg(long, hide_short_help = true)]
    pub oversubscribe: bool,

    /// Options of other launchers without effect here.
    #[arg(long, hide = true)]
    pub ignored: Vec<String>,

    /// The program and its arguments; after a `:` options and words of another one for further ranks
    #[arg(trailing_var_arg = true, required = true, value_name = "PROG ARGS")]
    pub command: Vec<OsString>,
}

/// Values of `--launcher`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// The allocation's own, or ssh
    Auto,
    /// ssh, with one agent on each machine
    #[value(alias = "rsh")]
    Ssh,
    /// None: all ranks run on this machine, whatever machines are named
    Fork,
    /// Slurm's, in an allocation
    #[value(alias = "slurm")]
    Srun,
    /// Flux's, in an instance
    Flux,
    /// pbs_tmrsh, in a job of PBS
    Pbs,
    /// Hand the job over to PRRTE's prterun
    Prrte,
    /// Hand the job over to MPICH's mpiexec.hydra
    Hydra,
}

impl RunArgs {
    /// Returns the variables that options set for the ranks of all programs; of two with the same name the
    /// later counts.
    pub fn settings(&self) -> Vec<(String, String)> {
        let named = [(DRIVER.name, &self.driver), (ENCRYPT.name, &self.encrypt), (RAILS.name, &self.rails)];
        let set = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        self.genv.iter().cloned().chain(set).collect()
    }
}

fn policies() -> PossibleValuesParser {
    ENCRYPT.values.words().iter().copied().into()
}

fn error_handlers() -> PossibleValuesParser {
    MPI_INITIAL_ERRHANDLER.values.words().iter().copied().into()
}

fn stdin(text: &str) -> Result<Stdin, String> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "all" => Ok(Stdin::All),
        "none" => Ok(Stdin::None),
        rank => rank
            .trim_start_matches("rank")
            .parse()
            .map(Stdin::Rank)
            .map_err(|_| "it should be the number of a rank, all or none (several ranks: all)".into()),
    }
}

fn count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(count) if (1..=COUNT_MAX).contains(&count) => Ok(count),
        _ => Err(format!("it should be a number of ranks, 1 to {COUNT_MAX}")),
    }
}

/// Reads a time limit.
///
/// # Errors
/// The text is not a positive number of seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "it should be a number of seconds, such as 30 or 0.5")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("it should be more than zero seconds".into()),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("it should be of the form NAME=VALUE (or with one dash: -env NAME VALUE)".into()),
    }
}
