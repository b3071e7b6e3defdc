//! The command line: which subcommands there are, and under which name the program was called.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use nmad_launch::cli::{RunArgs, rewrite};
use nmad_launch::{Host, LaunchError};
use nmad_testbed::cli::{EnterArgs, TestbedArgs};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use crate::bench::BenchArgs;
use crate::compile::{self, Language};
use crate::demo::DemoArgs;
use crate::explain::ExplainArgs;
use crate::info::InfoArgs;
use crate::install::{InstallArgs, UninstallArgs};
use crate::manual;
use crate::model::{ModelArgs, advice};
use crate::output::{SETTING, USAGE, complain};
use crate::sample::SampleArgs;
use crate::settings;
use crate::trace::TraceArgs;

const EXAMPLES: &str = "\
Examples:
  nmad demo                                 two unequal rails, every strategy, tables and pictures
  nmad bench latency                        half round trips beside plain sockets
  nmad run -n 4 ./program                   four ranks on this machine
  nmad testbed --rails 4gbit,2.8gbit -- nmad run -n 2 ./program
                                            two ranks on two hosts with two unequal rails
  nmad sample --rails 4gbit,2.8gbit         what two rails can do, and the thresholds that follow
  nmad explain 4MiB --rails 4gbit,2.8gbit   what is done with a message, and why
  nmad model overlap.pattern --rails 4gbit  how long a communication phase takes each rank
  nmad info                                 rails, strategies and settings, and where they come from
  nmad install --prefix ~/.local            command and C library, for programs built with pkg-config or CMake
  nmad sim --seed 137 --explain             one run of the simulator, event by event

Every subcommand explains itself with --help. Exit codes: 2 for a command line or a setting that makes no
sense, 1 for what failed, and those of the ranks for nmad run.";

/// NewMadeleine uses every network of a node at once: start, measure and look into it
#[derive(Debug, Parser)]
#[command(name = "nmad", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Two hosts, two unequal rails, every strategy: tables and pictures in about a minute
    Demo(DemoArgs),
    /// Start several ranks of a program, on this machine or on several
    Run(Box<RunArgs>),
    /// Run a program in one of several hosts joined by rails, all on this machine
    Testbed(TestbedArgs),
    /// Run a program in the host that a process keeps alive
    #[command(hide = true)]
    TestbedEnter(EnterArgs),
    /// Measure NewMadeleine beside plain sockets, in the same run between the same ranks
    Bench(BenchArgs),
    /// Measure what the rails can do, and show samples and thresholds
    Sample(SampleArgs),
    /// Tell what would be done with a message, and why
    Explain(ExplainArgs),
    /// Predict a communication phase: the time of each rank, and the imbalance
    Model(ModelArgs),
    /// Tell which rails, strategies and settings there are, and where they come from
    Info(InfoArgs),
    /// Install the command, the C library, its header and what build systems need
    Install(InstallArgs),
    /// Remove what nmad install has put into a folder
    Uninstall(UninstallArgs),
    /// Show what the rails did, from the files that NMAD_TRACE asks for
    Trace(TraceArgs),
    /// Run the engine in a simulated world, with faults, under oracles
    Sim(crate::sim::SimArgs),
}

/// Runs the command line `words`, the program's own name first, and returns the exit code.
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    if let Some(code) = nmad_launch::cli::as_agent(words.get(1..).unwrap_or_default()) {
        return code;
    }
    nmad_words::ended(named(words))
}

/// `nmad run` under the name `name`, on the words after it.
pub fn mpiexec(name: &'static str, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    match nmad_launch::cli::as_agent(&words) {
        Some(code) => code,
        None => nmad_words::ended(launcher(name, words)),
    }
}

fn named(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut words = words.into_iter();
    let name = words.next().unwrap_or_else(|| "nmad".into());
    let name = Path::new(&name).file_name().and_then(|name| name.to_str()).unwrap_or("nmad").to_string();
    if let Some(language) = Language::of(&name) {
        return compile::main(language, words);
    }
    let mut words = words.peekable();
    // Where there are no links, other names are scripts that pass theirs.
    if let Some(language) = words.peek().and_then(|word| Language::of(word.to_str()?)) {
        return compile::main(language, words.skip(1));
    }
    match &*name {
        "mpiexec" => launcher("mpiexec", words),
        "mpirun" => launcher("mpirun", words),
        _ => match parse(words) {
            Ok(cli) => dispatch(cli.command),
            Err(error) => leave(&error),
        },
    }
}

fn launcher(name: &'static str, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    match nmad_launch::cli::parse(name, words) {
        Ok(args) => run(args),
        Err(error) => leave(&error),
    }
}

/// Prints help, or what is wrong with a command line.
fn leave(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    if !error.use_stderr() {
        nmad_words::said(printed);
    }
    ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let mut words: Vec<OsString> = words.collect();
    if words.first().is_some_and(|word| word == "run") {
        let rest = rewrite(words.split_off(1)).map_err(|error| {
            command.build();
            let run = command.find_subcommand_mut("run").expect("it is declared above");
            error.format(run)
        })?;
        words.extend(rest);
    }
    let matches = command.try_get_matches_from_mut(std::iter::once("nmad".into()).chain(words))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn dispatch(command: Command) -> ExitCode {
    match command {
        Command::Run(args) => run(*args),
        Command::Testbed(args) => nmad_testbed::cli::main(&args),
        Command::TestbedEnter(args) => nmad_testbed::cli::enter_main(&args),
        Command::Demo(args) => crate::demo::main(&args),
        Command::Bench(args) => crate::bench::main(&args),
        Command::Sample(args) => crate::sample::main(&args),
        Command::Explain(args) => crate::explain::main(&args),
        Command::Model(args) => crate::model::main(&args),
        Command::Info(args) => crate::info::main(&args),
        Command::Install(args) => crate::install::main(&args, manual::files(&Cli::command())),
        Command::Uninstall(args) => crate::install::uninstall(&args),
        Command::Trace(args) => crate::trace::main(&args),
        Command::Sim(args) => crate::sim::main(&args),
    }
}

fn run(args: RunArgs) -> ExitCode {
    let found = nmad_launch::cli::with_variables(args).and_then(|args| Ok((args, Host::from_env()?)));
    match found {
        Ok((args, hosts)) => match settings::before_run(&args, &hosts) {
            Ok(()) => advised(args, hosts),
            Err(error) => complain("run", &error, SETTING),
        },
        Err(error) => complain("run", &error, usage_or_failure(&error)),
    }
}

/// Runs the job, and tells what would have made it faster if it is asked to (`NMAD_ADVICE`).
fn advised(args: RunArgs, hosts: Vec<Host>) -> ExitCode {
    match advice::asked(&args) {
        Err(error) => complain("run", &error, SETTING),
        Ok(None) => nmad_launch::cli::main(args, hosts),
        Ok(Some(trace)) => {
            let code = nmad_launch::cli::main(args, hosts);
            advice::give(&trace);
            code
        }
    }
}

fn usage_or_failure(error: &LaunchError) -> u8 {
    match error {
        LaunchError::Job(_) => USAGE,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_understands_the_spellings_of_mpiexec() {
        let words = ["run", "-np", "3", "-genv", "A", "1", "prog", "-np", "9"].map(OsString::from);
        let Command::Run(args) = parse(words.into_iter()).unwrap().command else { panic!("it is run") };
        assert_eq!((args.count, args.command.len(), args.genv.len()), (Some(3), 3, 1));
    }

    /// A file of the manual.
    fn file(path: &str) -> String {
        manual::files(&Cli::command())
            .into_iter()
            .find(|(other, _)| other == path)
            .unwrap_or_else(|| panic!("no {path}"))
            .1
    }

    #[test]
    fn each_subcommand_has_a_page_that_names_its_options() {
        let nmad = Cli::command();
        for one in nmad.get_subcommands().filter(|one| !one.is_hide_set()) {
            let page = file(&format!("share/man/man1/nmad-{}.1", one.get_name()));
            for option in
                one.get_arguments().filter(|one| !one.is_hide_set()).filter_map(|one| one.get_long())
            {
                // The manual writes hyphens with a backslash.
                let option = option.replace('-', "\\-");
                assert!(page.contains(&option), "{} --{option}", one.get_name());
            }
        }
        assert!(file("share/man/man1/mpicc.1").contains("abi=mpich"));
        assert!(file("share/man/man1/mpifort.1").contains("Fortran program"));
        assert_eq!(file("share/man/man1/mpif90.1"), ".so man1/mpifort.1\n");
        assert!(file("share/man/man1/mpiexec.1").contains("timeout"));
        assert!(
            !manual::files(&Cli::command()).iter().any(|(path, _)| path.contains("enter")),
            "what is hidden has none"
        );
    }

    #[test]
    fn completions_know_the_subcommands() {
        for path in [
            "share/bash-completion/completions/nmad",
            "share/zsh/site-functions/_nmad",
            "share/fish/vendor_completions.d/nmad.fish",
        ] {
            let text = file(path);
            assert!(text.contains("testbed") && text.contains("uninstall"), "{path}");
        }
        assert!(file("share/bash-completion/completions/mpiexec").contains("--timeout"));
    }
}
