//! `nmad trace`: what ranks and their rails did, from the files that `NMAD_TRACE` asks for.

mod bars;
mod deaths;
mod drawing;
mod files;
mod html;
mod links;
mod messages;
mod otf2;
mod paraver;
mod perfetto;
mod record;
mod records;
mod report;
mod show;
mod states;

use clap::Args;
use nmad_bench::phase::pattern::parse_time;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) use bars::bars;
pub(crate) use links::Links;
pub(crate) use messages::{Message, align};
pub(crate) use records::{Call, Machine, Record, Records, What};
pub(crate) use states::State;

use crate::output::{FAILED, complain, say, say_line, tell_user};

const EXAMPLES: &str = "\
Examples:
  nmad trace --html report.html -- nmad run -n 4 ./program
                                                run it, and write a report
  NMAD_TRACE=/tmp/t nmad run -n 2 ./program     each rank writes /tmp/t.RANK when it ends
  nmad trace /tmp/t --summary                   time of ranks and rails, protocols and why
  nmad trace /tmp/t                             all ranks, one line for each thing that passed a rail
  nmad trace /tmp/t --paraver /tmp/p            /tmp/p.prv, /tmp/p.pcf and /tmp/p.row
  nmad trace /tmp/t --otf2 /tmp/o               /tmp/o/traces.otf2, for Vampir and otf2-print
  nmad trace /tmp/t.0 --svg rails.svg --from 2ms --to 3ms
                                                a picture: what each rail carried when
  nmad trace /tmp/t --json > t.json             for ui.perfetto.dev and chrome://tracing";

/// Show what ranks and their rails did, from the files that NMAD_TRACE asks for
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    /// The file of one rank (FILE.0), or FILE or a folder for those of all ranks
    #[arg(required_unless_present = "command", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the trace-event format of Perfetto and of Chrome's viewer
    #[arg(long)]
    json: bool,
    /// Write a picture: what each rail carried when
    #[arg(long, value_name = "OUT")]
    svg: Option<PathBuf>,
    /// Write a report: one file that needs no network
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Write STEM.prv, STEM.pcf and STEM.row for Paraver
    #[arg(long, value_name = "STEM")]
    paraver: Option<PathBuf>,
    /// Write an archive of OTF2 into this folder, for Vampir and others; its library has to be installed
    #[arg(long, value_name = "DIR")]
    otf2: Option<PathBuf>,
    /// Print the time of each rank and rail, the imbalance, and the protocols and why
    #[arg(long, conflicts_with = "json")]
    summary: bool,
    /// Print a line for each thing that passed (this is the default)
    #[arg(long, conflicts_with_all = ["json", "summary"])]
    text: bool,
    /// Leave out what ended before this time since the beginning (2ms, 150us)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<u64>,
    /// Leave out what began after this time since the beginning
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<u64>,
    /// Run this command, and show its trace
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "files")]
    command: Vec<String>,
}

/// The traces of a job, and the messages that they tell of.
pub(crate) struct Job {
    pub(crate) ranks: Vec<Records>,
    pub(crate) messages: Vec<Message>,
}

/// Reads the files and shows them; before that it runs the command, if there is one.
pub(crate) fn main(args: &TraceArgs) -> ExitCode {
    let shown = match &*args.command {
        [] => read(&args.files).and_then(|job| show(args, job)).map(|()| ExitCode::SUCCESS),
        command => record::run(args, command),
    };
    shown.unwrap_or_else(|why| complain("trace", &why, FAILED))
}

impl TraceArgs {
    /// Files that are written.
    fn outputs(&self) -> impl Iterator<Item = PathBuf> {
        let paraver = self.paraver.as_ref().map(|stem| stem.with_added_extension("prv"));
        [self.svg.clone(), self.html.clone(), paraver].into_iter().flatten()
    }

    /// Whether something is shown otherwise than by lines.
    fn has_form(&self) -> bool {
        self.json || self.summary || self.otf2.is_some() || self.outputs().next().is_some()
    }
}

fn show(args: &TraceArgs, mut job: Job) -> Result<(), String> {
    for rank in &job.ranks {
        if let Some(cut) = &rank.cut {
            tell_user(format_args!("the trace {} is cut short: {cut}; what is there is shown", rank.name));
        }
    }
    job.cut(args.from, args.to);
    let Job { ranks, messages } = &job;
    let write = |path: &Path, text: String| {
        nmad_words::file::write(path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    if let Some(path) = &args.svg {
        write(path, show::picture(ranks).map_err(|error| error.to_string())?)?;
    }
    if let Some(path) = &args.html {
        write(path, html::page(ranks, messages, &args.command))?;
    }
    if let Some(stem) = &args.paraver {
        paraver::write(ranks, messages, stem)?;
    }
    if let Some(folder) = &args.otf2 {
        otf2::write(ranks, messages, folder)?;
    }
    if args.json {
        say_line(perfetto::events(ranks, messages));
    }
    if args.summary {
        let tables = show::tables(&report::report(ranks, messages)).into_iter();
        tables.chain(files::table(ranks)).chain(deaths::table(ranks)).for_each(say);
    }
    if args.text || !args.has_form() {
        say(show::text(ranks));
    }
    Ok(())
}

/// The job of these files, its clocks aligned.
pub(crate) fn read(files: &[PathBuf]) -> Result<Job, String> {
    let paths = files.iter().flat_map(|file| ranks_of(file));
    let mut ranks: Vec<Records> = paths.map(|path| Records::read(&path)).collect::<Result<_, _>>()?;
    let messages = align(&mut ranks);
    Ok(Job { ranks, messages })
}

impl Job {
    /// Leaves out what is not between two times since the beginning.
    fn cut(&mut self, from_ns: Option<u64>, to_ns: Option<u64>) {
        if from_ns.is_none() && to_ns.is_none() {
            return;
        }
        let origin = show::origin(&self.ranks);
        let from = origin.saturating_add(from_ns.unwrap_or(0));
        let to = origin.saturating_add(to_ns.unwrap_or(u64::MAX));
        for rank in &mut self.ranks {
            rank.list.retain(|record| (from..=to).contains(&record.at_ns));
            rank.receipts.retain(|receipt| (from..=to).contains(&receipt.at_ns));
            rank.accesses.retain(|access| access.until_ns >= from && access.at_ns <= to);
            rank.calls.retain(|call| call.until_ns >= from && call.at_ns <= to);
            rank.calls.iter_mut().for_each(|call| {
                (call.at_ns, call.until_ns) = (call.at_ns.max(from), call.until_ns.min(to));
            });
        }
        self.messages
            .retain(|message| message.arrived_ns.unwrap_or(message.sent_ns) >= from && message.sent_ns <= to);
    }
}

/// FILE itself if it is there, those in a folder, else FILE.0, FILE.1 and so on.
fn ranks_of(file: &Path) -> Vec<PathBuf> {
    let file = if file.is_dir() { file.join("trace") } else { file.to_owned() };
    let ranks: Vec<PathBuf> = (0..)
        .map(|rank: u32| file.with_added_extension(rank.to_string()))
        .take_while(|path| path.exists())
        .collect();
    if file.exists() || ranks.is_empty() { vec![file] } else { ranks }
}
