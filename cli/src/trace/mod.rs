//! `nmad trace`: what the rails of each rank did, from the files that `NMAD_TRACE` asks for.

mod bars;
mod records;
mod show;

use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) use bars::bars;
pub(crate) use records::Records;

use crate::output::{complain, say, say_line};

const EXAMPLES: &str = "\
Examples:
  NMAD_TRACE=/tmp/t nmad run -n 2 ./program     each rank writes /tmp/t.RANK when it ends
  nmad trace /tmp/t                             all ranks, one line for each thing that passed a rail
  nmad trace /tmp/t.0 --svg rails.svg           a picture: what each rail carried when
  nmad trace /tmp/t --json > t.json             for chrome://tracing and ui.perfetto.dev";

/// Show what the rails did, from the files that NMAD_TRACE asks for
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    /// The file of one rank (FILE.0), or FILE for those of all ranks
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the trace-event format of Chrome's viewer and of Perfetto
    #[arg(long, conflicts_with_all = ["svg", "text"])]
    json: bool,
    /// Write a picture: what each rail carried when
    #[arg(long, value_name = "OUT", conflicts_with = "text")]
    svg: Option<PathBuf>,
    /// Print a line for each thing that passed (this is the default)
    #[arg(long)]
    text: bool,
}

/// Reads the files and shows them.
pub(crate) fn main(args: &TraceArgs) -> ExitCode {
    match read(&args.files).and_then(|all| show(args, &all)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => complain("trace", &why, 1),
    }
}

fn show(args: &TraceArgs, all: &[Records]) -> Result<(), String> {
    if args.json {
        say_line(show::chrome(all));
        return Ok(());
    }
    let Some(path) = &args.svg else {
        say(show::text(all));
        return Ok(());
    };
    let svg = show::picture(all).map_err(|error| error.to_string())?;
    std::fs::write(path, svg).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn read(files: &[PathBuf]) -> Result<Vec<Records>, String> {
    let paths = files.iter().flat_map(|file| ranks_of(file));
    paths.map(|path| Records::read(&path)).collect()
}

/// FILE itself if it is there, else FILE.0, FILE.1 and so on.
fn ranks_of(file: &Path) -> Vec<PathBuf> {
    let of_rank = |rank: u32| {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{rank}"));
        PathBuf::from(name)
    };
    let ranks: Vec<PathBuf> = (0..).map(of_rank).take_while(|path| path.exists()).collect();
    if file.exists() || ranks.is_empty() { vec![file.to_owned()] } else { ranks }
}
