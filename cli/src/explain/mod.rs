//! `nmad explain`: what would be done with a message, and why; without a size, which protocol serves which
//! sizes.
//!
//! The decision is made by the very strategy that a job uses, from the same profiles; protocols are those
//! that the engine of an open session plans.

mod decision;
mod protocols;

use clap::Args;
use newmadeleine::engine::{Forecast, Limits, PeerId, RailId};
use newmadeleine::sampling::{Distance, known};
use newmadeleine::{Options, Session, SessionError};
use nmad_testbed::Rate;
use std::process::ExitCode;

use crate::output::{Failure, USAGE, complain, say, say_json, tell_user};
use crate::settings;
use crate::size;
use crate::stage::{Stage, is_in_job};
use decision::{Lane, Question, decide};

const EXAMPLES: &str = "\
Examples:
  nmad explain                                  protocols by size between two ranks of this host
  nmad explain --rails 4gbit,2.8gbit            the same over each rail of a testbed, and over both
  nmad explain 4MiB                             over the interfaces of this machine, to another host
  nmad explain 256KiB --rails 4gbit,2.8gbit     over the rails of a testbed
  nmad explain 4MiB --rails 4gbit,2.8gbit --busy r0=3000
                                                while r0 has something to do for three milliseconds
  nmad run -n 2 nmad explain 64KiB --json       in a job: from rank 0 to rank 1

NMAD_EXPLAIN=1 tells the same of every message that a program sends.";

/// Tell what would be done with a message, and why
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Length of the message: 8, 64KiB, 4MiB; without it: the protocols of all sizes
    #[arg(value_name = "SIZE", value_parser = size::parse)]
    len: Option<usize>,
    /// A rail, and for how many microseconds it has something to do already
    #[arg(long, value_name = "RAIL=US,...", value_delimiter = ',', value_parser = busy)]
    busy: Vec<(String, f64)>,
    /// The strategy; otherwise the one that is configured
    #[arg(long, value_name = "NAME")]
    strategy: Option<String>,
    /// The rank that the message goes to, in a job
    #[arg(long, value_name = "RANK", default_value_t = 1, value_parser = another)]
    to: u32,
    /// Rails of a testbed to be built: 4gbit, 500mbit, max (no limit)
    #[arg(long, value_name = "RATE,...", value_delimiter = ',')]
    rails: Vec<Rate>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Answers, here or as a rank of a testbed.
pub(crate) fn main(args: &ExplainArgs) -> ExitCode {
    // Before anything is built or measured.
    if let Err(why) = settings::strategies(args.strategy.as_slice()) {
        return complain("explain", &why, USAGE);
    }
    if !is_in_job() && (args.len.is_none() || !args.rails.is_empty()) {
        let words: Vec<_> = std::env::args_os().skip(1).collect();
        let stage = if args.rails.is_empty() { Stage::here(&[]) } else { Stage::build(&args.rails) };
        return stage.run(&words, &[]);
    }
    let Some(len) = args.len else { return all_sizes(args) };
    let answer = |question: Option<Question>| question.map(|question| decide(&question)).transpose();
    let answered = question(args, len).and_then(|question| Ok(answer(question)?));
    match answered {
        Ok(Some(answer)) if args.json => say_json("explain", &answer),
        Ok(Some(answer)) => say(answer),
        Ok(None) => {}
        Err(failure) => return failure.complain("explain"),
    }
    ExitCode::SUCCESS
}

/// The protocols of all sizes, by rank 0.
fn all_sizes(args: &ExplainArgs) -> ExitCode {
    if !args.busy.is_empty() {
        return complain("explain", &"--busy needs a size", USAGE);
    }
    let found = Options::load().map_err(Failure::from).and_then(|options| {
        let strategy = args.strategy.clone().or(options.strategy);
        Ok(protocols::ask(&Options { strategy, ..options }, args.to)?)
    });
    match found {
        Ok(Some(answer)) if args.json => say_json("protocols", &answer),
        Ok(Some(answer)) => say(answer),
        Ok(None) => {}
        Err(failure) => return failure.complain("explain"),
    }
    ExitCode::SUCCESS
}

/// None in ranks of a job that leave the talking to rank 0.
fn question(args: &ExplainArgs, len: usize) -> Result<Option<Question>, Failure> {
    let options = Options::load()?;
    let strategy = args.strategy.clone().or_else(|| options.strategy.clone());
    let strategy = strategy.unwrap_or_else(|| Options::DEFAULT_STRATEGY.into());
    let registry = options.registry(std::slice::from_ref(&strategy))?;
    let (lanes, eager_max) = if is_in_job() {
        match of_session(&options, args.to)? {
            Some(found) => found,
            None => return Ok(None),
        }
    } else {
        (of_machine(&options)?, options.eager_max.map(|len| len as u64))
    };
    let mut question = Question { len: len as u64, to: args.to, strategy, registry, lanes, eager_max };
    for (rail, us) in &args.busy {
        let is_it = |lane: &&mut Lane| lane.name == *rail || lane.name.split('/').nth(1) == Some(rail);
        let names = question.lanes.iter().map(|lane| lane.name.clone()).collect::<Vec<_>>().join(", ");
        let lane = question.lanes.iter_mut().find(is_it);
        lane.ok_or_else(|| format!("--busy: there is no rail {rail} (there are: {names})"))?.busy_ns =
            (us * 1e3) as u64;
    }
    Ok(Some(question))
}

/// Rails, and the longest message that is not announced.
type Lanes = (Vec<Lane>, Option<u64>);

/// The rails from rank 0 to another, as its engine sees them, and the longest message that is not announced.
fn of_session(options: &Options, to: u32) -> Result<Option<Lanes>, SessionError> {
    let session = Session::open_with(options)?;
    let found = if session.rank() == 0 { Some(rails_to(&session, to)?) } else { None };
    session.close()?;
    Ok(found)
}

/// That there is such a rank.
fn another_rank(session: &Session, to: u32) -> Result<(), SessionError> {
    match to < session.size() {
        true => Ok(()),
        false => Err(SessionError::NoSuchRank { rank: to, size: session.size() }),
    }
}

fn rails_to(session: &Session, to: u32) -> Result<(Vec<Lane>, Option<u64>), SessionError> {
    another_rank(session, to)?;
    let lane = |(number, rail): (usize, newmadeleine::RailInfo)| {
        let id = RailId(number as u8);
        let forecast = session.node().with(|engine| engine.inspect().forecast(id, PeerId(to)).cloned())?;
        let Limits { bandwidth, latency_ns, .. } = rail.limits;
        Some(Lane { name: rail.name, forecast, busy_ns: 0, bandwidth, latency_ns })
    };
    let lanes = session.rails().into_iter().enumerate().filter_map(lane).collect();
    let eager_max = session.node().with(|engine| engine.inspect().eager_max(PeerId(to)));
    Ok((lanes, eager_max.map(|len| len as u64)))
}

/// The measured rails of this machine.
pub(crate) fn forecasts_of_machine(options: &Options) -> Result<Vec<Forecast>, Failure> {
    Ok(of_machine(options)?.into_iter().map(|lane| lane.forecast).collect())
}

/// The interfaces of this machine of which there are profiles.
fn of_machine(options: &Options) -> Result<Vec<Lane>, Failure> {
    if let Some(problem) = options.problems().into_iter().next() {
        return Err(problem.into());
    }
    let names = crate::info::rails_of_machine(options)?;
    let (list, complaints) = known(options, &names);
    complaints.iter().for_each(|text| tell_user(format_args!("nmad explain: {text}")));
    let far = list.into_iter().filter(|info| info.key.distance == Distance::OtherHost);
    let lane = |info: newmadeleine::sampling::ProfileInfo| {
        let (profile, _) = info.known?;
        let (bandwidth, latency_ns) = (profile.body().bandwidth(), profile.eager().start_ns());
        Some(Lane { name: info.rail, forecast: Forecast::new(profile), busy_ns: 0, bandwidth, latency_ns })
    };
    let lanes: Vec<Lane> = far.filter_map(lane).collect();
    match lanes.is_empty() {
        true => Err(String::from(
            "no interface of this machine was measured yet: nmad sample does it, in a job of two nodes \
                     or in a testbed; nmad explain SIZE --rails 4gbit,2.8gbit asks of a testbed",
        )
        .into()),
        false => Ok(lanes),
    }
}

/// A rank that a message from rank 0 may go to.
fn another(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("rank 0 is where the message comes from: name another one".into()),
        Ok(rank) => Ok(rank),
        Err(_) => Err("write a rank, as 1".into()),
    }
}

fn busy(text: &str) -> Result<(String, f64), String> {
    let parts = text.split_once('=').and_then(|(rail, us)| Some((rail.to_string(), us.parse::<f64>().ok()?)));
    parts
        .filter(|(rail, us)| !rail.is_empty() && (0.0..1e9).contains(us))
        .ok_or_else(|| "write a rail and microseconds, as r0=300".into())
}
