//! `nmad info`: what this process would work with, and where each setting comes from.

mod rails;
mod settings;

use clap::Args;
use newmadeleine::engine::Registry;
use newmadeleine::{Options, Session, SessionError};
use nmad_bench::table::Table;
use serde::Serialize;
use std::process::ExitCode;

use crate::output::{complain, say, say_json, say_line};
use crate::stage::is_in_job;
use rails::{Peer, Rail};
use settings::Setting;

const EXAMPLES: &str = "\
Examples:
  nmad info                       rails, strategies and settings of this machine
  NMAD_STRATEGY=fifo nmad info    the same with a setting changed
  nmad run -n 2 nmad info         inside a job: also which ranks each rail reaches (rank 0 tells)
  nmad info --json                for programs: one object";

/// Tell which rails, strategies and settings there are, and where they come from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Everything there is to tell.
#[derive(Serialize)]
struct Info {
    version: &'static str,
    /// By which right a testbed can be built, or why not.
    testbed: Result<&'static str, String>,
    strategies: Vec<Strategy>,
    settings: Vec<Setting>,
    rails: Vec<Rail>,
    /// In a job: who is there; empty otherwise.
    peers: Vec<Peer>,
}

#[derive(Serialize)]
struct Strategy {
    name: String,
    what: &'static str,
    in_force: bool,
}

/// Finds everything out and prints it.
pub(crate) fn main(args: &InfoArgs) -> ExitCode {
    match gather() {
        Ok(Some(info)) if args.json => say_json(&info),
        Ok(Some(info)) => print(&info),
        Ok(None) => {}
        Err(error) => return complain("info", &error, 1),
    }
    ExitCode::SUCCESS
}

/// None in ranks of a job that leave the talking to rank 0.
fn gather() -> Result<Option<Info>, SessionError> {
    let options = Options::load()?;
    let registry = Registry::default();
    let chosen = options.strategy.clone().unwrap_or_else(|| Options::DEFAULT_STRATEGY.into());
    let strategy = |name: &str| Strategy { name: name.into(), what: what(name), in_force: name == chosen };
    let mut info = Info {
        version: env!("CARGO_PKG_VERSION"),
        testbed: Err("not looked for inside a job".into()),
        strategies: registry.names().map(strategy).collect(),
        settings: settings::of(&options),
        rails: Vec::new(),
        peers: Vec::new(),
    };
    if is_in_job() {
        let session = Session::open_with(&options)?;
        (info.rails, info.peers) = (rails::of_session(&session), rails::peers(&session)?);
        let is_ours = session.rank() == 0;
        session.close()?;
        return Ok(is_ours.then_some(info));
    }
    info.rails = rails::of_machine()?;
    info.testbed = match nmad_testbed::available() {
        Ok(nmad_testbed::Method::Privileged) => Ok("as a privileged user"),
        Ok(nmad_testbed::Method::UserNamespace) => Ok("as anybody, in a user namespace"),
        Err(refused) => Err(refused.to_string()),
    };
    Ok(Some(info))
}

/// A strategy in a few words.
fn what(name: &str) -> &'static str {
    match name {
        "fifo" => "one message, one packet, first rail: the baseline",
        "aggregate" => "what waits for a peer leaves in one packet, on the first rail",
        "greedy" => "whole messages on whichever rail is idle",
        "aggregate_fastest" => "short ones gathered on the fastest rail, long ones on whichever is idle",
        "iso_split" => "long messages in equal parts over all rails",
        "ratio_split" => "long messages in parts as the bandwidths of the rails",
        _ => "",
    }
}

fn print(info: &Info) {
    say_line(format_args!("NewMadeleine {}", info.version));
    match &info.testbed {
        Ok(how) => say_line(format_args!("testbed: can be built here, {how}\n")),
        Err(why) => say_line(format_args!("testbed: {why}\n")),
    }
    say_line(rails::table(&info.rails));
    if !info.peers.is_empty() {
        say_line(rails::peer_table(&info.peers));
    }
    let mut strategies = Table::new("strategies", &["name", "what it does"]).words([1]);
    for Strategy { name, what, in_force } in &info.strategies {
        let mark = if *in_force { " (in force)" } else { "" };
        strategies.row([name.clone(), format!("{what}{mark}")]);
    }
    say_line(strategies);
    say(settings::table(&info.settings));
}
