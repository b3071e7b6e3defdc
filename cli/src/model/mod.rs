//! `nmad model`: reads a pattern or a trace, predicts its communication phase, and shows it, also as it would
//! be if something were different.

pub(crate) mod advice;
mod observed;
mod show;
mod traced;
mod what_if;

use clap::Args;
use newmadeleine::Options;
use newmadeleine::engine::Config;
use nmad_bench::phase::outcome::{CallTimes, Phase, Rail, Setting, Turns};
use nmad_bench::phase::pattern::Pattern;
use nmad_bench::phase::predict::predict;
use nmad_testbed::Rate;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::output::{FAILED, Failure, USAGE, complain, say, say_json};
use traced::{Measured, Traced};
use what_if::WhatIf;

const EXAMPLES: &str = "\
Examples:
  nmad model overlap.pattern --rails 4gbit,2.8gbit
                                            times of each rank, and how uneven they are
  nmad model overlap.pattern --rails 4gbit --what-if eager=512KiB --what-if fragments=64KiB
                                            the same with another eager limit, and with messages cut
  nmad model overlap.pattern --rails 1gbit --what-if rails=4gbit,2.8gbit+parallel-send
                                            several changes at once
  nmad model overlap.pattern                with the profiles of this machine's rails (nmad sample)
  NMAD_TRACE=/tmp/t nmad run -n 4 ./program
  nmad model /tmp/t --what-if eager=1MiB    a run as it was, how well that is predicted, and what would change

A pattern is a text: how many ranks, and what each does in order. Ranks are numbers, or count from the rank
itself with a sign; `rank *` is every rank without a line of its own.
  ranks 4
  rank *: recv -1; send +1 512KiB; compute 2ms; wait; compute 2ms
  rank 3: recv -1; send +1 8KiB; compute 2ms; wait; compute 2ms
Steps: recv FROM, send TO LEN (blocks), isend TO LEN, compute TIME, wait. A rank that computes answers
nobody: a message above the eager limit waits for it.";

/// Predict a communication phase: the time of each rank, and the imbalance
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ModelArgs {
    /// The file of the pattern, or the trace of all ranks (NMAD_TRACE) of an MPI program
    #[arg(value_name = "PATTERN|TRACE")]
    pattern: PathBuf,
    /// Rails of every rank by their rates: 4gbit, 500mbit [default: the measured rails of this machine]
    #[arg(long, value_name = "RATE,...", value_delimiter = ',')]
    rails: Vec<Rate>,
    /// Latency of rails that are given by their rates, in microseconds
    #[arg(long, value_name = "US", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    latency: u64,
    /// A change to compare with: eager=SIZE, rails=RATE,..., fragments=SIZE or parallel-send, several joined
    /// by +; may be repeated
    #[arg(long, value_name = "CHANGE")]
    what_if: Vec<WhatIf>,
    /// Print one JSON object for each setting
    #[arg(long)]
    json: bool,
    /// Write a picture: what each rank does when
    #[arg(long, value_name = "OUT")]
    svg: Option<PathBuf>,
}

/// A setting and what came of it.
struct Predicted {
    name: String,
    phase: Phase,
}

/// Predicts and shows.
pub(crate) fn main(args: &ModelArgs) -> ExitCode {
    let input = match input(&args.pattern) {
        Ok(input) => input,
        Err(why) => return complain("model", &why, USAGE),
    };
    let all = match setting(args, &input).and_then(|setting| all(args, &input, &setting)) {
        Ok(all) => all,
        Err(failure) => return failure.complain("model"),
    };
    match args.json {
        true => all.iter().for_each(|one| say_json("model", &show::line(one, &input.measured))),
        false => show::tables(&all, &input.measured).into_iter().for_each(say),
    }
    let Some(path) = &args.svg else { return ExitCode::SUCCESS };
    let written =
        show::picture(&all).and_then(|svg| nmad_words::file::write(path, svg).map_err(|why| why.to_string()));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => complain("model", &format!("cannot write {}: {why}", path.display()), FAILED),
    }
}

/// The pattern of a file, or what a trace says.
fn input(path: &Path) -> Result<Traced, String> {
    if traced::is_trace(path) {
        return traced::traced(path);
    }
    Ok(Traced {
        pattern: read(path)?,
        eager_max: None,
        measured: Vec::new(),
        rails: None,
        names: Vec::new(),
        calls: CallTimes::default(),
        swallows: 0,
        invites: false,
        turns: Turns::default(),
    })
}

fn read(path: &Path) -> Result<Pattern, String> {
    let text =
        std::fs::read_to_string(path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
    text.parse().map_err(|why| format!("{}: {why}", path.display()))
}

fn setting(args: &ModelArgs, input: &Traced) -> Result<Setting, Failure> {
    let rails = match (&*args.rails, &input.rails) {
        ([], Some(observed)) => observed.clone(),
        ([], None) => {
            crate::explain::forecasts_of_machine(&Options::load()?)?.into_iter().map(Rail::from).collect()
        }
        (rates, _) => what_if::nominal(rates, args.latency)?.into_iter().map(Rail::from).collect(),
    };
    Ok(setting_of(input, rails, input.eager_max))
}

/// Rails with what else the input says.
fn setting_of(input: &Traced, rails: Vec<Rail>, limit: Option<u64>) -> Setting {
    let limit = limit.unwrap_or_else(|| eager_max(&rails));
    let of_sockets = Setting::of_sockets(rails, limit);
    let swallows = of_sockets.swallows.max(input.swallows);
    Setting { calls: input.calls, invites: input.invites, swallows, turns: input.turns, ..of_sockets }
}

/// The longest message that goes without asking: as the slowest rail's profile says.
fn eager_max(rails: &[Rail]) -> u64 {
    let measured = rails.iter().filter_map(|rail| rail.forecast.profile().thresholds());
    let shortest = measured.map(|thresholds| thresholds.rendezvous_min.saturating_sub(1)).min();
    shortest.unwrap_or(Config::EAGER_MAX as u64)
}

/// The pattern as it is, and with each change.
fn all(args: &ModelArgs, input: &Traced, setting: &Setting) -> Result<Vec<Predicted>, Failure> {
    let one = |name: String, setting: &Setting| match predict(&input.pattern, setting) {
        Ok(phase) => Ok(Predicted { name, phase }),
        Err(stuck) => Err(Failure::from(format!("{}, {name}: {stuck}", args.pattern.display()))),
    };
    let mut all = vec![one("as it is".into(), setting)?];
    for change in &args.what_if {
        all.push(one(change.to_string(), &change.applied(setting, args.latency)?)?);
    }
    Ok(all)
}
