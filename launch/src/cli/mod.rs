//! The common command line of `nmad run` and `mpiexec`.
//!
//! It turns words into a [`Job`] and the end of the job into an exit code. It must never know how a process
//! is started; its caller passes the hosts of a testbed.

mod args;
mod asked;
mod file;
mod hydra;
mod machines;
mod options;
mod placing;
mod spelling;
mod where_to;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

pub use args::{Launcher, RunArgs};
pub use placing::{BindTo, MapBy};
pub use spelling::{parse, rewrite};

use crate::binding::{Binding, Target};
use crate::local::{Inherit, Output, SPEAKER};
use crate::pmi::spawn::ASKED_WORD;
use crate::remote::handover::{Other, hand_over};
use crate::remote::{AGENT_WORD, agent};
use crate::{Host, Job, LaunchError, Program, Stdin, run};
use nmad_words::setting::MPI_INITIAL_ERRHANDLER;

/// Runs as an agent ([`crate::remote`]), or as the launcher of a process without a launcher, if the words
/// say so; returns its exit code.
pub fn as_agent(words: &[OsString]) -> Option<ExitCode> {
    let letter = match words {
        [word] if word == ASKED_WORD => return Some(asked::main()),
        [word] if word == AGENT_WORD => None,
        [word, letter] if word == AGENT_WORD => Some(letter.to_str()?),
        _ => return None,
    };
    Some(agent::main(letter))
}

/// Sets the options that a command line leaves open from the variables of MPICH's launcher.
///
/// # Errors
/// [`LaunchError::Job`] for a variable with an invalid value.
pub fn with_variables(mut args: RunArgs) -> Result<RunArgs, LaunchError> {
    hydra::apply(&mut args, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
    Ok(args)
}

/// Runs the job of a command line and returns its exit code.
///
/// `hosts` are the hosts of the testbed in which we run ([`Host::from_env`]), none outside of one; ranks
/// are placed on them round robin unless `--hosts-from` says otherwise. Errors go to standard error, with
/// exit code 2 for an invalid job, 126 and 127 (as in shells) for a program that cannot be executed or
/// found, and 1 otherwise.
pub fn main(args: RunArgs, hosts: Vec<Host>) -> ExitCode {
    if !args.ignored.is_empty() {
        let words = args.ignored.join(", ");
        nmad_words::tell_user(format_args!("{SPEAKER}: ignored, since it is for other launchers: {words}"));
    }
    let other = match args.launcher {
        Launcher::Prrte => Some(Other::Prrte),
        Launcher::Hydra => Some(Other::Hydra),
        _ => None,
    };
    let done = job(args, hosts).and_then(|job| match other {
        Some(other) => Err(hand_over(other, &job)),
        None => run(job),
    });
    match done.map(|report| report.code) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            nmad_words::tell_user(format_args!("{SPEAKER}: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

/// Returns the job of a command line; see [`main`] about `hosts`.
///
/// # Errors
/// [`LaunchError::Job`] for an unreadable list of hosts, for machines that cannot be reached by the
/// requested method, and for invalid options of a program after a `:`.
pub fn job(mut args: RunArgs, hosts: Vec<Host>) -> Result<Job, LaunchError> {
    let more = spelling::programs(&mut args.command);
    let mut job = Job::new("", [] as [&str; 0], 0);
    job.programs = vec![program(&args)?];
    for (index, words) in (1..).zip(more) {
        job.programs.push(further(words).map_err(|why| LaunchError::Job(format!("program {index}: {why}")))?);
    }
    let found = where_to::find(&args, hosts)?;
    if args.count.is_none() && job.programs.len() == 1 {
        job.programs[0].count = found.slots(&args);
    }
    job.placement = found.place(&args, job.count())?;
    job.output = output(&args)?;
    job.env = variables(&args.settings());
    job.timeout = args.timeout;
    job.stdin = args.stdin;
    job.keep_going = args.keep_going || args.ft;
    job.ft = args.ft;
    let (to, width) = args.bind_to.unwrap_or((Target::Share, 1));
    // `:PE=N` without `--bind-to` binds to cores.
    let to = if args.bind_to.is_none() && args.map_by.width.is_some() { CORES } else { to };
    job.binding = Binding { to, spread: args.map_by.spread, width: args.map_by.width.unwrap_or(width) };
    job.report_bindings = args.report_bindings;
    job.inherit = match (args.genvnone, args.genvlist) {
        (true, _) => Inherit::Only(Vec::new()),
        (false, Some(names)) => Inherit::Only(names),
        (false, None) => Inherit::All,
    };
    Ok(job)
}

/// Returns the destination of the ranks' output. Names of files are relative to our folder, wherever ranks
/// run.
fn output(args: &RunArgs) -> Result<Output, LaunchError> {
    let absolute = |path: &PathBuf| {
        let failed = LaunchError::system(format!("cannot write output to {}", path.display()));
        std::path::absolute(path).map_err(failed)
    };
    let files = match &args.output_filename {
        Some(folder) => ["stdout", "stderr"].map(|name| Some(folder.join("%g/rank.%r").join(name))),
        None => [args.outfile.clone(), args.errfile.clone()],
    };
    let [out, err] = files.map(|file| file.as_ref().map(absolute).transpose());
    Ok(Output { tag: args.tag_output, timestamp: args.timestamp_output, files: [out?, err?] })
}

/// Binding of `--map-by core:PE=N`.
const CORES: Target = Target::Part(crate::binding::Level::Core);

/// Returns the program of one set of options.
fn program(args: &RunArgs) -> Result<Program, LaunchError> {
    let mut words = args.command.iter().cloned();
    let program = words.next().ok_or_else(|| LaunchError::Job("there is no program to run".into()))?;
    let mut env = variables(&args.env);
    env.extend(
        args.initial_errhandler.as_ref().map(|name| (MPI_INITIAL_ERRHANDLER.name.into(), name.into())),
    );
    Ok(Program {
        program,
        args: words.collect(),
        count: args.count.unwrap_or(1),
        env,
        folder: args.wdir.clone(),
    })
}

/// Parses a program after a `:`; it may only have options that need not be the same for all ranks.
fn further(words: Vec<OsString>) -> Result<Program, String> {
    let args = parse("mpiexec", words).map_err(|error| error.to_string())?;
    let of_all = [
        ("-genv", !args.genv.is_empty()),
        ("-genvnone", args.genvnone),
        ("-genvlist", args.genvlist.is_some()),
        ("--tag-output", args.tag_output),
        ("--timestamp-output", args.timestamp_output),
        ("--output-filename", args.output_filename.is_some()),
        ("--outfile", args.outfile.is_some()),
        ("--errfile", args.errfile.is_some()),
        ("--keep-going", args.keep_going),
        ("--ft", args.ft),
        ("-iface", args.rails.is_some()),
        ("--timeout", args.timeout.is_some()),
        ("--driver", args.driver.is_some()),
        ("--encrypt", args.encrypt.is_some()),
        ("--bind-to", args.bind_to.is_some()),
        ("--report-bindings", args.report_bindings),
        ("--map-by", args.map_by != MapBy::default()),
        ("--stdin", args.stdin != Stdin::default()),
        ("--hosts-from", args.hosts_from.is_some()),
        ("-hosts", args.hosts.is_some()),
        ("-hostfile", args.hostfile.is_some()),
        ("-ppn", args.ppn.is_some()),
        ("--launcher", args.launcher != Launcher::Auto),
        ("--launcher-exec", args.launcher_exec.is_some()),
        ("--prefix", args.prefix.is_some()),
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
