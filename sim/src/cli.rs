//! The command `nmad sim`.

use crate::canary::Canary;
use crate::death::Deaths;
use crate::golden::{decisions, show};
use crate::report::{EachDeath, Report, each_death, run_seed};
use crate::scenario::Options;
use clap::Args;
use nmad_engine::CongestionControl;
use nmad_words::{is_heard, say_line, tell_user};
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Runs from seeds, and the papers' figures
#[derive(Debug, Args)]
pub struct Sim {
    /// One seed, or a range A..B with both ends included
    #[arg(long, default_value = "1..200", value_name = "SEED|A..B", value_parser = seeds)]
    seed: RangeInclusive<u64>,
    /// Print the stage and every event as one line with its virtual time
    #[arg(long)]
    explain: bool,
    /// Print one line of JSON for each seed, or for each row of --scale
    #[arg(long, conflicts_with = "explain")]
    pub json: bool,
    /// Break something on purpose: loses, starves, overfills, neglects, corrupts, unchecked,
    /// doubles, forgets, overlooks, skips, remembers, splits, abandons or hushes
    #[arg(long, value_name = "NAME", value_parser = canary)]
    canary: Option<Canary>,
    /// Use this strategy on all hosts instead of drawing one for each
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// Use this congestion control on all hosts: share, newreno or swift
    #[arg(long, value_name = "NAME", default_value = "share", value_parser = str::parse::<CongestionControl>)]
    congestion: CongestionControl,
    /// Use this many hosts (2 to 64) instead of drawing 2 to 5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=64))]
    hosts: Option<u8>,
    /// Let each application use the library from this many threads (1 to 16) instead of drawing 1 to 4
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    threads: Option<u8>,
    /// Nothing goes wrong: no loss, no delays, no deaths
    #[arg(long)]
    no_faults: bool,
    /// All networks carry datagrams; up to 20 % of them are lost, others repeated, overtaken and damaged
    #[arg(long, conflicts_with = "no_faults")]
    lossy: bool,
    /// Rails fail for a while and come back, or become narrow, while one is whole: nothing may stand still
    #[arg(long, conflicts_with_all = ["lossy", "canary"])]
    outages: bool,
    /// Hosts die, and a launcher reports it: requests that need them end, all others are right
    #[arg(long, conflicts_with = "no_faults")]
    deaths: bool,
    /// Hosts share files, which their threads read and write: all of them must be consistent
    #[arg(long, conflicts_with_all = ["each_death", "death"])]
    files: bool,
    /// Run each seed once for each host and each message that it sends or gets, and let the host die there
    #[arg(long, conflicts_with_all = ["deaths", "no_faults", "outages", "explain", "threads", "lossy"])]
    each_death: bool,
    /// Run each seed as --each-death does, with this death only: host 1 dies after 2000 ns with 1@2000
    #[arg(long, value_name = "HOST@NS", value_parser = death,
        conflicts_with_all = ["each_death", "deaths", "no_faults", "outages", "threads", "lossy"])]
    death: Option<(usize, u64)>,
    /// Instead of seeds: the papers' figures, ours beside theirs; FIGURE is one of `--golden list`
    #[arg(long, value_name = "FIGURE", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["seed", "explain", "json", "canary", "strategy", "congestion", "hosts",
            "threads", "no_faults", "lossy", "outages", "files", "deaths", "each_death", "death"])]
    golden: Option<String>,
    /// Instead of seeds: how good the decisions of jobs were, from the files that NMAD_OBSERVATIONS has made
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["golden", "seed", "explain",
        "json", "canary", "strategy", "congestion", "hosts", "threads", "no_faults", "lossy", "outages",
        "files", "deaths", "each_death", "death", "bless"])]
    observations: Vec<PathBuf>,
    /// Write the figures to sim/golden, or the tables of --scale to scale/golden, instead of printing them
    #[arg(long)]
    pub bless: bool,
}

fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number = |part: &str| {
        part.parse::<u64>()
            .map_err(|_| format!("'{part}' is no seed (expected a number, or A..B such as 1..200)"))
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    if first <= last { Ok(first..=last) } else { Err(format!("{first} is above {last}")) }
}

fn death(text: &str) -> Result<(usize, u64), String> {
    let parts = text.split_once('@').and_then(|(host, at)| Some((host.parse().ok()?, at.parse().ok()?)));
    parts.ok_or_else(|| format!("'{text}' is no death (expected HOST@NS, such as 1@2000)"))
}

fn canary(text: &str) -> Result<Canary, String> {
    Canary::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = Canary::ALL.iter().map(|canary| canary.name()).collect();
        format!("there is no canary of that name (known: {})", names.join(", "))
    })
}

/// Prints how good the decisions were that these files tell of.
fn replayed(files: &[PathBuf]) -> ExitCode {
    let mut traces = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
        match text.and_then(|text| nmad_engine::Observations::parse(&text)) {
            Ok(all) => traces.push((name, all)),
            Err(why) => {
                tell_user(format_args!("nmad sim: {}: {why}", file.display()));
                return ExitCode::from(nmad_words::USAGE);
            }
        }
    }
    let title = "Decisions from recorded observations, against those of hindsight";
    say_line(decisions::of(title, &traces).finish().trim_end());
    ExitCode::SUCCESS
}

/// Sums over the runs of a range.
#[derive(Debug, Default)]
struct Sums {
    seeds: u64,
    runs: u64,
    messages: u64,
    bytes: u64,
    accesses: u64,
    tasks: u64,
    packets: u64,
    resent: u64,
    killed: u64,
    virtual_ns: u64,
}

impl Sums {
    fn add(&mut self, runs: u64, report: &Report) {
        self.seeds += 1;
        self.runs += runs;
        self.messages += report.messages;
        self.bytes += report.bytes;
        self.accesses += report.accesses;
        self.tasks += report.tasks;
        self.packets += report.traffic.packets + report.traffic.chunks;
        self.resent += report.traffic.resent;
        self.killed += report.traffic.killed;
        self.virtual_ns += report.virtual_ns;
    }

    fn describe(&self, wall_s: f64) -> String {
        format!(
            "{} seeds, {} runs, {} messages, {:.1} MB, {} one-sided accesses, {}{} packets and chunks, \
             {} resent, {} links killed, {:.3} s virtual, {wall_s:.1} s wall: no violation",
            self.seeds,
            self.runs,
            self.messages,
            self.bytes as f64 / 1e6,
            self.accesses,
            if self.tasks > 0 { format!("{} tasks with files, ", self.tasks) } else { String::new() },
            self.packets,
            self.resent,
            self.killed,
            self.virtual_ns as f64 / 1e9,
        )
    }
}

impl Sim {
    /// Runs the seeds; failure at the first violation.
    pub fn run(&self) -> ExitCode {
        if let Some(figure) = &self.golden {
            return show::run(Some(figure.as_str()).filter(|name| !name.is_empty()), self.bless);
        }
        if !self.observations.is_empty() {
            return replayed(&self.observations);
        }
        let [hosts, threads] = [self.hosts, self.threads].map(|count| count.map(usize::from));
        let &Sim { no_faults, lossy, outages, files, canary, explain, congestion, .. } = self;
        let strategy = self.strategy.clone();
        let deaths = match self.death {
            Some(death) => Deaths::Single(Some(death)),
            None if self.deaths => Deaths::Drawn,
            None => Deaths::None,
        };
        let options = Options {
            hosts,
            threads,
            no_faults,
            lossy,
            outages,
            deaths,
            files,
            canary,
            strategy,
            congestion,
            explain,
        };
        if let Err(e) = self.check() {
            tell_user(format_args!("nmad sim: {e}"));
            return ExitCode::from(nmad_words::USAGE);
        }
        let begun = Instant::now();
        let progress = std::io::stderr().is_terminal() && !self.explain && !self.json;
        let mut sums = Sums::default();
        for seed in self.seed.clone() {
            if progress {
                show(format_args!("\rseed {seed} of {}..{} ", self.seed.start(), self.seed.end()));
            }
            let EachDeath { runs, death, report } = match self.each_death {
                true => each_death(seed, &options),
                false => EachDeath { runs: 1, death: self.death, report: run_seed(seed, &options) },
            };
            sums.add(runs, &report);
            self.print(&report);
            if let Some(violation) = &report.violation {
                if progress {
                    show("\n");
                }
                tell_user(format_args!("seed {seed}: VIOLATION {violation}"));
                tell_user(format_args!("replay: {}", self.replay(seed, death)));
                return ExitCode::FAILURE;
            }
            if !is_heard() {
                break;
            }
        }
        if progress {
            show("\r\x1b[K");
        }
        if !self.json {
            say_line(sums.describe(begun.elapsed().as_secs_f64()));
        }
        ExitCode::SUCCESS
    }

    fn check(&self) -> Result<(), String> {
        if !self.deaths
            && let Some(canary) = self.canary.filter(|canary| canary.is_of_deaths())
        {
            return Err(format!("the canary '{}' needs hosts that die: add --deaths", canary.name()));
        }
        if !self.files
            && let Some(canary) = self.canary.filter(|canary| canary.is_of_files())
        {
            return Err(format!("the canary '{}' needs files: add --files", canary.name()));
        }
        if self.bless {
            return Err("--bless writes figures: add --golden or --scale".into());
        }
        if self.canary == Some(Canary::Unchecked) && (self.no_faults || !self.lossy) {
            return Err(
                "the canary 'unchecked' needs damaged datagrams: add --lossy, without --no-faults".into()
            );
        }
        let registry = nmad_engine::Registry::default();
        let made = self.strategy.as_ref().map_or(Ok(()), |name| registry.make(name).map(drop));
        made.map_err(|unknown| unknown.to_string())
    }

    fn print(&self, report: &Report) {
        if !report.lines.is_empty() {
            say_line(report.lines.join("\n"));
        }
        if self.json {
            say_line(json(report));
        }
    }

    fn replay(&self, seed: u64, death: Option<(usize, u64)>) -> String {
        let mut command = format!("nmad sim --seed {seed} --explain");
        if let Some(canary) = self.canary {
            command += &format!(" --canary {}", canary.name());
        }
        if let Some(strategy) = &self.strategy {
            command += &format!(" --strategy {strategy}");
        }
        if self.congestion != CongestionControl::default() {
            command += &format!(" --congestion {}", self.congestion.name());
        }
        if let Some(hosts) = self.hosts {
            command += &format!(" --hosts {hosts}");
        }
        if let Some(threads) = self.threads {
            command += &format!(" --threads {threads}");
        }
        if self.no_faults {
            command += " --no-faults";
        }
        if self.lossy {
            command += " --lossy";
        }
        if self.outages {
            command += " --outages";
        }
        if self.files {
            command += " --files";
        }
        if self.deaths {
            command += " --deaths";
        }
        match death {
            Some((host, at)) => command += &format!(" --death {host}@{at}"),
            None if self.each_death => command += " --each-death",
            None => {}
        }
        command
    }
}

/// Shows the progress of the run to a user at the terminal.
fn show(text: impl Display) {
    // A closed standard error is no failure.
    let _ = write!(std::io::stderr(), "{text}");
}

fn json(report: &Report) -> String {
    let t = &report.traffic;
    let violation = report.violation.as_ref().map_or("null".into(), |v| quoted(&v.to_string()));
    let numbers = [
        ("seed", report.seed),
        ("events", report.events),
        ("messages", report.messages),
        ("bytes", report.bytes),
        ("accesses", report.accesses),
        ("file_tasks", report.tasks),
        ("packets", t.packets),
        ("chunks", t.chunks),
        ("wire_bytes", t.bytes),
        ("resent", t.resent),
        ("dropped", t.dropped),
        ("links_killed", t.killed),
        ("virtual_ns", report.virtual_ns),
    ];
    let numbers: Vec<String> = numbers.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let version = nmad_words::JSON_SCHEMA;
    let kind = format!("\"schema\":{version},\"kind\":\"sim\"");
    format!("{{{kind},{},\"hash\":\"{:016x}\",\"violation\":{violation}}}", numbers.join(","), report.hash)
}

/// Text as a JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            c if (c as u32) < 0x20 => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}
