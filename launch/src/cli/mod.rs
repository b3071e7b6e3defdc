//! The command line of the launcher: what `nmad run` and `mpiexec` have in common.
//!
//! It turns words into a [`Job`] and the end of the job into an exit code. It must never know how a
//! process is started; and what a host is, its caller tells it.

mod args;
mod file;
mod machines;
mod spelling;

use std::ffi::OsString;
use std::process::ExitCode;

use rustix::thread::CpuSet;
use rustix::thread::sched_getaffinity;

pub use args::{Bind, RunArgs, StdinChoice};
pub use spelling::{parse, rewrite};

use crate::local::SPEAKER;
use crate::{Host, Job, LaunchError, Placement, Program, initial_errhandler, run};

/// The exit code of a command line that makes no sense.
const CODE_USAGE: u8 = 2;

/// Runs what the command line asks for and returns the job's exit code.
///
/// `hosts` are those of the testbed that we are in ([`Host::from_env`]), none outside of one; ranks are
/// placed on them round robin unless `--hosts-from` says otherwise. Errors are told on standard error:
/// code 2 for a job that makes no sense, 126 and 127 (as shells do) for a program that cannot be
/// executed or found, 1 for the rest.
pub fn main(args: RunArgs, hosts: Vec<Host>) -> ExitCode {
    match job(args, hosts).and_then(run).map(|report| report.code) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            nmad_words::tell_user(format_args!("{SPEAKER}: {error}"));
            ExitCode::from(failure_code(&error))
        }
    }
}

/// The job that a command line describes; see [`main`] about `hosts`.
///
/// # Errors
/// [`LaunchError::Job`] for a host file that cannot be read, and for a program after a `:` whose options
/// make no sense.
pub fn job(mut args: RunArgs, hosts: Vec<Host>) -> Result<Job, LaunchError> {
    let more = spelling::programs(&mut args.command);
    let hosts = match args.hosts_from.as_deref() {
        None => hosts,
        Some("none") => Vec::new(),
        Some(path) => hosts_in(path)?,
    };
    let mut job = Job::new("", [] as [&str; 0], 0);
    job.programs = vec![program(&args)?];
    for (index, words) in (1..).zip(more) {
        job.programs.push(further(words).map_err(|why| LaunchError::Job(format!("program {index}: {why}")))?);
    }
    if !hosts.is_empty() {
        job.placement = Placement::Hosts(hosts);
    }
    job.tag_output = args.tag_output;
    job.env = variables(&args.genv);
    job.env.extend(args.driver.map(|driver| ("NMAD_DRIVER".into(), driver.into())));
    job.timeout = args.timeout;
    job.stdin = args.stdin.into();
    job.bind = match args.bind {
        Bind::None => None,
        Bind::Core => Some(our_cores()?),
    };
    Ok(job)
}

/// What the options of one program say about it.
fn program(args: &RunArgs) -> Result<Program, LaunchError> {
    let mut words = args.command.iter().cloned();
    let program = words.next().ok_or_else(|| LaunchError::Job("there is no program to run".into()))?;
    let mut env = variables(&args.env);
    env.extend(
        args.initial_errhandler.as_ref().map(|name| (initial_errhandler::VARIABLE.into(), name.into())),
    );
    Ok(Program { program, args: words.collect(), count: args.count, env, folder: args.wdir.clone() })
}

/// A program after a `:`: options of its own, of those that need not be the same for all ranks.
fn further(words: Vec<OsString>) -> Result<Program, String> {
    let args = parse("mpiexec", words).map_err(|error| error.to_string())?;
    let of_all = [
        ("-genv", !args.genv.is_empty()),
        ("--tag-output", args.tag_output),
        ("--timeout", args.timeout.is_some()),
        ("--driver", args.driver.is_some()),
        ("--bind", args.bind != Bind::None),
        ("--stdin", args.stdin != StdinChoice::Rank0),
        ("--hosts-from", args.hosts_from.is_some()),
    ];
    if let Some((option, _)) = of_all.iter().find(|(_, given)| *given) {
        return Err(format!("{option} is for the whole job: it goes before the first program"));
    }
    if args.command.iter().any(|word| word == ":") {
        return Err("-configfile names all programs of a job: it takes the place of the first".into());
    }
    program(&args).map_err(|error| error.to_string())
}

fn variables(pairs: &[(String, String)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn hosts_in(path: &str) -> Result<Vec<Host>, LaunchError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| LaunchError::Job(format!("cannot read the host list {path:?}: {error}")))?;
    match Host::parse_list(&text)? {
        hosts if hosts.is_empty() => Err(LaunchError::Job(format!("the host list {path:?} names no host"))),
        hosts => Ok(hosts),
    }
}

/// The cores that we may use ourselves; a container or `taskset` may have left us few.
fn our_cores() -> Result<Vec<usize>, LaunchError> {
    let set = sched_getaffinity(None).map_err(LaunchError::system("cannot ask which cores there are"))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

fn failure_code(error: &LaunchError) -> u8 {
    match error {
        LaunchError::Spawn { source, .. } => match source.kind() {
            std::io::ErrorKind::NotFound => 127,
            std::io::ErrorKind::PermissionDenied => 126,
            _ => 1,
        },
        LaunchError::Job(_) => CODE_USAGE,
        _ => 1,
    }
}
